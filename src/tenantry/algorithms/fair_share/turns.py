"""Whose turn it is among a few or very many: the one structure that all three levels share.

A heap that is cleaned where it is looked at. A member that was charged keeps its place, which is now too
early, until it comes up and is put where it belongs; one that left stays behind as a dead entry until it
comes up or until dead entries are the majority. So blocked members cost nothing between two changes.
"""

from heapq import heapify, heappop, heappush, heapreplace
from math import inf
from typing import Any, Generic, TypeVar, cast

Entry = tuple[float, int, Any]
_SPARE = 64  # dead entries that are not worth a sweep


class Member:
    """Something that takes turns. ``used``: the slot-seconds it was charged, its place in the order."""

    __slots__ = ("entry", "used")

    def __init__(self) -> None:
        self.used = 0.0
        self.entry: Entry | None = None  # its one live entry; None: it takes no turns now


M = TypeVar("M", bound=Member)


class Turns(Generic[M]):
    """The member that used least is next; among equals, the one that stands there longest.

    ``time`` is the place at which the last one was picked. All calls are O(log n) amortised or better.
    """

    __slots__ = ("_heap", "_serial", "count", "time")

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._serial = 0
        self.count = 0
        self.time = 0.0

    def enter(self, member: M, credit: float) -> None:
        """``member`` takes turns from now on, with at most ``credit`` slot-seconds to its name (law F5)."""
        member.used = max(member.used, self.time - credit)
        self.join(member)

    def join(self, member: M) -> None:
        """``member`` takes turns from now on, at the place that it has."""
        self.count += 1
        self._push(member)

    def leave(self, member: M) -> None:
        member.entry = None
        self.count -= 1
        if len(self._heap) > 2 * self.count + _SPARE:
            self._heap = [entry for entry in self._heap if entry[2].entry is entry]
            heapify(self._heap)

    def refund(self, member: M, amount: float, credit: float) -> None:
        """Take ``amount`` back from what ``member`` was charged too much.

        While it takes turns nothing of that is lost: others ran ahead because it seemed to have used more
        than it had, so it is ``time`` that goes back. What it has for having been away is clamped when it
        enters.
        """
        member.used -= amount
        if member.entry is not None:
            self.time = min(self.time, member.used + credit)
            self.moved(member)

    def moved(self, member: M) -> None:
        """``member`` may have come to an earlier place. A later one is noticed when it comes up."""
        if member.entry is not None and member.used < member.entry[0]:
            self._push(member)

    def first(self) -> M:
        """The next in turn. There must be one (``count``)."""
        heap = self._heap
        while True:
            entry = heap[0]
            member = entry[2]
            if member.entry is not entry:
                heappop(heap)
            elif member.used > entry[0]:
                self._serial += 1
                member.entry = entry = (member.used, self._serial, member)
                heapreplace(heap, entry)
            else:
                return cast(M, member)

    def second(self) -> float:
        """A lower bound of the place of the one after the first; inf when there is none."""
        heap = self._heap
        if self.count < 2:
            return inf
        return heap[1][0] if len(heap) == 2 else min(heap[1][0], heap[2][0])

    def _push(self, member: M) -> None:
        self._serial += 1
        member.entry = entry = (member.used, self._serial, member)
        heappush(self._heap, entry)
        if len(self._heap) > 4 * self.count + _SPARE:
            self._heap = [entry for entry in self._heap if entry[2].entry is entry]
            heapify(self._heap)
