"""The layouts of a topic through time: which one an event falls under, by its own time.

A layout replaces the whole of the one before it. The time is always the event's own, and a retry keeps it:
with the time of sending, a replay would go by today's layout and a retry could change sides.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import overload

from tenantry.config.validation import Described
from tenantry.kernel.errors import InvalidValue
from tenantry.partition.model import FIRST, Layout


@dataclass(frozen=True, slots=True)
class History:
    """Layouts by rising ``effective_from``; given in any order, no two at one time.

    Before the first one its partitions hold with nothing in the tables: every tenant has the default spread.
    Raises :class:`InvalidValue` for no layout, or for two of one time. Immutable.
    """

    layouts: tuple[Layout, ...]

    def __post_init__(self) -> None:
        ordered = sorted(self.layouts, key=lambda layout: layout.effective_from)
        if not ordered:
            raise InvalidValue("layouts", (), "at least one layout")
        if ordered[0].effective_from > FIRST:
            ordered.insert(0, _before(ordered[0]))
        for earlier, later in pairwise(ordered):
            if earlier.effective_from == later.effective_from:
                raise _shared(later.effective_from)
        object.__setattr__(self, "layouts", tuple(ordered))

    @classmethod
    def of(cls, layouts: "Layout | History | Iterable[Layout]") -> "History":
        """One layout that always held, several, or a history as it is."""
        if isinstance(layouts, History):
            return layouts
        return cls((layouts,) if isinstance(layouts, Layout) else tuple(layouts))

    @property
    def times(self) -> tuple[float, ...]:
        """When each layout came into force, rising."""
        return tuple(layout.effective_from for layout in self.layouts)

    @property
    def newest(self) -> Layout:
        """The last layout, which may still lie in the future."""
        return self.layouts[-1]

    def at(self, moment: float) -> Layout:
        """The layout in force at ``moment``, seconds since 1970. O(versions)."""
        return self.layouts[place_of(self.times, moment)]

    def during(self, start: float, end: float) -> tuple[Layout, ...]:
        """The layouts in force at any time of [start, end], in order. Raises :class:`InvalidValue`."""
        if not start <= end:
            raise InvalidValue("start", start, f"a time not after the end, {end}")
        return self.layouts[place_of(self.times, start) : place_of(self.times, end) + 1]

    def with_next(self, layout: Layout) -> "History":
        """This history and a later layout. Raises :class:`InvalidValue` where it would rewrite the past."""
        if layout.effective_from <= self.newest.effective_from:
            hint = "What events were placed by is never changed: give it a later time."
            raise InvalidValue("effective_from", layout.effective_from, "a time after the newest", hint)
        return History((*self.layouts, layout))

    def __iter__(self) -> Iterator[Layout]:
        return iter(self.layouts)

    def __len__(self) -> int:
        return len(self.layouts)

    @overload
    def __getitem__(self, place: int) -> Layout: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Layout, ...]: ...
    def __getitem__(self, place: int | slice) -> Layout | tuple[Layout, ...]:
        return self.layouts[place]


def place_of(times: tuple[float, ...], moment: float) -> int:
    """Which of the rising ``times``, the first being -inf, was the last one at ``moment``. O(log n)."""
    if isinstance(moment, (int, float)) and moment == moment:  # NaN is of no time  # noqa: PLR0124
        return bisect_right(times, moment) - 1 if moment > FIRST else 0
    raise InvalidValue("at", moment, "the event's own time: seconds since 1970-01-01T00:00:00Z, as a number")


def _shared(at: float) -> InvalidValue:
    if at == FIRST:
        hint = "Only the first layout may leave it out: say from when on each of the others holds."
        return InvalidValue("effective_from", Described("left out twice"), "each time once", hint)
    return InvalidValue("effective_from", at, "each time once", "Two layouts share it.")


def _before(first: Layout) -> Layout:
    return replace(first, effective_from=FIRST, spreads={}, pins={}, reserved=())
