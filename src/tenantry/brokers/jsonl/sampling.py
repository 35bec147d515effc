"""Lines at random out of a file that is too large to be read for them.

The file is read at places that chance chooses, one in each of many equal parts, and of every line that begins
within a stretch behind such a place each is as likely to be taken. So a line's chance does not depend on how
long it is, nor on what stands before it. What does not hold: lines of one stretch are neighbours, and where
neighbours are alike a sample says a little less than its size.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final

from tenantry.algorithms.reservoir import sampled
from tenantry.brokers.jsonl.stream import Line, from_offset, lines

STRETCH: Final = 65_536
"""Bytes behind a place in which a line may begin."""


def at_chance(file: BinaryIO, size: int, limit: int, uniform: Callable[[float, float], float]) -> list[Line]:
    """``limit`` lines of the first ``size`` bytes, by where they begin; fewer where there are no more. Their
    numbers are not known. O(``limit`` * (:data:`STRETCH` + the longest line)) of bytes read."""
    part, stretch = size / max(1, limit), STRETCH
    while stretch < part:
        places = [int(uniform(n * part, (n + 1) * part)) for n in range(limit)]
        found = sampled(_beginning_at(file, size, places, stretch), limit, uniform)
        if len(found) == limit:
            return found
        stretch *= 8  # its lines are so long that few of them begin in a stretch
    return sampled(lines(from_offset(file, 0, size)), limit, uniform)


def _beginning_at(file: BinaryIO, size: int, places: Sequence[int], stretch: int) -> Iterator[Line]:
    """The lines that begin up to ``stretch`` bytes behind one of ``places``, which rise; each once."""
    reached = 0
    for place in places:
        begin = max(0, place - 1)  # the byte before tells whether a line begins here
        for line in lines(from_offset(file, begin, size), start=begin):
            if line.start >= place + stretch:
                break
            if line.start >= max(place, reached):
                reached = line.end + 1
                yield line
