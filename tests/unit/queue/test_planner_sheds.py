"""The planner's loop over the store in memory, on a clock that is moved: what it says of a pool, and when."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from tenantry.algorithms.shedding import Level
from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Shedding, Tier
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import HTTP, Target
from tenantry.memory.directory import MemoryDirectory
from tenantry.memory.queue_store import MemoryQueueStore
from tenantry.queue.events import LevelChanged, LevelsMeasured, PlannerRebuilt
from tenantry.queue.model import ClaimedJob, Ending, NewJob, Node, NodeId
from tenantry.queue.planner import Planner
from tenantry.queue.surroundings import Surroundings
from tenantry.testing.clock import ManualClock
from tenantry.testing.conformance.world import settlement

UNSHAPED = TargetSettings(adaptive=False)
TENANTS = {TenantId(f"t{n}"): "free" if n < 2 else "standard" if n < 4 else "gold" for n in range(6)}
TIERS = (
    Tier(TierName("free"), shedding=Shedding.FIRST),
    Tier(TierName("standard")),
    Tier(TierName("gold"), shedding=Shedding.LAST),
)
HOOK = Target("https://hooks.example.com/a")
LEASE = 600.0


class Store(MemoryQueueStore):
    """``crashing``: whoever ends now has no time to leave its place."""

    crashing = False

    async def leave_place(self, term: int) -> None:
        if not self.crashing:
            await super().leave_place(term)


class Pool:
    """One node of two slots and six tenants, of whom each wants one."""

    def __init__(self) -> None:
        self.clock, self.told = ManualClock(), list[Event]()
        documents = tuple(TenantDocument(each, TierName(tier), UNSHAPED) for each, tier in TENANTS.items())
        self.directory = MemoryDirectory(Registry(TIERS, documents))
        self.more = asyncio.Event()
        self.store = Store(self.clock, SeededRandomness(1))
        self.node: Node | None = None
        self.planning: asyncio.Task[None] | None = None

    async def begin(self, *, slots: int = 2) -> None:
        joined = await self.store.register(NodeId("n"), "shared", slots, {HTTP})
        assert isinstance(joined, Node)
        self.node = joined
        await self.plan()

    async def plan(self) -> None:
        """A planner takes the place and has read everything."""
        around = Surroundings(self.directory, self.clock, SeededRandomness(2), self._tell)
        before = len(self.of(PlannerRebuilt))
        self.planning = asyncio.create_task(Planner(self.store, around, holder="p").run())
        await self._until(lambda: len(self.of(PlannerRebuilt)) > before)

    async def kill_planner(self) -> None:
        """As a crash does: the place is not left."""
        assert self.planning is not None
        self.store.crashing = True
        self.planning.cancel()
        await asyncio.gather(self.planning, return_exceptions=True)
        self.store.crashing = False

    async def submit(self, jobs: int = 3) -> None:
        for tenant in TENANTS:
            await self.store.submit(tenant, [NewJob(HOOK, b"{}")] * jobs, bound=None)

    async def pass_time(self, seconds: int) -> None:
        """Second by second: heartbeats come, and the planner has looked."""
        assert self.node is not None
        for _ in range(seconds):
            looked = len(self.of(LevelsMeasured))
            self.clock.advance(1.0)
            await self.store.heartbeat(self.node, draining=False)
            await self._until(lambda looked=looked: len(self.of(LevelsMeasured)) > looked)

    async def take(self) -> list[ClaimedJob]:
        """What the planner has claimed for the node."""
        assert self.node is not None
        while not (taken := await self.store.take(self.node, LEASE)):
            await self.store.wait(self.node, 1.0)
        return taken

    async def settle(self, jobs: list[ClaimedJob], ending: Ending = Ending.DELIVERED) -> None:
        assert self.node is not None
        ends = [settlement(job, ending, retry_for=0.5) for job in jobs]
        assert await self.store.settle(self.node, ends) == len(jobs)

    async def level(self) -> Level:
        found = await self.store.levels()
        return found[0].level.level if found else Level.NONE

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.told if isinstance(event, kind)]

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():  # the planner's own round, 50 ms at most
            await self.more.wait()
            self.more.clear()

    def _tell(self, event: Event) -> None:
        self.told.append(event)
        self.more.set()


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    world = Pool()
    yield world
    if world.planning is not None:
        world.planning.cancel()
        await asyncio.gather(world.planning, return_exceptions=True)


async def test_a_pool_in_which_most_tenants_wait_too_long_comes_to_shed_by_steps_and_says_why(
    pool: Pool,
) -> None:
    await pool.begin()
    await pool.submit()
    await pool.take()
    await pool.pass_time(5)
    assert await pool.level() is Level.NONE
    await pool.pass_time(6)
    assert await pool.level() is Level.BACKGROUND
    (standing,) = await pool.store.levels()
    assert standing.level.age > 5.0
    assert standing.level.used == 1.0
    await pool.pass_time(10)
    assert await pool.level() is Level.STANDARD
    assert [(each.before, each.level.level) for each in pool.of(LevelChanged)] == [  # type: ignore[attr-defined]
        (Level.NONE, Level.BACKGROUND),
        (Level.BACKGROUND, Level.RETRIES),
        (Level.RETRIES, Level.STANDARD),
    ]


async def test_when_the_backlog_is_gone_it_sheds_less_step_by_step_and_not_at_once(pool: Pool) -> None:
    await pool.begin()
    await pool.submit(jobs=1)
    held = await pool.take()
    await pool.pass_time(11)
    assert await pool.level() is Level.BACKGROUND
    await pool.settle(held)
    for _ in range(2):  # six jobs, two at a time
        await pool.settle(await pool.take())
    await pool.pass_time(10)
    assert await pool.level() is Level.BACKGROUND
    await pool.pass_time(7)
    assert await pool.level() is Level.NONE


async def test_a_level_whose_planner_died_runs_out_and_a_new_planner_in_time_goes_on_from_it(
    pool: Pool,
) -> None:
    await pool.begin()
    await pool.submit()
    await pool.take()
    await pool.pass_time(16)
    assert await pool.level() is Level.RETRIES
    await pool.kill_planner()
    pool.clock.advance(6.5)
    assert await pool.level() is Level.RETRIES
    await pool.plan()
    await pool.pass_time(1)
    assert await pool.level() is Level.RETRIES
    await pool.kill_planner()
    pool.clock.advance(11.0)
    assert await pool.level() is Level.NONE


async def test_retries_are_put_off_while_the_pool_sheds_them_and_first_attempts_go_on(pool: Pool) -> None:
    await pool.begin()
    await pool.submit(jobs=1)
    held = await pool.take()
    await pool.pass_time(16)
    assert await pool.level() is Level.RETRIES
    await pool.settle(held, Ending.RETRY)
    for _ in range(2):
        first = await pool.take()
        assert [job.attempt for job in first] == [1, 1]
        await pool.settle(first)
    await pool.pass_time(5)
    assert pool.node is not None
    assert await pool.store.take(pool.node, LEASE) == []
    await pool.pass_time(15)
    assert await pool.level() is Level.BACKGROUND
    back = await pool.take()
    assert {(job.tenant, job.attempt) for job in back} == {(job.tenant, 2) for job in held}
