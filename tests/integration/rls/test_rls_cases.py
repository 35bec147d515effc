"""Cases D5 to D7: what the audit says of a schema beside what the application can do in it."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from rls_world import undone

from tenantry.postgres.catalogue import read_facts_inside
from tenantry.rls import audit
from tenantry.testing.row_policies import Case, base, cases

pytestmark = [
    pytest.mark.needs_postgres,
    pytest.mark.parametrize("rls_server", [18], indirect=True),
]

TENANT = "NULLIF(current_setting('app.tenant_id', true), '')::int"
Connection = Any


@pytest.fixture
async def shop(vacant_database_url: str) -> AsyncIterator[Connection]:
    async with undone(vacant_database_url) as connection:
        await connection.execute(base())
        yield connection


def case(name: str) -> Case:
    return next(each for each in cases() if each.name == name)


async def said(connection: Connection) -> set[str]:
    """The rules that find something, with no declaration."""
    await connection.execute("RESET ROLE")
    return {
        each.rule for each in audit(await read_facts_inside(connection), case("rls-off").declared).findings
    }


async def as_tenant(connection: Connection, tenant: int) -> None:
    await connection.execute("SET LOCAL SESSION AUTHORIZATION shop_app; SET LOCAL search_path = shop")
    await connection.execute(f"SELECT set_config('app.tenant_id', '{tenant}', true)")


async def orders(connection: Connection, *policies: str) -> None:
    """A table of orders with one row of tenant 1 and one of tenant 2."""
    await connection.execute(
        "CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, PRIMARY KEY (tenant_id, id));"
        "ALTER TABLE orders ENABLE ROW LEVEL SECURITY; ALTER TABLE orders FORCE ROW LEVEL SECURITY;"
        "GRANT SELECT, INSERT, UPDATE ON orders TO shop_app;" + ";".join(policies)
    )
    await connection.execute("RESET ROLE; INSERT INTO orders VALUES (1, 1), (2, 2)")


async def test_d5_a_temporary_table_answers_for_a_helper_without_a_search_path_and_it_is_said(
    shop: Connection,
) -> None:
    await shop.execute(
        "CREATE TABLE members (person text PRIMARY KEY, firm int); GRANT SELECT ON members TO shop_app;"
        "CREATE FUNCTION my_firm() RETURNS int LANGUAGE sql STABLE"
        " AS 'SELECT firm FROM members WHERE person = session_user'"
    )
    await orders(shop, "CREATE POLICY tenant ON orders USING (tenant_id = (SELECT shop.my_firm()))")
    assert "helper-search-path" in await said(shop)
    await as_tenant(shop, 1)
    assert await shop.fetch("SELECT * FROM orders") == []
    await shop.execute("CREATE TEMP TABLE members AS SELECT 'shop_app' AS person, 2 AS firm")
    assert await shop.fetchval("SELECT tenant_id FROM orders") == 2


async def test_d6_whoever_may_write_memberships_sees_any_tenant_and_it_is_said(shop: Connection) -> None:
    await shop.execute(
        "CREATE TABLE members (person text, firm int, PRIMARY KEY (person, firm));"
        "GRANT SELECT, INSERT ON members TO shop_app"
    )
    asks = "tenant_id = ANY (ARRAY(SELECT firm FROM shop.members WHERE person = session_user))"
    await orders(shop, f"CREATE POLICY tenant ON orders USING ({asks})")
    assert "membership-writable" in await said(shop)
    await as_tenant(shop, 1)
    assert await shop.fetch("SELECT * FROM orders") == []
    await shop.execute("INSERT INTO members VALUES ('shop_app', 2)")
    assert await shop.fetchval("SELECT tenant_id FROM orders") == 2


async def test_d7_a_blind_update_moves_rows_out_and_it_is_said(shop: Connection) -> None:
    await orders(
        shop,
        f"CREATE POLICY reads ON orders FOR SELECT USING (tenant_id = {TENANT})",
        f"CREATE POLICY moves ON orders FOR UPDATE USING (tenant_id = {TENANT}) WITH CHECK (tenant_id > 0)",
    )
    assert "policy-blind-update" in await said(shop)
    await as_tenant(shop, 1)
    assert await shop.execute("UPDATE orders SET tenant_id = 2") == "UPDATE 1"
    assert await shop.fetch("SELECT * FROM orders") == []


async def test_d7_an_insert_policy_without_a_check_is_denied_and_not_called_open(shop: Connection) -> None:
    await orders(
        shop,
        f"CREATE POLICY reads ON orders FOR SELECT USING (tenant_id = {TENANT})",
        "CREATE POLICY writes ON orders FOR INSERT",
    )
    assert await said(shop) == set()
    await as_tenant(shop, 1)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await shop.execute("INSERT INTO orders VALUES (1, 3)")
