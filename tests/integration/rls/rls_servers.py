"""Databases on every server version whose row policies are tested, and ways to run and ask something
there."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pytest

from tenantry.kernel.errors import MissingExtra
from tenantry.kernel.randomness import SeededRandomness
from tenantry.postgres.catalogue import PostgresCatalogue
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.urls import with_database
from tenantry.postgres.workbench import workbench
from tenantry.rls import audit
from tenantry.rls.apply import Applied, Surroundings, apply
from tenantry.rls.declaration import Declaration, parse_declaration
from tenantry.rls.plan import Plan, plan
from tenantry.rls.scope import declared_by
from tenantry.rls.script import Bounds

_T = TypeVar("_T")

BINARIES = {18: None, 15: Path("/usr/lib/postgresql/15/bin")}
"""By major version: where the programs are; None for those of the ``embedded`` extra."""

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "shared_preload_libraries": "pg_stat_statements",
    "max_prepared_transactions": "2",
}

_numbers = count(1)


@dataclass(slots=True)
class Databases:
    """Fresh databases of one server, and the roles that go with them: ``databases(*statements)`` is the URL
    of a superuser to one more. All are dropped after the test."""

    admin_url: str
    version: int
    made: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)

    def __call__(self, *statements: str) -> str:
        name = f"rls_{os.getpid()}_{next(_numbers)}"
        run(self.admin_url, f"CREATE DATABASE {name} TEMPLATE template0")
        self.made.append(name)
        url = with_database(self.admin_url, name)
        run(url, *statements)
        return url

    def role(self, name: str, attributes: str = "LOGIN") -> str:
        """A role of this name, made anew. Roles belong to the whole server, which one test at a time uses."""
        run(self.admin_url, f"DROP ROLE IF EXISTS {name}", f"CREATE ROLE {name} {attributes}")
        self.roles.append(name)
        return name

    def drop(self) -> None:
        for name in self.made:
            run(self.admin_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        for name in reversed(self.roles):
            run(self.admin_url, f"DROP ROLE IF EXISTS {name}")


@pytest.fixture(scope="session", params=[18, 15])
def rls_server(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """One server of each version, for the session."""
    binaries = BINARIES[request.param]
    if binaries is not None and not (binaries / "postgres").exists():
        without(f"there is no PostgreSQL {request.param} in {binaries}: sh tests/install_servers.sh")
    home = Path(tempfile.mkdtemp(prefix="tnt-"))
    try:
        with EmbeddedServer(home, binaries=binaries, settings=SETTINGS) as server:
            yield Databases(server.url(), request.param)
    except MissingExtra as missing:
        without(str(missing))
    finally:
        shutil.rmtree(home)


@pytest.fixture
def rls_databases(rls_server: Databases) -> Iterator[Databases]:
    """``rls_databases(*statements)``: a superuser's URL of one more database, on each server version."""
    databases = Databases(rls_server.admin_url, rls_server.version)
    yield databases
    databases.drop()


def run(url: str, *statements: str) -> None:
    """Runs each statement by itself, in a thread of its own: for sync and async tests alike."""
    apart(_run(url, statements))


def ask(url: str, query: str, *args: object) -> list[Any]:
    """The rows of one query, as tuples."""
    return apart(_ask(url, query, args))


def apart(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs it to its end in a thread of its own: for sync and async tests alike."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


async def _run(url: str, statements: tuple[str, ...]) -> None:
    connection = await asyncpg.connect(url)
    try:
        for each in statements:
            await connection.execute(each)
    finally:
        await connection.close()


async def _ask(url: str, query: str, args: tuple[object, ...]) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(query, *args)]
    finally:
        await connection.close()


def without(reason: str) -> None:
    """As for every server: skipped at a desk, a failure in CI, where it is promised."""
    if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
        pytest.fail(reason)
    pytest.skip(reason)


def applied(url: str, declaration: str, bounds: Bounds | None = None) -> Applied:
    """What `tenantry rls apply` does with the TOML text ``declaration``."""
    return apart(_applied(url, parse_declaration(declaration), bounds or Bounds(attempts=1)))


def planned(url: str, declaration: str) -> Plan:
    """What `tenantry rls plan` finds missing."""
    return plan(parse_declaration(declaration), apart(PostgresCatalogue(url).facts()))


def audited(url: str, declaration: str) -> dict[str, str]:
    """What `tenantry rls audit` finds and does not excuse: severity by rule and place."""
    facts = apart(PostgresCatalogue(url).facts())
    found = audit(facts, declared_by(parse_declaration(declaration))).findings
    return {each.key: each.severity.word for each in found if not each.excuse}


async def _applied(url: str, declaration: Declaration, bounds: Bounds) -> Applied:
    surroundings = Surroundings(asyncio.sleep, SeededRandomness(7))
    async with workbench(url) as bench:
        return await apply(declaration, bench, bounds, surroundings)
