"""Ordering keys: jobs of one key in one lane and class run one at a time, in submit order.

Each key falls into one of 64 ordered flows of its lane and class by a stable hash. A flow runs one job at a
time, so two keys that share a flow also wait for each other: that is the price of a planner that never reads
a job, and it bounds a lane to 64 ordered jobs in flight a class.
"""

from hashlib import blake2b

BUCKETS = 64
UNORDERED = -1


def bucket(ordering_key: str | None) -> int:
    """The ordered flow of a key, 0 to 63, or -1 without one. The same on every machine."""
    if ordering_key is None:
        return UNORDERED
    return blake2b(ordering_key.encode(), digest_size=8).digest()[-1] % BUCKETS
