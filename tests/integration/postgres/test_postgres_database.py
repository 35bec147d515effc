"""Connections, the tenant's transaction and the edge where foreign exceptions end, on a real server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from types import SimpleNamespace

import asyncpg
import pytest

from tenantry.kernel.errors import Closed, InvalidValue, InvariantBroken, StoreUnavailable, UsageError
from tenantry.kernel.tenant import TenantId, tenant_id
from tenantry.postgres.database import Database, Sessions, check, connect_once
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.errors import translated
from tenantry.postgres.migrate import migrate
from tenantry.postgres.session import bound
from tenantry.postgres.urls import DatabaseUrls, with_database

ACME = tenant_id("acme")
_WAITS = """SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'"""
BOUND_NOW = "SELECT current_setting('tenantry.tenant_id', true)"


@pytest.fixture
async def database(database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    async with await Database.open(database_urls, engine_connections=2, tenant_connections=1) as opened:
        yield opened


@pytest.fixture
async def admin(database_urls: DatabaseUrls) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
    connection = await connect_once(database_urls.admin)
    yield connection
    await connection.close()


class TestConnections:
    async def test_each_speaks_with_its_own_login(self, database: Database) -> None:
        assert await database.engine.fetchval("SELECT current_user") == "tenantry_engine"
        assert await database.tenant.fetchval("SELECT current_user") == "tenantry_tenant"
        assert await database.control.fetchval("SELECT current_user") == "tenantry_engine"

    async def test_only_the_engine_is_relaxed_about_commits(self, database: Database) -> None:
        assert await database.engine.fetchval("SHOW synchronous_commit") == "off"
        assert await database.control.fetchval("SHOW synchronous_commit") == "off"
        assert await database.tenant.fetchval("SHOW synchronous_commit") == "on"

    async def test_the_engine_can_be_strict(self, database_urls: DatabaseUrls) -> None:
        async with await Database.open(database_urls, relaxed_engine=False) as strict:
            assert await strict.engine.fetchval("SHOW synchronous_commit") == "on"
            assert await strict.control.fetchval("SHOW synchronous_commit") == "on"

    async def test_the_applications_name_is_shown_to_the_operator(self, database_urls: DatabaseUrls) -> None:
        async with await Database.open(database_urls, application_name="node-7") as named:
            assert await named.engine.fetchval("SHOW application_name") == "node-7"

    async def test_behind_pgbouncer_nothing_is_kept_on_a_session(self, database_urls: DatabaseUrls) -> None:
        urls = DatabaseUrls.derived(database_urls.admin, pgbouncer=True)
        async with await Database.open(urls, engine_connections=1) as plain:
            assert await plain.engine.fetchval("SHOW synchronous_commit") == "on"
            await plain.engine.fetch("SELECT $1::int", 1)
            assert await plain.engine.fetchval("SELECT count(*) FROM pg_prepared_statements") == 0
            with pytest.raises(UsageError, match="LISTEN does not pass"):
                await plain.control.listen("tenantry", print)

    async def test_a_connection_comes_back_rolled_back(self, database: Database) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # asyncpg complains too
        async with database.tenant.acquire() as connection:
            await connection.execute("BEGIN; SELECT set_config('tenantry.tenant_id', 'acme', true)")
        assert not await database.tenant.fetchval(BOUND_NOW)

    async def test_closing_twice_is_harmless_and_use_after_it_is_told(
        self, database_urls: DatabaseUrls
    ) -> None:
        database = await Database.open(database_urls)
        await database.close()
        await database.close()
        with pytest.raises(Closed, match="open it again"):
            await database.control.fetchval("SELECT 1")


class TestControl:
    async def test_it_answers_while_jobs_use_up_every_other_connection(self, database: Database) -> None:
        async with database.engine.acquire(), database.engine.acquire(), database.tenant.acquire():
            assert await database.control.fetchval("SELECT 1") == 1

    async def test_it_reconnects_after_the_server_ended_it(
        self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        before = await database.control.fetchval("SELECT pg_backend_pid()")
        assert await admin.fetchval("SELECT pg_terminate_backend($1, 10000)", before)
        with suppress(StoreUnavailable):  # whether the end was noticed already is a race
            await database.control.execute("SELECT 1")
        assert await database.control.fetchval("SELECT pg_backend_pid()") != before

    async def test_a_statement_that_breaks_the_connection_is_not_run_again(self, database: Database) -> None:
        await database.control.execute("CREATE TEMPORARY SEQUENCE tries")
        with pytest.raises(StoreUnavailable):
            await database.control.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert await database.control.fetchval("SELECT 1") == 1

    async def test_tasks_take_turns(self, database: Database) -> None:
        answers = await asyncio.gather(*(database.control.fetchval("SELECT $1::int", n) for n in range(20)))
        assert answers == list(range(20))

    async def test_a_notification_arrives_as_a_hint(
        self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()
        await database.control.listen("tenantry", heard.put_nowait)
        await admin.execute("NOTIFY tenantry, 'lane-1'")
        assert await asyncio.wait_for(heard.get(), 10) == "lane-1"

    async def test_after_a_reconnect_it_listens_again_and_says_that_hints_may_be_missing(
        self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()
        await database.control.listen("tenantry", heard.put_nowait)
        with pytest.raises(StoreUnavailable):
            await database.control.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        await database.control.execute("SELECT 1")
        await admin.execute("NOTIFY tenantry, 'lane-2'")
        assert [await asyncio.wait_for(heard.get(), 10) for _ in range(2)] == ["", "lane-2"]


class TestBound:
    async def test_the_tenant_is_bound_inside_and_nothing_is_left_outside(self, database: Database) -> None:
        async with bound(database.tenant, ACME) as connection:
            assert await connection.fetchval(BOUND_NOW) == "acme"
        assert not await database.tenant.fetchval(BOUND_NOW)

    async def test_what_was_done_is_committed(
        self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        await admin.execute(
            "CREATE TABLE tenantry.probe (n int); GRANT ALL ON tenantry.probe TO tenantry_tenant"
        )
        async with bound(database.tenant, ACME) as connection:
            await connection.execute("INSERT INTO tenantry.probe VALUES (1)")
        assert await admin.fetchval("SELECT n FROM tenantry.probe") == 1

    async def test_an_exception_undoes_it_and_passes_unchanged(
        self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        await admin.execute(
            "CREATE TABLE tenantry.probe (n int); GRANT ALL ON tenantry.probe TO tenantry_tenant"
        )
        with pytest.raises(ZeroDivisionError):
            async with bound(database.tenant, ACME) as connection:
                await connection.execute("INSERT INTO tenantry.probe VALUES (1)")
                raise ZeroDivisionError
        assert await admin.fetchval("SELECT count(*) FROM tenantry.probe") == 0
        assert not await database.tenant.fetchval(BOUND_NOW)

    async def test_a_cancelled_transaction_leaves_nothing_behind(
        self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        async def waiting() -> None:
            async with bound(database.tenant, ACME) as connection:
                await connection.execute("SELECT pg_advisory_xact_lock(7)")

        await admin.execute("SELECT pg_advisory_lock(7)")
        task = asyncio.create_task(waiting())
        while not await admin.fetchval(_WAITS):
            assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not await database.tenant.fetchval(BOUND_NOW)

    async def test_a_hidden_error_is_told_instead_of_a_commit_that_was_none(self, database: Database) -> None:
        with pytest.raises(InvariantBroken, match="failed unnoticed"):
            async with bound(database.tenant, ACME) as connection:
                with suppress(asyncpg.PostgresError):
                    await connection.execute("SELECT 1/0")

    @pytest.mark.parametrize("forged", ["a'; DROP SCHEMA tenantry; --", "", "a b", "\u0430cme", 7, None])
    async def test_only_a_tenants_id_is_ever_bound(self, database: Database, forged: object) -> None:
        with pytest.raises(InvalidValue, match="tenant"):
            async with bound(database.tenant, TenantId(forged)):  # type: ignore[arg-type]
                pytest.fail("bound")

    async def test_a_lost_connection_is_a_store_unavailable_and_the_next_one_works(
        self, database: Database, admin: "asyncpg.Connection[asyncpg.Record]"
    ) -> None:
        with pytest.raises(StoreUnavailable):
            async with bound(database.tenant, ACME) as connection:
                await admin.execute("SELECT pg_terminate_backend($1, 10000)", connection.get_server_pid())
                await connection.execute("SELECT 1")
        async with bound(database.tenant, ACME) as connection:
            assert await connection.fetchval(BOUND_NOW) == "acme"


class TestWhatTheTenantsLoginMayNotDo:
    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT * FROM tenantry.migrations",
            "CREATE TABLE tenantry.mine (n int)",
            "DROP SCHEMA tenantry CASCADE",
            "SET ROLE tenantry_engine",
            "SET ROLE postgres",
            "SET SESSION AUTHORIZATION tenantry_engine",
            "ALTER ROLE tenantry_tenant BYPASSRLS",
            "ALTER ROLE tenantry_engine PASSWORD 'x'",
            "GRANT tenantry_engine TO tenantry_tenant",
            "CREATE ROLE another",
            "CREATE DATABASE another",
            "SELECT * FROM pg_authid",
            "COPY (SELECT 1) TO PROGRAM 'true'",
            "SELECT pg_read_file('PG_VERSION')",
            "CREATE TABLE public.mine (n int)",
        ],
    )
    async def test_it_is_refused(self, database: Database, statement: str) -> None:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await database.tenant.execute(statement)

    async def test_nor_may_the_engine_change_the_schema_or_borrow_rights(self, database: Database) -> None:
        for statement in (
            "CREATE TABLE tenantry.mine (n int)",
            "SET ROLE tenantry_tenant",
            "SET ROLE postgres",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await database.engine.execute(statement)


class TestWhatToDoWhenItDoesNotOpen:
    async def test_no_server_there(self, server_home: object) -> None:
        urls = DatabaseUrls.derived(f"postgresql://postgres:hidden@/postgres?host={server_home}")
        with pytest.raises(StoreUnavailable, match="no PostgreSQL answers there") as caught:
            await Database.open(urls)
        assert "hidden" not in str(caught.value)

    async def test_nobody_listens_on_the_port(self) -> None:
        with pytest.raises(StoreUnavailable, match="no PostgreSQL answers there"):
            await Database.open(DatabaseUrls.derived("postgresql://postgres@127.0.0.1:1/postgres"))

    async def test_no_such_database(self, postgres_admin_url: str) -> None:
        urls = DatabaseUrls.derived(with_database(postgres_admin_url, "nowhere"))
        with pytest.raises(StoreUnavailable, match=r"no such database\. Create it"):
            await Database.open(urls)

    async def test_a_wrong_password(self, embedded_server_factory: Callable[..., EmbeddedServer]) -> None:
        server = embedded_server_factory(made=True)
        await asyncio.to_thread(server.start)
        await migrate(server.url(), engine_password="right'one", tenant_password="right%one")
        await asyncio.to_thread(server.stop)
        access = server.data_dir / "cluster" / "pg_hba.conf"
        access.write_text("local all postgres trust\nlocal all all scram-sha-256\n")
        await asyncio.to_thread(server.start)
        right = server.url().replace("postgres@", "postgres:%s@")
        urls = DatabaseUrls.derived(
            server.url(), engine=_engine(right, "right%27one"), tenant=_tenant(right, "right%25one")
        )
        async with await Database.open(urls) as database:
            assert await database.tenant.fetchval("SELECT 1") == 1
        wrong = DatabaseUrls.derived(server.url(), engine=urls.engine, tenant=_tenant(right, "wrong"))
        with pytest.raises(
            StoreUnavailable, match=r"tenantry_tenant:\*\*\*.*refused the login.*Check user and pass"
        ):
            await Database.open(wrong)

    async def test_logins_that_were_never_made(
        self, embedded_server_factory: Callable[..., EmbeddedServer]
    ) -> None:
        server = embedded_server_factory(made=True)
        await asyncio.to_thread(server.start)
        with pytest.raises(StoreUnavailable, match='role "tenantry_engine" does not exist'):
            await Database.open(DatabaseUrls.derived(server.url()))

    async def test_a_server_that_is_too_old(self) -> None:
        old = SimpleNamespace(get_server_version=lambda: SimpleNamespace(major=14, minor=9))
        with pytest.raises(StoreUnavailable, match=r"PostgreSQL 14\.9; Tenantry needs 15"):
            await check(old)  # type: ignore[arg-type]


class TestTheEdge:
    async def test_a_refused_row_is_not_shown(self, database: Database) -> None:
        async with database.engine.acquire() as connection:
            await connection.execute("CREATE TEMP TABLE held (body text CHECK (body <> 'a payload'))")
            with pytest.raises(InvariantBroken, match=r"\[23514\] .*violates check") as raised, translated():
                await connection.execute("INSERT INTO held VALUES ('a payload')")
        assert "a payload" not in str(raised.value)

    async def test_a_statement_of_ours_that_is_wrong_is_our_bug(self, database: Database) -> None:
        with pytest.raises(InvariantBroken, match=r"counting: .*\[42601\] syntax error"):
            await translated("counting")(database.engine.execute)("SELEKT 1")

    async def test_a_value_of_the_wrong_type_is_our_bug(self, database: Database) -> None:
        with pytest.raises(InvariantBroken, match="invalid input for query argument"), translated():
            await database.engine.fetchval("SELECT $1::int", "seven")

    async def test_a_missing_table_is_a_missing_migration(self, database: Database) -> None:
        with pytest.raises(StoreUnavailable, match="Run `tenantry migrate`"), translated():
            await database.engine.execute("SELECT * FROM tenantry.nothing")

    async def test_a_standby_is_named(self, database: Database) -> None:
        with pytest.raises(StoreUnavailable, match="this is a standby"), translated():
            await database.engine.execute(
                "SET TRANSACTION READ ONLY; CREATE TEMPORARY TABLE t (n int) ; CREATE ROLE x"
            )

    async def test_it_decorates_coroutine_functions_and_lets_our_own_exceptions_pass(self) -> None:
        @translated("reading")
        async def read(error: Exception) -> None:
            raise error

        with pytest.raises(StoreUnavailable, match="reading: no PostgreSQL answers"):
            await read(ConnectionRefusedError())
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await read(TimeoutError())
        with pytest.raises(Closed, match="mine"):
            await read(Closed("mine"))
        with pytest.raises(ValueError, match="not ours"):
            await read(ValueError("not ours"))


def test_sessions_behind_pgbouncer_begin_without_settings() -> None:
    assert "server_settings" not in Sessions("x", pgbouncer=True).arguments(relaxed=True, timeout=1)


def _engine(url: str, password: str) -> str:
    return url.replace("postgres:%s@", f"tenantry_engine:{password}@")


def _tenant(url: str, password: str) -> str:
    return url.replace("postgres:%s@", f"tenantry_tenant:{password}@")
