"""What the table of lanes reads beside 5,000 lanes, 20,000 jobs that wait elsewhere and a long log: the rows
of its own page; and the table by work, which compares all lanes: each flow, and no job."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from tenantry.postgres.database import connect_once
from tenantry.postgres.statements import statement
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres

CROWD = """
    INSERT INTO tenantry.lanes (tenant_id, target)
    SELECT 't' || lpad((n / 10)::text, 4, '0'), 'x' || n % 10 FROM generate_series(0, 4999) n;
    INSERT INTO tenantry.flows (lane_id, tenant_id, job_class)
    SELECT lane_id, tenant_id, 0 FROM tenantry.lanes;
    INSERT INTO tenantry.tails (flow_id, tenant_id, tail) SELECT flow_id, tenant_id, 4 FROM tenantry.flows;
    INSERT INTO tenantry.jobs (flow_id, seq, job_id, tenant_id, payload, content_type)
    SELECT flow_id, n, gen_random_uuid(), tenant_id, '', 'a/b' FROM tenantry.flows, generate_series(1, 4) n;
    INSERT INTO tenantry.deferred (flow_id, seq, tenant_id, due_at, attempts)
    SELECT flow_id, 1, tenant_id, now() + interval '1 day', 0 FROM tenantry.flows;
    INSERT INTO tenantry.order_log (action, tenant_id, target, reason, ordered_by)
    SELECT 'pause', tenant_id, target, 'r', 'b' FROM tenantry.lanes ORDER BY lane_id;
    INSERT INTO tenantry.orders (tenant_id, target, action, order_id)
    SELECT tenant_id, target, 'pause', order_id FROM tenantry.order_log WHERE order_id % 10 = 0;
    ANALYZE;
"""
BY_NAME = {
    "all": "NULL, NULL, 't0123', 'x5', 100, NULL",
    "one tenant": "'t0123', NULL, '', '', 100, NULL",
    "one target": "NULL, 'x3', 't0123', 'x3', 100, NULL",
    "one lane": "'t0123', 'x3', '', '', 100, NULL",
    "one tenant's paused": "'t0123', NULL, '', '', 100, 'paused'",
}


@pytest.fixture
async def engine(database_urls: DatabaseUrls) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    admin = await connect_once(database_urls.admin)
    await admin.execute(CROWD)
    await admin.close()
    connection = await asyncpg.connect(database_urls.engine)
    yield connection
    await connection.close()


@pytest.mark.parametrize("arguments", BY_NAME.values(), ids=BY_NAME)
async def test_a_page_by_name_reads_its_own_lanes_whatever_else_there_is(engine: Any, arguments: str) -> None:
    read = await _read(engine, "operator/lanes_by_name", arguments)
    assert read.pop("lanes") <= 110
    assert all(rows <= 100 for rows in read.values()), read


async def test_the_figures_of_a_page_are_looked_up_lane_by_lane(engine: Any) -> None:
    read = await _read(engine, "operator/lanes", f"ARRAY{list(range(1_001, 1_101))}::bigint[]")
    assert read["flows"] == read["tails"] == read["lanes"] == 100
    assert "jobs" not in read
    assert all(rows <= 400 for rows in read.values()), read


async def test_the_busiest_lanes_are_found_without_reading_a_job(engine: Any) -> None:
    await engine.execute("SET enable_seqscan = on")
    read = await _read(engine, "operator/lanes_by_work", "NULL, NULL, 'backlog', 50, NULL")
    assert read["flows"] <= 2 * 5_000
    assert "jobs" not in read


async def test_a_page_of_the_log_reads_that_page(engine: Any) -> None:
    assert await _read(engine, "operator/order_log", "50, 3000") == {"order_log": 50}


async def test_the_planner_reads_of_the_orders_it_hears_of_only_what_they_are_about(engine: Any) -> None:
    read = await _read(engine, "planner/orders_by_number", "ARRAY[10, 11]::bigint[]")
    assert all(rows <= 10 for rows in read.values()), read


async def _read(connection: Any, name: str, arguments: str) -> dict[str, int]:
    """Rows read of each table, those that a filter threw away too."""
    await connection.execute(f"PREPARE probe AS {statement(name)}")
    text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE probe ({arguments})")
    read: dict[str, int] = {}
    for node in _nodes(json.loads(text)[0]["Plan"]):
        table = node.get("Relation Name")
        if table is not None and node["Actual Loops"]:
            rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            read[table] = read.get(table, 0) + round(rows)
    return read


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
