"""A tenant's transaction: law I2, that no tenant-facing statement runs without its tenant bound."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.tenant import TenantId, tenant_id
from tenantry.postgres.errors import FOREIGN, translated


@asynccontextmanager
async def bound(
    pool: "asyncpg.Pool[asyncpg.Record]", tenant: TenantId
) -> "AsyncIterator[asyncpg.pool.PoolConnectionProxy[asyncpg.Record]]":
    """A connection in a transaction whose row policies see ``tenant`` and nothing else.

    Commits at the end, rolls back on any exception. The binding is the transaction's, so nothing of it stays
    on the connection, PgBouncer's included. Binding costs no round trip of its own: it travels with BEGIN as
    one message, which takes no parameters; the tenant's alphabet has no quote, and is checked again here.
    Savepoints are plain SQL inside; asyncpg's ``transaction()`` refuses to nest in this one.

    Raises :class:`InvalidValue` for a text that is no tenant's id, :class:`StoreUnavailable` (after a failed
    COMMIT the outcome is unknown), and :class:`InvariantBroken` when the body hid an error of a statement, so
    that PostgreSQL could only roll back.
    """
    name = tenant_id(tenant)
    with translated("in a tenant's transaction"):
        async with pool.acquire() as connection:
            try:
                await connection.execute(f"BEGIN; SELECT set_config('tenantry.tenant_id', '{name}', true)")
                yield connection
            except BaseException:
                await _roll_back(connection)
                raise
            outcome = await connection.execute("COMMIT")
            if outcome != "COMMIT":
                raise InvariantBroken("a statement had failed unnoticed: PostgreSQL rolled back at COMMIT")


async def _roll_back(connection: "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]") -> None:
    """Ends the transaction whatever it takes, and leaves the exception that led here to its handler."""
    try:
        await connection.execute("ROLLBACK")
    except FOREIGN:  # the server rolls back what a broken connection leaves open
        with suppress(asyncpg.InterfaceError):  # the pool has taken it back, and ended it, already
            connection.terminate()
