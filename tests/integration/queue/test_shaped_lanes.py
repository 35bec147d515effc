"""Shaped lanes end to end: a planner, a worker and PostgreSQL, with targets that take what they can."""

import pytest
from queue_world import ACME, HOOK, Doing, Queue, Told, jobs, register_tenants, running

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.config.model import NO_SETTINGS
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.lanes.outcome import Outcome
from tenantry.queue.events import BreakerMoved, JobsSettled, PlannerLost
from tenantry.queue.model import ClaimedJob, JobClass, NewJob

pytestmark = pytest.mark.needs_postgres

GLOBEX = TenantId("globex")
DEAD = Target("https://dead.example.com/")


@pytest.fixture
async def shaped(queue: Queue) -> Queue:
    """The queue, whose tenants' lanes find out what their targets can take."""
    await register_tenants(queue.urls, ACME, GLOBEX, targets=NO_SETTINGS)
    await queue.directory.refresh()
    return queue


async def answers(job: ClaimedJob) -> Outcome:
    """One target hangs, and every other answers at once."""
    if job.target == DEAD:
        return Outcome("timeout", busy_for=0.05)
    return Outcome("ok", 200, busy_for=0.001)


async def test_a_lane_delivers_everything_and_its_state_is_kept(shaped: Queue) -> None:
    await shaped.submit(ACME, jobs(300))
    async with running(shaped, Doing(answers)) as node:
        await _all_settled(node.told, 300)
        assert not node.told.of(PlannerLost)
    kept = await shaped.database.engine.fetchval("SELECT state FROM tenantry.shapers")
    assert kept is not None


async def test_all_classes_of_a_lane_share_its_shaper(shaped: Queue) -> None:
    batch = [NewJob(HOOK, b"{}", job_class=each) for each in (JobClass.LIVE, JobClass.BACKGROUND)] * 50
    await shaped.submit(ACME, batch)
    async with running(shaped, Doing(answers)) as node:
        await _all_settled(node.told, 100)
    assert await shaped.database.engine.fetchval("SELECT count(*) FROM tenantry.shapers") == 1


async def test_a_dead_target_is_left_alone_and_the_others_are_served(shaped: Queue) -> None:
    await shaped.submit(ACME, jobs(200, DEAD))
    await shaped.submit(GLOBEX, jobs(200))
    doing = Doing(answers)
    async with running(shaped, doing) as node:
        await node.told.until(BreakerMoved)
        while sum(job.tenant == GLOBEX for job in doing.begun) < 200:
            await node.told.until(JobsSettled, count=len(node.told.of(JobsSettled)) + 1)
        (moved, *_) = node.told.of(BreakerMoved)
        assert moved == BreakerMoved(ACME, BreakerState.OPEN)
        assert sum(job.target == DEAD for job in doing.begun) < 60
        kept = await shaped.database.engine.fetch(
            "SELECT state FROM tenantry.shapers WHERE tenant_id = $1", ACME
        )
        assert len(kept) == 1  # at once: a planner that takes over leaves it alone too


async def _all_settled(told: Told, jobs: int) -> None:
    while sum(len(event.ends) for event in told.of(JobsSettled)) < jobs:
        await told.until(JobsSettled, count=len(told.of(JobsSettled)) + 1)
