"""Many submit at once: bounds are exact, keys name one job, nothing deadlocks, and a caller's own transaction
decides over what it submitted."""

import asyncio
from collections import Counter
from random import Random  # noqa: TID251 - a story's dice, seeded

import asyncpg
import pytest
from queue_world import (
    ACME,
    GLOBEX,
    HOOK,
    Doing,
    Queue,
    at_once,
    jobs,
    opened,
    register_tenants,
    running,
    until,
)

from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes.model import Target
from tenantry.lanes.outcome import Outcome
from tenantry.queue.model import ENDS, Accepted, ClaimedJob, JobClass, JobState, NewJob

pytestmark = pytest.mark.needs_postgres

MANY = 1_000_000


async def test_a_bound_is_exact_under_twenty_submitters_of_two_processes(queue: Queue) -> None:
    async with opened(queue.urls, connections=8) as other:
        calls = [(queue, other)[n % 2].intake.submit(ACME, jobs(1 + n % 3), bound=57) for n in range(60)]
        answers = await asyncio.gather(*calls)
    accepted = sum(len(answer.ids) for answer in answers if isinstance(answer, Accepted))
    refused = [1 + n % 3 for n, answer in enumerate(answers) if isinstance(answer, Refusal)]
    assert accepted <= 57 < accepted + min(refused), "what was refused would have gone over the bound"
    assert (await queue.operator.counts())[JobState.WAITING] == accepted


async def test_a_bound_is_exact_while_jobs_end(queue: Queue) -> None:
    """Room appears as jobs end, and at no moment are there more than the bound."""
    most = 0

    async def submit(n: int) -> int:
        nonlocal most
        answer = await queue.intake.submit(ACME, jobs(1), bound=10)
        counts = await queue.operator.counts()
        most = max(most, sum(counts[state] for state in JobState if state not in ENDS))
        return isinstance(answer, Accepted)

    async with running(queue, Doing(at_once)):
        accepted = sum(await asyncio.gather(*(submit(n) for n in range(120))))
        await until(lambda: _ended(queue, accepted))
    assert accepted >= 10
    assert most <= 10


async def test_of_many_submits_under_one_key_one_is_stored_and_all_answer_with_it(queue: Queue) -> None:
    async with opened(queue.urls, connections=8) as other:
        job = NewJob(HOOK, b"{}", idempotency_key="k")
        answers = await asyncio.gather(
            *((queue, other)[n % 2].intake.submit(ACME, [job], bound=None) for n in range(30))
        )
    assert {answer.ids for answer in answers if isinstance(answer, Accepted)} == {answers[0].ids}  # type: ignore[union-attr]
    assert sum(not answer.existing for answer in answers if isinstance(answer, Accepted)) == 1
    assert (await queue.operator.counts())[JobState.WAITING] == 1


async def test_of_many_bodies_under_one_key_one_is_accepted_and_the_others_are_refused(queue: Queue) -> None:
    bodies = [NewJob(HOOK, str(n).encode(), idempotency_key="k") for n in range(20)]
    answers = await asyncio.gather(*(queue.intake.submit(ACME, [job], bound=None) for job in bodies))
    refused = [answer.rule for answer in answers if isinstance(answer, Refusal)]
    assert refused == [Rule.KEY_REUSED] * 19
    assert (await queue.operator.counts())[JobState.WAITING] == 1


