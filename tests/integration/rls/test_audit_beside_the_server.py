"""What the audit concludes from the catalogue is what the server does: compared, for every combination.

Two tenants' rows are planted, tenant 1 is bound, and the application's role asks.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import product
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from rls_world import undone

from tenantry.postgres.catalogue import read_facts_inside
from tenantry.rls import Declared, audit
from tenantry.rls.doors import Doors
from tenantry.rls.scene import Scene
from tenantry.rls.scope import found
from tenantry.testing.row_policies import base

pytestmark = pytest.mark.asyncio(loop_scope="module")

Connection = "asyncpg.Connection[Any]"

PLANTED = """
RESET ROLE;
ALTER TABLE shop.customers NO FORCE ROW LEVEL SECURITY;
INSERT INTO shop.customers VALUES (1, 1, 'one'), (2, 2, 'two');
ALTER TABLE shop.customers FORCE ROW LEVEL SECURITY;
GRANT USAGE ON SCHEMA shop TO PUBLIC;
"""
DECLARED = Declared(application_roles=("shop_app",))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def planted(vacant_database_url: str) -> AsyncIterator[Connection]:
    """A superuser's connection to the shop with a customer of each of two tenants, tenant 1 bound."""
    async with undone(vacant_database_url) as connection:
        await connection.execute(base() + PLANTED)
        await connection.execute("SELECT set_config('app.tenant_id', '1', true)")
        yield connection


async def scene_of(connection: Any) -> Scene:
    facts = await read_facts_inside(connection)
    return Scene(facts, found(DECLARED, facts))


async def sees_both(connection: Any, relation: str, role: str = "shop_app") -> bool:
    """Whether ``role``, asking as tenant 1, is shown tenant 2's rows too; no where it is refused."""
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        await connection.execute(f"SET LOCAL SESSION AUTHORIZATION {role}")
        tenants = await connection.fetch(f"SELECT DISTINCT tenant_id FROM {relation}")
    except asyncpg.InsufficientPrivilegeError:
        return False
    finally:
        await savepoint.rollback()
    return len(tenants) == 2


OWNERS = ("CURRENT_USER", "shop_owner")
"""A superuser, whom no policy holds, and the tables' owner, whom they are forced on."""

WAYS = list(product(("false", "true"), OWNERS, ("view", "materialized"), ("false", "true"), OWNERS))


@pytest.mark.parametrize(("invoker", "owner", "inner", "inner_invoker", "inner_owner"), WAYS)
async def test_a_chain_of_views_is_open_where_it_is_said_to_be(
    invoker: str, owner: str, *, inner: str, inner_invoker: str, inner_owner: str, planted: Any
) -> None:
    savepoint = planted.transaction()
    await savepoint.start()
    try:
        inside = (
            f"CREATE VIEW shop.inside WITH (security_invoker = {inner_invoker}) AS"
            f" SELECT * FROM shop.customers;"
            f"ALTER VIEW shop.inside OWNER TO {inner_owner};"
            if inner == "view"
            else "CREATE MATERIALIZED VIEW shop.inside AS SELECT * FROM shop.customers;"
        )
        await planted.execute(
            f"{inside} GRANT SELECT ON shop.inside TO PUBLIC;"
            f"CREATE VIEW shop.outside WITH (security_invoker = {invoker}) AS SELECT * FROM shop.inside;"
            f"ALTER VIEW shop.outside OWNER TO {owner}; GRANT SELECT ON shop.outside TO shop_app;"
        )
        scene = await scene_of(planted)
        (outside,) = scene.by_name["outside"]
        said = bool(Doors(scene).leaks(outside, "shop_app"))
        assert said is await sees_both(planted, "shop.outside")
    finally:
        await savepoint.rollback()


