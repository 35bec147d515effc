"""From the incident and the books to the figures of the summary, and which promises held. Pure but for the
incident that it reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tenantry.algorithms.fair_share import cap_slots
from tenantry.cli.demo.figures import percentile
from tenantry.cli.demo.incident.cast import SERVICE, SLOTS, Kind, Party, registry, shared_path
from tenantry.cli.demo.incident.record import BYSTANDERS, OTHERS, Chapter, Held, Incident
from tenantry.config.registry import Registry
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.queue.model import JobState
from tenantry.replay.model import HoldRule, ReplayState
from tenantry.replay.progress import Progress
from tenantry.simulation.fluid import FluidSchedule, FluidTenant, filled, fluid

ROUND: Seconds = 0.05
"""What a live job may wait for the planner (law F3)."""

_LIVE = {"bystanders": BYSTANDERS, "with_a_replay": OTHERS}
_TIMES = 1.5
"""Law I3."""


@dataclass(frozen=True, slots=True)
class Account:
    """What the store says at the end. ``accepted``: ids that were given out, ``ends``: of them.
    ``faults``: of its audit."""

    accepted: int
    ends: Mapping[JobState, int]
    parked: int
    faults: tuple[str, ...]

    @property
    def lost(self) -> int:
        """Accepted, and neither ended nor parked (law K1)."""
        return self.accepted - sum(self.ends.values()) - self.parked


@dataclass(frozen=True, slots=True)
class Drained:
    """Ordinary replays of one tier: medians of seconds from start to end, as they were, at the targets' own
    limits, and in the fluid schedule of targets and slots; ``slowest``. ``share`` and ``due``: parts of all
    slots until the first end, in [0, 1]. ``over_fluid``: the median of each one's end over its fluid end."""

    tenants: int
    letters: int
    ended: int
    took: Seconds | None
    slowest: Seconds | None
    alone: Seconds | None
    fluid: Seconds | None
    over_fluid: float | None
    share: float
    due: float


@dataclass(frozen=True, slots=True)
class Odd:
    """The replay that is not like the others. ``share`` and ``due``: parts of all slots while replays ran.
    ``stopped``: its state before the demo cancelled it, ``why`` the reason of a hold. ``kept``: of its dead
    letters, those that are dead letters again or still."""

    tenant: TenantId
    letters: int
    delivered: int
    parked: int
    kept: int
    stopped: str
    why: str
    share: float
    due: float


@dataclass(frozen=True, slots=True)
class Live:
    """How long live jobs waited for a slot, p99 in seconds, and how many jobs that is about: before the
    outage, and while replays ran."""

    before: Seconds | None
    during: Seconds | None
    jobs_before: int
    jobs_during: int


