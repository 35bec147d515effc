from tenantry.kernel.tenant import tenant_id
from tenantry.postgres.database import Database
from tenantry.postgres.session import bound
from tenantry.postgres.urls import DatabaseUrls


async def test_the_three_connections_open_and_speak_with_their_own_logins(
    database_urls: DatabaseUrls,
) -> None:
    async with await Database.open(database_urls) as database:
        assert await database.engine.fetchval("SELECT current_user") == "tenantry_engine"
        assert await database.tenant.fetchval("SELECT current_user") == "tenantry_tenant"
        assert await database.control.fetchval("SELECT current_user") == "tenantry_engine"


async def test_a_bound_transaction_leaves_nothing_on_its_connection(database_urls: DatabaseUrls) -> None:
    bound_now = "SELECT current_setting('tenantry.tenant_id', true)"
    async with await Database.open(database_urls, tenant_connections=1) as database:
        async with bound(database.tenant, tenant_id("acme")) as connection:
            assert await connection.fetchval(bound_now) == "acme"
        assert not await database.tenant.fetchval(bound_now)
