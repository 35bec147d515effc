"""One connection of a superuser to one empty database, and what a script leaves in its catalogue."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from rls_servers import Databases, rls_databases, rls_server
from rls_world import FactsAfter, undone

from tenantry.postgres.catalogue import read_facts_inside
from tenantry.rls import Facts
from tenantry.testing.row_policies import base

__all__ = ["rls_databases", "rls_server"]
"""Databases on each server version, for every test here."""


def facts_reader(connection: "asyncpg.Connection[Any]") -> FactsAfter:
    async def run(script: str) -> Facts:
        savepoint = connection.transaction()
        await savepoint.start()
        try:
            await connection.execute(script)
            await connection.execute("RESET ROLE")
            return await read_facts_inside(connection)
        finally:
            await savepoint.rollback()

    return run


@pytest.fixture(scope="session")
def vacant_database_url(rls_server: Databases) -> Iterator[str]:
    """A superuser's URL of one database on each server version, for tests that undo whatever they make."""
    databases = Databases(rls_server.admin_url, rls_server.version)
    yield databases()
    databases.drop()


@pytest.fixture
async def facts_after(vacant_database_url: str) -> AsyncIterator[FactsAfter]:
    """``await facts_after(script)``: the facts once ``script`` has run in an empty database; then it is
    undone."""
    async with undone(vacant_database_url) as connection:
        yield facts_reader(connection)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def facts_of_shop(vacant_database_url: str) -> AsyncIterator[FactsAfter]:
    """The same over the shop of the mutation kit, made once for a file of tests: its tests share one loop."""
    async with undone(vacant_database_url) as connection:
        await connection.execute(base())
        yield facts_reader(connection)
