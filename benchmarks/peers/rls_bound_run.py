"""``rls_bound_run.py DRIVER SECONDS URL...``: microseconds of a transaction in each way over each URL.

The ways take turns transaction by transaction, in one process and over one connection of one pool, made as
the driver's documentation has it: a second connection's server process may sit on another processor, which is
a greater difference than what is measured. Told, as JSON, are the median time on the wall of single
transactions, and the processor time, of this process and the server's together, of a median turn of twenty
(null where the system does not tell it). Each transaction is one indexed SELECT of ten rows, the same text
but for the table: ``plain`` has no row policy, ``guarded`` has one. The login owns neither. The ways:

- unbound: BEGIN, the SELECT from ``plain``, COMMIT, as the driver does it.
- ours: the SELECT from ``guarded`` in a bound transaction.
- by hand: the driver's transaction, ``SELECT set_config(…)`` as its first statement; nothing is checked.
- floor (not over SQLAlchemy's asyncpg, which has no way to do it): the same in BEGIN's message, below the
  driver; nothing is checked.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tenantry.bindings import Binding, use_tenant

WARM, TURN = 12, 20
TENANT = 42
BINDING = Binding(type="int")
QUERY = "SELECT id, body FROM {table} WHERE tenant_id = {mark}"
BIND = "SELECT set_config('app.tenant_id', {mark}, true)"
AT_ONCE = "BEGIN;SELECT set_config('app.tenant_id', '42', true)"
SERVERS = "SELECT pid FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()"

Ways = Mapping[str, Callable[[], Any]]
AsyncWays = Mapping[str, Callable[[], Awaitable[Any]]]
Told = dict[str, tuple[float, float | None]]


@dataclass
class Taken:
    """What one way has taken: seconds a transaction, on the wall and of processors."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def told(self) -> tuple[float, float | None]:
        return median(self.wall) * 1e6, median(self.cpu) * 1e6 if self.cpu else None


class Turns:
    """Says which way is to be gone how often, and notes what it took; without the going, sync or async."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds = url, seconds
        self.taken: dict[str, Taken] = {}

    def of(self, ways: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
        """The way, and how often; what it takes until the next one is asked for is noted."""
        for once in ways.values():
            yield once, WARM
        self.taken = {way: Taken() for way in ways}
        until = time.perf_counter() + 0.7 * self._seconds
        while time.perf_counter() < until:
            for way, once in ways.items():
                began = time.perf_counter()
                yield once, 1
                self.taken[way].wall.append(time.perf_counter() - began)
        yield from self._of_processors(ways)

    def _of_processors(self, ways: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
        until, servers = time.perf_counter() + 0.3 * self._seconds, _servers(self._url)
        while servers and time.perf_counter() < until:
            for way, once in ways.items():
                before = _spent(servers)
                yield once, TURN
                self.taken[way].cpu.append((_spent(servers) - before) / TURN)

    def told(self) -> Told:
        return {way: taken.told() for way, taken in self.taken.items()}


def _servers(url: str) -> list[Path]:
    import psycopg

    with psycopg.connect(url) as connection:
        pids = connection.execute(SERVERS).fetchall()
    return [path for (pid,) in pids if (path := Path(f"/proc/{pid}/schedstat")).exists()]


def _spent(servers: list[Path]) -> float:
    """Seconds of processors. A server process that ended meanwhile was another run's."""
    spent = time.process_time_ns()
    for path in servers:
        with suppress(OSError):
            spent += int(path.read_text().split()[0])
    return spent / 1e9


def turns(ways: Ways, url: str, seconds: float) -> Told:
    all_turns = Turns(url, seconds)
    for once, times in all_turns.of(ways):
        for _ in range(times):
            once()
    return all_turns.told()


async def turns_async(ways: AsyncWays, url: str, seconds: float) -> Told:
    all_turns = Turns(url, seconds)
    for once, times in all_turns.of(ways):
        for _ in range(times):
            await once()
    return all_turns.told()


def checked(rows: list[Any]) -> None:
    if len(rows) != 10:
        raise SystemExit(f"{len(rows)} rows, not 10")


