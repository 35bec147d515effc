"""Why a waiting job waits: facts about its surroundings in, sentences out. Pure."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil

from tenantry.algorithms.fair_share import cap_slots
from tenantry.algorithms.fair_share.shares import Shares
from tenantry.algorithms.shedding import Level
from tenantry.config.model import NO_SETTINGS
from tenantry.config.ports import TenantDirectory
from tenantry.config.tiers import SHARED_POOL, Tier
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.adaptive import is_adaptive
from tenantry.lanes.model import Kind, Lane, Target
from tenantry.lanes.orders import OrderRecord, Scope, lowest_ceiling, pauses
from tenantry.lanes.shaper import ShaperState
from tenantry.lanes.table import LaneFacts, LaneState, standing_of
from tenantry.queue.model import JobState
from tenantry.queue.overload import puts_off


class WaitsFor(StrEnum):
    """What a job can wait for; the values are public."""

    DELAY = "delay"
    LANE_PAUSED = "lane_paused"
    LANE_HELD = "lane_held"
    CEILING = "ceiling"
    LANE_LIMIT = "lane_limit"
    ORDER = "order"
    NO_SLOT = "no_slot"
    CAP = "cap"
    RATE = "rate"
    LINE = "line"
    SHARE = "share"
    OVERLOAD = "overload"
    PLANNER = "planner"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the store knows about one job's surroundings, read at ``now``. Counts are jobs or slots."""

    state: JobState
    tenant: TenantId
    target: Target
    kind: Kind
    now: Timestamp
    due_at: Timestamp | None
    attempts: int
    ahead_in_flow: int
    flow_in_flight: int
    ordered: bool
    lane_in_flight: int
    lane_limit: int | None
    tenant_in_flight: int
    tenant_waiting: int
    pool_slots: int
    pool_in_flight: int
    pool_slots_of_kind: int
    tenants_waiting: int
    planner_live: bool
    orders: tuple[OrderRecord, ...] = ()  # of persons, over the job's lane, the narrowest first
    shaper: ShaperState | None = field(default=None, repr=False)  # of its lane, as it was kept last
    waiting: frozenset[TenantId] = field(default=frozenset(), repr=False)  # whose work; never told to tenants
    pool_level: Level = Level.NONE
    # from the directory, filled by facts_of
    pool: str = SHARED_POOL
    cap: float = 1.0
    dispatch_rate: float | None = None
    timeout_for: Seconds = NO_SETTINGS.timeout_for
    share: float | None = None
    retries_put_off: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that a job waits for, most decisive first; ``until`` is when it frees, where known."""

    waits_for: WaitsFor
    detail: str
    until: Timestamp | None = None


def pool_of(tenant: TenantId, directory: TenantDirectory) -> str:
    """The pool that serves the tenant's tier; the shared one for a tenant that has been removed. O(1)."""
    tier = directory.tier_of(tenant)
    return SHARED_POOL if tier is None else tier.pool


def facts_of(facts: Facts, directory: TenantDirectory) -> Facts:
    """``facts`` of a store with what only the directory knows: the tier's limits, the lane's, who else waits
    in this pool, and the share that leaves (law F1). O(tenants that wait)."""
    tier, document = directory.tier_of(facts.tenant), directory.tenant(facts.tenant)
    if tier is None or document is None:
        return facts
    settings = document.settings_for(facts.target)
    rivals = [each for name in facts.waiting if (each := directory.tier_of(name)) and each.pool == tier.pool]
    return replace(
        facts,
        pool=tier.pool,
        cap=tier.cap,
        dispatch_rate=tier.dispatch_rate,
        lane_limit=settings.limit,
        timeout_for=settings.timeout_for,
        shaper=facts.shaper if is_adaptive(facts.target, settings) else None,
        tenants_waiting=len(rivals),
        retries_put_off=puts_off(facts.pool_level, tier),
        share=_share_of(tier, rivals if facts.tenant in facts.waiting else [*rivals, tier], directory.floor),
    )


