"""Migrations on a real server: many nodes at once, changed files, newer databases, weak operators."""

import asyncio
import re
from collections.abc import Callable

import pytest

from tenantry.kernel.errors import InvariantBroken, StoreUnavailable, UsageError
from tenantry.postgres.database import connect_once
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.migrate import Migration, migrate, numbered, pending, shipped
from tenantry.postgres.urls import DatabaseUrls, with_database

SECOND = b"CREATE TABLE tenantry.second (n int)"


def history(*more: bytes) -> tuple[Migration, ...]:
    """The shipped first migration and what a test adds."""
    first = shipped()[0]
    texts = {f"{first}.sql": first.sql.encode()}
    texts.update({f"{number:04}_more.sql": text for number, text in enumerate(more, 2)})
    return numbered(texts)


async def value(url: str, query: str) -> object:
    connection = await connect_once(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_a_fresh_database_gets_every_migration_once(empty_database_url: str) -> None:
    assert await migrate(empty_database_url) == shipped()
    assert await migrate(empty_database_url) == ()
    recorded = await value(
        empty_database_url, "SELECT array_agg(sha256 ORDER BY number) FROM tenantry.migrations"
    )
    assert recorded == [migration.sha256 for migration in shipped()]


async def test_ten_nodes_at_once_apply_each_migration_exactly_once(empty_database_url: str) -> None:
    runs = await asyncio.gather(*(migrate(empty_database_url, engine_password="a") for _ in range(10)))
    assert sorted(migration.number for run in runs for migration in run) == [m.number for m in shipped()]


async def test_databases_of_one_server_may_be_migrated_at_once(
    embedded_server_factory: Callable[..., EmbeddedServer],
) -> None:
    server = embedded_server_factory(made=True)
    await asyncio.to_thread(server.start)
    connection = await connect_once(server.url())
    for number in range(6):
        await connection.execute(f"CREATE DATABASE d{number}")
    await connection.close()
    urls = [server.url(database=f"d{number}") for number in range(6)]
    await asyncio.gather(*(migrate(url, engine_password="a", tenant_password="b") for url in urls))
    for url in urls:
        assert await value(url, "SELECT count(*) FROM tenantry.migrations") == len(shipped())


async def test_the_logins_are_as_powerless_as_promised(database_urls: DatabaseUrls) -> None:
    connection = await connect_once(database_urls.admin)
    rows = await connection.fetch(
        "SELECT * FROM pg_roles WHERE rolname IN ('tenantry_engine', 'tenantry_tenant') ORDER BY rolname"
    )
    memberships = await connection.fetchval(
        "SELECT count(*) FROM pg_auth_members WHERE member IN "
        "(SELECT oid FROM pg_roles WHERE rolname IN ('tenantry_engine', 'tenantry_tenant'))"
    )
    owner = await connection.fetchval(
        "SELECT nspowner = current_user::regrole FROM pg_namespace WHERE nspname = 'tenantry'"
    )
    public = await connection.fetchval("SELECT has_schema_privilege('public', 'tenantry', 'USAGE')")
    await connection.close()
    for row in rows:
        powers = ("rolsuper", "rolcreatedb", "rolcreaterole", "rolreplication", "rolbypassrls")
        assert row["rolcanlogin"]
        assert not any(row[power] for power in powers)
    assert len(rows) == 2
    assert (memberships, owner, public) == (0, True, False)


async def test_each_migration_stands_or_falls_alone(empty_database_url: str) -> None:
    broken = history(SECOND, b"CREATE TABLE tenantry.third (n int); SELECT 1/0")
    with pytest.raises(InvariantBroken, match="division by zero"):
        await migrate(empty_database_url, migrations=broken)
    assert await value(empty_database_url, "SELECT to_regclass('tenantry.second') IS NOT NULL")
    assert await value(empty_database_url, "SELECT to_regclass('tenantry.third') IS NULL")
    assert len(await migrate(empty_database_url, migrations=history(SECOND, b"SELECT 1"))) == 1


async def test_a_changed_file_is_refused_by_name(empty_database_url: str) -> None:
    await migrate(empty_database_url, migrations=history(SECOND))
    with pytest.raises(UsageError, match="migration 0002_more has changed since it was applied"):
        await migrate(empty_database_url, migrations=history(SECOND + b"; -- later"))


async def test_a_newer_database_is_refused_with_what_to_do(empty_database_url: str) -> None:
    await migrate(empty_database_url, migrations=history(SECOND))
    with pytest.raises(
        UsageError, match=r"has migration 0002_more, and this version knows up to 0001\. Upgrade"
    ):
        await migrate(empty_database_url, migrations=history())


async def test_the_engine_may_ask_what_is_pending(database_urls: DatabaseUrls) -> None:
    connection = await connect_once(database_urls.engine)
    assert await pending(connection) == ()
    assert await pending(connection, (*shipped(), Migration(9999, "next", "0", ""))) != ()
    await connection.close()


async def test_a_table_in_use_is_waited_for_only_so_long(empty_database_url: str) -> None:
    await migrate(empty_database_url, migrations=history(SECOND))
    holder = await connect_once(empty_database_url)
    async with holder.transaction():
        await holder.execute("LOCK TABLE tenantry.second")
        blocked = b"SET LOCAL lock_timeout = '10ms'; ALTER TABLE tenantry.second ADD m int"
        with pytest.raises(StoreUnavailable, match="a lock was not to be had in time"):
            await migrate(empty_database_url, migrations=history(SECOND, blocked))
    await holder.close()


async def test_an_operator_who_may_not_create_roles_is_given_the_sql_that_helps(
    embedded_server_factory: Callable[..., EmbeddedServer],
) -> None:
    server = embedded_server_factory(made=True)
    await asyncio.to_thread(server.start)
    superuser = await connect_once(server.url())
    await superuser.execute("CREATE ROLE operator LOGIN")
    await superuser.execute("CREATE DATABASE shared OWNER operator")
    url = server.url("operator", "shared")
    with pytest.raises(UsageError, match="operator may not create roles") as caught:
        await migrate(url)
    helps = re.findall(r"CREATE ROLE [^;]+;", str(caught.value))
    assert len(helps) == 2
    for statement in helps:
        await superuser.execute(statement)
    await superuser.close()
    assert await migrate(url, migrations=history()) == history()
    with pytest.raises(UsageError, match="may not set the password of tenantry_engine"):
        await migrate(url, engine_password="x", migrations=history())


@pytest.mark.parametrize(
    "change", ["ALTER ROLE tenantry_engine BYPASSRLS", "GRANT tenantry_engine TO tenantry_tenant"]
)
async def test_a_login_that_would_break_isolation_is_refused(
    embedded_server_factory: Callable[..., EmbeddedServer], change: str
) -> None:
    server = embedded_server_factory(made=True)
    await asyncio.to_thread(server.start)
    await migrate(server.url(), migrations=history())
    superuser = await connect_once(server.url())
    await superuser.execute(change)
    await superuser.execute("CREATE DATABASE other")
    await superuser.close()
    with pytest.raises(UsageError, match=r"break isolation|member of another role"):
        await migrate(with_database(server.url(), "other"), migrations=history())


@pytest.mark.parametrize(
    "names", [["0001_a.sql", "0003_b.sql"], ["0002_a.sql"], ["1_a.sql"], ["0001_a.sql", "0001_b.sql"]]
)
def test_files_that_do_not_count_from_one_are_our_bug(names: list[str]) -> None:
    with pytest.raises(InvariantBroken, match="migrations"):
        numbered(dict.fromkeys(names, b""))
