"""The circuit breaker: a dead target gets no more calls, but a counted few that may find it well again.

Theory
------
M. Nygard, "Release It!" (2007), chapter 5: calls to a target that fails cost a slot for as long as they hang;
not making them costs nothing. What is added here to the textbook's three states:

- Trips on the *share* of failures, over a least count, in a window of two halves that slide; and at once on
  *silence*, calls in a row that got no answer: a black hole yields few endings, each after a whole timeout.
- Half-open admits a counted number of probes, each under a **lease**. A worker may die with its probe, and an
  answer may say nothing of the target: the lease runs out or is given back, and another probe is let through.
- Calls that were under way when it tripped come back late and say nothing new. No probe is admitted before
  they are back, or one timeout has passed: so every ending heard while half-open is a probe's.
- The cool-down doubles with each trip that follows another closely, up to twice what the failure cost: a
  refusal costs milliseconds and may be asked for often, a probe that hangs holds a slot for a whole timeout.
  It is spread by chance: many lanes that tripped together do not come back together.

States
------
=========  ==========  ====================================================================
state      becomes     when
=========  ==========  ====================================================================
closed     open        *trip*: ``consecutive`` silent in a row, or ``share`` of at least ``least`` failed
open       half_open   *cooled*: the cool-down is over, and nothing of before is in flight
half_open  closed      *proved*: ``probes`` probes succeeded
half_open  open        *trip*: a probe failed; the cool-down grows
=========  ==========  ====================================================================
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class BreakerState(StrEnum):
    """Whether calls are made."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Moved(StrEnum):
    """Why a breaker changed its state."""

    TRIP = "trip"
    COOLED = "cooled"
    PROVED = "proved"


TRANSITIONS: Final[Mapping[tuple[BreakerState, Moved], BreakerState]] = MappingProxyType(
    {
        (BreakerState.CLOSED, Moved.TRIP): BreakerState.OPEN,
        (BreakerState.OPEN, Moved.COOLED): BreakerState.HALF_OPEN,
        (BreakerState.HALF_OPEN, Moved.PROVED): BreakerState.CLOSED,
        (BreakerState.HALF_OPEN, Moved.TRIP): BreakerState.OPEN,
    }
)
"""All there is: any other move is a bug."""


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """``share`` in (0, 1] of at least ``least`` calls within ``window_for`` seconds, or ``consecutive`` calls
    in a row without an answer, trip it. ``probes``: admitted while half-open, >= 1. ``cool_for`` seconds
    double with each trip within ``calm_for`` seconds of being closed, up to ``worth`` times the seconds that
    the failure cost, but to four times itself at least and to ``longest_for`` at most."""

    share: float = 0.5
    least: int = 10
    consecutive: int = 20
    window_for: float = 10.0
    probes: int = 1
    cool_for: float = 1.0
    longest_for: float = 60.0
    worth: float = 2.0
    calm_for: float = 15.0


@dataclass(frozen=True, slots=True)
class Runs:
    """Endings in the order in which they were heard, kept to what the breaker asks of them.

    ``failed`` of ``calls``; ``head``, ``tail``, ``longest``: calls without an answer in a row at the
    beginning, at the end, and anywhere. ``+`` puts one after another: associative; :data:`NOTHING` is
    neutral.
    """

    calls: int = 0
    failed: int = 0
    head: int = 0
    tail: int = 0
    longest: int = 0

    def __add__(self, later: "Runs") -> "Runs":
        across = self.tail + later.head
        return Runs(
            self.calls + later.calls,
            self.failed + later.failed,
            across if self.head == self.calls else self.head,
            across if later.tail == later.calls else later.tail,
            max(self.longest, later.longest, across),
        )

    @property
    def succeeded(self) -> int:
        return self.calls - self.failed


SUCCESS: Final = Runs(calls=1)
FAILURE: Final = Runs(calls=1, failed=1)
SILENCE: Final = Runs(calls=1, failed=1, head=1, tail=1, longest=1)
NOTHING: Final = Runs()


@dataclass(frozen=True, slots=True)
class Breaker:
    """``since``: when it came into this state. ``trips``: those that followed each other closely.
    ``cooled_at``: the end of the cool-down. ``tail``: calls without an
    answer in a row up to now. ``recent`` and ``before``:
    (calls, failed) of the half window since ``half_at`` and of the one before it. ``leases``: when each
    outstanding probe is given up. ``proved``: probes that succeeded."""

    state: BreakerState = BreakerState.CLOSED
    since: float = 0.0
    trips: int = 0
    cooled_at: float = 0.0
    tail: int = 0
    half_at: float = 0.0
    recent: tuple[int, int] = (0, 0)
    before: tuple[int, int] = (0, 0)
    leases: tuple[float, ...] = ()
    proved: int = 0


@dataclass(frozen=True, slots=True)
class Failing:
    """What a trip needs to know. ``cost``: seconds that the slowest failure took. ``draw``: uniform in
    [0, 1]."""

    now: float
    cost: float = 0.0
    draw: float = 0.5


