"""The shapers of all adaptive lanes, between what workers tell of targets and what the rule may start. Pure.

The planner alone steps a shaper, and only here. What a shaper permits becomes, in the words of the rule, a
limit of the lane or a hold of it; that is asked anew whenever something was heard of the lane, something of
it left or started, or an instant came at which the answer may have changed.

States are kept by the store at most once a second a lane, and at once where a breaker moved or a target asked
to be left alone: a planner that takes over starts from there.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Protocol

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.kernel.instant import Timestamp
from tenantry.lanes import shaper_state
from tenantry.lanes.model import Lane
from tenantry.lanes.plain import Plain
from tenantry.lanes.shaper import (
    Held,
    Permission,
    ShaperSettings,
    ShaperState,
    Standing,
    due_at,
    opened,
    permission,
    permits,
    started,
    step,
)
from tenantry.lanes.summary import EMPTY, Summary

KEPT_EVERY = 1.0
"""Seconds between two times that one lane's state is kept, where nothing urgent happened."""

MOST_KEPT = 500
"""States kept at once: with more lanes at work each is kept less often."""


class Gate(Protocol):
    """What a shaper moves: the rule. ``scarce``: others wait for the slots that this lane holds."""

    scarce: bool

    def lane_in_flight(self, lane: Lane) -> int: ...

    def limit_lane(self, lane: Lane, limit: int | None) -> None: ...

    def hold_lane(self, lane: Lane, until: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Move:
    """A breaker came into another state."""

    lane: Lane
    state: BreakerState


_NOTHING = Permission(0)


@dataclass(slots=True)
class _Shaped:
    lane: Lane
    gate: Gate
    settings: ShaperSettings
    own: int | None  # the ceiling of its settings, without a person's
    kept: object = None
    state: ShaperState | None = None  # None until the first step: what is in flight is known by then
    heard: Summary = EMPTY
    grant: Permission = _NOTHING
    kept_at: float = 0.0
    wake_at: float = 0.0  # of its one live timer
    urgent: bool = False


class Shapers:
    """``draw``: uniform in [0, 1). One task only."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._lanes: dict[Lane, _Shaped] = {}
        self._touched: dict[Lane, _Shaped] = {}
        self._unkept: dict[Lane, _Shaped] = {}
        self._ceilings: dict[Lane, int] = {}
        self._timers: list[tuple[float, int, Lane]] = []  # at, in what order it was set, whose
        self._moved: list[Move] = []
        self._set = 0  # timers, so far

    def open(self, lane: Lane, gate: Gate, settings: ShaperSettings, kept: object) -> None:
        """Shape ``lane`` from now on, or by other settings. ``kept``: its state as last kept, or None."""
        own, ceiling = settings.ceiling, self._ceilings.get(lane)
        settings = replace(settings, ceiling=lower(own, ceiling))
        known = self._lanes.get(lane)
        if known is None:
            known = self._lanes[lane] = _Shaped(lane, gate, settings, own, kept)
        elif known.settings == settings:
            return
        known.settings, known.own = settings, own
        self._touched[lane] = known

    def close(self, lane: Lane) -> None:
        """Its target is not adaptive any more."""
        shaped = self._lanes.pop(lane, None)
        if shaped is not None:
            shaped.gate.hold_lane(lane, 0.0)
            self._touched.pop(lane, None)
            self._unkept.pop(lane, None)

    def heard(self, lane: Lane, summary: Summary) -> None:
        """What a worker told of its target, in order. Of a lane that is not shaped: nothing happens."""
        shaped = self._lanes.get(lane)
        if shaped is not None:
            shaped.heard += summary
            self._touched[lane] = shaped

    def left(self, lane: Lane) -> None:
        """Something of the lane is not in flight any more."""
        shaped = self._lanes.get(lane)
        if shaped is not None:
            self._touched[lane] = shaped

    def started(self, lane: Lane, count: int, now: Timestamp) -> None:
        """``count`` jobs of the lane were given out."""
        shaped = self._lanes.get(lane)
        if shaped is None or shaped.state is None:
            return
        in_flight = shaped.gate.lane_in_flight(lane)
        shaped.state = started(shaped.state, count, in_flight=in_flight, now=now, settings=shaped.settings)
        if shaped.state.breaker.state is not BreakerState.CLOSED:
            shaped.urgent = True
        if shaped.urgent or shaped.grant.starts < permits(shaped.state, shaped.settings) - in_flight + count:
            self._touched[lane] = shaped  # by probes, or paced: what may start next is another answer
        else:
            self._wake(shaped, now)
        self._unkept[lane] = shaped

    def apply(self, now: Timestamp) -> None:
        """Step what was touched or is due, and tell the rule. Call it before each plan. O(lanes stepped)."""
        while self._timers and self._timers[0][0] <= now:
            at, _, lane = heappop(self._timers)
            shaped = self._lanes.get(lane)
            if shaped is not None and shaped.wake_at == at:
                self._touched[lane] = shaped
        touched, self._touched = self._touched, {}
        for shaped in touched.values():
            self._step(shaped, now)

    def next_due(self) -> float | None:
        """When :meth:`apply` may have something new though nothing was told; None: never."""
        while self._timers:
            at, _, lane = self._timers[0]
            shaped = self._lanes.get(lane)
            if shaped is not None and shaped.wake_at == at:
                return at
            heappop(self._timers)
        return None

    def reset(self, lane: Lane) -> None:
        """Forget what was learned of the target: a person's word."""
        shaped = self._lanes.get(lane)
        if shaped is not None:
            shaped.kept, shaped.state, shaped.heard, shaped.urgent = None, None, EMPTY, True
            self._touched[lane] = self._unkept[lane] = shaped  # what was learned must not come back

    def set_ceiling(self, lane: Lane, ceiling: int | None) -> None:
        """A person's limit for the lane, >= 1, or None; also of a lane that is yet to come."""
        if self._ceilings.get(lane) == ceiling:
            return
        if ceiling is None:
            self._ceilings.pop(lane, None)
        else:
            self._ceilings[lane] = ceiling
        shaped = self._lanes.get(lane)
        if shaped is not None:
            shaped.settings = replace(shaped.settings, ceiling=lower(shaped.own, ceiling))
            self._touched[lane] = shaped

    def to_keep(self, now: Timestamp) -> dict[Lane, list[Plain]]:
        """States that the store should keep now: urgent ones, and those not kept for a second."""
        due = [each for each in self._unkept.values() if each.urgent or now - each.kept_at >= KEPT_EVERY]
        found: dict[Lane, list[Plain]] = {}
        for shaped in sorted(due, key=_by_need)[:MOST_KEPT]:
            del self._unkept[shaped.lane]
            shaped.urgent, shaped.kept_at = False, now
            if shaped.state is not None:
                found[shaped.lane] = shaper_state.encoded(shaped.state)
        return found

    def moved(self) -> list[Move]:
        """Breakers that came into another state since the last call."""
        moved, self._moved = self._moved, []
        return moved

    def held(self) -> Mapping[Held, int]:
        """How many lanes are held, by reason. O(lanes)."""
        return Counter(each.grant.held for each in self._lanes.values() if each.grant.held is not None)

    # -- inside ----------------------------------------------------------------------------------------

    def _step(self, shaped: _Shaped, now: Timestamp) -> None:
        in_flight = shaped.gate.lane_in_flight(shaped.lane)
        before = shaped.state or _read(shaped.kept, in_flight, now)
        shaped.kept = None
        heard, shaped.heard = shaped.heard, EMPTY
        standing = Standing(in_flight, now, shaped.gate.scarce)
        shaped.state = after = step(before, heard, standing, shaped.settings, draw=self._draw())
        if after.breaker.state is not before.breaker.state:
            self._moved.append(Move(shaped.lane, after.breaker.state))
        shaped.urgent |= after.breaker.state is not before.breaker.state
        shaped.urgent |= after.held_until != before.held_until
        if after is not before:
            self._unkept[shaped.lane] = shaped
        self._admit(shaped, after, in_flight, now)

    def _admit(self, shaped: _Shaped, state: ShaperState, in_flight: int, now: Timestamp) -> None:
        """The answer, as the rule takes it: a limit that stands while nothing changes, or a hold."""
        was_held, lane = shaped.grant.held, shaped.lane
        grant = shaped.grant = permission(state, in_flight=in_flight, now=now, settings=shaped.settings)
        closed = state.breaker.state is BreakerState.CLOSED
        whole = closed and grant.starts >= permits(state, shaped.settings) - in_flight
        shaped.gate.limit_lane(lane, permits(state, shaped.settings) if whole else in_flight + grant.starts)
        if grant.held is not None and grant.not_before is not None:
            shaped.gate.hold_lane(lane, grant.not_before)
        elif was_held is not None:
            shaped.gate.hold_lane(lane, now)
        self._wake(shaped, now)

    def _wake(self, shaped: _Shaped, now: Timestamp) -> None:
        """Set the timer for the next instant at which the answer may be another."""
        assert shaped.state is not None
        in_flight = shaped.gate.lane_in_flight(shaped.lane)
        due = due_at(shaped.state, in_flight=in_flight, settings=shaped.settings)
        instants = [at for at in (due, shaped.grant.not_before) if at is not None]
        at = max(min(instants, default=0.0), now + 0.001 if instants else 0.0)
        if at != shaped.wake_at:
            shaped.wake_at = at
            if at:
                self._set += 1
                heappush(self._timers, (at, self._set, shaped.lane))


def _read(kept: object, in_flight: int, now: Timestamp) -> ShaperState:
    """The state as it was kept, or a new one. What another version kept is learned again: a lane that stood
    still would be worse."""
    if kept is None:
        return opened(now)
    return shaper_state.readable(kept, in_flight=in_flight, now=now) or opened(now)


def lower(one: int | None, other: int | None) -> int | None:
    """The lower of two limits, None for none. Pure."""
    return min((each for each in (one, other) if each is not None), default=None)


def _by_need(shaped: _Shaped) -> tuple[bool, float]:
    return not shaped.urgent, shaped.kept_at