FILTER = "tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT * FROM shop.customers WHERE {FILTER}",
        f"SELECT * FROM shop.customers WHERE {FILTER} OR name = 'two'",
        f"SELECT c.* FROM shop.customers AS c JOIN shop.currencies AS u ON c.{FILTER}",
        f"SELECT c.* FROM shop.customers AS c LEFT JOIN shop.currencies AS u ON c.{FILTER}",
        f"SELECT c.* FROM shop.currencies AS u RIGHT JOIN shop.customers AS c ON c.{FILTER}",
        f"SELECT * FROM shop.customers WHERE {FILTER} UNION ALL SELECT * FROM shop.customers",
        f"SELECT * FROM (SELECT * FROM shop.customers) AS s WHERE {FILTER}",
        f"WITH mine AS (SELECT * FROM shop.customers WHERE {FILTER}) SELECT * FROM mine",
        f"SELECT b.* FROM shop.customers AS a CROSS JOIN shop.customers AS b WHERE a.{FILTER}",
        f"SELECT * FROM shop.customers WHERE NOT ({FILTER})",
    ],
)
async def test_a_view_that_filters_by_itself_is_never_called_closed_while_it_is_open(
    query: str, planted: Any
) -> None:
    savepoint = planted.transaction()
    await savepoint.start()
    try:
        await planted.execute("INSERT INTO shop.currencies VALUES ('EUR', 'Euro') ON CONFLICT DO NOTHING")
        await planted.execute(
            f"CREATE VIEW shop.mine WITH (security_barrier = true) AS {query};"
            "GRANT SELECT ON shop.mine TO shop_app;"
        )
        scene = await scene_of(planted)
        (mine,) = scene.by_name["mine"]
        if not Doors(scene).leaks(mine, "shop_app"):
            assert not await sees_both(planted, "shop.mine")
            assert await planted.fetchval("SELECT count(*) FROM shop.mine WHERE tenant_id <> 1") == 0
    finally:
        await savepoint.rollback()


STATES = list(
    product(
        ("ENABLE", "DISABLE"),
        ("FORCE", "NO FORCE"),
        ("nobody", "INHERIT TRUE", "INHERIT FALSE"),
        ("", "BYPASSRLS"),
    )
)


@pytest.mark.parametrize(("enabled", "forced", "membership", "attribute"), STATES)
async def test_whom_policies_do_not_hold_is_whom_the_server_shows_everything(
    enabled: str, forced: str, *, membership: str, attribute: str, planted: Any
) -> None:
    old = planted.get_server_version().major < 16
    savepoint = planted.transaction()
    await savepoint.start()
    try:
        await planted.execute(
            f"ALTER TABLE shop.customers {enabled} ROW LEVEL SECURITY;"
            f"ALTER TABLE shop.customers {forced} ROW LEVEL SECURITY;"
        )
        if membership != "nobody" and old:
            await planted.execute(f"GRANT shop_owner TO shop_app; ALTER ROLE shop_app {_inherit(membership)}")
        elif membership != "nobody":
            await planted.execute(f"GRANT shop_owner TO shop_app WITH {membership}")
        if attribute:
            await planted.execute(f"ALTER ROLE shop_app {attribute}")
        scene = await scene_of(planted)
        (table,) = scene.by_name["customers"]
        assert scene.skips_policies("shop_app", table) is await sees_both(planted, "shop.customers")
    finally:
        await savepoint.rollback()


def _inherit(membership: str) -> str:
    return "INHERIT" if membership == "INHERIT TRUE" else "NOINHERIT"


@pytest.mark.parametrize(
    ("links", "attributes"),
    [
        (("GRANT a TO shop_app",), ""),
        (("GRANT a TO shop_app", "GRANT b TO a"), ""),
        (("GRANT a TO shop_app WITH SET FALSE",), "16"),
        (("GRANT a TO shop_app WITH INHERIT FALSE", "GRANT b TO a WITH SET FALSE"), "16"),
        (("GRANT a TO shop_app WITH INHERIT FALSE", "GRANT b TO a WITH INHERIT FALSE"), "16"),
        (("GRANT a TO shop_app WITH ADMIN TRUE, SET FALSE, INHERIT FALSE",), "16"),
    ],
)
async def test_the_roles_that_can_be_set_are_those_that_the_server_lets_be_set(
    links: tuple[str, ...], attributes: str, planted: Any
) -> None:
    if attributes and planted.get_server_version().major < int(attributes):
        pytest.skip(f"needs PostgreSQL {attributes}")
    savepoint = planted.transaction()
    await savepoint.start()
    try:
        await planted.execute("CREATE ROLE a; CREATE ROLE b; " + "; ".join(links))
        reach = (await scene_of(planted)).reach
        for role in ("a", "b", "shop_owner"):
            assert (role in reach.assumes("shop_app")) is await _can_set(planted, role), role
            member = await planted.fetchval("SELECT pg_has_role('shop_app', $1, 'USAGE')", role)
            assert (role in reach.inherits("shop_app")) is member, role
    finally:
        await savepoint.rollback()