def heard(breaker: Breaker, runs: Runs, settings: BreakerSettings, failing: Failing) -> Breaker:
    """The breaker after endings that speak about the target. Pure, O(1)."""
    if breaker.state is BreakerState.CLOSED:
        return _heard_closed(breaker, runs, settings, failing)
    if breaker.state is BreakerState.HALF_OPEN and runs.calls:
        return _heard_probes(breaker, runs, settings, failing)
    return breaker  # open: what comes back now was sent before it tripped


def cooled(breaker: Breaker, *, in_flight: int, timeout_for: float, now: float) -> Breaker:
    """The breaker after time has passed: half-open when its cool-down is over and no call of before it
    tripped can still come back. ``timeout_for``: the longest that a call may last, in seconds. Pure, O(1)."""
    if breaker.state is not BreakerState.OPEN or now < breaker.cooled_at:
        return breaker
    if in_flight and now < breaker.since + timeout_for:
        return breaker
    return _moved(breaker, Moved.COOLED, now)


def admitted(breaker: Breaker, settings: BreakerSettings, *, now: float) -> int | None:
    """How many calls may start now; None: as many as anyone likes. Pure, O(probes)."""
    if breaker.state is BreakerState.CLOSED:
        return None
    if breaker.state is BreakerState.OPEN:
        return 0
    out = sum(lease > now for lease in breaker.leases)
    return max(0, settings.probes - out - breaker.proved)


def probing(breaker: Breaker, count: int, *, until: float, now: float) -> Breaker:
    """The breaker after ``count`` probes started; each is given up at ``until``. Pure, O(probes)."""
    if breaker.state is not BreakerState.HALF_OPEN:
        return breaker
    live = tuple(lease for lease in breaker.leases if lease > now)
    return replace(breaker, leases=live + (until,) * count)


def given_back(breaker: Breaker, count: int) -> Breaker:
    """The breaker after ``count`` probes ended that say nothing of the target. Pure, O(probes)."""
    if breaker.state is not BreakerState.HALF_OPEN or not count:
        return breaker
    return replace(breaker, leases=breaker.leases[count:])


def frees_at(breaker: Breaker, *, in_flight: int, timeout_for: float, now: float) -> float:
    """When a call may start that may not now, if nothing more is heard. Pure, O(probes)."""
    if breaker.state is BreakerState.OPEN:
        late = breaker.since + timeout_for if in_flight else breaker.cooled_at
        return max(breaker.cooled_at, late)
    return min((lease for lease in breaker.leases if lease > now), default=now)


def _heard_closed(breaker: Breaker, runs: Runs, settings: BreakerSettings, failing: Failing) -> Breaker:
    half_at, (calls, failed), before = _slid(breaker, settings, failing.now)
    in_a_row = max(runs.longest, breaker.tail + runs.head)
    tail = breaker.tail + runs.calls if runs.tail == runs.calls else runs.tail
    recent = (calls + runs.calls, failed + runs.failed)
    counted = Breaker(
        breaker.state, breaker.since, breaker.trips, breaker.cooled_at, tail, half_at, recent, before
    )
    calls, failed = recent[0] + before[0], recent[1] + before[1]
    if in_a_row >= settings.consecutive or (calls >= settings.least and failed >= settings.share * calls):
        return tripped(counted, settings, failing)
    return counted


def _heard_probes(breaker: Breaker, runs: Runs, settings: BreakerSettings, failing: Failing) -> Breaker:
    if runs.failed:
        return tripped(breaker, settings, failing)
    proved = breaker.proved + runs.succeeded
    if proved >= settings.probes:
        return _moved(breaker, Moved.PROVED, failing.now)
    return replace(breaker, proved=proved, leases=breaker.leases[runs.succeeded :])


def tripped(breaker: Breaker, settings: BreakerSettings, failing: Failing) -> Breaker:
    """The breaker opened, whatever was counted. The cool-down is spread by a quarter either way. Pure."""
    now = failing.now
    calm = breaker.state is BreakerState.CLOSED and now - breaker.since >= settings.calm_for
    trips = 1 if calm else breaker.trips + 1
    longest_for = min(settings.longest_for, max(4.0 * settings.cool_for, settings.worth * failing.cost))
    cool_for = min(longest_for, settings.cool_for * 2.0 ** min(trips - 1, 30))
    opened = replace(_moved(breaker, Moved.TRIP, now), trips=trips)
    return replace(opened, cooled_at=now + cool_for * (0.75 + 0.5 * failing.draw))


def _moved(breaker: Breaker, why: Moved, now: float) -> Breaker:
    """The next state of the table, with nothing counted."""
    state = TRANSITIONS[breaker.state, why]
    return Breaker(state, since=now, trips=breaker.trips, cooled_at=breaker.cooled_at, half_at=now)


def _slid(
    breaker: Breaker, settings: BreakerSettings, now: float
) -> tuple[float, tuple[int, int], tuple[int, int]]:
    """The window moved up to ``now``: when its newer half began, and the counts of both."""
    half = settings.window_for / 2.0
    passed = now - breaker.half_at
    if 0.0 <= passed < half:
        return breaker.half_at, breaker.recent, breaker.before
    return now, (0, 0), breaker.recent if 0.0 <= passed < 2.0 * half else (0, 0)
