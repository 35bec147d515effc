"""Weighted fair share with a floor and a cap, over tenants, then lanes, then flows.

Theory
------
*Start-time fair queueing* (P. Goyal, H. Vin, H. Cheng, "Start-Time Fair Queueing", SIGCOMM 1996), carrying
what deficit round robin promises (M. Shreedhar, G. Varghese, "Efficient Fair Queuing using Deficit Round
Robin", SIGCOMM 1995) and what the seed documents ask for. Each tenant has a *virtual time* ``v``: the
slot-seconds it was charged, divided by its *effective weight* ``e``. The tenant with the smallest ``v`` is
served next. The pool's virtual time ``V`` is the start tag of the last pick.

In the words of deficit round robin, ``(V - v) * e`` is the tenant's *deficit counter* in slot-seconds:
positive is credit, negative debt; a visit may run one *quantum* ahead; the *active list* is the heap of
eligible tenants, so idle tenants cost nothing. Keeping ``v`` instead of the counter makes long debts free:
deficit round robin must visit a tenant once a round until its debt is paid, here it just sorts later.

Rules
-----
F1  The share of an eligible tenant is ``max(φ/n, λ·w)``, λ such that the n shares add up to 1. Dividing by λ
    gives ``e = max(w, φ/(n·λ))``: the floor is a least effective weight, recomputed when n changes.
F2  Within a tenant the lane with the least charged slot-seconds is next, within a lane the flow.
F4  A tenant at ``max(1, ceil(cap · slots))`` in flight is not eligible.
F5  On becoming eligible ``v = max(v, V - quantum/e)``: at most one quantum of credit.
F6  A start is charged its estimate; from the estimate's end on the tenant is charged as the job overruns; the
    settle corrects to what was used. Credit is clamped to one quantum, debt never.
F7  What is blocked (paused, held, at a limit, at the cap, no slot of its kind) is in no heap.
F8  Rank 0 before 1 before 2, but an eligible lower rank gets at least one in ten of its tenant's picks.

Costs: one pick is O(k + log n) for k kinds of work and n eligible tenants; a tenant, lane or flow that is
idle or blocked costs nothing. Not safe to use from two threads at once.
"""

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import ceil, inf

RANKS = 3
_FORCED_AFTER = 8  # picks of other ranks; with two lower ranks due at once both still get one in ten
_EWMA = 0.2
_PRIOR_EWMA = 0.05
_LEAST_ESTIMATE = 0.001  # below a millisecond a visit would run to hundreds of jobs

Kind = Hashable
Kinds = frozenset[Hashable]


@dataclass(slots=True)
class Charge:
    """What a pick was charged, until the last of its jobs is settled. Opaque to callers."""

    flow: "_Flow"
    estimate: float
    started_at: float
    remaining: int
    overrunning: bool = False


@dataclass(frozen=True, slots=True)
class Pick:
    """Start ``count`` jobs of ``flow`` now, on slots of the group ``kinds``. Hand ``charge`` to settle."""

    tenant: Hashable
    lane: Hashable
    flow: Hashable
    kinds: Kinds
    count: int
    charge: Charge


class _Tenant:
    __slots__ = (
        "accrued_at", "cap", "eligible", "id", "in_flight", "lane_time", "lines", "over", "picks_since",
        "rate", "rate_held", "spent_until", "v", "weight",
    )  # fmt: skip

    def __init__(self, tenant: Hashable) -> None:
        self.id = tenant
        self.weight = 1.0
        self.cap = 1.0
        self.rate: float | None = None
        self.v = 0.0
        self.in_flight = 0
        self.over = 0  # jobs that run beyond their estimate
        self.accrued_at = 0.0
        self.eligible = False
        self.rate_held = False
        self.spent_until = -inf  # the rate's bucket, as the instant at which it was last empty
        self.lane_time = 0.0  # the start tag of the last lane picked
        self.picks_since = [0] * RANKS
        self.lines: dict[Kind, _Line] = {}


