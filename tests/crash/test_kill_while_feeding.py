"""Case R3 under ``kill -9``: a coordinator that dies in the middle of a window has staged all of it or
nothing, and the next one goes on from there."""

import asyncio
import sys
from pathlib import Path

import asyncpg
import pytest

from tenantry.kernel.randomness import SeededRandomness, SystemRandomness
from tenantry.postgres.database import Database
from tenantry.postgres.hints import Hints
from tenantry.postgres.replay_desk import PostgresReplayDesk
from tenantry.postgres.replay_store import PostgresReplayStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.replay.model import Membership, Quotas
from tenantry.testing.conformance.replay_world import spec_of, where
from tenantry.testing.conformance.world import ACME

pytestmark = pytest.mark.needs_postgres

FEEDING = Path(__file__).with_name("feeding.py")
_STAGED = """
    SELECT (SELECT count(*) FROM tenantry.jobs) AS jobs, (SELECT count(*) FROM tenantry.replay_fed) AS fed,
           (SELECT count(*) FROM tenantry.replay_keys) AS keys,
           (SELECT coalesce(sum(keys), 0) FROM tenantry.replay_generations) AS counted,
           (SELECT replayed FROM tenantry.replay_tenants) AS replayed,
           (SELECT position FROM tenantry.replays) AS position,
           (SELECT unended FROM tenantry.replays) AS unended
"""


async def test_r3_no_message_is_lost_or_fed_twice_when_coordinators_are_killed_in_the_middle_of_a_feed(
    database_urls: DatabaseUrls,
) -> None:
    await ride_out(database_urls, messages=1_000, kills=5)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_kills_in_the_middle_of_a_feed_in_full(database_urls: DatabaseUrls) -> None:
    await ride_out(database_urls, messages=20_000, kills=50)


async def ride_out(urls: DatabaseUrls, *, messages: int, kills: int) -> None:
    async with await Database.open(urls, engine_connections=1, tenant_connections=1) as database:
        hints = Hints(database)
        desk = PostgresReplayDesk(database, hints, SystemRandomness())
        plan = await desk.plan(spec_of(), Membership(), "")
        await desk.start(ACME, plan.id, Quotas())
        chance = SeededRandomness(7)
        for _ in range(kills):
            await _fed_until_killed(urls, messages, int(chance.uniform(1.0, messages / 40 / (kills + 1))))
            await _all_or_nothing(urls)
        assert await _fed(urls, messages) == "through"
        counts = await PostgresReplayStore(database, hints).counts([plan.id])
        assert where(counts[plan.id]) == {"waiting": messages}
        assert (await _all_or_nothing(urls))["position"] == str(messages)
        await hints.close()


async def _fed_until_killed(urls: DatabaseUrls, messages: int, windows: int) -> None:
    """Killed while it waits for the answer to a feed."""
    process = await _start(urls, messages)
    assert process.stdout is not None
    for _ in range(windows):
        assert await process.stdout.readline() == b"feeding\n"
    process.kill()
    await process.wait()


async def _fed(urls: DatabaseUrls, messages: int) -> str:
    process = await _start(urls, messages)
    told, _ = await process.communicate()
    return told.decode().split()[-1]


async def _start(urls: DatabaseUrls, messages: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, str(FEEDING), urls.admin, str(messages), stdout=asyncio.subprocess.PIPE
    )


async def _all_or_nothing(urls: DatabaseUrls) -> asyncpg.Record:
    """Every book says the same, and it is where the source is to be read on."""
    connection = await asyncpg.connect(urls.admin)
    try:
        row = await connection.fetchrow(_STAGED)
    finally:
        await connection.close()
    assert row is not None
    said = {row[name] for name in ("jobs", "fed", "keys", "counted", "unended")}
    assert said == {int(row["position"] or 0)}, dict(row)
    assert (row["replayed"] or 0) in said, dict(row)
    return row
