"""Pure rules, unaware of each other and of the rooms that use them.

No clock, no chance, no I/O: ``now`` and drawn numbers are arguments. Each file opens with its theory and
its source.
"""
