"""The face of the rule: one object a pool, told what happens, asked what to start."""

from collections.abc import Hashable, Mapping
from math import inf, isfinite

from tenantry.algorithms.fair_share import charging
from tenantry.algorithms.fair_share.classes import count_picks
from tenantry.algorithms.fair_share.eligibility import Eligibility
from tenantry.algorithms.fair_share.headroom import Headroom
from tenantry.algorithms.fair_share.rate import next_at, spend
from tenantry.algorithms.fair_share.records import (
    RANKS,
    REPLAY,
    Berth,
    Charge,
    Flow,
    Kind,
    Kinds,
    Lane,
    Line,
    Pick,
    Tenant,
)
from tenantry.algorithms.fair_share.rule import Domains, Groups, Turn, room, visit
from tenantry.algorithms.fair_share.shares import Shares, cap_slots
from tenantry.algorithms.fair_share.timers import Timers

Holdable = Tenant | Lane | Flow
_DRIFT = 1_000  # quanta; several long jobs, and a matter of seconds


class FairShare:
    """The rule for one pool of slots. See the package's text for its laws.

    ``floor``: φ in [0, 1]; ``quantum``: slot-seconds > 0, the credit a tenant may have and what one visit may
    run ahead; ``prior``: seconds, the estimate before anything was measured. ``now`` is in seconds on any one
    clock that does not go back. Raises ValueError for a number that is out of range and KeyError for a name
    that was not made known. ``scarce``: whether the last plan left somebody waiting, and no slot but the
    headroom. Not safe to use from two threads at once.
    """

    def __init__(self, *, floor: float = 0.25, quantum: float = 0.010, prior: float = 0.1) -> None:
        _check(0.0 <= floor <= 1.0, "floor must be in [0, 1]", floor)
        _check(0.0 < quantum < inf, "quantum must be > 0 slot-seconds", quantum)
        _check(0.0 < prior < inf, "prior must be > 0 seconds", prior)
        self._quantum = quantum
        self._shares = Shares(floor)
        self._headroom = Headroom()
        self._eligibility = Eligibility(quantum, self._shares, self._headroom)
        self._estimates = charging.Estimates(prior)
        self._domains = Domains(self._shares, drift=_DRIFT * quantum)
        self._slots = 0
        self.scarce = False
        self._kinds: Kinds = frozenset()
        self._groups_seen: set[Kinds] = set()
        self._tenants: dict[Hashable, Tenant] = {}
        self._lanes: dict[Hashable, Lane] = {}
        self._flows: dict[Hashable, Flow] = {}
        self._holds: Timers[Holdable] = Timers(_is_held_until)
        self._ends: Timers[Charge] = Timers(_is_running)

    # -- who and where ---------------------------------------------------------------------------------

    def set_tenant(
        self, tenant: Hashable, *, weight: float, cap: float = 1.0, rate: float | None = None
    ) -> None:
        """Create or change a tenant. Acts at once, on the backlog too; what it has of credit or debt stays.

        ``weight``: relative share, > 0; O(1) each, but picks cost O(distinct weights). ``cap``: largest part
        of the slots, in (0, 1]. ``rate``: starts a second, > 0, or None.
        """
        _check(0.0 < weight < inf, "weight must be a number > 0", weight)
        _check(0.0 < cap <= 1.0, "cap must be in (0, 1]", cap)
        _check(rate is None or 0.0 < rate < inf, "rate must be > 0 a second or None", rate)
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = Tenant(tenant, weight)
        if found.weight != weight:
            self._reweigh(found, weight)
        found.cap, found.most = cap, cap_slots(cap, self._slots)
        if found.rate != rate:
            found.rate = rate
            if rate is None:
                found.rate_held = None
            elif found.rate_held is not None:
                self._hold(found, next_at(found))
        self._eligibility.tenant_changed(found)

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

        ``rank``: 0 to 2, the class. ``limit``: most of this flow in flight. Opening a known flow changes
        nothing.
        """
        if flow in self._flows:
            return
        _check(0 <= rank < RANKS, f"rank must be 0 to {RANKS - 1}", rank)
        found = self._lanes.get(lane)
        if found is None:
            found = self._lanes[lane] = Lane(lane, self._line(self._tenants[tenant], kind))
        berth = found.berths.get(rank)
        if berth is None:
            berth = found.berths[rank] = Berth(found, rank)
            found.line.open_rank(rank)
        self._flows[flow] = Flow(flow, berth, limit)

    def set_slots(self, slots: int, kinds: Kinds) -> None:
        """The pool's live slots, busy ones included, and the kinds that some slot can run. O(tenants)."""
        _check(slots >= 0, "slots must be >= 0", slots)
        if slots == self._slots and kinds == self._kinds:
            return
        self._slots, self._kinds = slots, kinds
        self._headroom.resize(slots)
        self._domains.serve(kinds)
        self._domains.level()
        self._groups_seen.clear()
        for tenant in self._tenants.values():
            tenant.most = cap_slots(tenant.cap, slots)
            self._eligibility.tenant_changed(tenant)
            for line in tenant.lines.values():
                self._eligibility.line_changed(line)

    # -- work ------------------------------------------------------------------------------------------

    def add(self, flow: Hashable, count: int = 1, *, cost: float | None = None) -> None:
        """``count`` jobs of ``flow`` became due. ``cost``: expected slot-seconds of each. O(log lanes)."""
        _check(count >= 0, "count must be >= 0", count)
        _check(cost is None or 0.0 <= cost < inf, "cost must be >= 0 slot-seconds or None", cost)
        found = self._flows[flow]
        if count:
            charging.hint(found, count, cost)
            found.waiting += count
            self._eligibility.flow_changed(found)

    def withdraw(self, flow: Hashable, count: int = 1) -> None:
        """``count`` waiting jobs of ``flow`` are gone. Declared costs are forgotten from the end."""
        found = self._flows[flow]
        _check(0 <= count <= found.waiting, f"count must be 0 to the {found.waiting} that wait", count)
        charging.drop_hints(found, count)
        found.waiting -= count
        self._eligibility.flow_changed(found)

    def pause_lane(self, lane: Hashable, *, paused: bool) -> None:
        """A paused lane starts nothing and accrues nothing."""
        found = self._lanes[lane]
        found.paused = paused
        self._eligibility.lane_changed(found)

    def limit_lane(self, lane: Hashable, limit: int | None) -> None:
        """At most ``limit`` of the lane in flight. A lower one revokes nothing."""
        found = self._lanes[lane]
        found.limit = limit
        self._eligibility.lane_changed(found)

    def hold_lane(self, lane: Hashable, until: float) -> None:
        """Start nothing of the lane before ``until``. Replaces an earlier hold, in either direction."""
        _check(isfinite(until), "until must be a number", until)
        found = self._lanes[lane]
        self._hold(found, until)
        self._eligibility.lane_changed(found)

    def pause_flow(self, flow: Hashable, *, paused: bool) -> None:
        """A paused flow starts nothing and accrues nothing."""
        found = self._flows[flow]
        found.paused = paused
        self._eligibility.flow_changed(found)

    def hold_flow(self, flow: Hashable, until: float) -> None:
        """Start nothing of the flow before ``until``. Replaces an earlier hold, in either direction."""
        _check(isfinite(until), "until must be a number", until)
        found = self._flows[flow]
        self._hold(found, until)
        self._eligibility.flow_changed(found)

    # -- decisions -------------------------------------------------------------------------------------

    def plan(self, free: Mapping[Kinds, int], now: float) -> list[Pick]:
        """What to start on the free slots, each group of which can run its set of kinds.

        The picks are in order of service and use at most the free slots; none is left free while an eligible
        job could use it (law F3), but for the headroom, which replays leave. They are charged: the caller
        must start them or settle them with 0.
        """
        self._wake(now)
        left = {kinds: count for kinds, count in free.items() if count > 0}
        if not self._groups_seen.issuperset(left):
            self._groups_seen.update(left)
            self._domains.level()
            if any(kinds != self._kinds for kinds in left):
                self._headroom.resize(0)
                self._eligibility.headroom_changed(*self._tenants.values())
        groups = self._domains.groups(left)
        picks, level = list[Pick](), -inf
        while left:
            free_now = sum(left.values())
            turn = self._turn(groups, free_now, now)
            if turn is None:
                break
            if turn.in_turn:
                if turn.tag >= level:
                    level = turn.tag + self._shares.rise(free_now * self._estimates.typical)
                turn.portion = (level - turn.tag) * turn.line.band.effective
            pick = self._pick(turn, min(left[turn.kinds], self._headroom.most(turn, free_now)), now)
            picks.append(pick)
            left[turn.kinds] -= pick.count
            if not left[turn.kinds]:
                del left[turn.kinds]
                groups = self._domains.groups(left)
        self.scarce = self._shares.anyone and sum(left.values()) <= self._headroom.free
        return picks

    def adopt(self, flow: Hashable, started_at: float, now: float) -> Charge:
        """A job that is already in flight, when memory is rebuilt. Charged from ``started_at`` on, to all of
        the tenant's kinds: which slot it took is not known."""
        found = self._flows[flow]
        lines = tuple(found.berth.lane.line.tenant.lines.values())
        charge = Charge(found, lines, self._estimates.of(found), started_at, 0)
        self._start(charge, 1, now)
        return charge

    def settle(self, charge: Charge, busy_for: float | None, now: float, *, jobs: int = 1) -> None:
        """``jobs`` of a pick left their slots after ``busy_for`` slot-seconds each (None: as long as they
        were held; 0: they never started)."""
        _check(busy_for is None or 0.0 <= busy_for < inf, "busy_for must be >= 0 seconds or None", busy_for)
        _check(1 <= jobs <= charge.remaining, "a charge is settled once for each job of its pick; jobs", jobs)
        flow = charge.flow
        lane = flow.berth.lane
        used = max(0.0, now - charge.started_at) if busy_for is None else busy_for
        charging.settle(charge, used, now, self._quantum, jobs=jobs)
        if busy_for:
            self._estimates.learn(lane, busy_for, jobs)
        if charge.out_of_turn:
            self._headroom.release(lane.line.tenant, jobs)
            self._eligibility.headroom_changed(lane.line.tenant)
        self._eligibility.flow_changed(flow)
        self._eligibility.lane_changed(lane)
        self._eligibility.tenant_changed(lane.line.tenant)

    def next_timer(self) -> float | None:
        """When :meth:`plan` may have something new without anything being told; None: never."""
        return self._holds.next()

    # -- what people ask -------------------------------------------------------------------------------

    def share(self, tenant: Hashable) -> float:
        """The part of the pool that the tenant is entitled to now, in [0, 1]; 0 when it is not eligible."""
        found = self._tenants[tenant]
        return self._shares.share(found.weight) if found.listed else 0.0

    def deficit(self, tenant: Hashable) -> float:
        """The deficit counter in slot-seconds: credit > 0 (at most one quantum while eligible), debt < 0.

        Of a tenant with several kinds of work: of the one that is next in turn.
        """
        lines = self._tenants[tenant].lines.values()
        lags = [line.lag() for line in lines if line.entry is not None] or [line.lag() for line in lines]
        return -min(lags, default=0.0)

    def in_flight(self, tenant: Hashable) -> int:
        return self._tenants[tenant].in_flight

    def lane_in_flight(self, lane: Hashable) -> int:
        return self._lanes[lane].in_flight

    def waiting(self, flow: Hashable) -> int:
        return self._flows[flow].waiting

    def eligible(self, tenant: Hashable) -> bool:
        return self._tenants[tenant].listed > 0

    def wants_slot(self, flow: Hashable) -> bool:
        """Whether nothing but a slot keeps the flow's next job from starting. O(1)."""
        found = self._flows[flow]
        berth = found.berth
        return None not in (found.entry, berth.entry, berth.lane.line.entry)

    # -- inside ----------------------------------------------------------------------------------------

    def _turn(self, groups: Groups, free: int, now: float) -> Turn | None:
        """Who is next. A replay is only while more is free than the headroom; then others are out of turn."""
        turn = self._domains.next(groups, now)
        if turn is None or turn.rank < REPLAY or free > self._headroom.free:
            return turn
        return self._domains.out_of_turn(groups, now, self._may_owe)

    def _may_owe(self, line: Line) -> float:
        """What a line may have used beyond its due to start out of turn: what its tenant runs now, about."""
        return self._quantum + self._estimates.typical * line.tenant.in_flight

    def _pick(self, turn: Turn, free: int, now: float) -> Pick:
        tenant, rank = turn.line.tenant, turn.rank
        berths = turn.line.ranks[rank]
        berth = berths.first()
        flow = berth.flows.first()
        estimate = self._estimates.of(flow)
        count = min(
            free,
            flow.waiting,
            visit(turn, berth, flow, estimate=estimate, quantum=self._quantum),
            room(tenant, flow, now),
        )
        count = charging.take_hints(flow, count)
        if turn.in_turn:  # a start ahead of the others says nothing of where they stand
            self._domains.passed(turn.tag, turn.kinds)
            tenant.own_time = max(tenant.own_time, turn.line.own)
        berths.time = max(berths.time, berth.used)
        berth.flows.time = max(berth.flows.time, flow.used)
        count_picks(tenant, rank, count)
        self._spend_rate(tenant, count, now)
        flow.waiting -= count
        self._estimates.started(estimate, count)
        charge = Charge(flow, turn.charged(), estimate, now, 0, out_of_turn=not turn.in_turn)
        if charge.out_of_turn:
            self._headroom.hold(tenant, count)
        if charge.out_of_turn or len(tenant.classes) > 1:
            self._eligibility.headroom_changed(tenant)
        self._start(charge, count, now)
        return Pick(tenant.id, berth.lane.id, flow.id, turn.kinds, count, charge)

    def _start(self, charge: Charge, count: int, now: float) -> None:
        charging.start(charge, count, now, self._quantum)
        self._ends.set(charge.started_at + charge.estimate, charge)
        flow = charge.flow
        lane = flow.berth.lane
        self._eligibility.flow_changed(flow)
        self._eligibility.lane_changed(lane)
        self._eligibility.tenant_changed(lane.line.tenant)

    def _spend_rate(self, tenant: Tenant, count: int, now: float) -> None:
        if tenant.rate is not None:
            spend(tenant, count, now)
            frees_at = next_at(tenant)
            if frees_at > now:
                self._hold(tenant, frees_at)

    def _line(self, tenant: Tenant, kind: Kind) -> Line:
        line = tenant.lines.get(kind)
        if line is None:
            domain = self._domains.domain(kind)
            line = Line(tenant, domain, domain.band(tenant.weight))
            line.used = line.band.place(domain.time) + charging.indebted(tenant, self._quantum)
            line.own = tenant.own_time
            tenant.lines[kind] = line
        return line

    def _reweigh(self, tenant: Tenant, weight: float) -> None:
        """Out of the bands of one weight, into those of another."""
        was_open, tenant.open = tenant.open, False
        for line in tenant.lines.values():
            self._eligibility.line_changed(line)
            line.join(line.domain.band(weight))
        tenant.weight, tenant.open = weight, was_open
        for line in tenant.lines.values():
            self._eligibility.line_changed(line)

    def _hold(self, what: Holdable, until: float) -> None:
        if isinstance(what, Tenant):
            what.rate_held = until
        else:
            what.held = until
        self._holds.set(until, what)

    def _wake(self, now: float) -> None:
        for charge in self._ends.due(now):
            charging.overrun(charge, now)
        for what in self._holds.due(now):
            if isinstance(what, Tenant):
                what.rate_held = None
                self._eligibility.tenant_changed(what)
            elif isinstance(what, Lane):
                what.held = None
                self._eligibility.lane_changed(what)
            else:
                what.held = None
                self._eligibility.flow_changed(what)


def _is_running(charge: Charge, _at: float) -> bool:
    return charge.remaining > 0 and not charge.overrunning


def _is_held_until(what: Holdable, at: float) -> bool:
    return (what.rate_held if isinstance(what, Tenant) else what.held) == at


def _check(holds: bool, text: str, value: object) -> None:
    if not holds:
        raise ValueError(f"{text}, not {value!r}")