async def test_batches_of_many_tenants_and_targets_in_any_order_never_deadlock(queue: Queue) -> None:
    """Submits, cancels, retries and bulk sets at once, with a planner and a worker at work. A deadlock is
    answered with StoreUnavailable to one of the two; none may be."""
    random = Random(7)
    tenants = [TenantId(f"t{n}") for n in range(6)]
    await register_tenants(queue.urls, ACME, GLOBEX, *tenants)
    await queue.directory.refresh()
    tries = Counter[str]()

    async def fails_once(job: ClaimedJob) -> Outcome:
        tries[job.id] += 1
        return (
            Outcome("http_503", status=503)
            if tries[job.id] == 1 and job.seq % 3
            else Outcome("ok", status=200)
        )

    async def user(number: int) -> int:
        accepted = 0
        for turn in range(12):
            tenant = random.choice(tenants)
            batch = [
                NewJob(
                    Target(f"https://hooks.example.com/{random.randrange(8)}"),
                    b"{}",
                    job_class=random.choice((JobClass.LIVE, JobClass.BACKGROUND)),
                    delay_for=random.choice((0.0, 0.0, 0.05)),
                    ordering_key=random.choice((None, None, "x", "y")),
                    idempotency_key=random.choice((None, f"{number} {turn} {n}")),
                )
                for n in range(random.randint(1, 12))
            ]
            if turn % 4 == 3:
                keyless = [NewJob(job.target, b"{}", ordering_key=job.ordering_key) for job in batch]
                await queue.intake.submit_bulk(tenant, keyless, most=10_000)
                accepted += len(keyless)
                continue
            ids = await queue.submit(tenant, batch)
            accepted += len(ids)
            for id_ in random.sample(ids, len(ids) // 3):
                await queue.intake.cancel(tenant, id_)
        return accepted

    async with running(queue, Doing(fails_once)) as node:
        accepted = sum(await asyncio.gather(*(user(number) for number in range(10))))
        await until(lambda: _cancelled_retries(queue, tenants))
        await until(lambda: _ended(queue, accepted))
    assert [
        event for event in node.told.events if type(event).__name__ in {"StoreFailed", "PlannerLost"}
    ] == []


async def test_cancels_race_the_planner_for_retrying_jobs_without_a_deadlock(queue: Queue) -> None:
    """A cancel locks the job's flow and what is deferred of it; so does the round that claims it again."""

    async def fails(job: ClaimedJob) -> Outcome:
        return Outcome("http_503", status=503, retry_after=0.0)

    async with running(queue, Doing(fails)) as node:
        for _ in range(6):
            ids = await queue.submit(ACME, [NewJob(HOOK, b"{}", delay_for=0.02) for _ in range(40)])
            found = await asyncio.gather(*(queue.intake.cancel(ACME, id_) for id_ in ids))
            assert JobState.CANCELLED in found
    assert [
        event for event in node.told.events if type(event).__name__ in {"StoreFailed", "PlannerLost"}
    ] == []


# -- inside the caller's own transaction ---------------------------------------------------------------


async def test_what_was_rolled_back_never_was_and_what_was_committed_runs(queue: Queue) -> None:
    executor = Doing(at_once)
    connection = await asyncpg.connect(queue.urls.admin)
    async with running(queue, executor):
        transaction = connection.transaction()
        await transaction.start()
        gone = await queue.intake.submit_later(connection, ACME, NewJob(HOOK, b"gone"))
        await transaction.rollback()
        async with connection.transaction():
            kept = await queue.intake.submit_later(connection, ACME, NewJob(HOOK, b"kept"))
            assert await queue.intake.job(ACME, kept) is None, "nobody sees it before the commit"
        await until(lambda: _ended(queue, 1))
    await connection.close()
    assert [job.payload for job in executor.begun] == [b"kept"]
    view = await queue.intake.job(ACME, kept)
    assert view is not None
    assert view.state is JobState.DELIVERED
    assert await queue.intake.job(ACME, gone) is None


async def test_a_long_open_transaction_delays_nobody(queue: Queue) -> None:
    """It holds a job of the same tenant and target; others are submitted, fed and run meanwhile."""
    executor = Doing(at_once)
    connection = await asyncpg.connect(queue.urls.admin)
    async with running(queue, executor):
        async with connection.transaction():
            await queue.intake.submit_later(connection, ACME, NewJob(HOOK, b"late"))
            await queue.submit(ACME, [NewJob(HOOK, b"now")])
            await queue.intake.submit_bulk(ACME, [NewJob(HOOK, b"bulk")], most=1)
            await until(lambda: _ended(queue, 2))
            assert {job.payload for job in executor.begun} == {b"now", b"bulk"}
        await until(lambda: _ended(queue, 3))
    await connection.close()


async def test_a_committed_job_over_the_bound_is_a_dead_letter_that_says_so(queue: Queue) -> None:
    await queue.submit(ACME, jobs(3))
    connection = await asyncpg.connect(queue.urls.admin)
    async with connection.transaction():
        ids = [await queue.intake.submit_later(connection, ACME, NewJob(HOOK, b"{}")) for _ in range(2)]
    await connection.close()
    fed = await queue.feeder.feed(ACME, bound=4, limit=100)
    assert (fed.moved, fed.died) == (2, ((ids[1], "over bound"),))
    states = {}
    for id_ in ids:
        view = await queue.intake.job(ACME, id_)
        assert view is not None
        states[view.state] = view.reason
    assert states == {JobState.WAITING: "", JobState.DEAD: "over bound"}


async def _ended(queue: Queue, count: int) -> bool:
    counts = await queue.operator.counts()
    return sum(counts[state] for state in ENDS) >= count


async def _cancelled_retries(queue: Queue, tenants: list[TenantId]) -> bool:
    """Cancel what is being tried again, so that nobody waits out a backoff. True when nothing is left to."""
    left = 0
    for tenant in tenants:
        for view in await queue.intake.jobs(tenant, state=JobState.DELAYED, limit=1_000):
            await queue.intake.cancel(tenant, view.id)
            left += 1
    counts = await queue.operator.counts()
    return left + counts[JobState.WAITING] + counts[JobState.DELAYED] + counts[JobState.RUNNING] == 0
