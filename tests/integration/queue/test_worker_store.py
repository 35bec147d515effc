"""What a worker's side of PostgreSQL does when the database is not as it should be."""

import asyncio

import asyncpg
import pytest
from queue_world import ACME, Doing, Queue, at_once, jobs, running, until

from tenantry.kernel.errors import StoreUnavailable
from tenantry.lanes.model import HTTP
from tenantry.postgres import worker_store
from tenantry.postgres.database import connect_once
from tenantry.postgres.statements import statement
from tenantry.queue.events import LeasesLost, NodeJoined
from tenantry.queue.model import ClaimId, Ending, NameHeld, Node, NodeId, Presence
from tenantry.testing.conformance.world import Hand, settlement

pytestmark = pytest.mark.needs_postgres


async def test_a_cancelled_job_that_cannot_be_dropped_now_costs_the_take_none_of_the_others(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand, node = Hand(queue.planner), await queue.worker.register(NodeId("node"), "shared", 9, {HTTP})
    cancelled, *_ = await queue.submit(ACME, jobs(3))
    await hand.claim(node, 3)
    await queue.database.engine.execute(  # as a cancel does that was ahead of the claim
        "WITH gone AS (DELETE FROM tenantry.jobs WHERE job_id = $1 RETURNING 1) "
        "UPDATE tenantry.load SET accepted = accepted - (SELECT count(*) FROM gone)",
        cancelled,
    )
    with monkeypatch.context() as broken:
        broken.setattr(worker_store, "statement", _without("worker/settle_failed"))
        taken = await queue.worker.take(node, 30.0)
        assert len(taken) == 2
        with pytest.raises(StoreUnavailable):  # it says so, with nothing at stake
            await queue.worker.take(node, 30.0)
    assert await _in_flight(queue) == 3
    assert await queue.worker.take(node, 30.0) == []
    assert await _in_flight(queue) == 2
    assert await queue.worker.settle(node, [settlement(job, Ending.DELIVERED) for job in taken]) == 2


async def test_renewals_lock_claims_in_key_order(queue: Queue) -> None:
    """Whoever locks several claims goes up, or two of them wait for each other."""
    hand, node = Hand(queue.planner), await queue.worker.register(NodeId("node"), "shared", 9, {HTTP})
    await queue.submit(ACME, jobs(2))
    for _ in range(2):
        await hand.claim(node, 1)
    low, high = sorted(job.claim for job in await queue.worker.take(node, 30.0))
    admin = await connect_once(queue.urls.admin)
    try:
        await admin.execute("UPDATE tenantry.claims SET token = token WHERE claim_id = $1", low)
        await queue.database.control.execute(  # rows as they lie: high, low
            "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off"
        )
        async with admin.transaction():
            await admin.execute("SELECT FROM tenantry.claims WHERE claim_id = $1 FOR UPDATE", low)
            renewing = asyncio.create_task(queue.worker.renew(node, [high, low], 30.0))
            await until(lambda: _someone_waits(admin))
            await queue.database.engine.execute(
                "SELECT FROM tenantry.claims WHERE claim_id = $1 FOR UPDATE NOWAIT", high
            )
        assert await renewing == {ClaimId(low), ClaimId(high)}
    finally:
        await admin.close()


async def test_without_a_partition_for_today_an_end_is_put_off_and_the_message_says_what_to_do(
    queue: Queue,
) -> None:
    hand, node = Hand(queue.planner), await queue.worker.register(NodeId("node"), "shared", 9, {HTTP})
    await queue.submit(ACME, jobs(1))
    await hand.claim(node, 1)
    taken = await queue.worker.take(node, 30.0)
    await _drop_partitions(queue)
    delivered = [settlement(job, Ending.DELIVERED) for job in taken]
    with pytest.raises(StoreUnavailable, match=r"no partition of outcomes for today.*tenantry doctor"):
        await queue.worker.settle(node, delivered)
    await queue.feeder.tidy(keep_days=7)
    assert await queue.worker.settle(node, delivered) == 1


async def test_a_worker_whose_row_is_gone_joins_again_and_is_given_work(queue: Queue) -> None:
    """A backup was restored, or it slept for days: it may not live on without ever being given anything."""
    executor = Doing(at_once)
    async with running(queue, executor) as node:
        await queue.database.engine.execute("DELETE FROM tenantry.nodes")
        await node.told.until(NodeJoined, count=2)
        await queue.submit(ACME, jobs(1))
        await until(lambda: _delivered(queue))
    assert node.told.of(LeasesLost) == []


async def test_a_registration_that_goes_first_supersedes_a_heartbeat_that_waits_for_it(queue: Queue) -> None:
    """Taken for forgotten, the two would supersede each other for ever."""
    node = await queue.worker.register(NodeId("node"), "shared", 9, {HTTP})
    assert isinstance(node, Node)
    other = await connect_once(queue.urls.engine)
    try:
        await other.execute("UPDATE tenantry.nodes SET seen_at = seen_at - interval '5 s'")  # it was away
        async with other.transaction():
            joined = await other.fetchval(statement("worker/register"), node.id, "shared", 9, ["http"], 5.0)
            assert joined
            beating = asyncio.create_task(queue.worker.heartbeat(node, draining=False))
            await until(lambda: _someone_waits(other))
        assert await beating is Presence.SUPERSEDED
    finally:
        await other.close()


async def test_of_two_workers_that_come_at_once_under_one_name_one_gets_it(queue: Queue) -> None:
    """The one that waited for the other's commit had looked before it."""
    other = await connect_once(queue.urls.engine)
    try:
        async with other.transaction():
            assert await other.fetchval(statement("worker/register"), "node", "shared", 9, ["http"], 5.0)
            joining = asyncio.create_task(queue.worker.register(NodeId("node"), "shared", 9, {HTTP}))
            await until(lambda: _someone_waits(other))
        held = await joining
    finally:
        await other.close()
    assert isinstance(held, NameHeld)
    assert (held.incarnation, 4.0 < held.frees_in <= 5.0) == (1, True)


async def test_a_control_statement_that_was_given_up_does_not_hold_up_the_next(queue: Queue) -> None:
    """On a network that is cut, the driver would have the next one wait for the cancel of the last."""
    control = queue.database.control
    before = await control.fetchval("SELECT pg_backend_pid()")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await control.execute("SELECT pg_sleep(60)")
    assert await control.fetchval("SELECT pg_backend_pid()") != before


# -- what the stories ask ----------------------------------------------------------------------------------


def _without(missing: str):  # type: ignore[no-untyped-def]
    return lambda name: "SELECT tenantry.not_there()" if name == missing else statement(name)


async def _in_flight(queue: Queue) -> int:
    query = "SELECT coalesce(sum(cardinality(seqs)), 0) FROM tenantry.claims"
    return int(await queue.database.engine.fetchval(query))


async def _someone_waits(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    query = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
    return bool(await connection.fetchval(query))


async def _delivered(queue: Queue) -> bool:
    return bool(await queue.database.engine.fetchval("SELECT EXISTS (SELECT FROM tenantry.outcomes)"))


async def _drop_partitions(queue: Queue) -> None:
    admin = await connect_once(queue.urls.admin)
    try:
        names = await admin.fetch(
            "SELECT inhrelid::regclass::text AS name FROM pg_inherits "
            "WHERE inhparent = 'tenantry.outcomes'::regclass"
        )
        for row in names:
            await admin.execute(f"DROP TABLE {row['name']}")
    finally:
        await admin.close()
