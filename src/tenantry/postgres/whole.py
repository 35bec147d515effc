"""Reads of one instant; and statements that must read whole tables, beside the hot path that must not."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any


@asynccontextmanager
async def one_instant(acquired: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    """An acquired connection in a read-only transaction, all of whose statements see one instant."""
    async with acquired as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        yield connection


@asynccontextmanager
async def whole_tables(acquired: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    """As :func:`one_instant`, and every plan is allowed: the engine's login is held to plans that look rows
    up by key (migration 0003)."""
    async with one_instant(acquired) as connection:
        await connection.execute("SET LOCAL enable_seqscan = on")
        yield connection
