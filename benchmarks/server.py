"""One PostgreSQL for everybody: the embedded server as the product starts it, and a fresh database a run."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.fleet import carry_out
from benchmarks.systems import System
from tenantry.postgres.database import connect_once
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.urls import with_database

MANY = 200_000
"""From so many jobs on a database is copied file by file, not through the log."""


@contextmanager
def server() -> Iterator["Server"]:
    """The embedded server with its default, durable settings, in a directory of its own."""
    home = Path(tempfile.mkdtemp(prefix="tntb-"))
    home.chmod(0o711)
    try:
        with EmbeddedServer(home / "a") as embedded:
            yield Server(embedded.url())
    finally:
        shutil.rmtree(home, ignore_errors=True)


class Server:
    """Databases: a loaded template a system and backlog, and a copy of it for each run, dropped after it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._names = count(1)
        self._templates: dict[tuple[str, int, int], str] = {}

    @asynccontextmanager
    async def fresh(self, system: System, jobs: int = 0, tenants: int = 10) -> AsyncIterator[str]:
        """The URL of a database of ``system`` with ``jobs`` waiting."""
        template = await self._template(system, jobs, tenants)
        name = f"run_{next(self._names)}"
        strategy = "FILE_COPY" if jobs >= MANY else "WAL_LOG"
        await self.administer(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {strategy}")
        try:
            yield with_database(self.url, name)
        finally:
            await self.administer(f"DROP DATABASE {name} WITH (FORCE)")

    async def forget(self) -> None:
        """Drop the templates: the next cell loads its own."""
        while self._templates:
            _, name = self._templates.popitem()
            await self.administer(f"DROP DATABASE {name} WITH (FORCE)")

    async def administer(self, statement: str, url: str | None = None) -> None:
        connection = await connect_once(url or self.url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def _template(self, system: System, jobs: int, tenants: int) -> str:
        key = (system.name, jobs, tenants)
        if key not in self._templates:
            name = f"template_{next(self._names)}"
            await self.administer(f"CREATE DATABASE {name} TEMPLATE template0")
            url = with_database(self.url, name)
            options = {"url": url, "jobs": jobs, "tenants": tenants}
            await carry_out(system, "install", options)
            if jobs:
                await carry_out(system, "load", options)
            await self.administer("VACUUM (ANALYZE)", url)  # as autovacuum would have, by then
            self._templates[key] = name
        return self._templates[key]


async def recorded(connection: Any, system: System, within: float) -> None:
    """Returns when nothing is left to record."""
    until = time.perf_counter() + within
    while await connection.fetchval(system.unrecorded) and time.perf_counter() < until:  # noqa: ASYNC110
        await asyncio.sleep(0.002)  # whoever records it tells nobody
