"""Case Q17: what a round, a take and a settle read does not grow with what is dead, blocked or past.

Measured in pages touched by the statements themselves, as PostgreSQL counts them; the tables are not vacuumed
or analysed in between. 100,000 rows; `make soak` does a million.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import asyncpg
import pytest

from tenantry.postgres.database import connect_once
from tenantry.postgres.statements import statement
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres

_LANES = """
    INSERT INTO tenantry.lanes (tenant_id, target) SELECT t, 'x' FROM unnest(ARRAY['busy', 'limited']) t;
    INSERT INTO tenantry.flows (lane_id, tenant_id, job_class)
    SELECT lane_id, tenant_id, 0 FROM tenantry.lanes;
    INSERT INTO tenantry.tails (flow_id, tenant_id) SELECT flow_id, tenant_id FROM tenantry.flows;
    INSERT INTO tenantry.load (tenant_id) VALUES ('busy'), ('limited');
    INSERT INTO tenantry.nodes (node_id, pool, slots, kinds, seen_at)
    VALUES ('n1', 'shared', 100, '{http}', now());
    UPDATE tenantry.place SET term = 1, expires_at = 'infinity';
    INSERT INTO tenantry.served_term VALUES (1);
"""
_JOBS = """
    INSERT INTO tenantry.jobs (flow_id, seq, job_id, tenant_id, payload, content_type)
    SELECT f.flow_id, n, gen_random_uuid(), f.tenant_id, 'x', 'a/b'
      FROM tenantry.flows f, generate_series($2::integer, $3::integer) n
     WHERE f.tenant_id = $1
"""
_PAST = (
    """
    WITH dead AS (
        INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type,
                                           submitted_at, attempts, reason)
        SELECT gen_random_uuid(), 'busy', 'x', 0, 'x', 'a/b', now(), 3, 'http_403'
          FROM generate_series($1::integer, $2::integer)
        RETURNING job_id, tenant_id
    )
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, ended_at)
    SELECT job_id, tenant_id, 2, 3, now() FROM dead
    """,
    """
    INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts)
    SELECT flow_id, seq, tenant_id, now() + interval '1 day', 1 FROM tenantry.jobs
     WHERE tenant_id = 'limited' AND seq BETWEEN $1 AND $2
    """,
    """
    INSERT INTO tenantry.attempts (job_id, number, tenant_id, busy_for, error_class)
    SELECT job_id, 1, tenant_id, 1, 'http_503' FROM tenantry.jobs
     WHERE tenant_id = 'limited' AND seq BETWEEN $1 AND $2
    """,
)


class Cost:
    """A database with ten jobs to run, and whatever else a story puts there."""

    def __init__(self, admin: Any, engine: Any) -> None:
        self._admin, self._engine = admin, engine
        self._seq = 1
        self._prepared: set[str] = set()

    async def prepare(self) -> None:
        await self._admin.execute(_LANES)
        await self._admin.execute("DELETE FROM tenantry.changes")

    async def fill(self, first: int, last: int) -> None:
        """Limited jobs of these places, each with a failed attempt behind it, and as many dead letters."""
        await self._admin.execute(_JOBS, "limited", first, last)
        for query in _PAST:
            await self._admin.execute(query, first, last)

    async def of_one_claim(self) -> Mapping[str, int]:
        """Claim, take and settle ten jobs: the pages that each statement touched."""
        first, last = self._seq, self._seq + 9
        self._seq += 10
        flow = await self._admin.fetchval("SELECT flow_id FROM tenantry.flows WHERE tenant_id = 'busy'")
        await self._admin.execute(_JOBS, "busy", first, last)
        flows, seqs, zeros = _array([flow] * 10), _array(range(first, last + 1)), _array([0] * 10)
        none = "ARRAY[]::bigint[]"
        moved = f"ARRAY[{flow}]::bigint[], ARRAY[{last + 1}]::bigint[], ''"
        claimed = f"{flows}::bigint[], {seqs}::bigint[], {zeros}::smallint[]"
        node = "1, 0, 5.0, ARRAY['n1'], ARRAY[1], ARRAY[1], ARRAY[10]"
        cost = {
            "round": await self._pages("planner/round", f"{node}, {claimed}, {none}, {none}, {moved}"),
            "take": await self._pages("worker/take", "'n1', 1, 0, 15.0, false, ARRAY['http_400']"),
        }
        claim = await self._admin.fetchrow("SELECT claim_id, token FROM tenantry.claims")
        claims, tokens = _array([claim["claim_id"]] * 10), _array([claim["token"]] * 10)
        held = f"'n1', 1, {claims}::bigint[], {tokens}::bigint[], {flows}::bigint[], {seqs}::bigint[]"
        rest = f"{_array([200] * 10)}::smallint[], {zeros}::smallint[], NULL, NULL, NULL"
        cost["settle"] = await self._pages("worker/settle_delivered", f"{held}, {rest}")
        return cost

    async def _pages(self, name: str, arguments: str) -> int:
        probe = name.replace("/", "_")
        if probe not in self._prepared:
            await self._engine.execute(f"PREPARE {probe} AS {statement(name)}")
            self._prepared.add(probe)
        told = await self._engine.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE {probe} ({arguments})"
        )
        return _own_pages(json.loads(told)[0]["Plan"])


def _own_pages(node: Mapping[str, Any]) -> int:
    """The pages of every node without its children's: what a statement writes in a CTE that nobody reads runs
    after the rest, and is in no other node's count."""
    children = node.get("Plans", ())
    own = _pages_of(node) - sum(map(_pages_of, children))
    return max(0, own) + sum(map(_own_pages, children))


def _pages_of(node: Mapping[str, Any]) -> int:
    return int(node["Shared Hit Blocks"] + node["Shared Read Blocks"])


def _array(values: Any) -> str:
    return f"ARRAY[{', '.join(map(str, values))}]"


@pytest.fixture
async def cost(database_urls: DatabaseUrls) -> AsyncIterator[Cost]:
    admin = await connect_once(database_urls.admin)
    engine = await asyncpg.connect(database_urls.engine)
    made = Cost(admin, engine)
    await made.prepare()
    yield made
    await engine.close()
    await admin.close()


async def test_a_hundred_thousand_dead_letters_and_limited_rows_do_not_change_the_cost_of_a_claim(
    cost: Cost,
) -> None:
    await grows_by_nothing(cost, 100_000)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_cost_of_a_claim_in_full(cost: Cost) -> None:
    await grows_by_nothing(cost, 1_000_000)


async def grows_by_nothing(cost: Cost, rows: int) -> None:
    """From 5,000 rows on: below that an index is a level or two less high, which is a page a look-up."""
    await cost.fill(1, 5_000)
    await cost.of_one_claim()
    few = await cost.of_one_claim()
    await cost.fill(5_001, rows)
    await cost.of_one_claim()
    many = await cost.of_one_claim()
    assert min(few.values()) > 20, "what a claim of ten jobs cannot do without"
    for name, pages in few.items():
        assert many[name] <= 1.3 * pages + 40, f"{name}: {pages} pages, then {many[name]}"
