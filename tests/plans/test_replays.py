"""What a feed, a fold and a count read, beside a long backlog: the rows that they name, by key.

Before the backlog came the tables were empty and analysed so, as in a fresh installation: whatever the
statistics say, no plan may walk the jobs, the keys or the messages under way. Rows are counted as PostgreSQL
counts them, for all statements of a transaction, those inside functions too.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import asyncpg
import pytest

from tenantry.lanes.outcome import MESSAGE_FAULTS
from tenantry.postgres.database import connect_once
from tenantry.postgres.replay_rows import Line, columns
from tenantry.postgres.statements import statement
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.model import JobId
from tenantry.replay.model import Staged
from tenantry.testing.conformance.replay_world import letter, several

pytestmark = pytest.mark.needs_postgres

BACKLOG, WINDOW = 10_000, 100
MOST = 12 * WINDOW
"""Rows of one table that a call may read: a dozen looks a message."""

_CROWD = f"""
    INSERT INTO tenantry.replays (replay_id, tenant_id, spec, again, hold_unknown, park_after, plan, source_bound,
                                  counted_exactly, state, placed, holder, token, lease_until)
    SELECT r, 'acme', '{{}}', false, false, 3, '', '', true, 'running', true, 'x', 1, 'infinity'
      FROM unnest(ARRAY['mine', 'other']) r;
    INSERT INTO tenantry.replay_terms (replay_id, tenant_id, park_after, hold_unknown)
    SELECT replay_id, 'acme', 3, false FROM tenantry.replays;
    SELECT tenantry.roll_keys((now() AT TIME ZONE 'UTC')::date - 4, (now() AT TIME ZONE 'UTC')::date + 1);
    INSERT INTO tenantry.lanes (tenant_id, target) VALUES ('acme', 'old');
    INSERT INTO tenantry.flows (lane_id, tenant_id, job_class, replay)
    SELECT lane_id, tenant_id, 2, r FROM tenantry.lanes, unnest(ARRAY['mine', 'other']) r;
    INSERT INTO tenantry.tails (flow_id, tenant_id, tail) SELECT flow_id, tenant_id, {BACKLOG} FROM tenantry.flows;
    INSERT INTO tenantry.jobs (flow_id, seq, job_id, tenant_id, payload, content_type)
    SELECT flow_id, n, gen_random_uuid(), tenant_id, '', 'a/b' FROM tenantry.flows, generate_series(1, {BACKLOG}) n;
    INSERT INTO tenantry.replay_keys (tenant_id, key, seen_at, state, failings, replay_id)
    SELECT 'acme', decode(md5(n::text), 'hex'), now() - n % 4 * interval '1 day', 1, 0, 'mine'
      FROM generate_series(1, {BACKLOG}) n;
    INSERT INTO tenantry.replay_fed (replay_id, job_id, tenant_id, key, seen_at, origin)
    SELECT 'mine', j.job_id, 'acme', decode(md5(j.seq::text), 'hex'), now() - j.seq % 4 * interval '1 day', 'o'
      FROM tenantry.jobs j JOIN tenantry.flows f USING (flow_id) WHERE f.replay = 'mine';
    UPDATE tenantry.replays SET unended = {BACKLOG};
    INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, submitted_at,
                                       attempts, reason)
    SELECT gen_random_uuid(), 'acme', 'x', 0, '', 'a/b', now(), 1, 'r' FROM generate_series(1, {BACKLOG});
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, ended_at)
    SELECT job_id, 'acme', 2, 1, now() FROM tenantry.dead_letters;
    INSERT INTO tenantry.replay_ends (replay_id, tenant_id, job_ids, kinds, attempts, error_classes, statuses,
                                      fingerprints, busy)
    SELECT r, 'acme', array_agg(job_id), array_agg(k), array_agg(1::smallint), array_agg('http_422'::text),
           array_agg(422::smallint), array_agg('p'::text), array_agg(0.1::real)
      FROM (SELECT job_id, r, (1 + seq % 4)::smallint AS k, seq % 10 AS batch
              FROM tenantry.jobs JOIN tenantry.flows f USING (flow_id), unnest(ARRAY['mine', 'other']) r
             WHERE f.replay = 'mine' AND seq <= CASE r WHEN 'mine' THEN {WINDOW} ELSE 2000 END) told
     GROUP BY r, batch;
    INSERT INTO tenantry.claims (node_id, incarnation, expires_at, started, flow_ids, seqs, attempts)
    SELECT 'n1', 1, 'infinity', true, array_agg(flow_id), array_agg(seq), array_agg(0::smallint)
      FROM tenantry.jobs WHERE seq BETWEEN 200 AND 249;
