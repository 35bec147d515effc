"""Changes commit out of the order of their ids, so a planner may hear of them out of order. Books hold."""

from collections.abc import AsyncIterator

import asyncpg
import pytest
from queue_world import ACME, GLOBEX, HOOK, Queue, jobs

from tenantry.lanes.model import HTTP
from tenantry.postgres.session import bound
from tenantry.queue.model import NewJob, NodeId
from tenantry.queue.plan import PlannerMemory

pytestmark = pytest.mark.needs_postgres

_SUBMIT = """
    SELECT tenantry.submit('acme', NULL, ARRAY[$1, $1]::bigint[], ARRAY[gen_random_uuid(), gen_random_uuid()],
                           ARRAY['x', 'x']::bytea[], ARRAY['a/b', 'a/b'], ARRAY[$2, $2]::float8[],
                           ARRAY[NULL, NULL]::real[], NULL, NULL)
"""


@pytest.fixture
async def term(queue: Queue) -> AsyncIterator[int]:
    term = await queue.planner.take_place("hand", 60.0)
    assert term is not None
    yield term
    await queue.planner.leave_place(term)


async def test_a_delayed_job_whose_submit_is_heard_before_an_earlier_one_leaves_the_line_all_the_same(
    queue: Queue, term: int
) -> None:
    """A submit takes its id first and commits last; the next of the same flow is heard of before it."""
    node = await queue.worker.register(NodeId("node"), "shared", 100, {HTTP})
    (first,) = await queue.submit(ACME, jobs(1))
    memory = PlannerMemory(await queue.planner.rebuild(term), queue.directory, draw=lambda: 0.5)
    flow = await _flow(queue)
    async with bound(queue.database.tenant, ACME) as slow:
        await slow.fetch(_SUBMIT, flow, 0.0)
        await queue.submit(
            GLOBEX, jobs(1)
        )  # a later id, heard of now: the planner looks above it from now on
        await _round(queue, memory, term)
    await queue.submit(ACME, [NewJob(HOOK, b"{}", delay_for=600.0), *jobs(1)])
    await _round(queue, memory, term)
    for _ in range(25):  # until it looks below again
        await _round(queue, memory, term)
    held = await queue.worker.take(node, 30.0)
    assert len(held) == 5
    assert first in {job.id for job in held}
    assert [job.seq for job in held if job.tenant == ACME] == [1, 2, 3, 5], "the fourth is due in ten minutes"
    assert await queue.faults() == []


async def test_jobs_submitted_behind_delayed_ones_do_not_run_in_their_place(queue: Queue, term: int) -> None:
    """The delayed ones have the earlier places and are heard of later: nobody is booked on their places."""
    node = await queue.worker.register(NodeId("node"), "shared", 100, {HTTP})
    await queue.submit(ACME, jobs(1))
    memory = PlannerMemory(await queue.planner.rebuild(term), queue.directory, draw=lambda: 0.5)
    flow = await _flow(queue)
    async with bound(queue.database.tenant, ACME) as slow:
        await slow.fetch(_SUBMIT, flow, 600.0)
        await queue.submit(GLOBEX, jobs(1))
        await _round(queue, memory, term)
    await queue.submit(ACME, jobs(2))
    await _round(queue, memory, term)
    held = await queue.worker.take(node, 30.0)
    assert [job.seq for job in held if job.tenant == ACME] == [1, 4, 5]
    assert await queue.faults() == []


async def _round(queue: Queue, memory: PlannerMemory, term: int) -> None:
    answer = await queue.planner.round(term, (), {})
    memory.apply(answer.changes, answer.now)
    planned = memory.plan(answer.now)
    if planned.jobs:
        answer = await queue.planner.round(term, planned.claims, planned.heads)
        memory.apply(answer.changes, answer.now)


async def _flow(queue: Queue) -> int:
    connection = await asyncpg.connect(queue.urls.admin)
    try:
        return int(await connection.fetchval("SELECT flow_id FROM tenantry.flows WHERE tenant_id = 'acme'"))
    finally:
        await connection.close()