def _share_of(tier: Tier, contenders: list[Tier], floor: float) -> float:
    shares = Shares(floor)
    for each in contenders:
        shares.count(each.weight, 1)
    return shares.share(tier.weight)


def explain(facts: Facts) -> tuple[Reason, ...]:
    """Why the job has not started, most decisive first: what nothing else can make up for comes before what
    time alone brings. Empty for a job that starts next, has started or has ended (see :func:`headline`).
    Pure, O(1).

    The sentences speak of this tenant's own figures and of totals; no other tenant is named.
    """
    if facts.state is JobState.DELAYED:
        return (_delay(facts),)
    if facts.state is not JobState.WAITING:
        return ()
    reasons = (rule(facts) for rule in _RULES)
    return tuple(reason for reason in reasons if reason is not None)


def headline(facts: Facts) -> str:
    """One sentence on where the job is. Pure, O(1)."""
    if facts.state in _SETTLED:
        return _SETTLED[facts.state]
    reasons = explain(facts)
    return reasons[0].detail if reasons else "It is next: it starts with the planner's next round."


_SETTLED = {
    JobState.RUNNING: "It is running: a worker holds it under a live claim.",
    JobState.PARKED: "It is parked: its replay put it aside. Its reason and history say why.",
    JobState.DELIVERED: "It has ended: it was delivered.",
    JobState.DEAD: "It has ended: it is a dead letter. Its reason and history say why.",
    JobState.CANCELLED: "It has ended: it was cancelled before it started.",
}


def _delay(facts: Facts) -> Reason:
    why = "its next attempt" if facts.attempts else "the delay it was submitted with"
    tried = f" after {_count(facts.attempts, 'attempt')}" if facts.attempts else ""
    if facts.due_at is None:
        return Reason(WaitsFor.DELAY, f"It waits for {why}{tried}.")
    left = _span(facts.due_at - facts.now)
    return Reason(WaitsFor.DELAY, f"It waits for {why}{tried}, due in {left}.", facts.due_at)


def _lane_paused(facts: Facts) -> Reason | None:
    standing = pauses(facts.orders)
    if not standing:
        return None
    what = [f"{_stopped(each.order.scope)} paused {each}" for each in standing]
    return Reason(WaitsFor.LANE_PAUSED, f"{'; '.join(what)}. Nothing in it starts until a person resumes it.")


def _stopped(scope: Scope) -> str:
    if scope.target is None:
        return "Every lane of its tenant is"
    return "Every lane to its target is" if scope.tenant is None else "Its lane is"


def _ceiling(facts: Facts) -> Reason | None:
    lowest = lowest_ceiling(facts.orders)
    if lowest is None or lowest.order.ceiling is None or facts.lane_in_flight < lowest.order.ceiling:
        return None
    held = f"{facts.lane_in_flight} in flight, and its ceiling is {lowest.order.ceiling}"
    return Reason(WaitsFor.CEILING, f"Its lane has {held}, set {lowest}.")


def _planner(facts: Facts) -> Reason | None:
    if facts.planner_live:
        return None
    return Reason(WaitsFor.PLANNER, "No planner holds its place, so nothing starts; one takes over in 10 s.")


def _no_slot(facts: Facts) -> Reason | None:
    if facts.pool_slots_of_kind > 0:
        return None
    if facts.pool_slots == 0:
        return Reason(WaitsFor.NO_SLOT, f"The pool {facts.pool!r} has no live slots: start a worker for it.")
    slots = _count(facts.pool_slots, "slot")
    detail = f"None of the {slots} of pool {facts.pool!r} can run {facts.kind!r}: start a worker that can."
    return Reason(WaitsFor.NO_SLOT, detail)


def _order(facts: Facts) -> Reason | None:
    if not facts.ordered or not (facts.flow_in_flight or facts.ahead_in_flow):
        return None
    if facts.flow_in_flight:
        return Reason(WaitsFor.ORDER, "Its ordering key runs one job at a time, and one is in flight.")
    ahead = _count(facts.ahead_in_flow, "job")
    return Reason(WaitsFor.ORDER, f"Its ordering key runs one job at a time, and {ahead} came before it.")


