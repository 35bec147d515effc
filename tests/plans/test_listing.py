"""What a tenant's reads cost beside another's backlog: they begin at the tenant's own rows."""

import json
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from tenantry.postgres.database import connect_once
from tenantry.postgres.intake_store import BY_KEY
from tenantry.postgres.statements import statement
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres

CROWD = """
    INSERT INTO tenantry.lanes (tenant_id, target) VALUES ('crowd', 'x'), ('small', 'x');
    INSERT INTO tenantry.flows (lane_id, tenant_id, job_class)
    SELECT lane_id, tenant_id, 0 FROM tenantry.lanes;
    INSERT INTO tenantry.jobs (flow_id, seq, job_id, tenant_id, payload, content_type)
    SELECT f.flow_id, n, gen_random_uuid(), f.tenant_id, '', 'a/b' FROM tenantry.flows f,
           generate_series(1, CASE f.tenant_id WHEN 'crowd' THEN 20000 ELSE 20 END) n;
    INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, ended_at)
    SELECT gen_random_uuid(), f.tenant_id, 1, 1, clock_timestamp() FROM tenantry.flows f,
           generate_series(1, CASE f.tenant_id WHEN 'crowd' THEN 20000 ELSE 20 END) n;
    INSERT INTO tenantry.stored (tenant_id, job_id, target, job_class, bucket, payload, content_type)
    SELECT f.tenant_id, gen_random_uuid(), 'x', 0, -1, '', 'a/b' FROM tenantry.flows f,
           generate_series(1, CASE f.tenant_id WHEN 'crowd' THEN 20000 ELSE 20 END) n;
    ANALYZE;
"""


@pytest.mark.parametrize("state", ["NULL", "'waiting'", "'delivered'"])
async def test_a_list_of_jobs_reads_the_rows_of_its_tenant(database_urls: DatabaseUrls, state: str) -> None:
    admin = await connect_once(database_urls.admin)
    await admin.execute(CROWD)
    await admin.close()
    connection = await asyncpg.connect(database_urls.tenant)
    await connection.execute(f"BEGIN; SET plan_cache_mode = force_generic_plan; {BY_KEY}")
    await connection.execute("SELECT set_config('tenantry.tenant_id', 'small', true)")
    await connection.execute(f"PREPARE probe AS {statement('intake/jobs')}")
    text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE probe ({state}, 100)")
    await connection.close()
    for node in _nodes(json.loads(text)[0]["Plan"]):
        if "Relation Name" in node:
            read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            assert read <= 200, node


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
