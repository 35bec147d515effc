"""One way in for every driver, so that one suite holds them all: a door opens bound transactions over a pool.

The sync drivers do their work in threads, one a transaction, which is how their users have it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from itertools import count
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import asyncpg
import psycopg
import psycopg_pool
from sqlalchemy import URL, create_engine, text
from sqlalchemy.ext.asyncio import create_async_engine

from tenantry.bindings import Binding, use_tenant
from tenantry.bindings.asyncpg import Tenants as AsyncpgTenants
from tenantry.bindings.psycopg import AsyncTenants, Tenants
from tenantry.bindings.sqlalchemy import bind_engine

Rows = list[tuple[Any, ...]]
WAIT = 0.3
"""Seconds that a pool lets one wait for a connection."""


class Hand(Protocol):
    """What a body does its work with."""

    async def rows(self, sql: str) -> Rows: ...

    def savepoint(self) -> AbstractAsyncContextManager[None]: ...


class Door(Protocol):
    sync: bool

    def bound(self, tenant: object | None) -> AbstractAsyncContextManager[Hand]:
        """A transaction of ``tenant`` through the binding."""
        ...

    def raw(self) -> AbstractAsyncContextManager[Hand]:
        """A connection of the same pool without the binding, each statement committed: the careless code."""
        ...

    async def close(self) -> None: ...


class AsyncpgDoor:
    sync = False

    def __init__(self, url: str, binding: Binding, size: int) -> None:
        self.url, self.binding, self.size = url, binding, size

    async def start(self) -> "AsyncpgDoor":
        # the pool's own reset would hide what careless code left behind
        cache = {} if "6432" not in self.url else {"statement_cache_size": 0}
        self.pool = await asyncpg.create_pool(
            self.url, min_size=1, max_size=self.size, reset=_no_reset, **cache
        )
        self.tenants = AsyncpgTenants(self.pool, self.binding)
        return self

    @asynccontextmanager
    async def bound(self, tenant: object | None) -> AsyncIterator["AsyncpgHand"]:
        async with asyncio.timeout(None) as limit:
            limit.reschedule(asyncio.get_running_loop().time() + WAIT + 1)
            async with self.tenants.transaction(tenant) as connection:
                limit.reschedule(None)
                yield AsyncpgHand(connection)

    @asynccontextmanager
    async def raw(self) -> AsyncIterator["AsyncpgHand"]:
        async with self.pool.acquire() as connection:
            yield AsyncpgHand(connection)

    async def close(self) -> None:
        self.pool.terminate()


async def _no_reset(connection: object) -> None:
    """Nothing."""


class AsyncpgHand:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def rows(self, sql: str) -> Rows:
        return [tuple(row) for row in await self.connection.fetch(sql)]

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        async with self.connection.transaction():
            yield


class AsyncPsycopgDoor:
    sync = False

    def __init__(self, url: str, binding: Binding, size: int) -> None:
        self.pool = psycopg_pool.AsyncConnectionPool(
            url, min_size=1, max_size=size, open=False, timeout=WAIT, kwargs=_modest(url)
        )
        self.tenants = AsyncTenants(self.pool, binding)

    async def start(self) -> "AsyncPsycopgDoor":
        await self.pool.open(wait=True)
        return self

    @asynccontextmanager
    async def bound(self, tenant: object | None) -> AsyncIterator["AsyncPsycopgHand"]:
        async with self.tenants.transaction(tenant) as connection:
            yield AsyncPsycopgHand(connection)

    @asynccontextmanager
    async def raw(self) -> AsyncIterator["AsyncPsycopgHand"]:
        async with self.pool.connection() as connection:
            await connection.set_autocommit(True)
            yield AsyncPsycopgHand(connection)
            await connection.set_autocommit(False)

    async def close(self) -> None:
        await self.pool.close(timeout=1)


class AsyncPsycopgHand:
    def __init__(self, connection: "psycopg.AsyncConnection[Any]") -> None:
        self.connection = connection

    async def rows(self, sql: str) -> Rows:
        cursor = await self.connection.execute(sql.encode())
        return await cursor.fetchall() if cursor.description else []

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        async with self.connection.transaction():
            yield


class AsyncAlchemyDoor:
    sync = False

    def __init__(self, url: str, binding: Binding, size: int, *, driver: str) -> None:
        arguments: dict[str, Any] = {"connect_args": _modest(url)}
        if driver == "asyncpg" and "6432" in url:
            arguments["connect_args"] = {
                "statement_cache_size": 0, "prepared_statement_cache_size": 0,
                "prepared_statement_name_func": _unnamed,
            }  # fmt: skip
        elif driver == "asyncpg":
            arguments = {}
        self.engine = create_async_engine(
            alchemy_url(url, driver), pool_size=size, max_overflow=0, pool_timeout=WAIT, **arguments
        )
        bind_engine(self.engine, binding)

    async def start(self) -> "AsyncAlchemyDoor":
        return self

    @asynccontextmanager
    async def bound(self, tenant: object | None) -> AsyncIterator["AsyncAlchemyHand"]:
        with use_tenant(tenant):
            async with self.engine.begin() as connection:
                yield AsyncAlchemyHand(connection)

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[Hand]:
        async with self.engine.connect() as connection:
            raw: Any = (await connection.get_raw_connection()).driver_connection
            if isinstance(raw, psycopg.AsyncConnection):
                await raw.set_autocommit(True)
                yield AsyncPsycopgHand(raw)
                await raw.set_autocommit(False)
            else:
                yield AsyncpgHand(raw)

    async def close(self) -> None:
        await self.engine.dispose()


def _unnamed() -> str:
    return ""


class AsyncAlchemyHand:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def rows(self, sql: str) -> Rows:
        result = await self.connection.execute(text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        async with self.connection.begin_nested():
            yield


class PsycopgInner:
    def __init__(self, url: str, binding: Binding, size: int) -> None:
        self.pool = psycopg_pool.ConnectionPool(
            url, min_size=1, max_size=size, open=True, timeout=WAIT, kwargs=_modest(url)
        )
        self.tenants = Tenants(self.pool, binding)

    @contextmanager
    def bound(self, tenant: object | None) -> Iterator["PsycopgTool"]:
        with self.tenants.transaction(tenant) as connection:
            yield PsycopgTool(connection)

    @contextmanager
    def raw(self) -> Iterator["PsycopgTool"]:
        with self.pool.connection() as connection:
            connection.autocommit = True
            yield PsycopgTool(connection)
            connection.autocommit = False

    def close(self) -> None:
        self.pool.close(timeout=1)


class PsycopgTool:
    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection

    def rows(self, sql: str) -> Rows:
        cursor = self.connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    def savepoint(self) -> AbstractContextManager[object]:
        return self.connection.transaction()


class AlchemyInner:
    def __init__(self, url: str, binding: Binding, size: int) -> None:
        self.engine = create_engine(
            alchemy_url(url, "psycopg"), pool_size=size, max_overflow=0, pool_timeout=WAIT,
            connect_args=_modest(url),
        )  # fmt: skip
        bind_engine(self.engine, binding)

    @contextmanager
    def bound(self, tenant: object | None) -> Iterator["AlchemyTool"]:
        with use_tenant(tenant), self.engine.begin() as connection:
            yield AlchemyTool(connection)

    @contextmanager
    def raw(self) -> Iterator["PsycopgTool"]:
        fairy = self.engine.raw_connection()
        connection: Any = fairy.driver_connection
        try:
            connection.autocommit = True
            yield PsycopgTool(connection)
            connection.autocommit = False
        finally:
            fairy.close()

    def close(self) -> None:
        self.engine.dispose()


class AlchemyTool:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def rows(self, sql: str) -> Rows:
        result = self.connection.execute(text(sql))
        return [tuple(row) for row in result] if result.returns_rows else []

    def savepoint(self) -> AbstractContextManager[object]:
        nested: AbstractContextManager[object] = self.connection.begin_nested()
        return nested


class DjangoInner:
    """An alias of its own in Django's settings, over Django's connection pool."""

    numbers = count(1)

    def __init__(self, url: str, binding: Binding, size: int) -> None:
        import django
        from django.conf import settings
        from django.db import connections

        if not settings.configured:
            settings.configure(DATABASES={})
            django.setup()
        self.alias = f"door_{next(self.numbers)}"
        parts = urlsplit(url)
        host = parse_qs(parts.query)
        self.connections = connections
        connections.settings[self.alias] = {
            "ENGINE": "tenantry.bindings.django", "NAME": parts.path[1:], "USER": parts.username,
            "PASSWORD": "", "HOST": host["host"][0], "PORT": host["port"][0], "TIME_ZONE": None, "TEST": {},
            "ATOMIC_REQUESTS": False, "AUTOCOMMIT": True, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False,
            "OPTIONS": {
                "tenant_binding": binding, "pool": {"min_size": 1, "max_size": size, "timeout": WAIT},
            },
        }  # fmt: skip

    @contextmanager
    def bound(self, tenant: object | None) -> Iterator["DjangoTool"]:
        from tenantry.bindings.django import tenant_atomic

        try:
            with tenant_atomic(tenant, self.alias):
                yield DjangoTool(self.connections[self.alias], self.alias)
        finally:
            self.connections[self.alias].close()

    @contextmanager
    def raw(self) -> Iterator["PsycopgTool"]:
        wrapper = self.connections[self.alias]
        wrapper.ensure_connection()
        try:
            yield PsycopgTool(wrapper.connection)
        finally:
            wrapper.close()

    def close(self) -> None:
        self.connections[self.alias].close_pool()


class DjangoTool:
    def __init__(self, wrapper: Any, alias: str) -> None:
        self.wrapper, self.alias = wrapper, alias

    def rows(self, sql: str) -> Rows:
        with self.wrapper.cursor() as cursor:
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    def savepoint(self) -> AbstractContextManager[object]:
        from django.db import transaction

        atomic: AbstractContextManager[object] = transaction.atomic(self.alias)
        return atomic


class Threads:
    """A sync driver's door: a thread of its own for each transaction, kept for all of it."""

    sync = True

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.idle = [ThreadPoolExecutor(1) for _ in range(16)]

    async def start(self) -> "Threads":
        return self

    def bound(self, tenant: object | None) -> AbstractAsyncContextManager["ThreadHand"]:
        return self._entered(partial(self.inner.bound, tenant))

    def raw(self) -> AbstractAsyncContextManager["ThreadHand"]:
        return self._entered(self.inner.raw)

    @asynccontextmanager
    async def _entered(self, make: Callable[[], AbstractContextManager[Any]]) -> AsyncIterator["ThreadHand"]:
        thread = self.idle.pop()
        try:
            async with in_thread(thread, make()) as tool:
                yield ThreadHand(thread, tool)
        finally:
            self.idle.append(thread)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self.idle[0], self.inner.close)
        for thread in self.idle:
            thread.shutdown()


