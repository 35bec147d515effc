"""A real PostgreSQL for every test that asks for one: the embedded server, or the one that a URL names.

``TENANTRY_TEST_DATABASE_URL`` (a superuser's URL) names a server of your own. With pytest-xdist each worker
starts its own server. Where neither can be had the tests are skipped; with ``CI=true`` that is a failure.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from tenantry.kernel.errors import MissingExtra
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.urls import DatabaseUrls, with_database

_T = TypeVar("_T")

# In CI the examples follow from the tests alone: a run says something about the change, not about luck. At a
# desk they are drawn afresh each time, and what is found there becomes an example.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
    settings.load_profile("ci")

FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB"}
"""For servers whose crash is not what is tested. Not for crash tests."""

_names = count(1)


def run_apart(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Runs a coroutine to its end in a thread, so that sync fixtures may, whatever loop the test has."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def without_postgres(reason: str) -> None:
    """Skips the test; fails it in CI, where a server is promised."""
    line = f"{reason}; or set TENANTRY_TEST_DATABASE_URL to a superuser's URL"
    if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
        pytest.fail(line)
    pytest.skip(line)


@pytest.fixture
def server_home() -> Iterator[Path]:
    """A short, new directory that the account ``nobody`` can pass; pytest's own, as root, it cannot."""
    home = Path(tempfile.mkdtemp(prefix="tnt-"))
    home.chmod(0o711)
    yield home
    shutil.rmtree(home)


@pytest.fixture(scope="session")
def made_data_dir() -> Iterator[Path]:
    """A data directory with a cluster, its server stopped: to copy it is cheaper than initdb."""
    home = Path(tempfile.mkdtemp(prefix="tnt-"))
    with EmbeddedServer(home, settings=FAST):
        pass
    yield home
    shutil.rmtree(home)


@pytest.fixture
def embedded_server_factory(
    server_home: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., EmbeddedServer]]:
    """``make(name="a", **arguments)``: servers, not started and with fsync on; ended with the test.

    ``made=True`` begins with a cluster that was made before, for tests that are not about making one.
    """
    servers: list[EmbeddedServer] = []

    def make(name: str = "a", *, made: bool = False, **arguments: Any) -> EmbeddedServer:
        try:
            server = EmbeddedServer(server_home / name, **arguments)
        except MissingExtra as missing:
            without_postgres(str(missing))
            raise
        if made:
            home = request.getfixturevalue("made_data_dir")
            subprocess.run(["cp", "-a", home, server_home / name], check=True)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.kill()


@pytest.fixture(scope="session")
def postgres_admin_url() -> Iterator[str]:
    """A superuser's URL of the session's server, to its maintenance database."""
    given = os.environ.get("TENANTRY_TEST_DATABASE_URL")  # noqa: TID251 - see the top of this file
    if given:
        yield given
        return
    home = Path(tempfile.mkdtemp(prefix="tnt-"))
    try:
        with EmbeddedServer(home, settings=FAST) as server:
            yield server.url()
    except MissingExtra as missing:
        without_postgres(str(missing))
    finally:
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def migrated_template(postgres_admin_url: str) -> Iterator[str]:
    """The name of a migrated database that fresh ones are copied from: cheaper than migrating each."""
    name = f"tenantry_template_{os.getpid()}"
    run_apart(_create_template(postgres_admin_url, name))
    yield name
    run_apart(_administer(postgres_admin_url, f"DROP DATABASE {name}"))


@contextmanager
def _databases(admin_url: str, template: str) -> Iterator[Callable[[], DatabaseUrls]]:
    made: list[str] = []

    def make() -> DatabaseUrls:
        name = f"tenantry_test_{os.getpid()}_{next(_names)}"
        run_apart(_administer(admin_url, f"CREATE DATABASE {name} TEMPLATE {template}"))
        made.append(name)
        return DatabaseUrls.derived(with_database(admin_url, name))

    yield make
    for name in made:
        run_apart(_administer(admin_url, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def fresh_database(postgres_admin_url: str, migrated_template: str) -> Iterator[Callable[[], DatabaseUrls]]:
    """``make()``: the three URLs of one more fresh, migrated database; all are dropped after the test."""
    with _databases(postgres_admin_url, migrated_template) as make:
        yield make


@pytest.fixture(scope="module")
def shared_database(postgres_admin_url: str, migrated_template: str) -> Iterator[DatabaseUrls]:
    """The three URLs of one database for a whole file of tests, each of which empties it first."""
    with _databases(postgres_admin_url, migrated_template) as make:
        yield make()


@pytest.fixture
def database_urls(fresh_database: Callable[[], DatabaseUrls]) -> DatabaseUrls:
    """The three URLs of a fresh, migrated database, dropped after the test. Serves sync and async tests."""
    return fresh_database()


@pytest.fixture
def empty_database_url(postgres_admin_url: str) -> Iterator[str]:
    """A superuser's URL of a fresh database without our schema, dropped after the test."""
    with _empty_database(postgres_admin_url) as url:
        yield url


@contextmanager
def _empty_database(admin_url: str) -> Iterator[str]:
    name = f"tenantry_empty_{os.getpid()}_{next(_names)}"
    run_apart(_administer(admin_url, f"CREATE DATABASE {name} TEMPLATE template0"))
    yield with_database(admin_url, name)
    run_apart(_administer(admin_url, f"DROP DATABASE {name} WITH (FORCE)"))


async def _create_template(admin_url: str, name: str) -> None:
    from tenantry.postgres.migrate import migrate

    await _administer(admin_url, f"CREATE DATABASE {name} TEMPLATE template0")
    urls = DatabaseUrls.derived(with_database(admin_url, name))
    await migrate(urls.admin, engine_password=urls.engine_password, tenant_password=urls.tenant_password)


async def _administer(admin_url: str, statement: str) -> None:
    from tenantry.postgres.database import connect_once

    connection = await connect_once(admin_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