def _lane_held(facts: Facts) -> Reason | None:
    lane = LaneFacts(
        Lane(facts.tenant, facts.target), facts.now, in_flight=facts.lane_in_flight, shaper=facts.shaper
    )
    state, reason, frees_at = standing_of(lane, facts.timeout_for)
    if state is LaneState.OPEN:
        return None
    left = f" for {_span(frees_at - facts.now)} unless more is heard" if frees_at is not None else ""
    return Reason(WaitsFor.LANE_HELD, f"Its lane is held{left}: {reason}.", frees_at)


def _lane_limit(facts: Facts) -> Reason | None:
    found = None if facts.shaper is None else facts.shaper.limit.permits
    if found is not None and facts.lane_in_flight >= found < (facts.lane_limit or found + 1):
        held = f"{facts.lane_in_flight} in flight, and {found} is what its target is found to take"
        return Reason(WaitsFor.LANE_LIMIT, f"Its lane has {held}.")
    if facts.lane_limit is None or facts.lane_in_flight < facts.lane_limit:
        return None
    limit = f"{facts.lane_in_flight} of the {facts.lane_limit} that its limit allows"
    return Reason(WaitsFor.LANE_LIMIT, f"Its lane has {limit} in flight.")


def _cap(facts: Facts) -> Reason | None:
    most = cap_slots(facts.cap, facts.pool_slots)
    if facts.tenant_in_flight < most:
        return None
    held = f"holds {facts.tenant_in_flight} of its {_count(most, 'slot')}"
    return Reason(WaitsFor.CAP, f"The tenant {held}: {_percent(facts.cap)} of {facts.pool_slots}.")


def _overload(facts: Facts) -> Reason | None:
    if not facts.retries_put_off or not facts.attempts or facts.ordered:
        return None
    detail = f"The pool {facts.pool!r} is overloaded: retries wait until that is over, or for 5 min."
    return Reason(WaitsFor.OVERLOAD, detail)


def _rate(facts: Facts) -> Reason | None:
    if facts.dispatch_rate is None or _cap(facts) or not _slot_is_free(facts):
        return None  # it may limit, but it is not what the job waits for now
    waiting = f"{_count(facts.tenant_waiting, 'job')} of it {_wait(facts.tenant_waiting)}"
    return Reason(
        WaitsFor.RATE, f"The tenant starts at most {facts.dispatch_rate:g} jobs a second; {waiting}."
    )


def _line(facts: Facts) -> Reason | None:
    if facts.ordered or not facts.ahead_in_flow:
        return None
    ahead = f"{_count(facts.ahead_in_flow, 'job')} of the same target and class {_wait(facts.ahead_in_flow)}"
    return Reason(WaitsFor.LINE, f"{ahead} ahead of it.")


def _share(facts: Facts) -> Reason | None:
    if _slot_is_free(facts):
        return None
    busy = f"{facts.pool_in_flight} of the pool's {_count(facts.pool_slots, 'slot')} are in use"
    others = f"{_count(facts.tenants_waiting, 'tenant')} {_wait(facts.tenants_waiting)}"
    share = f"; this one's share is {_percent(facts.share)}" if facts.share is not None else ""
    return Reason(WaitsFor.SHARE, f"{busy} and {others}{share}.")


def _slot_is_free(facts: Facts) -> bool:
    """Whether a slot that can run it is free for certain: which slots of a mixed pool are is not counted."""
    return facts.pool_in_flight < facts.pool_slots == facts.pool_slots_of_kind


_RULES = (
    _lane_paused,
    _planner,
    _lane_held,
    _no_slot,
    _order,
    _ceiling,
    _lane_limit,
    _overload,
    _cap,
    _rate,
    _line,
    _share,
)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _wait(number: int) -> str:
    return "waits" if number == 1 else "wait"


def _percent(part: float) -> str:
    return f"{part * 100:.3g} %"


def _span(seconds: float) -> str:
    """A duration as people say it: the two largest units, never less than a second."""
    whole = max(1, ceil(seconds))
    for unit, size, smaller, part in _UNITS:
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


_UNITS = (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1))
