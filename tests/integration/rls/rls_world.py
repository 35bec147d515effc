"""What tests of the audit say to each other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tenantry.rls import Facts

FactsAfter = Callable[[str], Awaitable[Facts]]
"""Runs a script as a superuser, and reads what the catalogue then holds."""


@asynccontextmanager
async def undone(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A superuser's connection in a transaction that is rolled back, roles and all."""
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()
