"""Jump consistent hashing: a bucket in [0, n) for a key, of which n + 1 buckets move only 1/(n + 1).

Source: J. Lamping and E. Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm" (2014), whose constants
these are. Buckets are numbers without names: only the last one can be added or taken away.
"""

_MULTIPLIER = 2862933555777941757
_MASK = (1 << 64) - 1
_SCALE = float(1 << 31)


def jump(key: int, buckets: int) -> int:
    """The bucket of ``key``, a uniform number in [0, 2**64), among ``buckets`` >= 1. Pure, O(log buckets).

    From n to m > n buckets a key stays with probability n/m, else goes to one of the new ones.
    """
    bucket, after = 0, 0
    while after < buckets:
        bucket = after
        key = (key * _MULTIPLIER + 1) & _MASK
        # the paper's doubles, in the paper's order, so that other implementations agree in every case
        after = int((bucket + 1) * (_SCALE / ((key >> 33) + 1)))
    return bucket
