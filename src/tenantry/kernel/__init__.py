"""What every room may use, and nothing else: identities, time, randomness, events, errors.

Standard library only. Nothing here knows a component; a name belongs here when at least two rooms that
may not import each other need it.
"""
