"""What each statement of the hot path reads, as PostgreSQL plans it: rows by key, never a table of jobs.

The tables are empty and analysed so: that is how a fresh installation makes and keeps the plans with which it
meets its first burst. The engine's login carries the settings that the plans rest on.
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from tenantry.postgres.database import connect_once
from tenantry.postgres.statements import statement
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres

GROWS = {
    "jobs", "deferred", "outcomes", "dead_letters", "idempotency", "attempts", "stored", "flows", "tails",
    "withdrawn", "load", "lanes", "shapers", "parked", "replay_terms", "replay_ends",
}  # fmt: skip
"""Tables that grow with the backlog, the tenants or the past: nothing per round may read them whole."""

ONE = ["'n1', 1", "ARRAY[1]::bigint[], ARRAY[1]::bigint[], ARRAY[1]::bigint[], ARRAY[1]::bigint[]"]
DELIVERED = ", ".join([*ONE, "ARRAY[200]::smallint[], ARRAY[0]::smallint[], NULL, NULL, NULL"])
FAILED = ", ".join([
    *ONE, "ARRAY[0.1]::real[], ARRAY[1]::smallint[], ARRAY[1.0]::float8[], ARRAY[500]::smallint[]",
    "ARRAY['http_500'], ARRAY['x'], ARRAY['r'], ARRAY[0]::smallint[], NULL, NULL, NULL",
])  # fmt: skip
ROUND = (
    "1, 0, 5.0, ARRAY['n1'], ARRAY[1], ARRAY[1], ARRAY[1], ARRAY[1]::bigint[], ARRAY[1]::bigint[], "
    "ARRAY[0]::smallint[], ARRAY[1]::bigint[], ARRAY[1]::bigint[], ARRAY[1]::bigint[], ARRAY[2]::bigint[], "
    "'claims'"
)
HOT = {
    "planner/round": ROUND,
    "planner/keep_shapers": "1, ARRAY['a', 'b'], ARRAY['x', 'y'], ARRAY['[1]', '[1]']::jsonb[]",
    "planner/flows_by_id": "ARRAY[1, 2]::bigint[]",
    "worker/take": "'n1', 1, 0, 15.0, false, ARRAY['http_400']",
    "worker/settle_delivered": DELIVERED,
    "worker/settle_failed": FAILED,
    "worker/reclaim": "100, 100, '0123'",
    "replays/take_ends": "'r', 100",
    "replays/keep_terms": "'r', 'acme', 3::smallint, false",
    "worker/renew": "'n1', 1, ARRAY[1, 2]::bigint[], 15.0",
    "registry/find_key": "'k'",
}


@pytest.fixture
async def engine(database_urls: DatabaseUrls) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    admin = await connect_once(database_urls.admin)
    await admin.execute("ANALYZE")
    await admin.close()
    connection = await asyncpg.connect(database_urls.engine)
    yield connection
    await connection.close()


@pytest.mark.parametrize("name", HOT)
async def test_no_statement_of_the_hot_path_reads_a_growing_table_whole(
    engine: "asyncpg.Connection[asyncpg.Record]", name: str
) -> None:
    plan = await _plan(engine, name, HOT[name])
    scans = [node for node in _nodes(plan) if node["Node Type"] == "Seq Scan"]
    assert [node["Relation Name"] for node in scans if node["Relation Name"] in GROWS] == []


@pytest.mark.parametrize("name", HOT)
async def test_keys_are_looked_up_by_equality_and_not_filtered_out_of_a_whole_index(
    engine: "asyncpg.Connection[asyncpg.Record]", name: str
) -> None:
    plan = await _plan(engine, name, HOT[name])
    for node in _nodes(plan):
        if node["Node Type"].startswith("Index") and node.get("Relation Name") in GROWS:
            assert "Index Cond" in node, f"{name} walks all of {node['Index Name']}"


async def _plan(connection: Any, name: str, arguments: str) -> dict[str, Any]:
    """The generic plan, as a pooled connection comes to use it."""
    await connection.execute(f"PREPARE probe AS {statement(name)}")
    row = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE probe ({arguments})")
    plan: dict[str, Any] = json.loads(row)[0]["Plan"]
    return plan


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
