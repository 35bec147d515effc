"""Stored work on a real database: what cannot be queued holds up nobody, and what is large goes in parts."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from math import inf, nan
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from queue_world import ACME, GLOBEX, HOOK, Queue, jobs

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.verdict import Refusal
from tenantry.lanes.model import Target
from tenantry.postgres import intake_store
from tenantry.queue.model import BulkSet, JobId, JobState, NewJob

pytestmark = pytest.mark.needs_postgres

MIB = 1_048_576
LONG = "".join(sha256(bytes([n])).hexdigest() for n in range(190))  # 12 kB that compression leaves long
UNFIT = {
    "target": LONG,
    "payload": bytes(MIB + 1),
    "class": 2,
    "content_type": "text/plain\r\nx: y",
    "delay": nan,
    "cost": inf,
    "cost that is not a number": nan,
    "negative cost": -1.0,
}


@pytest.fixture
async def application(queue: Queue) -> AsyncIterator[Any]:
    """A connection of the application that submits inside its own transactions."""
    connection = await asyncpg.connect(queue.urls.admin)
    yield connection
    await connection.close()


@pytest.mark.parametrize("name", UNFIT)
async def test_sql_takes_nothing_that_a_submit_would_refuse(
    queue: Queue, application: Any, name: str
) -> None:
    columns = ["target", "payload", "class", "content_type", "delay", "cost"]
    good = {"target": HOOK, "payload": b"{}", "class": 0, "content_type": "a/b", "delay": 0.0, "cost": None}
    field = name if name in columns else "cost"
    values = [({**good, field: UNFIT[name]})[column] for column in columns]
    with pytest.raises(asyncpg.InvalidParameterValueError, match="submit_later") as raised:
        await application.execute(
            "SELECT tenantry.submit_later('acme', $1, $2, p_class => $3, p_content_type => $4, "
            "p_delay => $5, p_cost => $6)",
            *values,
        )
    assert "86400" in (raised.value.hint or "")
    assert await queue.feeder.stored_tenants() == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"cost": inf}, "jobs[0].cost"),
        ({"target": Target("http://2130706433/")}, "jobs[0].target"),
        ({"target": Target("t" * 12_000)}, "jobs[0].target"),
        ({"idempotency_key": "k"}, "jobs[0].idempotency_key"),
    ],
)
async def test_python_names_what_is_wrong_before_anything_is_sent(
    queue: Queue, application: Any, change: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidValue) as raised:
        await queue.intake.submit_later(application, ACME, replace(jobs(1)[0], **change))
    assert raised.value.path == path


async def test_a_job_under_an_id_that_was_used_before_dies_under_another_and_the_others_go_on(
    queue: Queue, application: Any
) -> None:
    (waiting,) = await queue.submit(ACME, jobs(1))
    (ended,) = await queue.submit(ACME, jobs(1))
    await queue.intake.cancel(ACME, ended)
    later = "SELECT tenantry.submit_later('acme', $1, '{}', p_id => $2)"
    fine = [uuid4(), uuid4()]
    for id_ in (fine[0], UUID(waiting), UUID(ended), fine[1]):
        await application.execute(later, HOOK, id_)
    fed = await queue.feeder.feed(ACME, bound=None, limit=100)
    assert fed.moved == 4
    assert len(fed.died) == 2
    for (id_, reason), first in zip(fed.died, (waiting, ended), strict=True):
        assert id_ != first
        view = await queue.intake.job(ACME, id_)
        assert view is not None
        assert view.state is JobState.DEAD
        assert reason in view.reason
        assert first in view.reason
    states = await queue.intake.states(ACME, [JobId(str(id_)) for id_ in fine])
    assert set(states.values()) == {JobState.WAITING}
    assert await queue.intake.states(ACME, [waiting, ended]) == {
        waiting: JobState.WAITING,
        ended: JobState.CANCELLED,
    }


async def test_a_row_that_no_index_takes_is_a_dead_letter_and_the_others_go_on(queue: Queue) -> None:
    stored = await queue.intake.submit_bulk(ACME, jobs(3), most=3)
    assert isinstance(stored, BulkSet)
    await queue.database.engine.execute(
        "UPDATE tenantry.stored SET target = $1 "
        "WHERE stored_id = (SELECT min(stored_id) + 1 FROM tenantry.stored)",
        LONG,
    )
    fed = await queue.feeder.feed(ACME, bound=None, limit=100)
    ((_, reason),) = fed.died
    assert (fed.moved, "cannot be queued" in reason) == (3, True)
    found = await queue.intake.bulk(ACME, stored.id)
    assert found is not None
    assert (found.stored, found.queued, found.dead) == (0, 2, 1)


async def test_large_payloads_are_fed_in_parts(queue: Queue) -> None:
    large = [NewJob(HOOK, bytes(MIB))] * 20
    assert isinstance(await queue.intake.submit_bulk(ACME, large, most=20), BulkSet)
    moved = []
    while await queue.feeder.stored_tenants():
        moved.append((await queue.feeder.feed(ACME, bound=None, limit=500)).moved)
    assert moved == [8, 8, 4]


async def test_concurrent_sets_never_store_more_than_a_tenant_may_have(queue: Queue) -> None:
    answers = await asyncio.gather(*(queue.intake.submit_bulk(ACME, jobs(3), most=10) for _ in range(8)))
    assert sum(isinstance(answer, BulkSet) for answer in answers) == 3
    assert not isinstance(await queue.intake.submit_bulk(GLOBEX, jobs(3), most=10), Refusal)


async def test_a_batch_of_known_and_new_targets_is_accepted_when_the_memory_of_flows_is_full(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_store, "_FLOWS_REMEMBERED", 0)
    await queue.submit(ACME, jobs(1))
    new = jobs(1, target=Target("https://hooks.example.com/new"))
    assert len(await queue.submit(ACME, [*jobs(1), *new])) == 2


async def test_ends_of_a_set_are_counted_once_while_tidyings_run_at_the_same_time(queue: Queue) -> None:
    stored = await queue.intake.submit_bulk(ACME, jobs(4), most=4)
    assert isinstance(stored, BulkSet)
    await queue.feeder.feed(ACME, bound=None, limit=100)
    for view in await queue.intake.jobs(ACME, state=None, limit=3):
        assert await queue.intake.cancel(ACME, view.id) is JobState.CANCELLED
    await queue.database.engine.execute("SELECT tenantry.tidy_outcomes(7)")
    day = "(now() AT TIME ZONE 'UTC')::date - 8"
    admin = await asyncpg.connect(queue.urls.admin)
    await admin.execute(f"""
        DO $$
        DECLARE day date := {day};
        BEGIN
            EXECUTE format('CREATE TABLE tenantry.%I PARTITION OF tenantry.outcomes '
                           'FOR VALUES FROM (%L) TO (%L)',
                           'outcomes_' || to_char(day, 'YYYYMMDD'), day::timestamp AT TIME ZONE 'UTC',
                           (day + 1)::timestamp AT TIME ZONE 'UTC');
        END
        $$;
        UPDATE tenantry.outcomes SET ended_at = ({day})::timestamp AT TIME ZONE 'UTC';
    """)
    await admin.close()
    await asyncio.gather(*(queue.feeder.tidy(keep_days=7) for _ in range(3)))
    found = await queue.intake.bulk(ACME, stored.id)
    assert found is not None
    assert (found.queued, found.cancelled) == (1, 3)
