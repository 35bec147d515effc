"""Law I2 on our own tables: the tenants' login sees what is bound and nothing else, whatever it tries.

The threat is a mistake in code that holds the tenants' login (a forgotten WHERE, a wrong name passed on), not
SQL of a tenant's own: whoever may send any SQL on that login may bind any tenant.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from queue_world import ACME, GLOBEX, HOOK, Queue, jobs

from tenantry.kernel.errors import InvariantBroken
from tenantry.postgres.session import bound
from tenantry.queue.model import JobId, NewJob

pytestmark = pytest.mark.needs_postgres

Connection = Any

OURS = "IN (SELECT oid FROM pg_roles WHERE rolname IN ('tenantry_engine', 'tenantry_tenant'))"
TABLES = """
    SELECT c.*, EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id')
           AS owned
      FROM pg_class c WHERE c.relnamespace = 'tenantry'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
     ORDER BY c.relname
"""

CALLS: Mapping[str, str] = {
    "bind": "('globex')",
    "flows_for": "('globex', ARRAY['https://x.example/'], ARRAY[0]::smallint[], ARRAY[-1]::smallint[])",
    "reserve": "('globex', 1, 100)",
    "append": "('globex', ARRAY[{flow}]::bigint[], ARRAY['{new}']::uuid[], ARRAY['x']::bytea[], "
    "ARRAY['a/b'], ARRAY[NULL]::timestamptz[], ARRAY[NULL]::real[], ARRAY[NULL]::uuid[], ARRAY[false])",
    "submit": "('globex', 100, ARRAY[{flow}]::bigint[], ARRAY['{new}']::uuid[], ARRAY['x']::bytea[], "
    "ARRAY['a/b'], ARRAY[0]::float8[], ARRAY[NULL]::real[], NULL, NULL)",
    "ended": "('globex')",
    "cancel": "('globex', '{job}', 3600)",
    "known_keys": "('globex', ARRAY['k']::bytea[], 1209600)",
    "submit_bulk": "('globex', 100, '{new}', ARRAY['x'], ARRAY[0]::smallint[], ARRAY[-1]::smallint[], "
    "ARRAY['{new}']::uuid[], ARRAY['x']::bytea[], ARRAY['a/b'], ARRAY[0]::float8[], ARRAY[NULL]::real[])",
}
"""Every function that the tenants' login may call, called with another tenant's name."""

FINDS_NOTHING = {"append": "", "ended": 0, "known_keys": None}
"""Those that are not refused: for want of rows to see, they do nothing, count 0 and know nothing."""

ANY_ROW = "(tenant_id) VALUES ('globex')"
ROWS = {"outcomes": "(tenant_id, ended_at) VALUES ('globex', now())"}
"""A row of another tenant for each table; a partition is looked for before a policy is asked."""


def refused() -> Any:
    """PostgreSQL itself refuses, by privilege or by policy."""
    return pytest.raises(InvariantBroken, match="42501")


@asynccontextmanager
async def admin(queue: Queue) -> AsyncIterator[Connection]:
    connection = await asyncpg.connect(queue.urls.admin)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def theirs(queue: Queue) -> tuple[JobId, int]:
    """Work of both in every table that a tenant has rows in. A job of globex's, and its flow."""
    for tenant in (ACME, GLOBEX):
        keyed = [NewJob(HOOK, b"{}", idempotency_key="k")]
        (waiting, *_) = await queue.submit(tenant, [*jobs(3), *keyed, NewJob(HOOK, b"{}", delay_for=600.0)])
        await queue.intake.submit_bulk(tenant, jobs(2), most=2)
    async with admin(queue) as connection:
        flow = await connection.fetchval("SELECT flow_id FROM tenantry.jobs WHERE job_id = $1::uuid", waiting)
        await connection.execute(
            "INSERT INTO tenantry.attempts (job_id, number, tenant_id, busy_for, error_class) "
            "SELECT job_id, 1, tenant_id, 1, 'http_500' FROM tenantry.jobs"
        )
        await connection.execute(
            "INSERT INTO tenantry.dead_letters (job_id, tenant_id, target, job_class, payload, content_type, "
            "submitted_at, attempts, reason) SELECT gen_random_uuid(), t, 'x', 0, '', 'x', now(), 1, 'over' "
            "FROM unnest(ARRAY['acme', 'globex']) t"
        )
        await connection.execute(
            "INSERT INTO tenantry.parked (job_id, tenant_id, target, job_class, payload, content_type, "
            "submitted_at, attempts, reason, replay_id, park_reason) "
            "SELECT gen_random_uuid(), t, 'x', 2, '', 'x', now(), 1, 'why', 'r', 'poison' "
            "FROM unnest(ARRAY['acme', 'globex']) t"
        )
        await connection.execute(
            "SELECT tenantry.roll_keys((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date); "
            "INSERT INTO tenantry.replay_keys (tenant_id, key, seen_at, state, failings, replay_id) "
            "SELECT t, 'k', now(), 2, 0, t FROM unnest(ARRAY['acme', 'globex']) t; "
            "INSERT INTO tenantry.replay_generations (tenant_id, day, keys) "
            "SELECT tenant_id, seen_at::date, 1 FROM tenantry.replay_keys; "
            "INSERT INTO tenantry.replay_tenants (tenant_id) SELECT tenant_id FROM tenantry.replay_keys; "
            "INSERT INTO tenantry.replays (replay_id, tenant_id, spec, again, hold_unknown, park_after, "
            "plan, source_bound, counted_exactly) "
            "SELECT replay_id, tenant_id, '', false, false, 3, '', '', true FROM tenantry.replay_keys"
        )
        await connection.execute(
            "INSERT INTO tenantry.shapers (lane_id, tenant_id, state, kept_at) "
            "SELECT lane_id, tenant_id, '[]', now() FROM tenantry.lanes"
        )
        await connection.execute(
            "INSERT INTO tenantry.endings (tenant_id, ended) VALUES ('acme', 0), ('globex', 0)"
        )
        await connection.execute(
            "INSERT INTO tenantry.outcomes (job_id, tenant_id, state, attempts, ended_at) "
            "SELECT job_id, tenant_id, 2, 1, died_at FROM tenantry.dead_letters"
        )
    return waiting, flow


