"""The shaper of one lane: how much may be in flight to its target, stepped by what came back.

Authority: the planner alone steps a shaper, from summaries that workers append when they settle; two workers
never step one twice. The state is a value, kept with the lane (:mod:`tenantry.lanes.shaper_state` encodes
it), so that a crash of anyone costs what was heard since it was last kept: at most a second.

Pipeline: a target that says when to come back is obeyed, the breaker hears every ending that speaks about the
target, then the window takes in what came back; once a round trip the window is read and the limit moves.

Invariants: nothing starts before ``held_until``; an open breaker starts nothing, a half-open one a counted
few; loss never raises the limit; what the message or this installation did wrong moves nothing.

For a planner (all pure, O(1) or O(buckets))::

    grant = permission(state, in_flight=n, now=now, settings=settings)
    …start at most ``grant.starts``; if that is 0, not before ``grant.not_before``…
    state = started(state, count, in_flight=n + count, now=now, settings=settings)
    …each round, with all that was heard of the lane in it…
    state = step(state, summary, Standing(n, now), settings, draw=draw)
    …and step again at ``due_at(state, …)`` though nothing was heard.
"""

from dataclasses import replace
from math import floor
from typing import Final

from tenantry.algorithms import (
    circuit_breaker,
    concurrency_limit,
    reference_latency,
    sample_window,
    start_rate,
)
from tenantry.algorithms.backoff import after_hint
from tenantry.algorithms.circuit_breaker import BreakerState, Failing
from tenantry.algorithms.concurrency_limit import Limit, Mode, Round
from tenantry.algorithms.reference_latency import Reference
from tenantry.algorithms.sample_window import EMPTY as NO_SKETCH
from tenantry.algorithms.sample_window import Sketch, merged, percentile, size
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.retry import LONGEST_HINT
from tenantry.lanes.shaper_model import Held, Permission, ShaperSettings, ShaperState, Standing
from tenantry.lanes.summary import Summary

LOW: Final = 0.25
"""The percentile that is compared: low, so that slow calls say nothing about queues."""

GATHER: Final = (40, 400)
"""Latencies that make a candidate for the reference, of few calls in flight and of many: a minimum over small
samples would be dragged down by chance."""

ANCHOR: Final = 8
"""Latencies that make the first reference, or a dip's."""

CLEARLY: Final = 0.8
"""Few latencies below this times the reference are lower by more than chance."""

QUICKEST: Final[Seconds] = 0.001
"""No round trip is taken for shorter."""

BLUR: Final[Seconds] = 0.02
"""Latencies below this are not told apart: on a busy node a call that the target answers in 3 ms is seen to
take 15, and lanes to quick targets would be held at one call for what is our own doing."""


def opened(now: Timestamp, *, seed: ShaperState | None = None) -> ShaperState:
    """A new lane's shaper, which starts at 1; or, from the last run's state, at what was learned then. Pure.

    What was in flight when the seed was kept is unknown: its window is not carried over.
    """
    window = sample_window.opened(now, 0)
    if seed is None:
        return ShaperState(window)
    rate = replace(seed.rate, count=0, counting_from=now)
    return replace(seed, window=window, rate=rate, sent_before=(0, 0, 0), gathered=NO_SKETCH)


def permission(state: ShaperState, *, in_flight: int, now: Timestamp, settings: ShaperSettings) -> Permission:
    """What may start now. Pure, O(probes)."""
    if state.held_until > now:
        return Permission(0, state.held_until, Held.RETRY_AFTER)
    probes = circuit_breaker.admitted(state.breaker, settings.breaker, now=now)
    if probes is not None:
        return _by_breaker(state, probes, in_flight=in_flight, now=now, settings=settings)
    room = permits(state, settings) - in_flight - _unreplaced(state, in_flight)
    if room <= 0:
        return Permission(0)
    return _paced(state, room, now)


def permits(state: ShaperState, settings: ShaperSettings) -> int:
    """How many may be in flight while the breaker is closed: the limit, >= 1, and the operator's ceiling."""
    found = state.limit.permits
    return found if settings.ceiling is None else max(1, min(found, settings.ceiling))


def started(
    state: ShaperState, count: int, *, in_flight: int, now: Timestamp, settings: ShaperSettings
) -> ShaperState:
    """The state after ``count`` calls started; ``in_flight`` with them. Pure, O(probes)."""
    window = sample_window.sent(state.window, count, in_flight)
    if state.rate.refused is None and state.breaker.state is BreakerState.CLOSED:
        return replace(state, window=window)
    until = now + settings.timeout_for + settings.lease_for
    return replace(
        state,
        window=window,
        breaker=circuit_breaker.probing(state.breaker, count, until=until, now=now),
        rate=start_rate.started(state.rate, count, now),
    )


