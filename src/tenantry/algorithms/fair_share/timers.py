"""Instants at which something happens by itself. One that became pointless is dropped, never waited for."""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")
_PRUNE_AT = 1_000


class Timers(Generic[T]):
    """``alive(what, at)`` says whether a timer still means something. O(log n) amortised."""

    __slots__ = ("_alive", "_heap", "_prune_at", "_serial")

    def __init__(self, alive: Callable[[T, float], bool]) -> None:
        self._alive = alive
        self._heap: list[tuple[float, int, T]] = []
        self._serial = 0
        self._prune_at = _PRUNE_AT

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, at: float, what: T) -> None:
        self._serial += 1
        heappush(self._heap, (at, self._serial, what))
        if len(self._heap) > self._prune_at:
            self._heap = [timer for timer in self._heap if self._alive(timer[2], timer[0])]
            heapify(self._heap)
            self._prune_at = _PRUNE_AT + 2 * len(self._heap)

    def due(self, now: float) -> Iterator[T]:
        """Take out those that are due at ``now`` and still mean something, earliest first."""
        while self._heap and self._heap[0][0] <= now:
            at, _, what = heappop(self._heap)
            if self._alive(what, at):
                yield what

    def next(self) -> float | None:
        """The instant of the earliest that still means something."""
        while self._heap and not self._alive(self._heap[0][2], self._heap[0][0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None
