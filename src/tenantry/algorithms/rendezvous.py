"""Rendezvous hashing (highest random weight): every key ranks all nodes, and the ranking never changes.

Each node is scored by ``hash(key, node)``; the ranking is by falling score. Taking the first k and later the
first k + 1 only ever adds a node, and a new node takes from each old one its equal part and moves nothing
between old ones.

Source: D. Thaler and C. Ravishankar, "Using Name-Based Mappings to Increase Hit Rates" (IEEE/ACM ToN 6(1),
1998). The hash is unkeyed BLAKE2b (RFC 7693) of eight bytes, read big-endian, over the UTF-8 parts joined by
0x1F, so that ("ab", "c") and ("a", "bc") differ. It is the same in every process, on every machine, in every
language that has BLAKE2b; Python's own ``hash`` is salted for each process and must never be used for this.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from operator import itemgetter

SEPARATOR = "\x1f"
"""Stands between the parts of what is hashed."""


def stable_hash(*parts: str) -> int:
    """A hash of ``parts`` in [0, 2**64). Pure, O(length).

    Raises UnicodeEncodeError for text that UTF-8 cannot hold (a lone surrogate).
    """
    return int.from_bytes(blake2b(SEPARATOR.join(parts).encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, slots=True)
class Candidates:
    """Nodes that keys rank, prepared once: their numbers, rising, and what is hashed for each."""

    numbers: tuple[int, ...]
    suffixes: tuple[bytes, ...]

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "Candidates":
        """The same candidates whatever the order of ``numbers``; each counts once."""
        ordered = tuple(sorted(set(numbers)))
        return cls(ordered, tuple(f"{SEPARATOR}{number}".encode() for number in ordered))

    def first(self, key: str, count: int) -> tuple[int, ...]:
        """The ``count`` nodes that ``key`` ranks highest, best first; all of them when there are fewer.

        Of two equal scores (one chance in 2**64) the lower number wins. Pure; O(n) for one, else O(n log n).
        Raises UnicodeEncodeError for text that UTF-8 cannot hold.
        """
        prefix = key.encode()
        # eight bytes compare as the big-endian numbers that they are: no conversion is needed to rank
        scores = [blake2b(prefix + suffix, digest_size=8).digest() for suffix in self.suffixes]
        if count == 1 and scores:
            return (self.numbers[scores.index(max(scores))],)
        ranked = sorted(zip(scores, self.numbers, strict=True), key=itemgetter(0), reverse=True)
        return tuple(number for _, number in ranked[:count])