async def _can_set(connection: Any, role: str) -> bool:
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        await connection.execute("SET LOCAL SESSION AUTHORIZATION shop_app")
        await connection.execute(f"SET LOCAL ROLE {role}")
    except asyncpg.InsufficientPrivilegeError:
        return False
    else:
        return True
    finally:
        await savepoint.rollback()


async def test_privileges_are_held_by_whom_the_server_says(planted: Any) -> None:
    savepoint = planted.transaction()
    await savepoint.start()
    try:
        await planted.execute(
            "CREATE ROLE a; CREATE ROLE b LOGIN; CREATE ROLE c SUPERUSER; GRANT a TO b;"
            "GRANT SELECT ON shop.invoices TO a; GRANT UPDATE (note) ON shop.invoices TO b;"
            "GRANT INSERT ON shop.currencies TO PUBLIC; GRANT pg_read_all_data TO shop_app;"
            "REVOKE ALL ON shop.currencies FROM shop_owner; GRANT DELETE ON shop.currencies TO shop_owner;"
        )
        scene = await scene_of(planted)
        for role, table, privilege in product(
            ("a", "b", "c", "shop_app", "shop_owner"),
            ("customers", "invoices", "currencies"),
            ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
        ):
            (relation,) = scene.by_name[table]
            by_column = privilege in {"SELECT", "INSERT", "UPDATE", "REFERENCES"}
            ask = "has_any_column_privilege" if by_column else "has_table_privilege"
            said = await planted.fetchval(f"SELECT {ask}($1, $2::oid, $3)", role, relation.oid, privilege)
            assert scene.can(role, relation, privilege) is said, (role, table, privilege)
    finally:
        await savepoint.rollback()


async def test_the_sql_of_every_fix_runs_on_the_schema_that_it_was_written_for(planted: Any) -> None:
    """One case a rule, so that no fix is in words that the server does not know: on the oldest; and on
    the newest what that one cannot have."""
    from tenantry.testing.row_policies import cases

    oldest, failed = planted.get_server_version().major == 15, []
    for case in {each.rule: each for each in cases() if (each.server <= 15) is oldest}.values():
        savepoint = planted.transaction()
        await savepoint.start()
        try:
            await planted.execute("SET LOCAL search_path = shop; SET LOCAL ROLE shop_owner; " + case.broken)
            await planted.execute("RESET ROLE")
            for each in audit(await read_facts_inside(planted), case.declared).findings:
                failed += await _tried(planted, case.name, each.fix_sql)
        finally:
            await savepoint.rollback()
    assert failed == []


async def _tried(connection: Any, name: str, script: str) -> list[str]:
    """What went wrong with ``script``; words for a person (…) and what refuses a transaction are left out."""
    if not script or "…" in script or "CONCURRENTLY" in script:
        return []
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        await connection.execute(script)
    except asyncpg.PostgresError as error:
        return [f"{name}: {error}: {script}"]
    finally:
        await savepoint.rollback()
    return []


async def test_a_login_without_any_privilege_reads_the_same_facts(planted: Any) -> None:
    savepoint = planted.transaction()
    await savepoint.start()
    try:
        await planted.execute(
            "CREATE ROLE nobody_special LOGIN; CREATE FOREIGN DATA WRAPPER nothing;"
            "CREATE SERVER far FOREIGN DATA WRAPPER nothing; CREATE USER MAPPING FOR PUBLIC SERVER far;"
            "CREATE PUBLICATION everything FOR ALL TABLES; SELECT lo_create(420001);"
            "CREATE VIEW shop.seen AS SELECT * FROM shop.customers;"
            "CREATE FUNCTION shop.one() RETURNS int LANGUAGE sql AS 'SELECT 1';"
        )
        whole = await read_facts_inside(planted)
        await planted.execute("SET LOCAL SESSION AUTHORIZATION nobody_special")
        limited = await read_facts_inside(planted)
        await planted.execute("RESET SESSION AUTHORIZATION")
        assert replace(limited, server=whole.server) == whole
    finally:
        await savepoint.rollback()


async def test_a_membership_that_brings_others_with_it_is_told_once(planted: Any) -> None:
    savepoint = planted.transaction()
    await savepoint.start()
    try:
        await planted.execute(
            "CREATE ROLE watchers; GRANT pg_monitor TO watchers; GRANT watchers TO shop_app"
        )
        said = audit(await read_facts_inside(planted), DECLARED).findings
        assert [each.subject for each in said if each.rule == "monitor"] == ["role shop_app with pg_monitor"]
    finally:
        await savepoint.rollback()
