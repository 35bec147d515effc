"""What a replay's reading of dead letters costs beside another tenant's: it begins at the tenant's own."""

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
    INSERT INTO tenantry.dead_letters
           (job_id, tenant_id, target, job_class, payload, content_type, submitted_at, died_at, attempts,
            reason)
    SELECT gen_random_uuid(), t, 'x', 0, '', 'a/b', clock_timestamp(), to_timestamp(n), 1, ''
      FROM unnest(ARRAY['crowd', 'small']) t,
           generate_series(1, CASE t WHEN 'crowd' THEN 20000 ELSE 300 END) n;
    ANALYZE;
"""
FIRST, LAST = "to_timestamp(100), gen_random_uuid()", "to_timestamp(280), gen_random_uuid()"
READS = {
    "sources/letters": (f"{FIRST}, {LAST}, 50, 16000000", 400),
    "sources/letters_after": (FIRST, 300),
    "sources/letters_last": ("", 5),
    "sources/letters_upto": (LAST, 300),
    "sources/letters_sample": ("20, 7", 400),
    "sources/letters_sample_by_time": ("20, '{0.1, 0.3, 0.5, 0.7, 0.9}', 7", 400),
}


@pytest.mark.parametrize("name", sorted(READS))
async def test_a_read_of_dead_letters_reads_the_rows_of_its_tenant(
    database_urls: DatabaseUrls, name: str
) -> None:
    arguments, most = READS[name]
    admin = await connect_once(database_urls.admin)
    await admin.execute(CROWD)
    await admin.close()
    connection = await asyncpg.connect(database_urls.tenant)
    await connection.execute(f"BEGIN; SET plan_cache_mode = force_generic_plan; {BY_KEY}")
    await connection.execute("SELECT set_config('tenantry.tenant_id', 'small', true)")
    await connection.execute(f"PREPARE probe AS {statement(name)}")
    call = f"probe ({arguments})" if arguments else "probe"
    text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE {call}")
    await connection.close()
    for node in _nodes(json.loads(text)[0]["Plan"]):
        if "Relation Name" in node:
            read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            assert read <= most, node


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