def step(
    state: ShaperState, summary: Summary, standing: Standing, settings: ShaperSettings, *, draw: float
) -> ShaperState:
    """The state after what was heard, which may be :data:`~tenantry.lanes.summary.EMPTY`. ``draw`` is uniform
    in [0, 1]. Pure, O(buckets)."""
    state = _obeyed(state, summary, standing.now, draw)
    before = state.breaker.state
    state = _judged(state, summary, standing, settings, draw=draw)
    if state.breaker.state is not BreakerState.CLOSED:
        return state
    if before is not BreakerState.CLOSED:
        return _reopened(state, standing)
    state = _taken_in(state, summary, standing.now)
    if not sample_window.is_due(
        state.window, round_trip=round_trip(state), enough=_enough(state), now=standing.now
    ):
        return state
    return _turned(state, standing, settings, draw=draw)


def due_at(state: ShaperState, *, in_flight: int, settings: ShaperSettings) -> Timestamp | None:
    """When :func:`step` is worth calling though nothing was heard; None: only when something is. Pure."""
    if state.breaker.state is BreakerState.OPEN:
        at = circuit_breaker.frees_at(
            state.breaker, in_flight=in_flight, timeout_for=settings.timeout_for, now=state.breaker.since
        )
        return Timestamp(at)
    if state.breaker.state is BreakerState.HALF_OPEN or not in_flight:
        return None  # probes: permission says when one that is lost is given up
    return Timestamp(state.window.opened_at + sample_window.PATIENCE * round_trip(state))


def round_trip(state: ShaperState) -> Seconds:
    """What a call takes now, at least a millisecond; before anything came back, 100 ms. Pure."""
    return max(QUICKEST, state.latency or 0.1)


def reference_of(state: ShaperState) -> Seconds | None:
    """The reference latency; None while too little was measured: then one call at a time. Pure, O(1)."""
    return state.reference.latency


def _unreplaced(state: ShaperState, in_flight: int) -> int:
    """Calls that were lost while nothing came back and others are out. At a target that hangs, what replaced
    them before the breaker opens would hold its slot for one more timeout."""
    return state.window.lost if in_flight and not state.window.succeeded else 0


def _by_breaker(
    state: ShaperState, probes: int, *, in_flight: int, now: Timestamp, settings: ShaperSettings
) -> Permission:
    if probes:
        return Permission(probes)
    at = circuit_breaker.frees_at(
        state.breaker, in_flight=in_flight, timeout_for=settings.timeout_for, now=now
    )
    return Permission(0, Timestamp(max(at, now)), Held.BREAKER)


def _paced(state: ShaperState, room: int, now: Timestamp) -> Permission:
    """Below 1 in flight starts wait for the end before; below a rate, for their turn."""
    pause = concurrency_limit.pause_for(state.limit.level, max(round_trip(state), 0.1))
    if now < state.ended_at + pause:
        return Permission(0, Timestamp(state.ended_at + pause), Held.PACING)
    allowed = start_rate.may_start(state.rate, now)
    if allowed is None or allowed >= 1:
        return Permission(room if allowed is None else min(room, allowed))
    return Permission(0, Timestamp(start_rate.next_start_at(state.rate, now)), Held.PACING)


def _obeyed(state: ShaperState, summary: Summary, now: Timestamp, draw: float) -> ShaperState:
    """A target's ``Retry-After`` holds the lane: never early, and spread."""
    if not summary.retry_after:
        return state
    until = now + after_hint(summary.retry_after, draw, cap=LONGEST_HINT)
    if until <= state.held_until:
        return state
    return replace(state, held_until=Timestamp(until))


def _judged(
    state: ShaperState, summary: Summary, standing: Standing, settings: ShaperSettings, *, draw: float
) -> ShaperState:
    """The breaker after every ending. A lane of few calls in flight need not see as many fail in a row."""
    now = standing.now
    few = max(2, min(settings.breaker.consecutive, state.limit.permits))
    rules = (
        settings.breaker
        if few == settings.breaker.consecutive
        else replace(settings.breaker, consecutive=few)
    )
    breaker = state.breaker
    if summary.runs.calls:
        failing = Failing(now, summary.longest, draw)
        breaker = circuit_breaker.heard(breaker, summary.runs, rules, failing)
    breaker = circuit_breaker.given_back(breaker, summary.ignored)
    breaker = circuit_breaker.cooled(
        breaker, in_flight=standing.in_flight, timeout_for=settings.timeout_for, now=now
    )
    if breaker is state.breaker:
        return state
    outage = state.breaker.state is BreakerState.CLOSED is not breaker.state
    limit = concurrency_limit.fallen(state.limit, settings.limit) if outage else state.limit
    return replace(state, breaker=breaker, limit=limit)


def _reopened(state: ShaperState, standing: Standing) -> ShaperState:
    """The breaker closed: from small again, with what is known of the latency."""
    return replace(
        state,
        limit=concurrency_limit.restarted(state.limit),
        window=sample_window.opened(standing.now, standing.in_flight),
        sent_before=(0, 0, 0),
        cut_at=standing.now,
        latency=state.reference.latency or state.latency,
    )


