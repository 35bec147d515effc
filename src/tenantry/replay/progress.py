"""What a replay says of itself: one record for the command line, the API and server-sent events. Pure.

The record never guesses. How long the rest takes is a range, and nothing while the rate is still being
discovered, while it is held or paused (held is not slow), or where the source cannot count; then ``eta_why``
says which. What failed since the membership was frozen is told apart and is no part of the total (case R8).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Final

import msgspec

from tenantry.algorithms import estimate
from tenantry.kernel.instant import Seconds, Timestamp, as_datetime
from tenantry.kernel.tenant import TenantId
from tenantry.replay.model import Counts, Hold, ReplayId, ReplayState, ReplayView

IN_CIRCLES: Final = 0.5
"""So large a part of what was taken had failed in an earlier replay: the tenant goes in circles."""

LEAST_FOR_CIRCLES: Final = 30
"""Messages; fewer say nothing."""

MOST_HELD: Final = 10
"""Held classes that a record names, those with most failures; it says how many there are."""


class Phase(StrEnum):
    """Where a replay is, for people. The last two are ends."""

    PLANNING = "planning"
    WAITING = "waiting for share"  # something is due, and nothing of it runs
    DISCOVERING = "discovering"  # its rate is not stable yet
    STEADY = "steady"
    HELD = "held"
    PAUSED = "paused"
    DRAINING = "draining"  # the source is exhausted, or it is being cancelled
    FINISHED = "finished"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a dry run has found so far: nothing of it was taken or sent."""

    matched: int = 0
    left: int = 0
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What the coordinator knows beside the view. ``estimate``: of the rate and the rest. ``shares``: the
    tenant's due and actual share of its pool, or None. ``new``: how many failed since the membership was
    frozen, None where the source cannot tell. ``quiet_for``: seconds since something of it last ran or
    ended. ``held``: the classes that are held, with why, those with most failures first. ``at``: now."""

    at: Timestamp
    estimate: estimate.Estimate
    shares: tuple[float, float] | None = None
    new: int | None = None
    quiet_for: Seconds = 0.0
    dry: DryRun | None = None
    held: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class HeldClass:
    """A class of messages whose further ones are parked unsent, and why. ``origin``: its fingerprint."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One record, as it was ``at`` (seconds since 1970, like all times in it).

    ``total``: messages of the membership, None where nobody counts. ``done``: those that are through with
    this replay, and those that its filters passed over (``counts.left``). The other ``counts`` add up to
    ``taken``. ``rate``: messages done a second, those that were passed over among them;
    ``trend``: by what part it has grown lately. ``eta``: seconds of running that are left, or None, and
    ``eta_why`` then. ``due_share``, ``share``: of the pool, the tenant's. ``new_since_start``: apart from
    ``total``. ``in_circles``: the part of what was taken that had failed in an earlier replay, and
    ``circling`` whether that is much. ``classes_held``: how many classes of messages are held, of which
    ``held_classes`` names the first :data:`MOST_HELD`."""

    replay: ReplayId
    tenant: TenantId
    state: ReplayState
    phase: Phase
    at: Timestamp
    total: int | None
    counted_exactly: bool
    done: int
    taken: int
    counts: Counts
    rate: float
    trend: float
    eta: estimate.Range | None
    eta_why: str
    running_for: Seconds
    due_share: float | None = None
    share: float | None = None
    hold: Hold | None = None
    new_since_start: int | None = None
    in_circles: float = 0.0
    circling: bool = False
    dry: DryRun | None = None
    classes_held: int = 0
    held_classes: tuple[HeldClass, ...] = ()


WAITING_AFTER: Final[Seconds] = 2.0
"""So long nothing runs or ends while something waits: then it waits for its share."""


def progress(view: ReplayView, standing: Standing) -> Progress:
    """The record. Pure, O(1)."""
    counts, membership = view.counts, view.membership
    phase = phase_of(view, standing)
    eta, why = _eta(view, phase, standing)
    due, actual = standing.shares or (None, None)
    return Progress(
        replay=view.id,
        tenant=view.spec.tenant,
        state=view.state,
        phase=phase,
        at=standing.at,
        total=membership.count,
        counted_exactly=membership.counted_exactly,
        done=done(counts, standing.dry),
        taken=counts.taken,
        counts=counts,
        rate=standing.estimate.rate,
        trend=standing.estimate.trend,
        eta=eta,
        eta_why=why,
        running_for=view.running_for,
        due_share=due,
        share=actual,
        hold=view.hold,
        new_since_start=standing.new,
        in_circles=in_circles(counts),
        circling=is_circling(counts),
        dry=standing.dry,
        classes_held=len(standing.held),
        held_classes=tuple(HeldClass(*each) for each in islice(standing.held.items(), MOST_HELD)),
    )


def in_circles(counts: Counts) -> float:
    """The part of what was taken that had failed in an earlier replay. Pure."""
    return counts.seen_failing / counts.taken if counts.taken else 0.0


def is_circling(counts: Counts) -> bool:
    """Whether that is much, of enough messages to say so. Pure."""
    return counts.taken >= LEAST_FOR_CIRCLES and in_circles(counts) >= IN_CIRCLES


def done(counts: Counts, dry: DryRun | None = None) -> int:
    """How far through the source a replay is: what it took and what ended, and what it left. Pure."""
    looked = dry.matched + dry.left if dry else 0
    return counts.taken - counts.unended + counts.left + looked


def remaining(view: ReplayView, dry: DryRun | None = None) -> int | None:
    """How many are not through yet; None where nobody counts. Exact once the source is exhausted. Pure."""
    if view.exhausted:
        return view.counts.unended
    total = view.membership.count
    return None if total is None else max(view.counts.unended, total - done(view.counts, dry))


_BY_STATE: Final = {
    ReplayState.PLANNED: Phase.PLANNING,
    ReplayState.PAUSED: Phase.PAUSED,
    ReplayState.HELD: Phase.HELD,
    ReplayState.DRAINING: Phase.DRAINING,
    ReplayState.CANCELLING: Phase.DRAINING,
    ReplayState.FINISHED: Phase.FINISHED,
    ReplayState.CANCELLED: Phase.CANCELLED,
}


def phase_of(view: ReplayView, standing: Standing) -> Phase:
    """Pure, O(1)."""
    if view.state is not ReplayState.RUNNING:
        return _BY_STATE[view.state]
    counts = view.counts
    begun = counts.delivered + counts.parked + counts.dead + counts.failures > 0
    stalled = not begun or standing.quiet_for >= WAITING_AFTER
    if counts.waiting and not counts.in_flight and stalled:
        return Phase.WAITING
    steady = standing.estimate.phase is estimate.Phase.STEADY
    return Phase.STEADY if steady else Phase.DISCOVERING


def _eta(view: ReplayView, phase: Phase, standing: Standing) -> tuple[estimate.Range | None, str]:
    match phase:
        case Phase.PLANNING | Phase.FINISHED | Phase.CANCELLED:
            return None, phase.value
        case Phase.HELD | Phase.PAUSED:
            return None, f"{phase.value}: time stands still for it"
    if remaining(view, standing.dry) is None:
        return None, "the source cannot count its messages"
    if standing.estimate.remaining is None:
        waits = phase is Phase.WAITING
        return None, "it waits for its share" if waits else "its rate is still being discovered"
    return standing.estimate.remaining, ""


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Progress)


def encoded(record: Progress) -> str:
    """The record as JSON text. Pure."""
    return _ENCODER.encode(record).decode()


def decoded(text: str) -> Progress:
    """The record from what :func:`encoded` gave. Raises ``msgspec.ValidationError`` for anything else."""
    return _DECODER.decode(text)


def starting(view: ReplayView, at: Timestamp) -> Progress:
    """The record of a replay of which no coordinator has told yet. Pure."""
    nothing = estimate.Estimate(estimate.Phase.DISCOVERING, 0.0, 0.0, None)
    return progress(view, Standing(at, nothing))


# -- for people ---------------------------------------------------------------------------------------------


def lines(record: Progress) -> list[str]:
    """The record in a few lines of text, the most important first. Pure."""
    head = [record.phase.value, _so_far(record), _rate(record), _left(record)]
    told = [" · ".join(filter(None, head)), _counts(record.counts, record.dry)]
    told += [_held(record.hold, record.at)] if record.hold else []
    told += [_share(record)] if record.share is not None and record.counts.unended else []
    if record.dry:
        told.append(f"dry run: {record.dry.matched:,} match, {record.dry.broken:,} of them could not be sent")
    if record.new_since_start:
        told.append(f"{record.new_since_start:,} new since the plan, not part of this replay")
    if record.classes_held:
        told.append(_classes(record))
    if record.circling:
        told.append(f"in circles: {record.in_circles:.0%} of it had failed in an earlier replay")
    return told


def _so_far(record: Progress) -> str:
    if record.total is None:
        return f"{record.done:,} done so far"
    about = "" if record.counted_exactly else "about "
    return f"{record.done:,} of {about}{record.total:,} done"


def _rate(record: Progress) -> str:
    if record.phase not in {Phase.STEADY, Phase.DISCOVERING, Phase.DRAINING}:
        return ""
    moves = abs(record.trend) >= 0.05
    trend = f", {'rising' if record.trend > 0 else 'falling'} {abs(record.trend):.0%}" if moves else ""
    return f"{record.rate:,.1f} done/s{trend}"


def _left(record: Progress) -> str:
    if record.eta is None:
        return record.eta_why if record.phase in {Phase.STEADY, Phase.DISCOVERING, Phase.DRAINING} else ""
    return f"{span(record.eta.low)} to {span(record.eta.high)} left"


def _counts(counts: Counts, dry: DryRun | None) -> str:
    """What was taken, by where it is now, and what is done without it: both together are what was seen."""
    names = ("delivered", "waiting", "in_flight", "duplicate", "parked", "dead", "returned")
    told = [f"{getattr(counts, name):,} {name.replace('_', ' ')}" for name in names if getattr(counts, name)]
    passed_over = counts.left + (dry.left if dry else 0)
    beside = f"; {passed_over:,} passed over by filters" if passed_over else ""
    return f"taken {counts.taken:,}" + (": " + ", ".join(told) if told else "") + beside


def _held(hold: Hold, at: Timestamp) -> str:
    if hold.frees_at is None:
        return f"held by {hold.rule.value}: {hold.reason}"
    frees = f"frees in {span(hold.frees_at - at)}, at {as_datetime(hold.frees_at):%Y-%m-%d %H:%M:%S} UTC"
    return f"held by {hold.rule.value}: {hold.reason}; {frees}"


def _classes(record: Progress) -> str:
    reason = record.held_classes[0].reason
    if record.classes_held == 1:
        return f"a class of messages is parked unsent: {reason}"
    return f"{record.classes_held:,} classes of messages are parked unsent; of the first: {reason}"


def _share(record: Progress) -> str:
    due = "" if record.due_share is None else f" of {record.due_share:.1%} due"
    lanes = "; a target may be held or paced: see `tenantry lanes`" if record.phase is Phase.WAITING else ""
    return f"the tenant has {record.share:.1%}{due} of its pool{lanes}"


def span(seconds: Seconds) -> str:
    """A duration as people say it, to two units at most. Pure."""
    left = max(0, round(seconds))
    days, hours, minutes = left // 86_400, left % 86_400 // 3_600, left % 3_600 // 60
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {left % 60} s" if minutes else f"{left} s"
