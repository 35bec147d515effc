"""The whole queue driven by hand: a planner's memory over a real store, nodes that take and settle, and jobs
whose lengths are virtual. What the laws of fairness are shown with.

Nothing sleeps. The store's own clock decides leases and due times as ever. The planner is told another, that
goes by what jobs take: a job runs for as long as its worker reports, and the next round is at the next end.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from hypothesis import HealthCheck, settings

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId, TierName, Weight
from tenantry.lanes.model import HTTP, Kind, Lane, Target, kind_of
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.booking import Planned
from tenantry.queue.model import Accepted, ClaimedJob, Ending, FlowId, JobId, NewJob, Node, NodeId, Seq
from tenantry.queue.plan import PlannerMemory
from tenantry.testing.conformance.world import HOOK, LEASE, PLACE_LEASE, POOL, World, messages, settlement

A, B, C = TenantId("a"), TenantId("b"), TenantId("c")
AHEAD: Seconds = 300.0
"""How far virtual time runs ahead of the store's from the start: what is due to the store is due here too."""

Lengths = Callable[[ClaimedJob], Seconds]
Endings = Callable[[ClaimedJob], Ending]


def tier(name: str, weight: float = 1.0, *, cap: float = 1.0, **options: Any) -> Tier:
    """A tier without a bound: laws of fairness are shown with what they are about, and nothing else."""
    return Tier(TierName(name), Weight(weight), cap, **options)


def registry(tiers: Mapping[TenantId, Tier], *, lane_limit: int | None = None) -> Registry:
    """A registry in which each tenant has the tier given."""
    defaults = TargetSettings(limit=lane_limit, adaptive=False)
    documents = tuple(TenantDocument(tenant, of.name, defaults) for tenant, of in tiers.items())
    return Registry(tuple({of.name: of for of in tiers.values()}.values()), documents)


def equals(*tenants: TenantId) -> Registry:
    """Tenants of one tier, cap 100 %, no bound."""
    return registry(dict.fromkeys(tenants, tier("equal")))


def jobs(count: int, *, target: Target = HOOK, **options: Any) -> list[NewJob]:
    return [replace(NewJob(target, b"{}"), **options) for _ in range(count)]


Open = Callable[[Registry], Awaitable["Dispatch"]]
"""Opens an empty queue with a planner in its place: the fixture ``opened`` of the suite."""

few = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
"""As many examples as a real database has time for."""


@dataclass(slots=True)
class Standing:
    """What the driver itself knows of a tenant's work, for checking the planner against."""

    waiting: Counter[Target] = field(default_factory=Counter)
    running: Counter[Target] = field(default_factory=Counter)