async def rights(connection: Connection, right: str) -> list[str]:
    """The tables on which the tenants' login has ``right``, on some column at least; partitions apart."""
    test = "has_table_privilege" if right == "DELETE" else "has_any_column_privilege"
    rows = await connection.fetch(
        f"SELECT relname FROM ({TABLES}) c WHERE NOT relispartition AND {test}('tenantry_tenant', oid, $1)",
        right,
    )
    return [row["relname"] for row in rows]


# -- the catalogue -------------------------------------------------------------------------------------


async def test_every_table_with_a_tenant_has_row_policies_on_and_forced(queue: Queue) -> None:
    async with admin(queue) as connection:
        rows = await connection.fetch(f"SELECT * FROM ({TABLES}) c WHERE owned")
    assert {"jobs", "outcomes", "dead_letters", "changes"} <= {row["relname"] for row in rows}
    assert any(row["relname"].startswith("outcomes_2") for row in rows), "partitions too"
    assert [
        row["relname"] for row in rows if not (row["relrowsecurity"] and row["relforcerowsecurity"])
    ] == []


async def test_a_table_without_a_tenant_is_closed_to_the_tenants_login(queue: Queue) -> None:
    async with admin(queue) as connection:
        rows = await connection.fetch(
            f"SELECT relname FROM ({TABLES}) c, (VALUES ('tenantry_tenant')) t (login) WHERE NOT owned AND "
            "(has_any_column_privilege(login, c.oid, 'SELECT, INSERT, UPDATE') OR "
            "has_table_privilege(login, c.oid, 'DELETE, TRUNCATE'))"
        )
    assert [row["relname"] for row in rows] == []


