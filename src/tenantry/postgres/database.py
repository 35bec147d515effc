"""Connections: a pool for the engine, a pool for tenants, and one connection that no burst can use up."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import asyncpg

from tenantry.kernel.errors import Closed, StoreUnavailable, UsageError
from tenantry.postgres.errors import FOREIGN, translated
from tenantry.postgres.urls import DatabaseUrls, redacted

OLDEST = 15
"""The oldest major version of PostgreSQL that is supported."""

POOL_TIMEOUT = 30.0
"""Seconds after which a statement of a pool is given up: a half-open connection must not hold a caller."""

SIDE_CONNECTIONS = 4
"""For what is neither a worker's nor a tenant's: keys, the registry, counts, facts, feeding, the planner's
place. Apart, so that no flood of requests, refused ones too, can hold up a settle or a round."""

CONTROL_TIMEOUT = 10.0
"""The same for the reserved connection, whose statements are all short."""

CONNECT_TIMEOUT = 5.0
"""Seconds until a connection must be there, or the server counts as gone. Less than a lease is long."""

Hint = Callable[[str], None]
"""Called with the payload of a notification, or with "" when some may have been missed. Must not raise."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """How sessions begin.

    ``relaxed`` ones do not wait for the disk at COMMIT: after a crash of the server the last fraction of a
    second of their work is undone, never torn. Submits must not be relaxed (law K1).
    """

    application_name: str
    pgbouncer: bool

    def arguments(self, *, relaxed: bool, timeout: float) -> dict[str, Any]:
        """Arguments of asyncpg's ``connect``. PgBouncer refuses settings at start and loses statements."""
        if self.pgbouncer:
            return {"timeout": CONNECT_TIMEOUT, "command_timeout": timeout, "statement_cache_size": 0}
        settings = {"application_name": self.application_name, "jit": "off"}
        if relaxed:
            settings["synchronous_commit"] = "off"
        return {"timeout": CONNECT_TIMEOUT, "command_timeout": timeout, "server_settings": settings}


class Control:
    """The reserved connection, on the engine's login. Statements of several tasks run one after the other.

    A connection that is gone is opened again at the next use. The statement that found it gone raises
    :class:`StoreUnavailable` and is never run twice: only its caller knows whether that is safe.
    """

    def __init__(self, url: str, arguments: dict[str, Any], *, can_listen: bool) -> None:
        self._url, self._arguments, self.can_listen = url, arguments, can_listen
        self._turn = asyncio.Lock()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._hints: dict[str, Hint] = {}
        self._closed = False

    async def fetch(self, query: str, *args: object) -> "list[asyncpg.Record]":
        async with self.connection() as connection:
            rows: list[asyncpg.Record] = await connection.fetch(query, *args)
            return rows

    async def fetchrow(self, query: str, *args: object) -> "asyncpg.Record | None":
        async with self.connection() as connection:
            return await connection.fetchrow(query, *args)

    async def fetchval(self, query: str, *args: object) -> Any:
        async with self.connection() as connection:
            return await connection.fetchval(query, *args)

    async def execute(self, query: str, *args: object) -> str:
        async with self.connection() as connection:
            tag: str = await connection.execute(query, *args)
            return tag

    async def listen(self, channel: str, hint: Hint) -> None:
        """Calls ``hint`` on each notification; one a channel. A reconnect sets it up again and gives it "".

        A notification is a hint and polling stands behind it: those sent while disconnected are lost. Raises
        :class:`UsageError` behind PgBouncer (see ``can_listen``).
        """
        if not self.can_listen:
            raise UsageError(
                "LISTEN does not pass a PgBouncer in transaction mode: poll, or connect directly"
            )
        async with self.connection() as connection:
            await connection.add_listener(channel, _listener(hint))
            self._hints[channel] = hint

    @asynccontextmanager
    async def connection(self) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
        """The connection, to oneself. Raises :class:`StoreUnavailable` and :class:`Closed`.

        A statement that was given up, by its caller or by its time, ends the connection: the network may be
        cut, and the driver would have the next one wait, without limit, until the server has heard of it.
        """
        async with self._turn:
            with translated("on the control connection", where=redacted(self._url)):
                connection = await self._opened()
                try:
                    yield connection
                except (TimeoutError, asyncio.CancelledError):
                    connection.terminate()
                    raise

    async def close(self) -> None:
        """Ends the connection, once a running statement has ended. Safe to call twice."""
        async with self._turn:
            self._closed = True
            if self._connection is not None:
                await _closed_within(self._connection)
                self._connection = None

    async def _opened(self) -> "asyncpg.Connection[asyncpg.Record]":
        if self._closed:
            raise Closed("the database was closed; open it again with Database.open()")
        if self._connection is None or self._connection.is_closed():
            fresh = await asyncpg.connect(self._url, **self._arguments)
            for channel, hint in self._hints.items():
                await fresh.add_listener(channel, _listener(hint))
                hint("")
            self._connection = fresh
        return self._connection


