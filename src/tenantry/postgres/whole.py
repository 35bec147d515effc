"""Statements that must read whole tables, beside the hot path that must not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg


@asynccontextmanager
async def whole_tables(
    pool: "asyncpg.Pool[asyncpg.Record]",
) -> "AsyncIterator[asyncpg.pool.PoolConnectionProxy[asyncpg.Record]]":
    """A connection in a read-only transaction that sees one instant, and in which every plan is allowed.

    The engine's login is held to plans that look rows up by key (migration 0003).
    """
    async with (
        pool.acquire() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        await connection.execute("SET LOCAL enable_seqscan = on")
        yield connection