class _Line:
    """One tenant's lanes of one kind: what stands in that kind's heap."""

    __slots__ = ("counts", "heaps", "kind", "listed", "serial", "tenant")

    def __init__(self, tenant: _Tenant, kind: Kind) -> None:
        self.tenant, self.kind = tenant, kind
        self.heaps: list[list[tuple[float, int, _Lane]]] = [[] for _ in range(RANKS)]
        self.counts = [0] * RANKS
        self.listed = False
        self.serial = 0


class _Lane:
    __slots__ = (
        "estimate", "flow_time", "heaps", "held", "id", "in_flight", "limit", "line", "listed", "paused",
        "ready", "serials", "v",
    )  # fmt: skip

    def __init__(self, lane: Hashable, line: _Line) -> None:
        self.id, self.line = lane, line
        self.v = 0.0
        self.flow_time = 0.0
        self.in_flight = 0
        self.limit: int | None = None
        self.paused = False
        self.held = 0.0  # not before this instant
        self.estimate: float | None = None
        self.heaps: list[list[tuple[float, int, _Flow]]] = [[] for _ in range(RANKS)]
        self.ready = [0] * RANKS
        self.listed = [False] * RANKS
        self.serials = [0] * RANKS


class _Flow:
    __slots__ = (
        "held",
        "hints",
        "id",
        "in_flight",
        "lane",
        "limit",
        "paused",
        "rank",
        "ready",
        "serial",
        "v",
        "waiting",
    )

    def __init__(self, flow: Hashable, lane: _Lane, rank: int, limit: int | None) -> None:
        self.id, self.lane, self.rank, self.limit = flow, lane, rank, limit
        self.v = 0.0
        self.waiting = 0
        self.in_flight = 0
        self.held = 0.0
        self.paused = False
        self.ready = False
        self.serial = 0
        self.hints: deque[list[float]] = deque()  # [jobs, cost of each or -1]