@dataclass(slots=True)
class Opened:
    """How many connections a pool has opened so far. Where that has changed one may have broken, and the
    answer to its last statement with it; or the server crashed, and what relaxed sessions had been told was
    undone."""

    count: int = 0

    async def check(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        await check(connection)
        self.count += 1


@dataclass(slots=True)
class Database:
    """The connections of one process. Belongs to one event loop.

    ``engine`` is the worker's pool, ``tenant`` the tenants', ``side`` everything else's, all asyncpg's;
    ``planning`` is the connection of the planner's rounds, opened at its first use. A connection returns to
    its pool rolled back but otherwise as it is (no RESET: it would cost a round trip), so nothing may be set
    on a session except by ``SET LOCAL``.
    """

    engine: "asyncpg.Pool[asyncpg.Record]"
    tenant: "asyncpg.Pool[asyncpg.Record]"
    side: "asyncpg.Pool[asyncpg.Record]"
    planning: Control
    control: Control
    urls: DatabaseUrls
    engine_opened: Opened = field(default_factory=Opened)
    _open: bool = field(default=True)

    @classmethod
    async def open(
        cls,
        urls: DatabaseUrls,
        *,
        engine_connections: int = 8,
        tenant_connections: int = 8,
        application_name: str = "tenantry",
        relaxed_engine: bool = True,
    ) -> Self:
        """Opens all three; checks both logins and the server's version.

        ``relaxed_engine``: the engine's sessions have ``synchronous_commit = off`` (see :class:`Sessions`);
        not applied behind PgBouncer. Raises :class:`StoreUnavailable`, saying what to do, when the server is
        not there, refuses a login, lacks the database, or is older than :data:`OLDEST`.
        """
        sessions = Sessions(application_name, urls.pgbouncer)
        relaxed = sessions.arguments(relaxed=relaxed_engine, timeout=POOL_TIMEOUT)
        durable = sessions.arguments(relaxed=False, timeout=POOL_TIMEOUT)
        watched = sessions.arguments(relaxed=relaxed_engine, timeout=CONTROL_TIMEOUT)
        opened = Opened()
        engine = await _pool(urls.engine, engine_connections, relaxed, opened)
        try:
            tenant = await _pool(urls.tenant, tenant_connections, durable, Opened())
        except BaseException:
            engine.terminate()
            raise
        try:
            side = await _pool(urls.engine, SIDE_CONNECTIONS, relaxed, Opened())
        except BaseException:
            engine.terminate()
            tenant.terminate()
            raise
        planning = Control(
            urls.engine, sessions.arguments(relaxed=relaxed_engine, timeout=POOL_TIMEOUT), can_listen=False
        )
        control = Control(urls.engine, watched, can_listen=not urls.pgbouncer)
        return cls(engine, tenant, side, planning, control, urls, opened)

    async def close(self) -> None:
        """Closes all, waiting a few seconds for what is in use. Safe to call twice."""
        if not self._open:
            return
        self._open = False
        await self.control.close()
        await self.planning.close()
        await asyncio.gather(*(_closed_within(pool) for pool in (self.engine, self.tenant, self.side)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def check(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Raises :class:`StoreUnavailable` unless the server is of a supported version."""
    version = connection.get_server_version()
    if version.major < OLDEST:
        raise StoreUnavailable(
            f"the server is PostgreSQL {version.major}.{version.minor}; Tenantry needs {OLDEST} or newer"
        )


async def connect_once(url: str) -> "asyncpg.Connection[asyncpg.Record]":
    """A single plain connection that works behind PgBouncer, checked. Raises :class:`StoreUnavailable`."""
    with translated("connecting", where=redacted(url)):
        connection = await asyncpg.connect(url, statement_cache_size=0)
        try:
            await check(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection


async def _pool(
    url: str, size: int, arguments: dict[str, Any], opened: Opened
) -> "asyncpg.Pool[asyncpg.Record]":
    with translated("connecting", where=redacted(url)):
        return await asyncpg.create_pool(
            url, min_size=1, max_size=size, init=opened.check, reset=_kept_as_it_is, **arguments
        )


async def _kept_as_it_is(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """asyncpg has rolled back an open transaction before it calls this."""


def _listener(hint: Hint) -> Callable[..., None]:
    def heard(connection: object, pid: int, channel: str, payload: object) -> None:
        hint(str(payload))

    return heard


async def _closed_within(opened: Any, seconds: float = 5.0) -> None:
    try:
        await asyncio.wait_for(opened.close(), seconds)
    except FOREIGN:
        opened.terminate()  # it is being closed anyway: what the server thinks of it no longer matters
