"""Shaped lanes end to end: a planner, a worker and PostgreSQL, with targets that take what they can."""

import asyncio
from collections import Counter

import pytest
from queue_world import ACME, HOOK, Doing, Queue, jobs, register_tenants, running

from tenantry.config.model import NO_SETTINGS, TargetSettings
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.lanes.outcome import Outcome
from tenantry.postgres.urls import DatabaseUrls
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


class Busy:
    """A target that takes ``room`` calls at once and refuses the others."""

    def __init__(self, room: int) -> None:
        self.room, self.now, self.most = room, 0, 0
        self.refused = 0

    async def __call__(self, job: ClaimedJob) -> Outcome:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.now > self.room:
                self.refused += 1
                return Outcome("http_503", 503, busy_for=0.001)
            await asyncio.to_thread(lambda: None)
            return Outcome("ok", 200, busy_for=0.01)
        finally:
            self.now -= 1


async def test_a_lane_delivers_everything_and_its_state_is_kept(shaped: Queue) -> None:
    await shaped.submit(ACME, jobs(300))
    async with running(shaped, Doing(Busy(room=50))) as node:
        await _all_settled(node.told, 300)
        assert not node.told.of(PlannerLost)
    kept = await shaped.database.engine.fetchval("SELECT state FROM tenantry.shapers")
    assert kept is not None


async def test_all_classes_of_a_lane_share_its_shaper(shaped: Queue) -> None:
    batch = [NewJob(HOOK, b"{}", job_class=each) for each in (JobClass.LIVE, JobClass.BACKGROUND)] * 50
    await shaped.submit(ACME, batch)
    target = Busy(room=1_000)
    async with running(shaped, Doing(target)) as node:
        await _all_settled(node.told, 100)
    assert await shaped.database.engine.fetchval("SELECT count(*) FROM tenantry.shapers") == 1


async def _all_settled(told: object, jobs: int) -> None:
    while sum(len(event.ends) for event in told.of(JobsSettled)) < jobs:
        await told.until(JobsSettled, count=len(told.of(JobsSettled)) + 1)