async def asyncpg_run(url: str, seconds: float) -> Told:
    import asyncpg

    from tenantry.bindings.asyncpg import Tenants

    pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
    tenants = Tenants(pool, BINDING)
    plain, guarded = (QUERY.format(table=table, mark="$1") for table in ("plain", "guarded"))

    async def unbound() -> None:
        async with pool.acquire() as connection, connection.transaction():
            checked(await connection.fetch(plain, TENANT))

    async def ours() -> None:
        async with tenants.transaction(TENANT) as connection:
            checked(await connection.fetch(guarded, TENANT))

    async def by_hand() -> None:
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute(BIND.format(mark="$1"), str(TENANT))
            checked(await connection.fetch(guarded, TENANT))

    async def floor() -> None:
        async with pool.acquire() as connection:
            await connection.execute(AT_ONCE)
            checked(await connection.fetch(guarded, TENANT))
            await connection.execute("COMMIT")

    ways = {"unbound": unbound, "ours": ours, "by hand": by_hand, "floor": floor}
    return await turns_async(ways, url, seconds)


def psycopg_run(url: str, seconds: float) -> Told:
    from psycopg_pool import ConnectionPool

    from tenantry.bindings.psycopg import Tenants

    plain, guarded = (QUERY.format(table=table, mark="%s") for table in ("plain", "guarded"))
    with ConnectionPool(url, min_size=1, max_size=1) as pool:
        tenants = Tenants(pool, BINDING)

        def unbound() -> None:
            with pool.connection() as connection:
                checked(connection.execute(plain, (TENANT,)).fetchall())

        def ours() -> None:
            with tenants.transaction(TENANT) as connection:
                checked(connection.execute(guarded, (TENANT,)).fetchall())

        def by_hand() -> None:
            with pool.connection() as connection:
                connection.execute(BIND.format(mark="%s"), (str(TENANT),))
                checked(connection.execute(guarded, (TENANT,)).fetchall())

        def floor() -> None:
            with pool.connection() as connection:
                connection.pgconn.exec_(AT_ONCE.encode())
                checked(connection.execute(guarded, (TENANT,)).fetchall())

        ways = {"unbound": unbound, "ours": ours, "by hand": by_hand, "floor": floor}
        return turns(ways, url, seconds)


async def psycopg_async_run(url: str, seconds: float) -> Told:
    from psycopg_pool import AsyncConnectionPool

    from tenantry.bindings.psycopg import AsyncTenants

    plain, guarded = (QUERY.format(table=table, mark="%s") for table in ("plain", "guarded"))
    async with AsyncConnectionPool(url, min_size=1, max_size=1) as pool:
        tenants = AsyncTenants(pool, BINDING)

        async def unbound() -> None:
            async with pool.connection() as connection:
                checked(await (await connection.execute(plain, (TENANT,))).fetchall())

        async def ours() -> None:
            async with tenants.transaction(TENANT) as connection:
                checked(await (await connection.execute(guarded, (TENANT,))).fetchall())

        async def by_hand() -> None:
            async with pool.connection() as connection:
                await connection.execute(BIND.format(mark="%s"), (str(TENANT),))
                checked(await (await connection.execute(guarded, (TENANT,))).fetchall())

        async def floor() -> None:
            async with pool.connection() as connection:
                connection.pgconn.exec_(AT_ONCE.encode())
                checked(await (await connection.execute(guarded, (TENANT,))).fetchall())

        ways = {"unbound": unbound, "ours": ours, "by hand": by_hand, "floor": floor}
        return await turns_async(ways, url, seconds)


def alchemy_url(url: str, driver: str) -> Any:
    from sqlalchemy import URL

    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    login = (parts.username, parts.password, parts.hostname, parts.port)
    return URL.create(f"postgresql+{driver}", *login, database=parts.path[1:], query=options)


def sqlalchemy_run(url: str, seconds: float) -> Told:
    from sqlalchemy import create_engine, text

    from tenantry.bindings.sqlalchemy import bind_engine

    bound = create_engine(alchemy_url(url, "psycopg"), pool_size=1)
    bind_engine(bound, BINDING)
    free = create_engine(alchemy_url(url, "psycopg"), pool=bound.pool)
    plain, guarded = (text(QUERY.format(table=table, mark=":tenant")) for table in ("plain", "guarded"))
    bind = text(BIND.format(mark=":tenant"))

    def unbound() -> None:
        with free.begin() as connection:
            checked(list(connection.execute(plain, {"tenant": TENANT})))

    def ours() -> None:
        with use_tenant(TENANT), bound.begin() as connection:
            checked(list(connection.execute(guarded, {"tenant": TENANT})))

    def by_hand() -> None:
        with free.begin() as connection:
            connection.execute(bind, {"tenant": str(TENANT)})
            checked(list(connection.execute(guarded, {"tenant": TENANT})))

    def floor() -> None:
        with free.begin() as connection:
            raw: Any = connection.connection.dbapi_connection
            raw.pgconn.exec_(AT_ONCE.encode())
            checked(list(connection.execute(guarded, {"tenant": TENANT})))

    ways = {"unbound": unbound, "ours": ours, "by hand": by_hand, "floor": floor}
    return turns(ways, url, seconds)