async def test_nothing_in_the_schema_is_anybodys(queue: Queue) -> None:
    """No function, table or sequence is granted to PUBLIC."""
    async with admin(queue) as connection:
        functions = await connection.fetch(
            "SELECT p.proname FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a "
            "WHERE p.pronamespace = 'tenantry'::regnamespace AND a.grantee = 0"
        )
        tables = await connection.fetch(
            "SELECT c.relname FROM pg_class c, aclexplode(c.relacl) a "
            "WHERE c.relnamespace = 'tenantry'::regnamespace AND a.grantee = 0"
        )
    assert [row[0] for row in (*functions, *tables)] == []


async def test_functions_with_the_owners_rights_have_a_pinned_search_path(queue: Queue) -> None:
    async with admin(queue) as connection:
        rows = await connection.fetch(
            "SELECT * FROM pg_proc WHERE pronamespace = 'tenantry'::regnamespace AND prosecdef"
        )
    assert {row["proname"] for row in rows} >= {"submit_later", "roll_outcomes"}
    for row in rows:
        assert "search_path=pg_catalog, pg_temp" in row["proconfig"], row["proname"]


async def test_engine_and_tenant_are_members_of_nobody_and_own_nothing(queue: Queue) -> None:
    async with admin(queue) as connection:
        member = await connection.fetchval(f"SELECT count(*) FROM pg_auth_members WHERE member {OURS}")
        owner = await connection.fetchval(f"SELECT count(*) FROM pg_class WHERE relowner {OURS}")
    assert (member, owner) == (0, 0)


# -- rows ----------------------------------------------------------------------------------------------


async def test_without_a_tenant_bound_every_table_is_empty_and_none_is_an_error(
    queue: Queue, theirs: tuple[JobId, int]
) -> None:
    async with admin(queue) as connection:
        tables = await rights(connection, "SELECT")
    assert len(tables) >= 12
    async with queue.database.tenant.acquire() as connection:
        for table in tables:
            assert await connection.fetchval(f"SELECT count(*) FROM tenantry.{table}") == 0, table
        async with bound(queue.database.tenant, ACME):
            pass  # after a binding, too, on whichever connection it was
        for table in tables:
            assert await connection.fetchval(f"SELECT count(*) FROM tenantry.{table}") == 0, table


async def test_with_a_tenant_bound_every_row_is_its_own(queue: Queue, theirs: tuple[JobId, int]) -> None:
    async with admin(queue) as connection:
        tables = await rights(connection, "SELECT")
        everyones = {
            table: await connection.fetchval(
                f"SELECT count(*) FROM tenantry.{table} WHERE tenant_id = 'globex'"
            )
            for table in tables
        }
    async with bound(queue.database.tenant, ACME) as connection:
        for table in tables:
            assert everyones[table] > 0, f"the story left {table} empty, so the test of it says nothing"
            rows = await connection.fetch(f"SELECT tenant_id, count(*) AS n FROM tenantry.{table} GROUP BY 1")
            assert {row["tenant_id"] for row in rows} == {ACME}, table


async def test_rows_of_another_tenant_are_neither_written_changed_nor_deleted(
    queue: Queue, theirs: tuple[JobId, int]
) -> None:
    async with admin(queue) as connection:
        inserts, updates = await rights(connection, "INSERT"), await rights(connection, "UPDATE")
        deletes = await rights(connection, "DELETE")
        column = {
            table: await connection.fetchval(
                "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND "
                "has_column_privilege('tenantry_tenant', attrelid, attnum, 'UPDATE') LIMIT 1",
                f"tenantry.{table}",
            )
            for table in updates
        }
    for table in inserts:
        with refused():
            async with bound(queue.database.tenant, ACME) as tenant:
                await tenant.execute(f"INSERT INTO tenantry.{table} {ROWS.get(table, ANY_ROW)}")
    for table, name in column.items():
        async with bound(queue.database.tenant, ACME) as tenant:
            told = await tenant.execute(
                f"UPDATE tenantry.{table} SET {name} = {name} WHERE tenant_id = 'globex'"
            )
            assert told == "UPDATE 0", table
    for table in deletes:
        async with bound(queue.database.tenant, ACME) as tenant:
            told = await tenant.execute(f"DELETE FROM tenantry.{table} WHERE tenant_id = 'globex'")
            assert told == "DELETE 0", table


