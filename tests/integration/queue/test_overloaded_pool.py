"""A small pool that is really overloaded, on a real database: who is refused, and that it ends well."""

import asyncio
from dataclasses import dataclass, field, replace

import pytest
from queue_world import Doing, Queue, Told, running, until

from tenantry.algorithms.shedding import Level, SheddingSettings
from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Shedding, Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.events import ignore
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes.model import Target
from tenantry.lanes.outcome import Outcome
from tenantry.memory.rate_gate import MemoryRateGate
from tenantry.postgres.directory import write_registry
from tenantry.queue.events import LevelChanged
from tenantry.queue.intake import Admission, IntakeSettings
from tenantry.queue.level_watch import LevelWatch
from tenantry.queue.model import Accepted, ClaimedJob, JobClass, JobState, NewJob, PoolLevel
from tenantry.queue.planner import PlannerSettings
from tenantry.queue.worker import WorkerSettings

pytestmark = pytest.mark.needs_postgres

FREE, STANDARD, GOLD = TenantId("free-1"), TenantId("standard-1"), TenantId("gold-1")
TARGETS = TargetSettings(adaptive=False, backoff_base=0.05, backoff_cap=0.05)
REGISTRY = Registry(
    tiers=(
        Tier(TierName("free"), shedding=Shedding.FIRST),
        Tier(TierName("standard")),
        Tier(TierName("gold"), shedding=Shedding.LAST),
    ),
    tenants=tuple(
        TenantDocument(TenantId(f"{tier}-{n}"), TierName(tier), TARGETS)
        for tier in ("free", "standard", "gold")
        for n in (1, 2)
    ),
)
QUICK = PlannerSettings(
    shed_every=0.05, shedding=SheddingSettings(tolerated=0.2, rise_after=0.2, fall_after=0.3)
)
"""The rule with its seconds made short: what it does is the same."""

LIVE = NewJob(Target("https://hooks.example.com/a"), b"{}")
BACKGROUND = replace(LIVE, job_class=JobClass.BACKGROUND)


@dataclass
class Targets:
    """They hang until they are let go; the first two jobs then fail once."""

    told: Told | None = None
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    retried_at: list[Level] = field(default_factory=list)
    failed: int = 0

    async def work(self, job: ClaimedJob) -> Outcome:
        await self.let_go.wait()
        if job.attempt > 1:
            self.retried_at.append(self.level())
        elif self.failed < 2:
            self.failed += 1
            return Outcome("http_500", status=500)
        return Outcome("ok", status=200)

    def level(self) -> Level:
        assert self.told is not None
        changes = [each for each in self.told.events if isinstance(each, LevelChanged)]
        return changes[-1].level.level if changes else Level.NONE


@pytest.fixture
async def door(queue: Queue) -> "Door":
    await write_registry(queue.urls.admin, REGISTRY)
    await queue.directory.refresh()
    return Door(queue)


class Door:
    """The way in, as a node has it. ``accepted``: how many jobs it has accepted."""

    def __init__(self, queue: Queue) -> None:
        self.watch = LevelWatch(queue.operator, clock=SystemClock(), events=ignore)
        self.accepted = 0
        self._admission = Admission(
            queue.intake,
            queue.directory,
            MemoryRateGate(queue.directory, SystemClock()),
            randomness=SystemRandomness(),
            events=ignore,
            settings=IntakeSettings(level_of=self.watch.level_of),
        )

    async def submit(self, tenant: TenantId, *jobs: NewJob) -> Rule | None:
        """The rule that refuses, or None."""
        await self.watch.refresh()
        answer = await self._admission.submit(tenant, jobs)
        if isinstance(answer, Refusal):
            assert answer.retry_after is not None
            return answer.rule
        assert isinstance(answer, Accepted)
        self.accepted += len(answer.ids)
        return None


async def test_an_overloaded_pool_refuses_in_order_recovers_and_loses_nothing_that_it_accepted(
    queue: Queue, door: Door
) -> None:
    targets = Targets()
    executor, two = Doing(targets.work), WorkerSettings(slots=2)
    async with running(queue, executor, settings=two, planning=QUICK) as node:
        targets.told = node.told
        for document in REGISTRY.tenants:
            assert await door.submit(document.tenant, LIVE, BACKGROUND) is None
        await node.told.until(LevelChanged, count=3)
        assert targets.level() is Level.STANDARD
        await until(lambda: _known(door, Level.STANDARD))
        assert await door.submit(FREE, BACKGROUND) is Rule.OVERLOAD
        assert await door.submit(FREE, LIVE) is Rule.OVERLOAD
        assert await door.submit(STANDARD, LIVE) is Rule.OVERLOAD
        assert await door.submit(GOLD, LIVE, BACKGROUND) is None
        targets.let_go.set()
        await node.told.until(LevelChanged, count=6)
        await until(lambda: _known(door, None))
        assert await door.submit(FREE, BACKGROUND) is None
        assert await door.submit(STANDARD, LIVE) is None
        await until(lambda: _delivered(queue, door.accepted))
    rises_and_falls = [each.level.level for each in node.told.events if isinstance(each, LevelChanged)]
    assert rises_and_falls == [1, 2, 3, 2, 1, 0]
    assert len(targets.retried_at) == 2
    assert all(level < Level.RETRIES for level in targets.retried_at)


async def test_a_level_is_not_there_any_more_once_its_planner_is_gone(queue: Queue, door: Door) -> None:
    term = await queue.planner.take_place("hand", 60.0)
    assert term is not None
    (document, *_) = REGISTRY.tenants
    await queue.planner.keep_levels(term, [PoolLevel("shared", Level.STANDARD, 9.0, 1.0, 45.0)], 0.3)
    assert await door.submit(document.tenant, LIVE) is Rule.OVERLOAD
    await until(lambda: _known(door, None))
    assert await door.submit(document.tenant, LIVE) is None


async def _known(door: Door, level: Level | None) -> bool:
    await door.watch.refresh()
    known = door.watch.level_of("shared")
    return (known and known.level) is level


async def _delivered(queue: Queue, count: int) -> bool:
    return (await queue.operator.counts())[JobState.DELIVERED] == count
