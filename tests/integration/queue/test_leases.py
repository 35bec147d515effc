"""Leases on a real database with real loops: kept while a job runs, lost with its worker, decided by nobody's
clock but the database's."""

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import asyncpg
import pytest
from queue_world import ACME, HOOK, Doing, Queue, at_once, jobs, opened, running, until

from tenantry.kernel.clock import SystemClock
from tenantry.kernel.instant import Timestamp
from tenantry.lanes.model import HTTP
from tenantry.lanes.outcome import Outcome
from tenantry.postgres.errors import FOREIGN
from tenantry.queue.changes import Left
from tenantry.queue.events import LeasesLost, NodeJoined, NodeLeft, StoreFailed
from tenantry.queue.model import (
    ENDS,
    ClaimedJob,
    Ending,
    JobState,
    NewJob,
    Node,
    NodeId,
    Presence,
    Reclaimed,
)
from tenantry.queue.worker import WorkerSettings
from tenantry.testing.conformance.world import Hand, settlement

pytestmark = pytest.mark.needs_postgres

SHORT = WorkerSettings(slots=10, lease_for=0.9, reclaim_every=0.1, grace_for=0.3)


class Hanging:
    """A job that runs until it is let go, and how many of each run at once."""

    def __init__(self) -> None:
        self.go, self.begun = asyncio.Event(), asyncio.Event()
        self.live, self.most = Counter[str](), Counter[str]()

    async def __call__(self, job: ClaimedJob) -> Outcome:
        self.live[job.id] += 1
        self.most[job.id] = max(self.most[job.id], self.live[job.id])
        self.begun.set()
        try:
            await self.go.wait()
        finally:
            self.live[job.id] -= 1
        return Outcome("ok", status=200)


class FastClock(SystemClock):
    """A node whose wall clock is five minutes ahead."""

    def now(self) -> Timestamp:
        return Timestamp(super().now() + 300.0)


async def test_a_job_longer_than_its_lease_is_renewed_and_runs_once(queue: Queue) -> None:
    """Case Q12: two leases' time and a half, with a second node that would take it back."""
    (id_,) = await queue.submit(ACME, jobs(1))
    hanging = Hanging()
    async with opened(queue.urls) as other, running(queue, Doing(hanging), settings=SHORT) as node:
        await hanging.begun.wait()
        async with running(other, Doing(at_once), name="other", plans=False):
            await asyncio.sleep(2.5 * SHORT.lease_for)  # the story: it outlives its first lease
        hanging.go.set()
        await until(lambda: ended(queue, 1))
    assert (hanging.most[id_], len(node.told.of(LeasesLost))) == (1, 0)
    view = await queue.intake.job(ACME, id_)
    assert view is not None
    assert (view.state, view.attempts) == (JobState.DELIVERED, 1)


async def test_a_delay_longer_than_the_lease_runs_once(queue: Queue) -> None:
    """The other half of case Q12."""
    executor = Doing(at_once)
    async with running(queue, executor, settings=SHORT):
        await queue.submit(ACME, [replace(jobs(1)[0], delay_for=2 * SHORT.lease_for)])
        await until(lambda: ended(queue, 1))
        await asyncio.sleep(SHORT.lease_for)  # were it to run again, it would now
    assert len(executor.begun) == 1