@dataclass(frozen=True, slots=True)
class Promise:
    """``law``: what is promised, ``kept``: whether this run kept it. ``of_waits``: it is measured in
    milliseconds of this machine; broken, it is told, and does not fail the demo."""

    law: str
    kept: bool
    of_waits: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that the summary says. ``over_floor``: the smallest share until the first end, over the
    floor; None where no replay ended. ``twice``: deliveries beyond one a message.
    ``live``: of ``bystanders``, and of those ``with_a_replay``."""

    account: Account
    letters: int
    died: int
    tiers: Mapping[TierName, Drained]
    odd: Mapping[Kind, Odd]
    over_floor: float | None
    twice: int
    live: Mapping[str, Live]
    replayed_for: Seconds
    ran_for: Seconds
    promises: tuple[Promise, ...]

    @property
    def kept(self) -> bool:
        """Whether the demo succeeded: every promise but those of waits."""
        return all(promise.kept or promise.of_waits for promise in self.promises)


@dataclass(frozen=True, slots=True)
class _Judged:
    hole: Odd
    live: Live
    over_floor: float | None


def found(incident: Incident, account: Account, *, ended: Mapping[TenantId, Seconds]) -> Found:
    """``ended``: how long each replay took from its start to its end."""
    whole = registry(incident.parties)
    yardstick, due = _fluid(incident.parties, whole), _due(incident.replaying, whole)
    live = {name: _live(incident, kinds) for name, kinds in _LIVE.items()}
    start, end = incident.held[Chapter.REPLAYING], incident.held[Chapter.ENDING]
    first = _shares(start, incident.first_end or end)
    over_floor = _over_floor(incident, first, whole.floor)
    odd = {kind: _odd(incident.of(kind)[0], incident, _shares(start, end), due)
           for kind in (Kind.LARGE, Kind.HOLE, Kind.POISON)}  # fmt: skip
    tiers = {
        tier.name: _drained([p for p in incident.of(Kind.ORDINARY) if p.tier == tier.name],
                            ended, yardstick, (first, due))
        for tier in reversed(whole.tiers)
    }  # fmt: skip
    return Found(
        account=account,
        letters=incident.letters,
        died=sum(incident.ledger.dead.values()),
        tiers=tiers,
        odd=odd,
        over_floor=over_floor,
        twice=_twice(incident),
        live=live,
        replayed_for=end.at - start.at,
        ran_for=incident.elapsed,
        promises=tuple(_promises(incident, account, _Judged(odd[Kind.HOLE], live["bystanders"], over_floor))),
    )


def _live(incident: Incident, kinds: Collection[Kind]) -> Live:
    before, during = (incident.live_waits(kinds, before=each) for each in (True, False))
    return Live(percentile(before, 99), percentile(during, 99), len(before), len(during))


def _fluid(parties: Sequence[Party], whole: Registry) -> FluidSchedule:
    """Of those whose replays can end. The black hole and the poisoned backlog are left out, as is live work:
    the yardstick has more to give than the product."""
    tenants = [_as_fluid(party, whole) for party in parties if party.kind in (Kind.ORDINARY, Kind.LARGE)]
    return fluid(tenants, float(SLOTS), floor=whole.floor)


def _as_fluid(party: Party, whole: Registry) -> FluidTenant:
    tier = next(tier for tier in whole.tiers if tier.name == party.tier)
    most = min(party.strength, cap_slots(tier.cap, SLOTS))
    return FluidTenant(party.tenant, tier.weight, float(party.letters), SERVICE, float(most))


def _due(parties: Sequence[Party], whole: Registry) -> dict[TenantId, float]:
    """The parts of the slots that are due to the tenants while all of them have work."""
    slots = filled([_as_fluid(party, whole) for party in parties], float(SLOTS), whole.floor)
    return {TenantId(name): held / SLOTS for name, held in slots.items()}


def _shares(since: Held, until: Held) -> dict[TenantId, float]:
    """The parts of all slots that tenants held, live work included."""
    whole = SLOTS * max(until.at - since.at, 1e-9)
    return {
        tenant: (held - since.slot_seconds.get(tenant, 0.0)) / whole
        for tenant, held in until.slot_seconds.items()
    }


def _over_floor(incident: Incident, shares: Mapping[TenantId, float], floor: float) -> float | None:
    """The black hole and the poisoned backlog had no work to give all the time: a rule held them."""
    if incident.first_end is None:
        return None
    parties = incident.of(Kind.ORDINARY) + incident.of(Kind.LARGE)
    smallest = min(shares.get(party.tenant, 0.0) for party in parties)
    return smallest / (floor / len(incident.replaying))


def _drained(
    parties: Sequence[Party],
    ended: Mapping[TenantId, Seconds],
    yardstick: FluidSchedule,
    shares: tuple[Mapping[TenantId, float], Mapping[TenantId, float]],
) -> Drained:
    took = {party.tenant: ended[party.tenant] for party in parties if party.tenant in ended}
    got, due = (sum(each.get(party.tenant, 0.0) for party in parties) for each in shares)
    return Drained(
        tenants=len(parties),
        letters=sum(party.letters for party in parties),
        ended=len(took),
        took=percentile(took.values(), 50),
        slowest=max(took.values(), default=None),
        alone=percentile([party.alone for party in parties], 50),
        fluid=percentile([yardstick.ends[party.tenant] for party in parties], 50),
        over_fluid=percentile([seconds / yardstick.ends[name] for name, seconds in took.items()], 50),
        share=got,
        due=due,
    )


def _odd(
    party: Party, incident: Incident, shares: Mapping[TenantId, float], due: Mapping[TenantId, float]
) -> Odd:
    at_stop, last = incident.stopped.get(party.tenant), incident.progress.get(party.tenant)
    delivered = last.counts.delivered if last is not None else 0
    parked = last.counts.parked if last is not None else 0
    return Odd(
        tenant=party.tenant,
        letters=party.letters,
        delivered=delivered,
        parked=parked,
        kept=party.letters - delivered - parked,
        stopped=at_stop.state.value if at_stop is not None else "",
        why=at_stop.hold.reason if at_stop is not None and at_stop.hold is not None else "",
        share=shares.get(party.tenant, 0.0),
        due=due[party.tenant],
    )


def _twice(incident: Incident) -> int:
    """What came to targets that answer, beyond what was delivered."""
    came = delivered = 0
    for party in incident.of(Kind.ORDINARY) + incident.of(Kind.LARGE):
        path, last = shared_path(party.tenant), incident.progress.get(party.tenant)
        came += incident.requests_after.get(path, 0) - incident.requests_before.get(path, 0)
        delivered += last.counts.delivered if last is not None else 0
    return came - delivered


def _promises(incident: Incident, account: Account, figures: _Judged) -> Sequence[Promise]:
    hole, live, over_floor = figures.hole, figures.live, figures.over_floor
    poison = incident.stopped.get(incident.of(Kind.POISON)[0].tenant)
    calm = live.before is not None and live.during is not None and live.during <= _TIMES * live.before + ROUND
    return (
        Promise("nothing that was accepted is lost (K1)", not account.lost and not account.faults),
        Promise("every ordinary replay ends with all its messages delivered", _all_delivered(incident)),
        Promise("nobody has less than the floor (F1)", over_floor is not None and over_floor >= 1.0),
        Promise("a black hole takes no more than its share", hole.share <= hole.due),
        Promise("a poisoned replay stops itself", _stopped_itself(poison)),
        Promise(
            "live work of bystanders waits at most 1.5 times as long as before, and a round (I3)",
            calm,
            of_waits=True,
        ),
    )


def _all_delivered(incident: Incident) -> bool:
    seen = ((party, incident.progress.get(party.tenant)) for party in incident.of(Kind.ORDINARY))
    return all(
        last is not None
        and last.state is ReplayState.FINISHED
        and last.counts.delivered == last.counts.taken == party.letters
        for party, last in seen
    )


def _stopped_itself(seen: Progress | None) -> bool:
    return seen is not None and seen.hold is not None and seen.hold.rule is HoldRule.POISON
