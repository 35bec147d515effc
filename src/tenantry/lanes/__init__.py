"""A lane is one tenant's way to one target. It is never shared.

Today this room holds what the queue needs of it: the lane's identity, and whose fault an outcome was. The
shaper and the breaker of a lane live here too when they come.
"""