# -- functions -----------------------------------------------------------------------------------------


async def test_every_function_that_the_tenants_login_may_call_is_tried_here(queue: Queue) -> None:
    async with admin(queue) as connection:
        rows = await connection.fetch(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'tenantry'::regnamespace "
            "AND has_function_privilege('tenantry_tenant', oid, 'EXECUTE')"
        )
    assert {row["proname"] for row in rows} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
async def test_a_function_called_with_another_tenants_name_does_nothing_of_that_tenants(
    queue: Queue, theirs: tuple[JobId, int], name: str
) -> None:
    job, flow = theirs
    before = await _picture(queue)
    call = f"tenantry.{name}" + CALLS[name].format(job=job, flow=flow, new=uuid4())
    if name in FINDS_NOTHING:
        async with bound(queue.database.tenant, ACME) as connection:
            told = await connection.fetchval(f"SELECT * FROM {call}")
            assert not told or told == FINDS_NOTHING[name]
    else:
        with refused():
            async with bound(queue.database.tenant, ACME) as connection:
                await connection.fetch(f"SELECT * FROM {call}")
    assert await _picture(queue) == before


async def test_a_job_of_another_tenant_cannot_be_reached_by_its_id(
    queue: Queue, theirs: tuple[JobId, int]
) -> None:
    job, _ = theirs
    before = await _picture(queue)
    assert await queue.intake.cancel(ACME, job) is None
    assert await queue.intake.job(ACME, job) is None
    assert await queue.intake.facts(ACME, job, pool="shared") is None
    assert await _picture(queue) == before


async def test_feeding_and_rolling_are_not_for_the_tenants_login(queue: Queue) -> None:
    rolling = "roll_outcomes(7)", "roll_keys('2000-01-01', '2000-01-02')"
    for call in ("feed('acme', 10, 10, 10)", *rolling, "submit_later('acme', 'x', '')"):
        with refused():
            async with bound(queue.database.tenant, ACME) as connection:
                await connection.fetch(f"SELECT tenantry.{call}")


async def test_a_job_for_another_tenant_is_not_taken_in_a_bound_transaction(
    queue: Queue, theirs: tuple[JobId, int]
) -> None:
    """submit_later runs with the owner's rights, whose policy lets it write for the tenant named alone."""
    before = await _picture(queue)
    async with admin(queue) as connection:
        async with connection.transaction():
            await connection.execute("SELECT set_config('tenantry.tenant_id', 'acme', true)")
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="bound to another tenant"):
                async with connection.transaction():
                    await connection.fetch("SELECT tenantry.submit_later('globex', 'https://x.example/', '')")
            await connection.fetch("SELECT tenantry.submit_later('acme', 'https://x.example/', '')")
            assert await connection.fetchval("SELECT current_setting('tenantry.tenant_id')") == "acme"
        async with connection.transaction():
            await connection.fetch("SELECT tenantry.submit_later('acme', 'https://x.example/', '')")
            assert await connection.fetchval("SELECT current_setting('tenantry.tenant_id')") == ""
    assert await _picture(queue) == before


async def counted(connection: Connection, tables: list[str]) -> dict[str, int]:
    """How many rows globex has in each."""
    return {
        table: await connection.fetchval(f"SELECT count(*) FROM tenantry.{table} WHERE tenant_id = 'globex'")
        for table in tables
    }


async def _picture(queue: Queue) -> dict[str, Any]:
    """What globex has where, and what it was charged, as nobody's policy hides it."""
    async with admin(queue) as connection:
        tables = await connection.fetch(
            f"SELECT relname FROM ({TABLES}) c WHERE owned AND NOT relispartition"
        )
        picture: dict[str, Any] = await counted(connection, [row["relname"] for row in tables])
        charged = await connection.fetchrow("SELECT * FROM tenantry.load WHERE tenant_id = 'globex'")
        return picture | {"charged": tuple(charged)}