async def test_a_worker_that_is_killed_and_restarted_under_its_name_gets_its_jobs_back_by_their_lease(
    queue: Queue,
) -> None:
    """Case Q11: not before the lease ran out, and under a new incarnation."""
    (id_,) = await queue.submit(ACME, jobs(1))
    hanging, begun = Hanging(), list[float]()

    async def stamp(job: ClaimedJob) -> Outcome:
        begun.append(await queue.database.engine.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
        return await at_once(job)

    executor = Doing(stamp)
    async with running(queue, Doing(hanging), name="w", settings=SHORT) as first:
        await hanging.begun.wait()
    lease_ended_at = await lease_ends(queue)
    async with opened(queue.urls) as again, running(again, executor, name="w", settings=SHORT) as second:
        await until(lambda: ended(queue, 1))
    (joined,), (rejoined,) = first.told.of(NodeJoined), second.told.of(NodeJoined)
    assert rejoined.incarnation == joined.incarnation + 1  # type: ignore[attr-defined]
    (job,) = executor.begun
    assert (job.id, job.attempt) == (id_, 2)
    assert begun[0] >= lease_ended_at


async def test_a_name_that_was_left_and_tidied_comes_back_as_a_later_incarnation(queue: Queue) -> None:
    """Case Q11: a worker that was stopped meanwhile would otherwise be taken for the newcomer."""
    first = await queue.worker.register(NodeId("node"), "shared", 1, {HTTP})
    assert isinstance(first, Node)
    await queue.worker.leave(first)
    await queue.feeder.tidy(keep_days=7)
    second = await queue.worker.register(NodeId("node"), "shared", 1, {HTTP})
    assert isinstance(second, Node)
    assert second.incarnation > first.incarnation
    assert await queue.worker.heartbeat(first, draining=False) is Presence.SUPERSEDED


async def test_two_settles_and_a_reclaim_at_once_end_every_job_once(queue: Queue) -> None:
    """Cases Q10 and Q13, many times: whoever is first is the only one, and slots equal live claims."""
    hand, total = Hand(queue.planner), 0
    node = await queue.worker.register(NodeId("node"), "shared", 100, {HTTP})
    async with opened(queue.urls) as other:
        for turn in range(40):
            total += len(await queue.submit(ACME, jobs(4)))
            await hand.claim(node, 4)
            held = await queue.worker.take(node, 0.0)  # a lease that is over at once
            delivered = [settlement(job, Ending.DELIVERED) for job in held[turn % 3 :]]
            failed = [settlement(job, (Ending.DEAD, Ending.RETRY)[turn % 2]) for job in reversed(held)]
            *settled, back = await asyncio.gather(
                queue.worker.settle(node, delivered),
                other.worker.settle(node, [*failed[turn % 4 :], *delivered[:1]]),
                other.worker.reclaim(limit=10),
            )
            assert sum(settled) + back.jobs + await in_flight(queue) == len(held) == 4
            await queue.worker.reclaim(limit=10)
            assert await in_flight(queue) == 0
            assert await queue.faults() == []
    counts = await queue.operator.counts()
    assert sum(counts.values()) == total


async def test_claims_whose_answer_was_lost_are_given_again_to_the_node_that_holds_them(queue: Queue) -> None:
    """A connection broke after the claims were started and before the node heard: they must not hold its
    slots until their lease is over."""
    hand = Hand(queue.planner)
    node = await queue.worker.register(NodeId("node"), "shared", 100, {HTTP})
    await queue.submit(ACME, jobs(3))
    await hand.claim(node, 3)
    unheard = await queue.worker.take(node, 30.0)
    assert await queue.worker.take(node, 30.0) == []
    await _break_connections(queue)
    again = await queue.worker.take(node, 30.0)
    assert [(job.id, job.claim, job.token, job.attempt) for job in again] == [
        (job.id, job.claim, job.token, job.attempt) for job in unheard
    ]
    # Each connection that the pool opens anew may give them once more (they run once), never others.
    assert {job.id for job in await queue.worker.take(node, 30.0)} <= {job.id for job in again}
    assert await queue.worker.settle(node, [settlement(job, Ending.DELIVERED) for job in again]) == 3


async def test_a_job_that_is_given_again_to_the_worker_that_runs_it_runs_once(queue: Queue) -> None:
    (id_,) = await queue.submit(ACME, jobs(1))
    hanging = Hanging()
    async with running(queue, Doing(hanging)) as node:
        await hanging.begun.wait()
        await _break_connections(queue)
        await queue.submit(ACME, jobs(1))
        await until(lambda: _begun(hanging, 2))
        hanging.go.set()
        await until(lambda: ended(queue, 2))
    assert hanging.most[id_] == 1
    assert node.told.of(LeasesLost) == []


async def test_a_job_whose_row_is_gone_at_the_settle_still_gives_its_slot_back(queue: Queue) -> None:
    """The other half of case Q10: in flight is what claims hold, whatever became of the row."""
    hand = Hand(queue.planner)
    node = await queue.worker.register(NodeId("node"), "shared", 100, {HTTP})
    await queue.submit(ACME, jobs(2))
    await hand.claim(node, 2)
    held = await queue.worker.take(node, 30.0)
    await queue.database.engine.execute("DELETE FROM tenantry.jobs WHERE seq = 1")
    await queue.database.engine.execute("UPDATE tenantry.load SET accepted = accepted - 1")
    assert await queue.worker.settle(node, [settlement(job, Ending.DELIVERED) for job in held]) == 2
    assert await in_flight(queue) == 0
    left = [change for change in await hand.listen() if isinstance(change, Left)]
    assert sorted(seq for change in left for _, seq in change.places) == [1, 2]


async def test_a_drain_lets_jobs_end_within_the_grace_and_gives_the_rest_back_unharmed(queue: Queue) -> None:
    """Case Q15: the attempt is kept, and nothing stays claimed."""
    hanging = Hanging()
    release = asyncio.Event()

    async def work(job: ClaimedJob) -> Outcome:
        if job.payload == b"long":
            return await hanging(job)
        await release.wait()
        return Outcome("ok", status=200)

    brief, long, waiting = await queue.submit(ACME, [NewJob(HOOK, p) for p in (b"brief", b"long", b"long")])
    del waiting
    settings = replace(SHORT, slots=2, lease_for=30.0)
    async with running(queue, Doing(work), settings=settings) as node:
        await hanging.begun.wait()
        node.worker.drain()
        release.set()
        await node.tasks["worker"]
        (left,) = node.told.of(NodeLeft)
        assert left.released in {1, 2}  # type: ignore[attr-defined]  # the third may have been claimed meanwhile
        assert await in_flight(queue) == 0
    views = [await queue.intake.job(ACME, id_) for id_ in (brief, long)]
    assert [(view.state, view.attempts) for view in views if view] == [
        (JobState.DELIVERED, 1),
        (JobState.WAITING, 0),
    ]
    executor = Doing(at_once)
    async with opened(queue.urls) as other, running(other, executor, name="next"):
        await until(lambda: ended(queue, 3))
    assert [job.attempt for job in executor.begun] == [1, 1], "given back: the attempt did not count"


async def test_a_node_whose_clock_is_five_minutes_ahead_changes_nothing(queue: Queue) -> None:
    """Case Q18: due times and leases go by the database's clock (law K4)."""
    hanging = Hanging()
    async with running(queue, Doing(hanging), settings=SHORT, clock=FastClock()) as node:
        (due_later,) = await queue.submit(ACME, [replace(jobs(1)[0], delay_for=120.0)])
        (now,) = await queue.submit(ACME, jobs(1))
        await hanging.begun.wait()
        await asyncio.sleep(1.5 * SHORT.lease_for)
        assert await queue.worker.reclaim(limit=10) == Reclaimed(0)
        hanging.go.set()
        await until(lambda: ended(queue, 1))
    assert (hanging.most[now], hanging.most[due_later]) == (1, 0)
    assert node.told.of(LeasesLost, StoreFailed) == []
    view = await queue.intake.job(ACME, due_later)
    assert view is not None
    assert view.state is JobState.DELAYED


async def test_renewals_go_through_while_jobs_hold_every_pooled_connection(queue: Queue) -> None:
    """Case Q20: renewals and heartbeats have a connection of their own."""
    (id_,) = await queue.submit(ACME, jobs(1))
    hanging = Hanging()
    async with running(queue, Doing(hanging), settings=SHORT) as node, opened(queue.urls) as other:
        await hanging.begun.wait()
        greedy = [await queue.database.engine.acquire() for _ in range(queue.database.engine.get_max_size())]
        for _ in range(5):
            await asyncio.sleep(0.5 * SHORT.lease_for)
            assert await other.worker.reclaim(limit=10) == Reclaimed(0)
        for connection in greedy:
            await queue.database.engine.release(connection)
        hanging.go.set()
        await until(lambda: ended(queue, 1))
    assert (hanging.most[id_], node.told.of(LeasesLost)) == (1, [])


# -- what the stories ask ------------------------------------------------------------------------------


async def ended(queue: Queue, count: int) -> bool:
    counts = await queue.operator.counts()
    return sum(counts[state] for state in ENDS) >= count


async def in_flight(queue: Queue) -> int:
    query = "SELECT coalesce(sum(cardinality(seqs)), 0) FROM tenantry.claims"
    return int(await queue.database.engine.fetchval(query))


async def lease_ends(queue: Queue) -> float:
    query = "SELECT extract(epoch FROM max(expires_at)) FROM tenantry.claims WHERE started"
    return float(await queue.database.engine.fetchval(query))


async def _break_connections(queue: Queue) -> None:
    """As a restart of the server does, or a network that forgets: each of the engine's pooled connections."""
    connection = await asyncpg.connect(queue.urls.admin)
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE usename = 'tenantry_engine' AND datname = current_database()"
    )
    await connection.close()
    for _ in range(queue.database.engine.get_size()):  # each is found broken, once
        with suppress(*FOREIGN):
            await queue.database.engine.execute("SELECT 1")


async def _begun(hanging: Hanging, count: int) -> bool:
    return hanging.most.total() >= count