@dataclass(slots=True)
class Dispatch:
    """A planner in its place, nodes, and what ran so far.

    ``length``: the slot-seconds of a job. ``ending``: how its attempt ends. ``at``: the present instant of
    virtual time.
    """

    world: World
    directory: MemoryDirectory
    length: Lengths = lambda _: 1.0
    ending: Endings = lambda _: Ending.DELIVERED
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    started: list[ClaimedJob] = field(default_factory=list)
    at: Timestamp = Timestamp(0.0)  # noqa: RUF009 - a NewType is a plain float
    _began: Timestamp = Timestamp(0.0)  # noqa: RUF009
    _memory: PlannerMemory | None = None
    _term: int = 0
    _version: int = 0
    _ends: list[tuple[Timestamp, int, Node, ClaimedJob]] = field(default_factory=list)
    _spans: list[tuple[TenantId, Timestamp, Timestamp]] = field(default_factory=list)
    _since: dict[tuple[FlowId, Seq], Timestamp] = field(default_factory=dict)
    _known: dict[TenantId, Standing] = field(default_factory=dict)

    # -- setting out -----------------------------------------------------------------------------------

    @property
    def memory(self) -> PlannerMemory:
        assert self._memory is not None, "call begin() first"
        return self._memory

    async def begin(self) -> None:
        """Take the place and read everything."""
        term = await self.world.planner.take_place("dispatch", PLACE_LEASE)
        assert term is not None, "another planner holds the place"
        self._term = term
        await self.rebuild()

    async def rebuild(self) -> None:
        """Throw the memory away and read everything again."""
        standing = await self.world.planner.rebuild(self._term)
        if not self.at:
            self.at = self._began = Timestamp(standing.now + AHEAD)
        held = tuple(replace(each, claimed_at=self._since[each.flow, each.seq]) for each in standing.held)
        standing = replace(standing, now=self.at, held=held)
        self._memory = PlannerMemory(standing, self.directory, draw=lambda: 0.5)
        self._version = self.directory.version

    async def node(
        self, name: str = "node", *, slots: int, pool: str = POOL, kinds: Collection[Kind] = (HTTP,)
    ) -> Node:
        """A node joins. The planner hears of it in its next round."""
        node = await self.world.worker.register(NodeId(name), pool, slots, frozenset(kinds))
        assert isinstance(node, Node), node
        self.nodes[node.id] = node
        return node

    async def submit(self, tenant: TenantId, batch: Sequence[NewJob]) -> tuple[JobId, ...]:
        """Submit what is due at once, without a bound."""
        answer = await self.world.intake.submit(tenant, batch, bound=None)
        assert isinstance(answer, Accepted), answer
        self._standing(tenant).waiting.update(job.target for job in batch)
        return answer.ids

    async def feed(self, tenant: TenantId, replay: str, count: int, *, target: Target = HOOK) -> None:
        """Feed a replay that parks nothing."""
        await self.world.feed(*messages(count, target=target), replay=replay, tenant=tenant)
        self._standing(tenant).waiting[target] += count

    # -- rounds ----------------------------------------------------------------------------------------

    async def round(self) -> list[ClaimedJob]:
        """One round, as the planner's loop does it; then the nodes start what was claimed for them."""
        started: list[ClaimedJob] = []
        planned = await self._planned()
        for claim in planned.claims:
            started += await self._take(self.nodes[claim.node])
        assert len(started) == planned.jobs
        return started

    async def round_for_nobody(self) -> int:
        """One round whose claims no node lives to start. How many jobs it claimed."""
        return (await self._planned()).jobs

    async def next_end(self) -> None:
        """Go on to the instant at which the next jobs end, and settle all that end then."""
        assert self._ends, "nothing runs"
        await self._pass_to(self._ends[0][0])

    async def run(self, seconds: Seconds) -> None:
        """Rounds and ends, until ``seconds`` more have passed."""
        until = Timestamp(self.at + seconds)
        await self.round()
        while self._ends and self._ends[0][0] <= until:
            await self.next_end()
            await self.round()
        self.at = until

    async def run_dry(self) -> None:
        """Rounds and ends, until nothing runs and nothing can start."""
        while await self.round() or self._ends:
            if self._ends:
                await self.next_end()

    # -- what it came to -------------------------------------------------------------------------------

    def used(self, tenant: TenantId, *, since: Timestamp | None = None) -> Seconds:
        """Slot-seconds of the tenant from ``since`` (or the beginning) to now, those of running jobs too."""
        start = self._began if since is None else since
        spans = (span for span in self._spans if span[0] == tenant)
        return sum(max(0.0, min(end, self.at) - max(begin, start)) for _, begin, end in spans)

    def share(self, tenant: TenantId, *, since: Timestamp | None = None) -> float:
        """The tenant's part of all slot-seconds."""
        everyone = sum(self.used(each, since=since) for each in {span[0] for span in self._spans})
        return self.used(tenant, since=since) / everyone

    def running(self, tenant: TenantId) -> int:
        return self._standing(tenant).running.total()

    def waiting(self, tenant: TenantId) -> int:
        return self._standing(tenant).waiting.total()

    def held(self) -> list[ClaimedJob]:
        """What the nodes run, the one that ends first at the front."""
        return [job for _, _, _, job in sorted(self._ends, key=lambda each: each[:2])]

    def unserved(self, *, paused: Iterable[Lane] = ()) -> list[str]:
        """Every free slot beside a job that it could run (law F3), by the driver's own reckoning: sentences,
        none when there are none."""
        found = []
        slots = sum(node.slots for node in self.nodes.values())
        for node in self.nodes.values():
            if self._busy(node) < node.slots:
                for tenant, standing in self._known.items():
                    found += [
                        f"{node.id} has a free slot, {tenant} has work for {target}"
                        for target in standing.waiting
                        if self._runnable(tenant, target, node, slots)
                        and Lane(tenant, target) not in set(paused)
                    ]
        return found

    # -- inside ----------------------------------------------------------------------------------------

    async def _planned(self) -> Planned:
        await self._hear()
        planned = self.memory.plan(self.at)
        if planned.jobs:
            answer = await self.world.planner.round(self._term, planned.claims, planned.heads)
            self.memory.apply(answer.changes, self.at)
        return planned

    async def _hear(self) -> None:
        answer = await self.world.planner.round(self._term, (), {})
        nodes_changed = self.memory.apply(answer.changes, self.at)
        if nodes_changed and not self.memory.set_nodes(await self.world.planner.nodes(self._term)):
            await self.rebuild()
        if self.directory.version != self._version:
            self._version = self.directory.version
            if not self.memory.refresh_tiers():
                await self.rebuild()

    async def _take(self, node: Node) -> list[ClaimedJob]:
        taken = await self.world.worker.take(node, LEASE)
        for job in taken:
            end = Timestamp(self.at + self.length(job))
            heappush(self._ends, (end, len(self.started), node, job))
            self._since[job.flow, job.seq] = self.at
            self.started.append(job)
            self._spans.append((job.tenant, self.at, end))
            self._moved(job, -1, 1)
        return taken

    async def _pass_to(self, instant: Timestamp) -> None:
        self.at = max(self.at, instant)
        ended: dict[NodeId, list[ClaimedJob]] = {}
        while self._ends and self._ends[0][0] <= instant:
            _, _, node, job = heappop(self._ends)
            ended.setdefault(node.id, []).append(job)
        for name, batch in ended.items():
            await self._settle(self.nodes[name], batch)

    async def _settle(self, node: Node, batch: Sequence[ClaimedJob]) -> None:
        reports = []
        for job in batch:
            ending = self.ending(job)
            back = ending in {Ending.RETRY, Ending.RELEASED}
            self._moved(job, int(back), -1)
            reports.append(replace(settlement(job, ending), busy_for=self.length(job)))
        assert await self.world.worker.settle(node, reports) == len(batch)

    def _standing(self, tenant: TenantId) -> Standing:
        return self._known.setdefault(tenant, Standing())

    def _moved(self, job: ClaimedJob, waiting: int, running: int) -> None:
        standing = self._standing(job.tenant)
        standing.waiting[job.target] += waiting
        standing.running[job.target] += running

    def _busy(self, node: Node) -> int:
        return sum(holder.id == node.id for _, _, holder, _ in self._ends)

    def _runnable(self, tenant: TenantId, target: Target, node: Node, slots: int) -> bool:
        of, standing = self.directory.tier_of(tenant), self._standing(tenant)
        document = self.directory.tenant(tenant)
        assert of is not None
        assert document is not None
        limit = document.settings_for(target).limit
        return (
            standing.waiting[target] > 0
            and kind_of(target) in node.kinds
            and of.pool == node.pool
            and (limit is None or standing.running[target] < limit)
            and standing.running.total() < max(1, -(-of.cap * slots // 1))
        )
