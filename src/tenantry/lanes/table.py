"""The table of lanes: what is asked of a store, what it answers, and what a person reads in it. Pure."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tenantry.algorithms import circuit_breaker, start_rate
from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.config.model import NO_SETTINGS
from tenantry.config.ports import TenantDirectory
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.adaptive import is_adaptive
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.orders import OrderRecord, lowest_ceiling, pauses
from tenantry.lanes.shaper import ShaperState, reference_of

MOST_LANES: Final = 1_000
"""Of one answer."""

_RATE_IS_OLD: Final[Seconds] = 5.0


class LaneState(StrEnum):
    """Whether a lane may start jobs; the values are public. A lane that is paused and held is paused."""

    OPEN = "open"
    PAUSED = "paused"  # by a person
    HELD = "held"  # by a rule: its breaker, or the target's Retry-After


class LaneSort(StrEnum):
    """The order of a table. Only NAME, by tenant and target, can be read on from where an answer ended; the
    others give the first so many."""

    NAME = "name"
    BACKLOG = "backlog"
    IN_FLIGHT = "in_flight"


@dataclass(frozen=True, slots=True)
class LaneQuery:
    """Which lanes. ``tenant``, ``target``: only theirs, by the exact name. ``limit``: at most so many, 1 to
    1,000. ``after``: with NAME, those behind this one.

    Raises :class:`~tenantry.kernel.errors.InvalidValue`."""

    tenant: TenantId | None = None
    target: Target | None = None
    state: LaneState | None = None
    sort: LaneSort = LaneSort.NAME
    limit: int = 100
    after: Lane | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_LANES:
            raise InvalidValue("limit", self.limit, f"a whole number from 1 to {MOST_LANES:,}")
        if self.after is not None and self.sort is not LaneSort.NAME:
            raise InvalidValue("after", "a place", f"none with the sort {self.sort.value}")


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """What a store knows of one lane, read at ``now``. ``waiting``, ``delayed``, ``in_flight``: jobs.
    ``orders``: of persons, that cover the lane. ``shaper``: as it was kept last, at most a second old while
    the lane works; None before its first round trip and where it cannot be read."""

    lane: Lane
    now: Timestamp
    waiting: int = 0
    delayed: int = 0
    in_flight: int = 0
    orders: tuple[OrderRecord, ...] = ()
    shaper: ShaperState | None = None


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane as people see it. ``reason``: why it is not open; ``frees_at``: when it will be, where that is
    known. ``limit``: how many may be in flight, by shaper, ceiling and document; None: nobody says.
    ``reference`` and ``latency``: seconds that a call takes at best, and took in the last round trip.
    ``rate``: successes a second lately. ``rate_limit``: starts a second that the target allows, where it has
    said so by refusing more."""

    lane: Lane
    state: LaneState
    reason: str
    frees_at: Timestamp | None
    limit: int | None
    in_flight: int
    waiting: int
    delayed: int
    ceiling: int | None = None
    reference: Seconds | None = None
    latency: Seconds | None = None
    breaker: BreakerState = BreakerState.CLOSED
    rate: float | None = None
    rate_limit: float | None = None

    @property
    def backlog(self) -> int:
        """Jobs that are accepted and have not started."""
        return self.waiting + self.delayed


def row_of(facts: LaneFacts, directory: TenantDirectory) -> LaneRow:
    """The lane as people see it, with what the tenant's document says of the target. Pure, O(1)."""
    document = directory.tenant(facts.lane.tenant)
    settings = NO_SETTINGS if document is None else document.settings_for(facts.lane.target)
    if not is_adaptive(facts.lane.target, settings):  # what was learned earlier is no matter
        facts = replace(facts, shaper=None)
    return row(facts, timeout_for=settings.timeout_for, limit=settings.limit)


def row(facts: LaneFacts, *, timeout_for: Seconds, limit: int | None) -> LaneRow:
    """The lane as people see it. ``timeout_for`` and ``limit`` are the tenant document's for the target.
    Pure, O(1)."""
    state, reason, frees_at = standing_of(facts, timeout_for)
    lowest = lowest_ceiling(facts.orders)
    ceiling = None if lowest is None else lowest.order.ceiling
    bounds = [limit, ceiling, None if facts.shaper is None else facts.shaper.limit.permits]
    found = LaneRow(
        facts.lane,
        state,
        reason,
        frees_at,
        min((each for each in bounds if each is not None), default=None),
        facts.in_flight,
        facts.waiting,
        facts.delayed,
        ceiling,
    )
    return found if facts.shaper is None else _measured(found, facts.shaper, facts.now)


def state_of(facts: LaneFacts) -> LaneState:
    """Whether the lane may start jobs. Pure, O(1)."""
    if pauses(facts.orders):
        return LaneState.PAUSED
    shaper = facts.shaper
    if shaper is None or (shaper.breaker.state is BreakerState.CLOSED and shaper.held_until <= facts.now):
        return LaneState.OPEN
    return LaneState.HELD


def standing_of(facts: LaneFacts, timeout_for: Seconds) -> tuple[LaneState, str, Timestamp | None]:
    """Its state, why it is not open, and when it will be, where that is known. Pure, O(1)."""
    state, shaper = state_of(facts), facts.shaper
    if state is LaneState.PAUSED:
        return state, "paused " + "; ".join(map(str, pauses(facts.orders))), None
    if state is LaneState.OPEN or shaper is None:
        return state, "", None
    if shaper.held_until > facts.now:
        return state, "the target said Retry-After", shaper.held_until
    return state, *_by_breaker(facts, shaper, timeout_for)


def _by_breaker(facts: LaneFacts, shaper: ShaperState, timeout_for: Seconds) -> tuple[str, Timestamp | None]:
    if shaper.breaker.state is BreakerState.HALF_OPEN:
        return "the breaker is half-open: a counted few calls probe the target", None
    at = circuit_breaker.frees_at(
        shaper.breaker, in_flight=facts.in_flight, timeout_for=timeout_for, now=facts.now
    )
    return "the breaker is open: the target failed", Timestamp(max(at, facts.now))


def _measured(found: LaneRow, shaper: ShaperState, now: Timestamp) -> LaneRow:
    lately = now - shaper.rate.counting_from < _RATE_IS_OLD
    paced = shaper.rate.refused is not None
    return replace(
        found,
        reference=reference_of(shaper),
        latency=shaper.latency or None,
        breaker=shaper.breaker.state,
        rate=shaper.rate.achieved if lately else 0.0,
        rate_limit=start_rate.rate_at(shaper.rate, now) if paced else None,
    )