"""  # noqa: E501 - SQL


@pytest.fixture
async def engine(shared_database: DatabaseUrls) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """One crowd for all tests: whatever they read is undone."""
    admin = await connect_once(shared_database.admin)
    if not await admin.fetchval("SELECT count(*) FROM tenantry.replays"):
        await admin.execute("ANALYZE")
        await admin.execute(_CROWD)
    await admin.close()
    connection = await asyncpg.connect(shared_database.engine)
    yield connection
    await connection.close()


async def test_a_feed_reads_what_its_window_names(engine: Any) -> None:
    letters = await engine.fetch("SELECT job_id FROM tenantry.dead_letters LIMIT 30")
    known = await engine.fetch("SELECT key FROM tenantry.replay_keys LIMIT 30")
    lines: list[Staged] = [
        *several(40),
        *(letter(JobId(str(row["job_id"]))) for row in letters),
        *(_with_key(each, row["key"]) for each, row in zip(several(30, "k"), known, strict=True)),
    ]
    window = ("mine", 1, 86_400.0 * 14, None, 10**9, "p", 0, False)
    for _ in range(7):  # from the sixth time on a cached plan may take the place of one made for the values
        read = await _read(
            engine, statement("replay/feed"), *window, *columns([Line.of(each) for each in lines])
        )
    assert read["dead_letters"] >= 30
    _within(read)


async def test_a_fold_reads_what_it_was_told_of(engine: Any) -> None:
    read = await _read(engine, "SELECT tenantry.fold_replay('mine', 1, 200, $1)", MESSAGE_FAULTS)
    assert read["replay_fed"] >= WINDOW
    _within(read)


async def test_a_count_reads_what_was_told_and_what_is_held(engine: Any) -> None:
    read = await _read(engine, statement("replay/counts"), ["mine"], MESSAGE_FAULTS)
    assert read["replay_fed"] >= WINDOW
    _within(read)
    (row,) = await engine.fetch(statement("replay/counts"), ["mine"], MESSAGE_FAULTS)
    assert row["in_flight"] == 50


async def test_what_is_known_of_keys_is_looked_up_key_by_key(engine: Any) -> None:
    keys = [row["key"] for row in await engine.fetch("SELECT key FROM tenantry.replay_keys LIMIT 100")]
    query = "SELECT * FROM tenantry.known_keys('acme', $1, 1209600)"
    read = await _read(engine, query, keys)
    assert read["replay_keys"] >= 100
    _within(read)


def _with_key(each: Staged, key: bytes) -> Staged:
    return type(each)(**{name: getattr(each, name) for name in each.__slots__} | {"key": key})


def _within(read: Mapping[str, int]) -> None:
    assert {table: rows for table, rows in read.items() if rows > MOST} == {}, read


async def _read(connection: Any, query: str, *arguments: object) -> dict[str, int]:
    """Rows read of each table in one run of ``query``, which is undone; partitions count to their table."""
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetch(query, *arguments)
    rows = await connection.fetch(
        "SELECT regexp_replace(relname, '(replay_keys|outcomes)_.*', '\\1') AS name, "
        "sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint AS n "
        "FROM pg_stat_xact_user_tables WHERE schemaname = 'tenantry' GROUP BY 1"
    )
    await transaction.rollback()
    return {row["name"]: row["n"] for row in rows}
