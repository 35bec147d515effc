"""Kafka's own partitioner for keyed records: murmur2 of the key's bytes, made positive, modulo the count.

For those who have it: to find where a key lies today, and to say what leaving it would move.

Source: Austin Appleby's MurmurHash2 with Kafka's seed, as in ``org.apache.kafka.common.utils.Utils.murmur2``
and ``toPositive``; the same as librdkafka's ``murmur2`` and aiokafka's default. (librdkafka's *default*,
``consistent_random``, is CRC-32 and differs.)
"""

from collections.abc import Iterable
from operator import index

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash as an unsigned 32-bit number. Pure, O(length). Java shows the same bits as a signed one."""
    value = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        value = value * _M & _MASK ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


def murmur2_partition(key: str | bytes, partitions: int | Iterable[int | str]) -> int:
    """Where Kafka's default partitioner puts a record with ``key``. Pure, O(length), O(n log n) in a listing.

    ``partitions`` is their count, or their ids in any order, as numbers or as digits: they are put in order
    first, since clients list them in whatever order the broker answered. Raises ValueError for none.
    """
    data = key.encode() if isinstance(key, str) else key
    positive = murmur2(data) & 0x7FFFFFFF
    if isinstance(partitions, int):
        numbers: range | list[int] = range(partitions)
    else:
        numbers = sorted({int(each) if isinstance(each, str) else index(each) for each in partitions})
    if not numbers:
        raise ValueError("a key can only be put on one of at least one partition")
    return numbers[positive % len(numbers)]