async def sqlalchemy_async_run(url: str, seconds: float) -> Told:
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    from tenantry.bindings.sqlalchemy import bind_engine

    bound = create_async_engine(alchemy_url(url, "asyncpg"), pool_size=1)
    bind_engine(bound, BINDING)
    free = create_async_engine(alchemy_url(url, "asyncpg"), pool=bound.sync_engine.pool)
    plain, guarded = (text(QUERY.format(table=table, mark=":tenant")) for table in ("plain", "guarded"))
    bind = text(BIND.format(mark=":tenant"))

    async def unbound() -> None:
        async with free.begin() as connection:
            checked(list(await connection.execute(plain, {"tenant": TENANT})))

    async def ours() -> None:
        with use_tenant(TENANT):
            async with bound.begin() as connection:
                checked(list(await connection.execute(guarded, {"tenant": TENANT})))

    async def by_hand() -> None:
        async with free.begin() as connection:
            await connection.execute(bind, {"tenant": str(TENANT)})
            checked(list(await connection.execute(guarded, {"tenant": TENANT})))

    return await turns_async({"unbound": unbound, "ours": ours, "by hand": by_hand}, url, seconds)


def django_run(url: str, seconds: float) -> Told:
    from django.db import connections, transaction

    from tenantry.bindings.django import tenant_atomic

    free, bound = django_aliases(url)
    connections[bound].ensure_connection()
    connections[free].connect()
    connections[free].connection.close()
    connections[free].connection = connections[bound].connection
    plain, guarded = (QUERY.format(table=table, mark="%s") for table in ("plain", "guarded"))

    def ask(alias: str, query: str) -> None:
        with connections[alias].cursor() as cursor:
            cursor.execute(query, (TENANT,))
            checked(cursor.fetchall())

    def unbound() -> None:
        with transaction.atomic(free):
            ask(free, plain)

    def ours() -> None:
        with tenant_atomic(TENANT, bound):
            ask(bound, guarded)

    def by_hand() -> None:
        with transaction.atomic(free):
            with connections[free].cursor() as cursor:
                cursor.execute(BIND.format(mark="%s"), (str(TENANT),))
            ask(free, guarded)

    def floor() -> None:
        with transaction.atomic(free):
            connections[free].connection.pgconn.exec_(AT_ONCE.encode())
            ask(free, guarded)

    ways = {"unbound": unbound, "ours": ours, "by hand": by_hand, "floor": floor}
    return turns(ways, url, seconds)


def django_aliases(url: str) -> tuple[str, str]:
    """Two aliases of ``url``: Django's own backend, and ours."""
    import django
    from django.conf import settings
    from django.db import connections

    if not settings.configured:
        settings.configure(DATABASES={})
        django.setup()
    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    common = {
        "NAME": parts.path[1:], "USER": parts.username, "PASSWORD": parts.password or "",
        "HOST": parts.hostname or options["host"], "PORT": parts.port or options["port"],
        "CONN_MAX_AGE": None,
    }  # fmt: skip
    free, bound = f"free {url}", f"bound {url}"
    made = connections.configure_settings(
        {
            "default": {},
            free: common | {"ENGINE": "django.db.backends.postgresql"},
            bound: common | {"ENGINE": "tenantry.bindings.django", "OPTIONS": {"tenant_binding": BINDING}},
        }
    )
    connections.settings.update(made)
    return free, bound


SYNC = {"psycopg": psycopg_run, "sqlalchemy": sqlalchemy_run, "django": django_run}
ASYNC = {
    "asyncpg": asyncpg_run,
    "psycopg async": psycopg_async_run,
    "sqlalchemy async": sqlalchemy_async_run,
}


def main() -> None:
    driver, seconds, urls = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    told = [
        asyncio.run(ASYNC[driver](url, seconds)) if driver in ASYNC else SYNC[driver](url, seconds)
        for url in urls
    ]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
