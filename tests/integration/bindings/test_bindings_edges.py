"""What only one driver has: modes, autocommit, two phases, nesting over one connection, reset pools."""

import asyncio
from typing import Any

import asyncpg
import psycopg
import pytest
from binding_doors import DjangoInner, Hand
from binding_world import BINDING, OpenDoor
from test_bindings_conformance import seen

from tenantry.bindings import OtherTenant, TenantChanged, TenantMissing, TransactionOpen, use_tenant
from tenantry.bindings.asyncpg import Tenants as AsyncpgTenants
from tenantry.bindings.django import tenant_atomic
from tenantry.bindings.psycopg import AsyncTenants, Tenants

pytestmark = pytest.mark.needs_postgres

MODES = "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"


async def test_d1_the_next_request_on_the_same_connection_sees_no_rows_and_no_error(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name)
    async with door.bound("acme") as hand:
        assert await seen(hand) == {"acme"}
    async with door.raw() as hand:
        assert await hand.rows("SELECT * FROM notes") == []


async def forget(hand: Hand) -> None:
    """What DEALLOCATE ALL does to the binding; without asyncpg's own statements, which it needs."""
    named = await hand.rows("SELECT name FROM pg_prepared_statements WHERE name LIKE 'tenantry%'")
    for (statement,) in named:
        await hand.rows(f"DEALLOCATE {statement}")


async def test_a_session_that_lost_its_prepared_statement_is_bound_all_the_same(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name)
    for tenant in ("acme", "globex", "acme"):
        async with door.bound(tenant) as hand:
            assert await seen(hand) == {tenant}
        async with door.raw() as hand:
            await forget(hand)


async def test_a_body_that_drops_prepared_statements_still_commits(door_to: OpenDoor, name: str) -> None:
    """As psycopg itself does after a DROP."""
    door = await door_to(name)
    for tenant in ("acme", "globex", "acme"):
        async with door.bound(tenant) as hand:
            await hand.rows(f"INSERT INTO notes VALUES ('{tenant}', 96, 'kept')")
            await forget(hand)
        async with door.bound(tenant) as hand:
            assert await hand.rows("DELETE FROM notes WHERE id = 96 RETURNING body") == [("kept",)]


async def test_a_body_that_drops_prepared_statements_and_changes_its_tenant_is_found_out(
    door_to: OpenDoor, name: str
) -> None:
    door = await door_to(name)
    for _ in range(3):
        with pytest.raises(TenantChanged):
            async with door.bound("acme") as hand:
                await hand.rows("INSERT INTO notes VALUES ('acme', 97, 'lost')")
                await forget(hand)
                await hand.rows("SELECT set_config('app.tenant_id', 'globex', true)")
        async with door.bound("acme") as hand:
            assert await hand.rows("SELECT FROM notes WHERE id = 97") == []


async def test_asyncpg_keeps_to_the_modes_that_are_asked_for(notes_url: str) -> None:
    connection = await asyncpg.connect(notes_url)
    tenants = AsyncpgTenants(connection, BINDING)
    async with tenants.transaction("acme", isolation="serializable", readonly=True):
        assert tuple(await connection.fetchrow(MODES)) == ("serializable", "on")
    await connection.close()


def test_psycopg_keeps_to_the_modes_of_its_connection(notes_url: str) -> None:
    with psycopg.connect(notes_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with Tenants(connection, BINDING).transaction("acme"):
            assert connection.execute(MODES).fetchone() == ("repeatable read", "on")


@pytest.mark.parametrize("autocommit", [False, True])
def test_over_one_connection_of_psycopg_the_same_tenant_nests_as_a_savepoint(
    notes_url: str, autocommit: bool
) -> None:
    with psycopg.connect(notes_url, autocommit=autocommit) as connection:
        tenants = Tenants(connection, BINDING)
        with tenants.transaction("acme"):
            with pytest.raises(ZeroDivisionError), tenants.transaction("acme"):
                connection.execute("INSERT INTO notes VALUES ('acme', 95, 'undone')")
                raise ZeroDivisionError
            assert connection.execute("SELECT FROM notes WHERE id = 95").rowcount == 0
            with pytest.raises(OtherTenant), tenants.transaction("globex"):
                pytest.fail("that is another tenant")
            assert connection.execute("SELECT DISTINCT tenant_id FROM notes").fetchall() == [("acme",)]
        assert connection.autocommit is autocommit


async def test_over_one_connection_of_the_async_drivers_it_does_too(notes_url: str) -> None:
    of_asyncpg = await asyncpg.connect(notes_url)
    of_psycopg = await psycopg.AsyncConnection.connect(notes_url)
    sources: list[Any] = [AsyncpgTenants(of_asyncpg, BINDING), AsyncTenants(of_psycopg, BINDING)]
    for tenants in sources:
        async with tenants.transaction("acme") as connection:
            with pytest.raises(ZeroDivisionError):
                async with tenants.transaction("acme"):
                    await connection.execute("DELETE FROM notes")
                    raise ZeroDivisionError
            with pytest.raises(OtherTenant):
                async with tenants.transaction("globex"):
                    pytest.fail("that is another tenant")
        async with tenants.transaction("acme") as connection:
            rows = await connection.execute("SELECT FROM notes")
            assert (rows if isinstance(rows, str) else f"SELECT {rows.rowcount}") == "SELECT 3"
    await of_asyncpg.close()
    await of_psycopg.close()


async def test_a_connection_that_is_in_a_transaction_already_is_refused_and_left_as_it_is(
    notes_url: str,
) -> None:
    with psycopg.connect(notes_url) as connection:
        connection.execute("SELECT 1")
        with pytest.raises(TransactionOpen), Tenants(connection, BINDING).transaction("acme"):
            pytest.fail("the tenant would outlive the block")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    other = await asyncpg.connect(notes_url)
    async with other.transaction():
        with pytest.raises(TransactionOpen):
            async with AsyncpgTenants(other, BINDING).transaction("acme"):
                pytest.fail("the tenant would outlive the block")
        assert await other.fetchval("SELECT 1") == 1
    await other.close()


def test_django_refuses_statements_that_are_bound_to_nobody_or_to_another(notes_url: str) -> None:
    inner = DjangoInner(notes_url, BINDING, 1)
    wrapper = inner.connections[inner.alias]
    with use_tenant("acme"), pytest.raises(TenantMissing, match=r"outside transaction\.atomic"):
        wrapper.cursor().execute("SELECT 1")
    with tenant_atomic("acme", inner.alias):
        with use_tenant("globex"), pytest.raises(OtherTenant):
            wrapper.cursor().execute("SELECT 1")
        with pytest.raises(OtherTenant), tenant_atomic("globex", inner.alias):
            pytest.fail("that is another tenant")
    wrapper.close()
    inner.close()


async def test_ten_tasks_of_ten_tenants_over_asyncpgs_own_pool_with_its_reset(notes_url: str) -> None:
    """The pool resets what it takes back; that is neither needed nor in the way."""
    async with asyncpg.create_pool(notes_url, min_size=1, max_size=2) as pool:
        tenants = AsyncpgTenants(pool, BINDING)

        async def work(tenant: str) -> None:
            for _ in range(5):
                async with tenants.transaction(tenant) as connection:
                    found = await connection.fetch("SELECT DISTINCT tenant_id FROM notes")
                    assert [row[0] for row in found] == [tenant]

        await asyncio.gather(*(work(tenant) for tenant in ("acme", "globex", "initech") * 3))
