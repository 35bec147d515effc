"""What the database itself holds to of a person's orders: who may read and write them, and the log's past."""

import asyncpg
import pytest

from tenantry.postgres.database import connect_once
from tenantry.postgres.migrate import migrate, shipped
from tenantry.postgres.urls import DatabaseUrls

pytestmark = pytest.mark.needs_postgres

PAUSE = (
    "INSERT INTO tenantry.order_log (action, tenant_id, target, reason, ordered_by) VALUES ('pause', 'acme', "
    "'', 'why', 'ada')"
)


@pytest.mark.parametrize(
    "change", ["UPDATE tenantry.order_log SET reason = 'other'", "DELETE FROM tenantry.order_log"]
)
async def test_no_node_can_change_or_remove_what_the_log_says(
    database_urls: DatabaseUrls, change: str
) -> None:
    engine = await asyncpg.connect(database_urls.engine)
    await engine.execute(PAUSE)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await engine.execute(change)
    assert await engine.fetchval("SELECT count(*) FROM tenantry.order_log WHERE reason = 'why'") == 1
    await engine.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT FROM tenantry.order_log",
        "SELECT FROM tenantry.orders",
        PAUSE,
        "DELETE FROM tenantry.orders",
        "SELECT tenantry.orders_over('acme', 'x')",
        "SELECT tenantry.lane_state(1, 'acme', 'x')",
    ],
)
async def test_the_tenants_login_reaches_no_order_not_even_its_own(
    database_urls: DatabaseUrls, statement: str
) -> None:
    tenant = await asyncpg.connect(database_urls.tenant)
    await tenant.execute("SELECT set_config('tenantry.tenant_id', 'acme', false)")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await tenant.execute(statement)
    await tenant.close()


async def test_a_lane_paused_before_there_were_orders_is_paused_by_one_now(empty_database_url: str) -> None:
    await migrate(empty_database_url, migrations=shipped()[: _orders_number() - 1])
    admin = await connect_once(empty_database_url)
    await admin.execute("SET row_security = off")
    await admin.execute(
        "INSERT INTO tenantry.lanes (tenant_id, target, paused) "
        "VALUES ('acme', 'x', true), ('acme', 'y', false)"
    )
    await migrate(empty_database_url, migrations=shipped()[: _orders_number()])
    rows = await admin.fetch(
        "SELECT o.tenant_id, o.target, o.action, g.ordered_by FROM tenantry.orders o "
        "JOIN tenantry.order_log g USING (order_id)"
    )
    assert [tuple(row) for row in rows] == [("acme", "x", "pause", "unknown")]
    left = "SELECT count(*) FROM pg_policies WHERE policyname = 'migrating'"
    assert await admin.fetchval(left) == 0
    await admin.close()


def _orders_number() -> int:
    (number,) = (each.number for each in shipped() if each.name == "orders")
    return number
