"""Submits of one tenant wait for each other, and for nobody else (law I3)."""

import asyncio

import pytest

from tenantry.kernel.clock import SystemClock
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.turns import Turns
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.model import Accepted, NewJob

JOBS = [NewJob(Target("https://hooks.example.com/a"), b"{}")]
BUSY, OTHER = TenantId("busy"), TenantId("other")


@pytest.mark.needs_postgres
async def test_a_crowd_of_one_tenants_submits_leaves_connections_to_the_others(database_urls: DatabaseUrls):
    async with await Database.open(database_urls, tenant_connections=2) as database:
        hints = Hints(database)
        store = PostgresIntakeStore(database, hints, SystemClock(), SystemRandomness())
        await store.submit(BUSY, JOBS, bound=None)
        blocker = await connect_once(database_urls.admin)
        try:
            async with blocker.transaction(), asyncio.timeout(20):
                await blocker.execute("SELECT FROM tenantry.load WHERE tenant_id = 'busy' FOR UPDATE")
                crowd = [asyncio.create_task(store.submit(BUSY, JOBS, bound=None)) for _ in range(10)]
                await asyncio.sleep(0)
                assert isinstance(await store.submit(OTHER, JOBS, bound=None), Accepted)
                assert not any(task.done() for task in crowd)
            answers = await asyncio.gather(*crowd)
            assert all(isinstance(answer, Accepted) for answer in answers)
        finally:
            await blocker.close()
            await hints.close()


async def test_turns_of_one_key_follow_each_other_and_nothing_is_kept_of_them():
    turns, inside, most = Turns(), 0, 0

    async def visit() -> None:
        nonlocal inside, most
        async with turns.of("a"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(visit() for _ in range(20)))
    assert most == 1
    assert not turns._locks


async def test_a_visitor_that_is_cancelled_while_it_waits_leaves_the_line():
    turns = Turns()
    async with turns.of("a"):
        waiting = asyncio.create_task(turns.of("a").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    async with asyncio.timeout(5), turns.of("a"):
        pass
    assert not turns._locks
