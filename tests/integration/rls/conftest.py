"""One connection of a superuser to one empty database, and what a script leaves in its catalogue."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from rls_world import FactsAfter

from tenantry.postgres.catalogue import read_facts_inside
from tenantry.rls import Facts


@pytest.fixture
async def admin(vacant_database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """A superuser's connection in a transaction that is rolled back, roles and all."""
    connection = await asyncpg.connect(vacant_database_url)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


@pytest.fixture
def facts_after(admin: "asyncpg.Connection[Any]") -> FactsAfter:
    """``await facts_after(script)``: the facts once ``script`` has run; all is undone with the test."""

    async def run(script: str) -> Facts:
        await admin.execute(script)
        await admin.execute("RESET ROLE")
        return await read_facts_inside(admin)

    return run
