"""The planner's memory: one rule a pool, one log a flow, and who holds what. Pure.

Built from a :class:`Standing`, kept up to date by changes, and asked for claims. It is a cache: at any doubt
it is thrown away and built again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import cast

from tenantry.algorithms.fair_share import Charge, FairShare, Pick
from tenantry.algorithms.shedding import Pressure
from tenantry.config.model import NO_SETTINGS
from tenantry.config.ports import TenantDirectory
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.adaptive import is_adaptive, shaper_settings
from tenantry.lanes.model import Kind, Lane, Target, kind_of
from tenantry.lanes.plain import Plain
from tenantry.lanes.shaper import Held as HeldBy
from tenantry.queue.backlog import by_tier, tallies
from tenantry.queue.booking import Booking, Planned
from tenantry.queue.changes import (
    Change,
    Deferred,
    FlowOpened,
    FlowPaused,
    FlowStanding,
    Heard,
    Held,
    Left,
    LiveNode,
    NodesChanged,
    Ordered,
    Standing,
    Submitted,
    Withdrawn,
)
from tenantry.queue.deferrals import Deferrals
from tenantry.queue.events import Backlog, PoolSlots
from tenantry.queue.flow_log import FlowLog, Taken
from tenantry.queue.known import ASIDE, REMOVED, KnownFlow, Running
from tenantry.queue.model import FlowId, PoolLevel, Seq
from tenantry.queue.node_slots import Fleet, NodeSlots, kinds_of
from tenantry.queue.orders import LaneOrders
from tenantry.queue.overload import pressures
from tenantry.queue.shaping import Move, Shapers, lower


class PlannerMemory:
    """Everything a planner knows. ``draw``: uniform in [0, 1), for the shapers. One task only."""

    def __init__(self, standing: Standing, directory: TenantDirectory, *, draw: Callable[[], float]) -> None:
        self._directory, self._floor = directory, directory.floor
        self._orders = LaneOrders(standing.orders)
        self._rules: dict[str, FairShare] = {}
        self._pools: dict[TenantId, str] = {}
        self._tiers: dict[TenantId, Tier] = {}
        self._flows: dict[FlowId, KnownFlow] = {}
        self._lanes: dict[Lane, list[FlowId]] = {}
        self._fleet = Fleet()
        self._shapers = Shapers(draw)
        self._running: dict[tuple[FlowId, Seq], Running] = {}
        self._deferrals = Deferrals()
        self._kinds: set[Kind] = set()  # that a node has announced
        self._aside: set[Kind] = set()  # that tenants ask for and no node has announced
        self._build(standing)

    def _build(self, standing: Standing) -> None:
        self._kinds.update(kind for node in standing.nodes for kind in node.kinds)
        for flow in standing.flows:
            self._open(flow, standing.now)
        for deferred in standing.deferred:
            self._skip(deferred.flow, deferred.seq)
            self._defer(deferred)
        for withdrawn in standing.withdrawn:
            self._skip(withdrawn.flow, withdrawn.seq)
        for held in standing.held:
            self._adopt(held, standing.now)
        self.set_nodes(standing.nodes)

    # -- changes ---------------------------------------------------------------------------------------

    def apply(self, changes: Iterable[Change], now: Timestamp) -> bool:
        """Take in what happened, in order. True when the nodes must be read again."""
        nodes_changed = False
        for change in changes:
            match change:
                case Left():
                    self._left(change, now)
                case Submitted():
                    self._submitted(change, now)
                case Deferred():
                    self._skip(change.flow, change.seq)
                    self._defer(change)
                case FlowOpened():
                    self._open(FlowStanding(change, tail=change.head - 1), now)
                case Heard():
                    self._heard(change)
                case Withdrawn():
                    self._withdrawn(change)
                case FlowPaused():
                    self._paused(change)
                case Ordered():
                    self._ordered(change)
                case NodesChanged():
                    nodes_changed = True
        return nodes_changed

    def set_nodes(self, nodes: Sequence[LiveNode]) -> bool:
        """The nodes that live. What a vanished one holds stays held until its leases are reclaimed. False
        when one can run a kind of work that stood aside: build anew then."""
        self._fleet.set(nodes)
        pools = {node.pool for node in nodes} | self._rules.keys()
        for pool in pools:
            here = [node for node in nodes if node.pool == pool]
            self._rule(pool).set_slots(sum(node.slots for node in here), kinds_of(here))
        return self._aside.isdisjoint(kind for node in nodes for kind in node.kinds)

    def refresh_tiers(self) -> bool:
        """Read every known tenant's tier again. False when the floor changed or a tenant moved to another
        pool: build anew then."""
        if self._directory.floor != self._floor:
            return False
        for tenant, known in list(self._tiers.items()):
            tier = self._directory.tier_of(tenant) or REMOVED
            if tier.pool != known.pool:
                return False
            if tier != known:
                self._set_tenant(tenant, tier)
        for flow in self._flows.values():
            self._set_limit(flow)
        return True

    # -- decisions -------------------------------------------------------------------------------------

    def plan(self, now: Timestamp) -> Planned:
        """Fill the free slots of every pool. What is returned is booked: write it, or discard this memory."""
        self._release_due(now)
        self._shapers.apply(now)
        booking = Booking()
        for pool, rule in self._rules.items():
            nodes = self._fleet.free_nodes(pool)
            free = {kinds: sum(node.free for node in able) for kinds, able in nodes.items()}
            for pick in rule.plan(free, now):  # without free slots too: holds that ended must wake
                self._book(pick, nodes[pick.kinds], booking)
                self._shapers.started(cast(Lane, pick.lane), pick.count, now)
        return booking.planned()

    def next_due(self) -> float | None:
        """The next instant at which there may be something to plan that no change announces; None: never."""
        timers = [self._shapers.next_due(), *(rule.next_timer() for rule in self._rules.values())]
        timers.append(self._deferrals.next_due())
        return min((at for at in timers if at is not None), default=None)

    def shed(self, levels: Iterable[PoolLevel]) -> None:
        """How much each pool sheds from now on: whose retries are put off."""
        self._deferrals.shed(levels)

    def shapers_to_keep(self, now: Timestamp) -> dict[Lane, list[Plain]]:
        """States of shapers that the store should keep now."""
        return self._shapers.to_keep(now)

    def breakers_moved(self) -> list[Move]:
        """Breakers that came into another state since the last call."""
        return self._shapers.moved()

    # -- what people ask -------------------------------------------------------------------------------

    def in_flight(self) -> frozenset[tuple[FlowId, Seq]]:
        """Every job that this memory believes to be held: audited against live claims (law K3)."""
        return frozenset(self._running)

    def flows(self) -> int:
        return len(self._flows)

    def free(self) -> int:
        """Slots that nothing holds, over all pools."""
        return self._fleet.free()

    def pools(self) -> tuple[PoolSlots, ...]:
        """The slots of each pool and how many are held."""
        return self._fleet.pools()

    def held_lanes(self) -> Mapping[HeldBy, int]:
        """How many lanes a shaper or breaker holds, by reason."""
        return self._shapers.held()

    def pressures(self, now: Timestamp) -> dict[str, Pressure]:
        """How hard each pool is pressed; what replays wait for is no pressure. O(flows + tenants), at rest
        O(pools)."""
        waiting = (
            (flow.opened.tenant, flow.log.waiting_since())
            for flow in self._flows.values()
            if flow.opened.replay is None and flow.rule.wants_slot(flow.opened.flow)
        )
        return pressures(self.pools(), self._tiers, self._rules, waiting, floor=self._floor, now=now)

    def backlogs(self, now: Timestamp) -> tuple[Backlog, ...]:
        """What stands in each tier of each pool. O(flows + jobs in flight + jobs delayed)."""
        slots = {pool.pool: pool.slots for pool in self.pools()}
        lines = (
            (flow.opened.tenant, flow.log.waiting(), self._in_quota_for(flow, slots, now))
            for flow in self._flows.values()
        )
        running = (self._flows[flow].opened.tenant for flow, _ in self._running)
        delayed = (self._flows[flow].opened.tenant for flow, _ in self._deferrals.places())
        return by_tier(tallies(lines, running, delayed), self._tiers)

    def _in_quota_for(self, flow: KnownFlow, slots: Mapping[str, int], now: Timestamp) -> float:
        """How long the oldest job in line has waited, if its tenant could run it and is below its share."""
        since, tenant = flow.log.waiting_since(), flow.opened.tenant
        if since is None or flow.opened.replay is not None or self._orders.paused(flow.lane):
            return 0.0
        available = slots.get(self._pools[tenant], 0)
        if available and not flow.rule.eligible(tenant):
            return 0.0
        if available and flow.rule.in_flight(tenant) >= flow.rule.share(tenant) * available:
            return 0.0
        return max(0.0, now - since)  # without any slots everybody waits inside its quota

    # -- booking ---------------------------------------------------------------------------------------

    def _book(self, pick: Pick, nodes: list[NodeSlots], booking: Booking) -> None:
        flow = self._flows[cast(FlowId, pick.flow)]
        taken = flow.log.take(pick.count)
        if len(taken) != pick.count:
            raise InvariantBroken(f"flow {pick.flow}: {pick.count} jobs planned, {len(taken)} in line")
        booking.heads[flow.opened.flow] = flow.log.head
        booking.jobs += len(taken)
        at = 0
        while at < len(taken):
            node = max(nodes, key=lambda each: each.free)
            part = taken[at : at + node.free]
            at += len(part)
            self._give(flow, part, node, pick.charge)
            booking.on(node.live).add(flow.opened.flow, part)

    def _give(self, flow: KnownFlow, jobs: Sequence[Taken], node: NodeSlots, charge: Charge) -> None:
        self._fleet.hold(node.holder, len(jobs))
        running = Running(charge, node.holder, flow.rule, flow.lane)
        for seq, _, _ in jobs:
            self._running[flow.opened.flow, seq] = running

    def _release_due(self, now: Timestamp) -> None:
        for deferred, since in self._deferrals.due(now, self._tier_if_alone):
            flow = self._flows[deferred.flow]
            first = deferred.first or (flow.opened.ordered and deferred.attempts > 0)
            flow.log.put_back(deferred.seq, deferred.attempts, first=first, at=since)
            flow.rule.add(deferred.flow)

    def _tier_if_alone(self, flow: FlowId) -> Tier | None:
        """The tier of a flow in which nothing waits behind a retry."""
        opened = self._flows[flow].opened
        return None if opened.ordered else self._tiers[opened.tenant]

    # -- single changes --------------------------------------------------------------------------------

    def _kind(self, target: Target) -> Kind:
        """The kind of slot a lane needs. Kinds that no node has announced stand aside together, so that a
        tenant that invents names of handlers costs no more than one that does not."""
        kind = kind_of(target)
        if kind in self._kinds:
            return kind
        self._aside.add(kind)
        return ASIDE

    def _open(self, standing: FlowStanding, now: Timestamp) -> None:
        opened = standing.opened
        if opened.flow in self._flows:
            return
        rule = self._rule_of(opened.tenant)
        lane = Lane(opened.tenant, opened.target)
        since = standing.waiting_since or (now if standing.tail >= opened.head else None)
        flow = KnownFlow(opened, lane, FlowLog(opened.head, standing.tail, since), rule)
        self._flows[opened.flow] = flow
        self._lanes.setdefault(lane, []).append(opened.flow)
        rule.open_flow(
            opened.flow,
            tenant=opened.tenant,
            lane=lane,
            kind=self._kind(opened.target),
            rank=int(opened.job_class),
            limit=1 if opened.ordered else None,
        )
        rule.pause_lane(lane, paused=self._orders.paused(lane))
        rule.pause_flow(opened.flow, paused=opened.paused)
        self._set_limit(flow)
        if flow.log.waiting():
            rule.add(opened.flow, flow.log.waiting())

    def _set_limit(self, flow: KnownFlow) -> None:
        document, target = self._directory.tenant(flow.opened.tenant), flow.opened.target
        settings = document.settings_for(target) if document else NO_SETTINGS
        ceiling = self._orders.ceiling(flow.lane)
        self._shapers.set_ceiling(flow.lane, ceiling)
        if is_adaptive(target, settings):
            self._shapers.open(flow.lane, flow.rule, shaper_settings(settings), flow.opened.shaper)
        else:
            self._shapers.close(flow.lane)
            flow.rule.limit_lane(flow.lane, lower(settings.limit, ceiling))

    def _submitted(self, change: Submitted, now: Timestamp) -> None:
        flow = self._flows[change.flow]
        if change.first != flow.log.tail + 1:  # a line that is guessed at runs jobs twice or too early
            raise InvariantBroken(f"flow {change.flow}: place {change.first} told after {flow.log.tail}")
        flow.rule.add(change.flow, flow.log.append(change.count, now), cost=change.cost)

    def _heard(self, change: Heard) -> None:
        """A flow that is unknown had no work left at the last rebuild: an old token speaks (law K2)."""
        flow = self._flows.get(change.flow)
        if flow is not None:
            self._shapers.heard(flow.lane, change.summary)

    def _left(self, change: Left, now: Timestamp) -> None:
        """Jobs of one pick tend to leave together, and are settled together."""
        pop = self._running.pop
        for running, jobs in groupby(pop(place, None) for place in change.places):
            if running is not None:
                self._settle(running, sum(1 for _ in jobs), now, reported=change.reported)
        for deferred in change.deferred:
            self._defer(deferred)

    def _settle(self, running: Running, jobs: int, now: Timestamp, *, reported: bool) -> None:
        """Charged is what the slot was held for, by this clock alone. What a running job is charged meanwhile
        is the same measure, so that nothing is charged and given back (that would lift V and starve whoever
        comes in between), and no report of a worker moves a share."""
        held = max(0.0, now - running.charge.started_at)
        running.rule.settle(running.charge, held if reported else None, now, jobs=jobs)
        self._fleet.release(running.holder, jobs)
        self._shapers.left(running.lane)

    def _defer(self, deferred: Deferred) -> None:
        self._deferrals.add(deferred)
        flow = self._flows[deferred.flow]
        if flow.opened.ordered and deferred.attempts > 0:  # its key waits for it
            flow.rule.hold_flow(deferred.flow, deferred.due_at)

    def _skip(self, flow_id: FlowId, seq: Seq) -> None:
        flow = self._flows[flow_id]
        if flow.log.skip(seq):
            flow.rule.withdraw(flow_id)

    def _withdrawn(self, change: Withdrawn) -> None:
        key = (change.flow, change.seq)
        if key in self._running:
            return  # its claim was planned meanwhile; the worker will find the job gone and say so
        flow = self._flows[change.flow]
        deferred = self._deferrals.take_out(key)
        if deferred is not None:
            if flow.opened.ordered and deferred.attempts > 0:  # its key waited for it
                flow.rule.hold_flow(change.flow, 0.0)
        elif flow.log.skip(change.seq) or flow.log.remove_returned(change.seq):
            flow.rule.withdraw(change.flow)

    def _paused(self, change: FlowPaused) -> None:
        """A flow that is unknown had no work, and says itself that it is paused when it opens."""
        flow = self._flows.get(change.flow)
        if flow is not None:
            flow.rule.pause_flow(change.flow, paused=change.paused)

    def _ordered(self, change: Ordered) -> None:
        """O(lanes known): a person's order is rare, and may be about any number of lanes."""
        self._orders.hear(change)
        for lane, flows in self._lanes.items():
            if change.scope.covers(lane):
                flow = self._flows[flows[0]]
                flow.rule.pause_lane(lane, paused=self._orders.paused(lane))
                self._set_limit(flow)
                if change.reset:
                    self._shapers.reset(lane)

    def _adopt(self, held: Held, now: Timestamp) -> None:
        flow, holder = self._flows[held.flow], (held.node, held.incarnation)
        charge = flow.rule.adopt(held.flow, held.claimed_at, now)
        self._running[held.flow, held.seq] = Running(charge, holder, flow.rule, flow.lane)
        self._fleet.hold(holder, 1)

    # -- tenants and pools -----------------------------------------------------------------------------

    def _rule_of(self, tenant: TenantId) -> FairShare:
        if tenant not in self._tiers:
            self._set_tenant(tenant, self._directory.tier_of(tenant) or REMOVED)
        return self._rule(self._pools[tenant])

    def _set_tenant(self, tenant: TenantId, tier: Tier) -> None:
        self._tiers[tenant] = tier
        self._pools[tenant] = tier.pool
        self._rule(tier.pool).set_tenant(tenant, weight=tier.weight, cap=tier.cap, rate=tier.dispatch_rate)

    def _rule(self, pool: str) -> FairShare:
        rule = self._rules.get(pool)
        if rule is None:
            rule = self._rules[pool] = FairShare(floor=self._floor)
        return rule
