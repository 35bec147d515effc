"""Replays over a real database with a planner and a worker at work: everything at once."""

import asyncio
from collections import Counter
from random import Random  # noqa: TID251 - a story's dice, seeded

import pytest
from queue_world import ACME, GLOBEX, HOOK, Doing, Queue, jobs, opened, running, until

from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.lanes.outcome import Outcome
from tenantry.postgres.database import connect_once
from tenantry.queue.events import PlannerLost, StoreFailed
from tenantry.queue.model import ClaimedJob, EndKind, JobId, JobState, ReplayedJob, ReplayTerms
from tenantry.testing.conformance.world import messages

pytestmark = pytest.mark.needs_postgres

TARGETS = [Target(f"https://hooks.example.com/{number}") for number in range(4)]
OPEN_STATES = (JobState.WAITING, JobState.DELAYED, JobState.RUNNING)


async def test_feeds_pauses_withdrawals_and_cancels_race_planner_and_worker_and_every_end_is_told_once(
    queue: Queue,
) -> None:
    """A deadlock would be answered with StoreUnavailable to one of the two; none may be."""
    random = Random(7)
    tries = Counter[str]()

    async def work(job: ClaimedJob) -> Outcome:
        tries[job.id] += 1
        if job.replay and job.seq % 5 == 0:
            return Outcome("http_422", 422, retry_after=0.0, excerpt=f"order {job.seq} is broken")
        if job.seq % 3 == 0 and tries[job.id] == 1:
            return Outcome("http_503", 503, retry_after=0.0)
        return Outcome("ok", 200)

    fed: dict[str, list[JobId]] = {}
    returned: list[JobId] = []

    async def replay(tenant: TenantId, name: str) -> None:
        terms = ReplayTerms(name, park_after=1)
        for turn in range(8):
            window = [message for t in random.sample(TARGETS, 2) for message in messages(15, target=t)]
            await queue.replays.feed_replay(tenant, terms, window)
            fed.setdefault(name, []).extend(job.id for job in window)
            if turn % 3 == 1:
                await queue.replays.pause_replay(tenant, name, paused=True)
                for job in random.sample(window, 4):
                    await queue.intake.cancel(tenant, job.id)
                await queue.replays.pause_replay(tenant, name, paused=False)
            if turn % 4 == 3:
                returned.extend(await queue.replays.withdraw_replay(tenant, name, limit=12))

    owners = {f"{tenant}-{number}": tenant for tenant in (ACME, GLOBEX) for number in range(3)}
    async with running(queue, Doing(work)) as node:
        await asyncio.gather(*(replay(tenant, name) for name, tenant in owners.items()))
        await queue.submit(ACME, jobs(50))
        await until(lambda: _all_over(queue))
        assert node.told.of(StoreFailed, PlannerLost) == []
    told = {name: await queue.replays.take_ends(name, limit=100_000) for name in owners}
    ends = [end for name in owners for end in told[name] if end.kind is not EndKind.FAILED]
    parked_and_cancelled = {end.job for end in ends if end.kind is EndKind.CANCELLED}
    ends = [end for end in ends if end.kind is not EndKind.PARKED or end.job not in parked_and_cancelled]
    assert Counter(end.job for end in ends) + Counter(returned) == Counter(
        id_ for ids in fed.values() for id_ in ids
    )
    prints = {end.fingerprint for end in ends if end.kind is EndKind.PARKED}
    assert len(prints) == 1, "they are broken alike"
    counts = await queue.operator.counts()
    assert counts[JobState.PARKED] == sum(end.kind is EndKind.PARKED for end in ends)
    assert counts[JobState.DEAD] == len(returned)


async def test_a_flow_that_opens_while_its_replay_is_being_paused_is_paused(queue: Queue) -> None:
    """Whichever of the two commits first."""
    await queue.replays.feed_replay(ACME, ReplayTerms("r"), messages(1))
    admin = await connect_once(queue.urls.admin)
    try:
        async with admin.transaction():
            await admin.execute("SELECT FROM tenantry.replay_terms WHERE replay_id = 'r' FOR UPDATE")
            pausing = asyncio.create_task(queue.replays.pause_replay(ACME, "r", paused=True))
            await until(lambda: _waiting(queue, 1))
            opening = [ReplayedJob(messages(1)[0].id, target, b"{}") for target in TARGETS]
            feeding = asyncio.create_task(queue.replays.feed_replay(ACME, ReplayTerms("r"), opening))
            await until(lambda: _waiting(queue, 2))
        await asyncio.gather(pausing, feeding)
        assert (
            await admin.fetchval("SELECT count(*) FROM tenantry.flows WHERE replay = 'r' AND NOT paused") == 0
        )
    finally:
        await admin.close()


async def test_a_round_that_was_planned_before_a_withdrawal_does_not_move_a_head_back(queue: Queue) -> None:
    """The planner believes in places that are empty by the time its round comes through."""
    async with opened(queue.urls) as other:
        await queue.replays.feed_replay(ACME, ReplayTerms("r"), messages(10))
        assert len(await other.replays.withdraw_replay(ACME, "r", limit=100)) == 10
    admin = await connect_once(queue.urls.admin)
    try:
        flow = await admin.fetchval("SELECT flow_id FROM tenantry.flows WHERE replay = 'r'")
        term = await queue.planner.take_place("late", 30.0)
        assert term is not None
        await queue.planner.round(term, (), {flow: 3})
        assert await admin.fetchval("SELECT head FROM tenantry.flows WHERE flow_id = $1", flow) == 11
        assert (await queue.planner.rebuild(term)).flows == ()
    finally:
        await admin.close()


async def test_the_id_of_a_parked_job_is_not_taken_by_a_job_of_an_applications_own_transaction(
    queue: Queue,
) -> None:
    """Applications may choose their ids there: one that is taken ends under another, with the reason."""
    (message,) = messages(1)
    admin = await connect_once(queue.urls.admin)
    try:
        await admin.execute(
            "INSERT INTO tenantry.parked (job_id, tenant_id, target, job_class, payload, content_type, "
            "submitted_at, attempts, reason, replay_id, park_reason) "
            "VALUES ($1, 'acme', $2, 2, '', 'x', now(), 1, 'why', 'r', 'poison')",
            message.id,
            HOOK,
        )
        await admin.execute(
            "SELECT tenantry.submit_later('acme', $1, '{}', 0::smallint, $2)", HOOK, message.id
        )
    finally:
        await admin.close()
    fed = await queue.feeder.feed(ACME, bound=None, limit=10)
    ((id_, reason),) = fed.died
    assert id_ != message.id
    assert "cannot be queued" in reason


async def _all_over(queue: Queue) -> bool:
    counts = await queue.operator.counts()
    return not sum(counts[state] for state in OPEN_STATES)


async def _waiting(queue: Queue, count: int) -> bool:
    waiting: int = await queue.database.engine.fetchval(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return waiting >= count