@asynccontextmanager
async def in_thread(thread: ThreadPoolExecutor, manager: AbstractContextManager[Any]) -> AsyncIterator[Any]:
    run = partial(asyncio.get_running_loop().run_in_executor, thread)
    entering = asyncio.ensure_future(run(manager.__enter__))
    try:
        tool = await asyncio.shield(entering)
    except asyncio.CancelledError as error:  # the thread enters all the same, and somebody must leave
        await entering
        await run(manager.__exit__, type(error), error, error.__traceback__)
        raise
    try:
        yield tool
    except BaseException as error:
        if not await run(manager.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await run(manager.__exit__, None, None, None)


class ThreadHand:
    def __init__(self, thread: ThreadPoolExecutor, tool: Any) -> None:
        self.thread, self.tool = thread, tool

    async def rows(self, sql: str) -> Rows:
        return await asyncio.get_running_loop().run_in_executor(self.thread, self.tool.rows, sql)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        async with in_thread(self.thread, self.tool.savepoint()):
            yield


def _modest(url: str) -> dict[str, Any]:
    """Through a PgBouncer no statement is prepared."""
    return {"prepare_threshold": None} if "6432" in url else {}


def alchemy_url(url: str, driver: str) -> URL:
    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return URL.create(f"postgresql+{driver}", parts.username, database=parts.path[1:], query=options)


async def _started(door: Any) -> Door:
    opened: Door = await door.start()
    return opened


DOORS: dict[str, Callable[[str, Binding, int], Any]] = {
    "asyncpg": AsyncpgDoor,
    "psycopg": lambda url, binding, size: Threads(PsycopgInner(url, binding, size)),
    "psycopg-async": AsyncPsycopgDoor,
    "sqlalchemy-psycopg": lambda url, binding, size: Threads(AlchemyInner(url, binding, size)),
    "sqlalchemy-psycopg-async": partial(AsyncAlchemyDoor, driver="psycopg"),
    "sqlalchemy-asyncpg": partial(AsyncAlchemyDoor, driver="asyncpg"),
    "django": lambda url, binding, size: Threads(DjangoInner(url, binding, size)),
}
"""Every driver, and how its door is made: ``(url, binding, size of the pool)``."""


async def open_door(name: str, url: str, binding: Binding, size: int) -> Door:
    return await _started(DOORS[name](url, binding, size))
