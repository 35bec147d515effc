"""Every port in memory: the default for library use, and the oracle that other adapters are tested against.

Nothing here outlives its process. Each class holds the same promises as its database sibling, short of
durability, and both are held to them by one conformance suite.
"""