class FairShare:
    """The rule for one pool of slots. See the module's text for its laws.

    ``floor``: φ in [0, 1]; ``quantum``: slot-seconds > 0, the credit a tenant may have and what one visit may
    run ahead; ``prior``: seconds, the estimate before anything was measured. ``now`` is in seconds on any one
    clock that does not go back.
    """

    def __init__(self, *, floor: float = 0.25, quantum: float = 0.010, prior: float = 0.1) -> None:
        if not 0.0 <= floor <= 1.0:
            raise ValueError(f"floor must be in [0, 1], not {floor!r}")
        if not quantum > 0.0:
            raise ValueError(f"quantum must be > 0 slot-seconds, not {quantum!r}")
        self._floor, self._quantum, self._prior = floor, quantum, prior
        self._slots = 0
        self._served: Kinds = frozenset()
        self._tenants: dict[Hashable, _Tenant] = {}
        self._lanes: dict[Hashable, _Lane] = {}
        self._flows: dict[Hashable, _Flow] = {}
        self._heaps: dict[Kind, list[tuple[float, int, _Line]]] = {}
        self._time: dict[Kind, float] = {}  # V of each kind
        self._eligible: dict[float, int] = {}  # weight -> eligible tenants of that weight
        self._floor_weight: float | None = 0.0  # None: to be computed
        self._timers: list[tuple[float, int, _Tenant | _Lane | _Flow | Charge]] = []
        self._prune_timers_at = 1_000
        self._serial = 0

    # -- who and where ---------------------------------------------------------------------------------

    def set_tenant(
        self, tenant: Hashable, *, weight: float, cap: float = 1.0, rate: float | None = None
    ) -> None:
        """Create or change a tenant. Acts at once, on the backlog too. ``rate``: starts a second, or None."""
        if not 0.0 < weight < inf:
            raise ValueError(f"weight must be a number > 0, not {weight!r}")
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = _Tenant(tenant)
        was = found.eligible
        self._count_eligible(found, eligible=False)
        found.weight, found.cap, found.rate = weight, cap, rate
        found.rate_held = found.rate_held and rate is not None
        self._count_eligible(found, eligible=was)
        self._tenant_changed(found)

    def open_flow(
        self,
        flow: Hashable,
        *,
        tenant: Hashable,
        lane: Hashable,
        kind: Kind = "",
        rank: int = 0,
        limit: int | None = None,
    ) -> None:
        """Make a flow known. The tenant must be known; the lane comes into being with its first flow.

        ``rank``: 0 to 2, the class. ``limit``: most of this flow in flight. Opening a known flow changes nothing.
        """
        if flow in self._flows:
            return
        found = self._lanes.get(lane)
        if found is None:
            owner = self._tenants[tenant]
            line = owner.lines.get(kind)
            if line is None:
                line = owner.lines[kind] = _Line(owner, kind)
                self._heaps.setdefault(kind, [])
                self._time.setdefault(kind, 0.0)
            found = self._lanes[lane] = _Lane(lane, line)
        self._flows[flow] = _Flow(flow, found, rank, limit)

    def set_slots(self, slots: int, kinds: Kinds) -> None:
        """The pool's live slots, busy ones included, and the kinds that some slot can run. O(tenants)."""
        if slots == self._slots and kinds == self._served:
            return
        self._slots, self._served = slots, kinds
        for tenant in self._tenants.values():
            self._tenant_changed(tenant)

    # -- work ------------------------------------------------------------------------------------------

    def add(self, flow: Hashable, count: int = 1, *, cost: float | None = None) -> None:
        """``count`` jobs of ``flow`` became due. ``cost``: expected slot-seconds of each. O(log lanes)."""
        found = self._flows[flow]
        if cost is not None or found.hints:
            found.hints.append([count, -1.0 if cost is None else cost])
        found.waiting += count
        self._flow_changed(found)

    def withdraw(self, flow: Hashable, count: int = 1) -> None:
        """``count`` waiting jobs of ``flow`` are gone."""
        found = self._flows[flow]
        found.waiting -= count
        self._flow_changed(found)

    def pause_lane(self, lane: Hashable, *, paused: bool) -> None:
        found = self._lanes[lane]
        found.paused = paused
        self._lane_changed(found)

    def limit_lane(self, lane: Hashable, limit: int | None) -> None:
        """At most ``limit`` of the lane in flight. A lower one revokes nothing."""
        found = self._lanes[lane]
        found.limit = limit
        self._lane_changed(found)

    def hold_lane(self, lane: Hashable, until: float) -> None:
        """Start nothing of the lane before ``until``."""
        found = self._lanes[lane]
        found.held = until
        self._timer(until, found)
        self._lane_changed(found)

    def pause_flow(self, flow: Hashable, *, paused: bool) -> None:
        """A paused flow starts nothing and accrues nothing."""
        found = self._flows[flow]
        found.paused = paused
        self._flow_changed(found)

    def hold_flow(self, flow: Hashable, until: float) -> None:
        """Start nothing of the flow before ``until``."""
        found = self._flows[flow]
        found.held = until
        self._timer(until, found)
        self._flow_changed(found)

    # -- decisions -------------------------------------------------------------------------------------

    def plan(self, free: Mapping[Kinds, int], now: float) -> list[Pick]:
        """What to start on the free slots, each group of which can run its set of kinds.

        The picks are in order of service and use at most the free slots; none is left free while an eligible
        job could use it (law F3). They are charged: the caller must start them or settle them with 0.
        """
        self._release_timers(now)
        left = {kinds: count for kinds, count in free.items() if count > 0}
        groups = self._groups(left)
        picks: list[Pick] = []
        while left:
            line = self._next_line(groups, now)
            if line is None:
                break
            kinds = groups[line.kind][0]
            pick = self._pick(line, kinds, left[kinds], now)
            picks.append(pick)
            left[kinds] -= pick.count
            if not left[kinds]:
                del left[kinds]
                groups = self._groups(left)
        return picks

    def adopt(self, flow: Hashable, started_at: float, now: float) -> Charge:
        """A job that is already in flight, when memory is rebuilt. Charged from ``started_at`` on."""
        found = self._flows[flow]
        charge = Charge(found, self._estimate(found), started_at, 0)
        self._start(found, charge, 1, now)
        return charge

    def settle(self, charge: Charge, busy_for: float | None, now: float) -> None:
        """One job of a pick left its slot after ``busy_for`` slot-seconds (None: as long as it was held)."""
        flow = charge.flow
        lane, tenant = flow.lane, flow.lane.line.tenant
        self._accrue(tenant, now)
        held = max(0.0, now - charge.started_at)
        charged = max(held, charge.estimate) if charge.overrunning else charge.estimate
        used = held if busy_for is None else busy_for
        if busy_for is not None:
            self._learn(lane, busy_for)
        charge.remaining -= 1
        if charge.overrunning:
            tenant.over -= 1
        self._correct(flow, used - charged)
        flow.in_flight -= 1
        lane.in_flight -= 1
        tenant.in_flight -= 1
        self._flow_changed(flow)
        self._lane_changed(lane)
        self._tenant_changed(tenant)

    def next_timer(self) -> float | None:
        """When :meth:`plan` may have something new without anything being told; None: never."""
        return self._timers[0][0] if self._timers else None

    # -- what people ask -------------------------------------------------------------------------------

    def share(self, tenant: Hashable) -> float:
        """The part of the pool that the tenant is entitled to now, in [0, 1]; 0 when it is not eligible."""
        found = self._tenants[tenant]
        if not found.eligible:
            return 0.0
        return self._effective(found) / sum(max(w, self._least()) * n for w, n in self._eligible.items())

    def deficit(self, tenant: Hashable) -> float:
        """The deficit counter in slot-seconds: credit > 0 (at most one quantum while eligible), debt < 0."""
        found = self._tenants[tenant]
        return (self._now_of(found) - found.v) * self._effective(found)

    def in_flight(self, tenant: Hashable) -> int:
        return self._tenants[tenant].in_flight

    def waiting(self, flow: Hashable) -> int:
        return self._flows[flow].waiting

    def eligible(self, tenant: Hashable) -> bool:
        return self._tenants[tenant].eligible

    # -- one pick --------------------------------------------------------------------------------------

    def _groups(self, left: Mapping[Kinds, int]) -> dict[Kind, list[Kinds]]:
        """For each kind the groups with free slots, the least able first: it leaves the others for more."""
        groups: dict[Kind, list[Kinds]] = {}
        for kinds in sorted(left, key=len):
            for kind in kinds:
                if self._heaps.get(kind):
                    groups.setdefault(kind, []).append(kinds)
        return groups

    def _next_line(self, groups: Mapping[Kind, list[Kinds]], now: float) -> _Line | None:
        best: _Line | None = None
        for kind in groups:
            line = self._head(kind, now)
            if line is not None and (best is None or line.tenant.v < best.tenant.v):
                best = line
        return best

    def _head(self, kind: Kind, now: float) -> _Line | None:
        """The line of the smallest virtual time; entries that are stale are dropped or put where they belong."""
        heap = self._heaps[kind]
        while heap:
            v, serial, line = heap[0]
            if not line.listed or serial != line.serial:
                heappop(heap)
                continue
            tenant = line.tenant
            if tenant.over:
                self._accrue(tenant, now)
            if tenant.v <= v:
                return line
            heappop(heap)
            self._push_line(line)
        return None

    def _pick(self, line: _Line, kinds: Kinds, free: int, now: float) -> Pick:
        tenant = line.tenant
        rank = self._rank(tenant, line)
        lane = _first(line.heaps[rank], rank)
        flow = _first_flow(lane.heaps[rank])
        estimate = self._estimate(flow)
        count = min(
            free,
            flow.waiting,
            self._visit(line, lane, flow, rank, estimate),
            self._room(tenant, lane, flow, now),
        )
        if flow.hints:
            count = self._take_hints(flow, count)
        self._time[line.kind] = max(self._time[line.kind], tenant.v)
        tenant.lane_time = max(tenant.lane_time, lane.v)
        lane.flow_time = max(lane.flow_time, flow.v)
        self._count_picks(tenant, rank, count)
        self._spend_rate(tenant, count, now)
        flow.waiting -= count
        charge = Charge(flow, estimate, now, 0)
        self._start(flow, charge, count, now)
        return Pick(tenant.id, lane.id, flow.id, kinds, count, charge)

    def _start(self, flow: _Flow, charge: Charge, count: int, now: float) -> None:
        lane, tenant = flow.lane, flow.lane.line.tenant
        self._accrue(tenant, now)
        cost = charge.estimate * count
        charge.remaining += count
        tenant.v += cost / self._effective(tenant)
        lane.v += cost
        flow.v += cost
        flow.in_flight += count
        lane.in_flight += count
        tenant.in_flight += count
        self._timer(charge.started_at + charge.estimate, charge)
        self._flow_changed(flow)
        self._lane_changed(lane)
        self._tenant_changed(tenant)

    def _rank(self, tenant: _Tenant, line: _Line) -> int:
        for rank in range(1, RANKS):
            if line.counts[rank] and tenant.picks_since[rank] >= _FORCED_AFTER:
                return rank
        return next(rank for rank in range(RANKS) if line.counts[rank])

    def _count_picks(self, tenant: _Tenant, picked: int, count: int) -> None:
        for rank in range(1, RANKS):
            if rank == picked:
                tenant.picks_since[rank] = 0
            elif any(line.counts[rank] for line in tenant.lines.values()):
                tenant.picks_since[rank] += count

    def _visit(self, line: _Line, lane: _Lane, flow: _Flow, rank: int, estimate: float) -> int:
        """How many jobs this visit may start: until the next in turn is a quantum behind, at each level."""
        tenant, quantum = line.tenant, self._quantum
        ahead = min(
            (_second(self._heaps[line.kind], tenant.v) - tenant.v) * self._effective(tenant),
            _second(line.heaps[rank], lane.v) - lane.v,
            _second(lane.heaps[rank], flow.v) - flow.v,
        )
        most = inf if ahead == inf else (ahead + quantum) // estimate
        for lower in range(1, RANKS):
            if lower != rank and line.counts[lower]:
                most = min(most, _FORCED_AFTER - tenant.picks_since[lower])
        return 1 << 30 if most == inf else max(1, int(most))

    def _room(self, tenant: _Tenant, lane: _Lane, flow: _Flow, now: float) -> int:
        room = self._cap_slots(tenant) - tenant.in_flight
        if lane.limit is not None:
            room = min(room, lane.limit - lane.in_flight)
        if flow.limit is not None:
            room = min(room, flow.limit - flow.in_flight)
        if tenant.rate is not None:
            tokens = (now - max(tenant.spent_until, _full_at(tenant.rate, now))) * tenant.rate
            room = min(room, max(1, int(tokens)))
        return room

    def _spend_rate(self, tenant: _Tenant, count: int, now: float) -> None:
        """A token bucket of max(1, rate) tokens, kept as the instant at which it was empty."""
        if tenant.rate is None:
            return
        tenant.spent_until = max(tenant.spent_until, _full_at(tenant.rate, now)) + count / tenant.rate
        next_at = tenant.spent_until + 1.0 / tenant.rate
        if next_at > now:
            tenant.rate_held = True
            self._timer(next_at, tenant)

    @staticmethod
    def _take_hints(flow: _Flow, count: int) -> int:
        """Take from the run of jobs with one expected cost."""
        run = flow.hints[0]
        count = min(count, int(run[0]))
        run[0] -= count
        if run[0] <= 0:
            flow.hints.popleft()
        return count

    # -- charging --------------------------------------------------------------------------------------

    def _estimate(self, flow: _Flow) -> float:
        if flow.hints and flow.hints[0][1] >= 0.0:
            return max(_LEAST_ESTIMATE, flow.hints[0][1])
        known = flow.lane.estimate
        return max(_LEAST_ESTIMATE, self._prior if known is None else known)

    def _learn(self, lane: _Lane, busy_for: float) -> None:
        known = self._prior if lane.estimate is None else lane.estimate
        lane.estimate = known + _EWMA * (busy_for - known)
        self._prior += _PRIOR_EWMA * (busy_for - self._prior)

    def _accrue(self, tenant: _Tenant, now: float) -> None:
        """Charge what overran since it was last charged."""
        if tenant.over and now > tenant.accrued_at:
            tenant.v += tenant.over * (now - tenant.accrued_at) / self._effective(tenant)
        tenant.accrued_at = max(tenant.accrued_at, now)

    def _overrun(self, charge: Charge, now: float) -> None:
        tenant = charge.flow.lane.line.tenant
        if not charge.remaining:
            return
        self._accrue(tenant, now)
        late = max(0.0, now - charge.started_at - charge.estimate)
        tenant.v += charge.remaining * late / self._effective(tenant)
        tenant.over += charge.remaining
        charge.overrunning = True

    def _correct(self, flow: _Flow, difference: float) -> None:
        lane, tenant = flow.lane, flow.lane.line.tenant
        tenant.v += difference / self._effective(tenant)
        lane.v += difference
        flow.v += difference
        if difference >= 0.0:
            return  # later in its heap: found out when it comes up
        if tenant.eligible:
            tenant.v = max(tenant.v, self._now_of(tenant) - self._quantum / self._effective(tenant))
        lane.v = max(lane.v, tenant.lane_time - self._quantum)
        flow.v = max(flow.v, lane.flow_time - self._quantum)
        self._relist(flow)

    def _relist(self, flow: _Flow) -> None:
        """Entries whose time went back must be found earlier."""
        lane = flow.lane
        if flow.ready:
            self._push_flow(flow)
        for rank in range(RANKS):
            if lane.listed[rank]:
                self._push_lane(lane, rank)
        for line in lane.line.tenant.lines.values():
            if line.listed:
                self._push_line(line)

    # -- eligibility -----------------------------------------------------------------------------------

    def _flow_changed(self, flow: _Flow) -> None:
        ready = (
            flow.waiting > 0
            and not flow.held
            and not flow.paused
            and (flow.limit is None or flow.in_flight < flow.limit)
        )
        lane, rank = flow.lane, flow.rank
        if ready and not flow.ready:
            flow.v = max(flow.v, lane.flow_time - self._quantum)
            flow.ready = True
            lane.ready[rank] += 1
            self._push_flow(flow)
            self._lane_changed(lane)
        elif flow.ready and not ready:
            flow.ready = False
            lane.ready[rank] -= 1
            self._lane_changed(lane)

    def _lane_changed(self, lane: _Lane) -> None:
        is_open = not lane.paused and not lane.held and (lane.limit is None or lane.in_flight < lane.limit)
        line, changed = lane.line, False
        for rank in range(RANKS):
            listed = is_open and lane.ready[rank] > 0
            if listed == lane.listed[rank]:
                continue
            changed = True
            if listed and not any(lane.listed):
                lane.v = max(lane.v, line.tenant.lane_time - self._quantum)
            lane.listed[rank] = listed
            line.counts[rank] += 1 if listed else -1
            if listed:
                self._push_lane(lane, rank)
            elif not any(other.counts[rank] for other in line.tenant.lines.values()):
                line.tenant.picks_since[rank] = 0
        if changed:
            self._tenant_changed(line.tenant)

    def _tenant_changed(self, tenant: _Tenant) -> None:
        is_open = not tenant.rate_held and tenant.in_flight < self._cap_slots(tenant)
        wanted = [
            line
            for line in tenant.lines.values()
            if is_open and line.kind in self._served and any(line.counts)
        ]
        if wanted and not tenant.eligible:
            self._count_eligible(tenant, eligible=True)
            now = min(self._time[line.kind] for line in wanted)
            tenant.v = max(tenant.v, now - self._quantum / self._effective(tenant))
        elif tenant.eligible and not wanted:
            self._count_eligible(tenant, eligible=False)
        for line in tenant.lines.values():
            listed = line in wanted
            if listed and not line.listed:
                line.listed = True
                self._push_line(line)
            line.listed = listed

    def _count_eligible(self, tenant: _Tenant, *, eligible: bool) -> None:
        if tenant.eligible == eligible:
            return
        tenant.eligible = eligible
        count = self._eligible.get(tenant.weight, 0) + (1 if eligible else -1)
        if count:
            self._eligible[tenant.weight] = count
        else:
            self._eligible.pop(tenant.weight, None)
        self._floor_weight = None

    def _effective(self, tenant: _Tenant) -> float:
        return max(tenant.weight, self._least())

    def _least(self) -> float:
        if self._floor_weight is None:
            self._floor_weight = least_effective_weight(self._eligible, self._floor)
        return self._floor_weight

    def _cap_slots(self, tenant: _Tenant) -> int:
        return cap_slots(tenant.cap, self._slots)

    def _now_of(self, tenant: _Tenant) -> float:
        return min(
            (self._time[line.kind] for line in tenant.lines.values() if line.listed),
            default=max(self._time.values(), default=0.0),
        )

    # -- heaps and timers ------------------------------------------------------------------------------

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _push_line(self, line: _Line) -> None:
        line.serial = self._next_serial()
        heappush(self._heaps[line.kind], (line.tenant.v, line.serial, line))

    def _push_lane(self, lane: _Lane, rank: int) -> None:
        lane.serials[rank] = self._next_serial()
        heappush(lane.line.heaps[rank], (lane.v, lane.serials[rank], lane))

    def _push_flow(self, flow: _Flow) -> None:
        flow.serial = self._next_serial()
        heappush(flow.lane.heaps[flow.rank], (flow.v, flow.serial, flow))

    def _timer(self, at: float, what: "_Tenant | _Lane | _Flow | Charge") -> None:
        heappush(self._timers, (at, self._next_serial(), what))
        if len(self._timers) > self._prune_timers_at:
            self._prune_timers()

    def _prune_timers(self) -> None:
        """Drop the timers of settled charges: long estimates of short jobs must not pile up. O(1) amortised."""
        self._timers = [t for t in self._timers if not isinstance(t[2], Charge) or t[2].remaining]
        heapify(self._timers)
        self._prune_timers_at = 1_000 + 2 * len(self._timers)

    def _release_timers(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            _, _, what = heappop(self._timers)
            if isinstance(what, Charge):
                self._overrun(what, now)
            elif isinstance(what, _Tenant):
                what.rate_held = what.rate is not None and what.spent_until + 1.0 / what.rate > now
                self._tenant_changed(what)
            elif isinstance(what, _Lane):
                what.held = what.held if what.held > now else 0.0
                self._lane_changed(what)
            else:
                what.held = what.held if what.held > now else 0.0
                self._flow_changed(what)


def least_effective_weight(eligible: Mapping[float, int], floor: float) -> float:
    """φ/(n·λ): the weight below which a tenant is served as if it had this one (law F1).

    ``eligible`` maps weights to how many eligible tenants have them. O(w log w) for w distinct weights.
    """
    count = sum(eligible.values())
    if not count or not floor:
        return 0.0
    above = sum(weight * n for weight, n in eligible.items())
    below = 0
    for weight in sorted(eligible):
        scale = (1.0 - floor * below / count) / above  # λ, if only the lighter ones stand on the floor
        if scale * weight >= floor / count:
            return floor / (count * scale)
        below += eligible[weight]
        above -= weight * eligible[weight]
    return max(eligible)  # only at φ = 1, to within rounding: all are equal


def _full_at(rate: float, now: float) -> float:
    """The latest instant of emptiness at which the bucket of max(1, rate) tokens is full again at ``now``."""
    return now - max(1.0, 1.0 / rate)


def cap_slots(cap: float, slots: int) -> int:
    """The most a tenant may hold: ``max(1, ceil(cap · slots))`` (law F4), safe against rounding of cap."""
    return max(1, ceil(cap * slots - 1e-9))


def _first(heap: "list[tuple[float, int, _Lane]]", rank: int) -> _Lane:
    while True:
        v, serial, lane = heap[0]
        if lane.listed[rank] and serial == lane.serials[rank]:
            if lane.v <= v:
                return lane
            heappop(heap)
            heappush(heap, (lane.v, serial, lane))
        else:
            heappop(heap)


def _first_flow(heap: "list[tuple[float, int, _Flow]]") -> _Flow:
    while True:
        v, serial, flow = heap[0]
        if flow.ready and serial == flow.serial:
            if flow.v <= v:
                return flow
            heappop(heap)
            heappush(heap, (flow.v, serial, flow))
        else:
            heappop(heap)


def _second(
    heap: "list[tuple[float, int, _Line]] | list[tuple[float, int, _Lane]] | list[tuple[float, int, _Flow]]",
    least: float,
) -> float:
    """A lower bound of the second smallest time in ``heap``; inf when there is no second."""
    if len(heap) < 2:
        return inf
    second = heap[1][0] if len(heap) == 2 else min(heap[1][0], heap[2][0])
    return max(second, least)