def _taken_in(state: ShaperState, summary: Summary, now: Timestamp) -> ShaperState:
    """The window with what came back. Calls that were sent before the last cut were lost to what was cut."""
    if not summary.ended:
        return state
    lost = _within(summary.lost, now - state.cut_at) if summary.lost else 0
    rate = start_rate.succeeded(state.rate, summary.succeeded, now) if summary.succeeded else state.rate
    if summary.limited and _within(summary.limited, now - max(rate.since, state.cut_at)):
        rate = start_rate.refused(rate, now)
    if state.held_until > now:
        rate = start_rate.held(rate, state.held_until)
    window = sample_window.returned(state.window, summary.latency, summary.succeeded, lost)
    latency = state.latency if summary.succeeded or not lost else max(state.latency, summary.longest)
    return replace(state, window=window, rate=rate, ended_at=now, latency=latency)


def _turned(state: ShaperState, standing: Standing, settings: ShaperSettings, *, draw: float) -> ShaperState:
    """A round trip has passed: read the window, move the limit, open the next window."""
    window, now = state.window, standing.now
    gathered = merged(state.gathered, window.latency)
    state = replace(state, gathered=gathered)
    stuck = _stuck(state, standing)
    low, reference = percentile(window.latency, LOW), state.reference.latency
    ratio = max(low, BLUR) / max(reference, BLUR) if low is not None and reference else None
    seen = Round(
        ratio, window.succeeded, window.lost, window.most, standing.in_flight, stuck, standing.scarce
    )
    limit = concurrency_limit.step(state.limit, seen, settings.limit, draw=draw)
    cut = limit.mode is Mode.DRAINING and limit is not state.limit
    state = _referred(state, low, settings, now=now, draw=draw)
    limit = _dipping(state, limit, settings, now)
    return replace(
        state,
        limit=limit,
        gathered=NO_SKETCH if limit.mode is Mode.DIPPING is not state.limit.mode else state.gathered,
        window=sample_window.opened(now, standing.in_flight),
        sent_before=(window.sent, *state.sent_before[:2]),
        latency=percentile(window.latency, 0.5) or state.latency,
        cut_at=now if cut else state.cut_at,
        rate=start_rate.relaxed(state.rate, now),
    )


def _stuck(state: ShaperState, standing: Standing) -> int:
    """Calls that are out for longer than they take. By Little's law as many are in flight as come back a
    second, times what they take; where nothing comes back, those sent before the last four windows are."""
    window, lasted = state.window, standing.now - state.window.opened_at
    if not window.succeeded:
        return max(0, standing.in_flight - window.sent - sum(state.sent_before))
    usual = percentile(window.latency, 0.5) or 0.0
    return max(0, floor(standing.in_flight - (window.succeeded + window.lost) / lasted * usual))


def _dipping(state: ShaperState, limit: Limit, settings: ShaperSettings, now: Timestamp) -> Limit:
    """Dip when the reference is due to be measured again."""
    due = not state.reference.young and now >= state.reference.probe_at
    if not due or state.limit.mode is Mode.DIPPING or limit.level > state.limit.level:
        return limit  # while it grows there is nothing to be measured that growth does not tell
    return concurrency_limit.dipped(limit, settings.limit)


def _referred(
    state: ShaperState, low: Seconds | None, settings: ShaperSettings, *, now: Timestamp, draw: float
) -> ShaperState:
    """The reference after this window: by what was gathered since the last candidate, or by a dip."""
    if low is None:
        return state
    reference, gathered, limit = state.reference, state.gathered, state.limit
    calls, surfacing = size(gathered), limit.mode is Mode.DIPPING and limit.rounds == 1
    if reference.latency is None or reference.young:
        if calls >= ANCHOR:
            reference, gathered = _candidate(reference, gathered, calls, probe=False, now=now), NO_SKETCH
    elif calls >= max(GATHER[0], min(GATHER[1], 20 * limit.permits)) or (surfacing and calls >= ANCHOR):
        reference, gathered = _candidate(reference, gathered, calls, probe=surfacing, now=now), NO_SKETCH
    if surfacing or (limit.permits < 2 and now >= reference.probe_at):
        reference = reference_latency.scheduled(reference, every=settings.probe_every, draw=draw, now=now)
    return replace(state, reference=reference, gathered=gathered)


def _candidate(
    reference: Reference, gathered: Sketch, calls: int, *, probe: bool, now: Timestamp
) -> Reference:
    """The reference told of a candidate. Few calls are lower by chance: they must be clearly lower."""
    found = percentile(gathered, LOW)
    if found is None:
        return reference
    known = reference.latency
    if known is not None and not reference.young and calls < GATHER[0] and CLEARLY * known < found < known:
        return reference
    return reference_latency.measured(reference, found, calls=calls, probe=probe, now=now)


def _enough(state: ShaperState) -> int:
    return 1 if state.limit.level < 1.0 else max(2, min(10, state.limit.permits // 2))


def _within(found: Sketch, since: Seconds) -> int:
    """How many took less than ``since`` seconds, give or take a bucket."""
    last = sample_window.bucket_of(since * sample_window.GROWTH) if since > 0.0 else -1
    return sum(count for bucket, count in found if bucket <= last)


__all__ = [
    "Held",
    "Permission",
    "ShaperSettings",
    "ShaperState",
    "Standing",
    "due_at",
    "opened",
    "permission",
    "permits",
    "reference_of",
    "round_trip",
    "started",
    "step",
]
