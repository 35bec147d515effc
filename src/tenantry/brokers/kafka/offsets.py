"""Which offset of one partition may be committed: the first that is not finished. Pure."""

from collections import deque

from tenantry.kernel.errors import InvariantBroken


class OffsetTracker:
    """Records are fetched in rising offsets and finished in any order.

    Offsets need not be dense (compaction, transactions): contiguous means contiguous among those fetched.
    Each call is O(1), amortised; memory is O(fetched since :attr:`position`). For one thread.
    """

    __slots__ = ("_finished", "_last", "_line", "_open")

    def __init__(self) -> None:
        self._line: deque[int] = deque()  # fetched, from the first unfinished one on
        self._open: set[int] = set()
        self._finished: set[int] = set()
        self._last: int | None = None

    @property
    def position(self) -> int | None:
        """What may be committed: all below it that was fetched is finished. None: nothing was fetched."""
        if self._line:
            return self._line[0]
        return None if self._last is None else self._last + 1

    @property
    def last(self) -> int | None:
        """The highest offset fetched."""
        return self._last

    @property
    def unfinished(self) -> int:
        """How many are fetched and not finished."""
        return len(self._open)

    def fetched(self, offset: int) -> None:
        """One more record. Raises :class:`InvariantBroken` for an offset that is not above the last one."""
        if self._last is not None and offset <= self._last:
            raise InvariantBroken(f"offset {offset} was fetched after {self._last}")
        self._last = offset
        self._line.append(offset)
        self._open.add(offset)

    def finished(self, offset: int) -> None:
        """It is done with, for good. Raises :class:`InvariantBroken` for one that is not open."""
        if offset not in self._open:
            raise InvariantBroken(f"offset {offset} was finished, but it is not open")
        self._open.discard(offset)
        self._finished.add(offset)
        while self._line and self._line[0] in self._finished:
            self._finished.discard(self._line.popleft())
