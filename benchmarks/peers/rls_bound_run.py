"""``rls_bound_run.py DRIVER URL TRANSACTIONS``: microseconds of a transaction in each way, as JSON.

The ways take turns, a hundred transactions at a time, in one process and over one connection of one pool,
made as the driver's documentation has it: a second connection's server process may sit on another
processor, which is a greater difference than what is measured. Told are the least of the turns and their
median. Each transaction is one indexed SELECT of ten rows, the same text but for the table: ``plain`` has
no row policy, ``guarded`` has one. The login owns neither. The ways:

- unbound: BEGIN, the SELECT from ``plain``, COMMIT, as the driver does it.
- ours: the SELECT from ``guarded`` in a bound transaction.
- by hand: the driver's transaction, ``SELECT set_config(…)`` as its first statement; nothing is checked.
- floor (asyncpg, psycopg): the same in BEGIN's message, and nothing is checked.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tenantry.bindings import Binding, use_tenant

TURN = 100
TENANT = 42
BINDING = Binding(type="int")
QUERY = "SELECT id, body FROM {table} WHERE tenant_id = {mark}"
BIND = "SELECT set_config('app.tenant_id', {mark}, true)"
AT_ONCE = "BEGIN;SELECT set_config('app.tenant_id', '42', true)"

Ways = Mapping[str, Callable[[], Any]]
AsyncWays = Mapping[str, Callable[[], Awaitable[Any]]]


def told(taken: Mapping[str, list[float]]) -> str:
    return json.dumps({way: (min(times) * 1e6, median(times) * 1e6) for way, times in taken.items()})


def turns(ways: Ways, transactions: int) -> str:
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(1 + transactions // TURN):
        for way, once in ways.items():
            began = time.perf_counter()
            for _ in range(TURN):
                once()
            if turn:  # the first one warms
                taken[way].append((time.perf_counter() - began) / TURN)
    return told(taken)


async def turns_async(ways: AsyncWays, transactions: int) -> str:
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(1 + transactions // TURN):
        for way, once in ways.items():
            began = time.perf_counter()
            for _ in range(TURN):
                await once()
            if turn:
                taken[way].append((time.perf_counter() - began) / TURN)
    return told(taken)


def checked(rows: list[Any]) -> None:
    if len(rows) != 10:
        raise SystemExit(f"{len(rows)} rows, not 10")


async def asyncpg_run(url: str, transactions: int) -> str:
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

    return await turns_async(
        {"unbound": unbound, "ours": ours, "by hand": by_hand, "floor": floor}, transactions
    )


def psycopg_run(url: str, transactions: int) -> str:
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

        return turns({"unbound": unbound, "ours": ours, "by hand": by_hand, "floor": floor}, transactions)


async def psycopg_async_run(url: str, transactions: int) -> str:
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

        return await turns_async({"unbound": unbound, "ours": ours, "by hand": by_hand}, transactions)


def alchemy_url(url: str, driver: str) -> Any:
    from sqlalchemy import URL

    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    login = (parts.username, parts.password, parts.hostname, parts.port)
    return URL.create(f"postgresql+{driver}", *login, database=parts.path[1:], query=options)


def sqlalchemy_run(url: str, transactions: int) -> str:
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

    return turns({"unbound": unbound, "ours": ours, "by hand": by_hand}, transactions)


async def sqlalchemy_async_run(url: str, transactions: int) -> str:
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

    return await turns_async({"unbound": unbound, "ours": ours, "by hand": by_hand}, transactions)


def django_run(url: str, transactions: int) -> str:
    import django
    from django.conf import settings
    from django.db import connections, transaction

    from tenantry.bindings.django import tenant_atomic

    parts = urlsplit(url)
    options = {name: values[0] for name, values in parse_qs(parts.query).items()}
    common = {
        "NAME": parts.path[1:], "USER": parts.username, "PASSWORD": parts.password or "",
        "HOST": parts.hostname or options["host"], "PORT": parts.port or options["port"],
        "CONN_MAX_AGE": None,
    }  # fmt: skip
    settings.configure(
        DATABASES={
            "default": common | {"ENGINE": "django.db.backends.postgresql"},
            "bound": common | {"ENGINE": "tenantry.bindings.django", "OPTIONS": {"tenant_binding": BINDING}},
        }
    )
    django.setup()
    connections["bound"].ensure_connection()
    connections["default"].connect()
    connections["default"].connection.close()
    connections["default"].connection = connections["bound"].connection
    plain, guarded = (QUERY.format(table=table, mark="%s") for table in ("plain", "guarded"))

    def ask(alias: str, query: str) -> None:
        with connections[alias].cursor() as cursor:
            cursor.execute(query, (TENANT,))
            checked(cursor.fetchall())

    def unbound() -> None:
        with transaction.atomic("default"):
            ask("default", plain)

    def ours() -> None:
        with tenant_atomic(TENANT, "bound"):
            ask("bound", guarded)

    def by_hand() -> None:
        with transaction.atomic("default"):
            with connections["default"].cursor() as cursor:
                cursor.execute(BIND.format(mark="%s"), (str(TENANT),))
            ask("default", guarded)

    return turns({"unbound": unbound, "ours": ours, "by hand": by_hand}, transactions)


SYNC = {"psycopg": psycopg_run, "sqlalchemy": sqlalchemy_run, "django": django_run}
ASYNC = {
    "asyncpg": asyncpg_run,
    "psycopg async": psycopg_async_run,
    "sqlalchemy async": sqlalchemy_async_run,
}


def main() -> None:
    driver, url, transactions = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if driver in ASYNC:
        print(asyncio.run(ASYNC[driver](url, transactions)))
    else:
        print(SYNC[driver](url, transactions))


if __name__ == "__main__":
    main()
