"""SQLAlchemy's own ways with connections: modes, autocommit, two phases, lost, invalid, detached."""

import warnings

import pytest
from binding_doors import alchemy_url
from binding_world import BINDING, administer
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine

from tenantry.bindings import LeftBehind, OtherTenant, TenantChanged, use_tenant
from tenantry.bindings.sqlalchemy import bind_engine
from tenantry.kernel.errors import InvalidValue, UsageError

pytestmark = pytest.mark.needs_postgres

MODES = "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
TENANTS = text("SELECT DISTINCT tenant_id FROM notes")
LATE = """
    CREATE TABLE IF NOT EXISTS late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED);
    GRANT INSERT ON late TO tenantry_test_app;
"""


def bound(url: str) -> Engine:
    engine = create_engine(alchemy_url(url, "psycopg"), pool_size=1, max_overflow=0)
    bind_engine(engine, BINDING)
    return engine


@pytest.mark.parametrize("where", ["engine", "connection"])
def test_sqlalchemy_in_autocommit_is_refused(notes_url: str, where: str) -> None:
    modes = {"isolation_level": "AUTOCOMMIT"}
    engine = create_engine(alchemy_url(notes_url, "psycopg"), **(modes if where == "engine" else {}))
    bind_engine(engine, BINDING)
    with use_tenant("acme"), engine.connect() as connection:
        chosen = connection.execution_options(**(modes if where == "connection" else {}))
        with pytest.raises(UsageError, match="AUTOCOMMIT"):
            chosen.execute(text("SELECT 1"))
    engine.dispose()


def test_sqlalchemy_refuses_two_phases_other_drivers_and_other_tenants_statements(notes_url: str) -> None:
    engine = create_engine(alchemy_url(notes_url, "psycopg"))
    bind_engine(engine, BINDING)
    with use_tenant("acme"), engine.connect() as connection, pytest.raises(UsageError, match="two phases"):
        connection.begin_twophase()
    with use_tenant("acme"), engine.connect() as connection:
        assert connection.execute(text("SELECT DISTINCT tenant_id FROM notes")).scalar() == "acme"
        with use_tenant("globex"), pytest.raises(OtherTenant):
            connection.execute(text("SELECT 1"))
    engine.dispose()
    with pytest.raises(InvalidValue, match="sqlite"):
        bind_engine(create_engine("sqlite://"))


def test_sqlalchemy_keeps_to_the_isolation_that_is_asked_for(notes_url: str) -> None:
    engine = create_engine(alchemy_url(notes_url, "psycopg"), isolation_level="SERIALIZABLE")
    bind_engine(engine, BINDING)
    with use_tenant("acme"), engine.begin() as connection:
        assert tuple(connection.execute(text(MODES)).one()) == ("serializable", "off")
    engine.dispose()


async def test_a_connection_that_sqlalchemy_lost_sight_of_leaves_no_transaction_open(notes_url: str) -> None:
    engine = create_async_engine(alchemy_url(notes_url, "asyncpg"), pool_size=1)
    bind_engine(engine, BINDING)
    for tenant in ("acme", "globex"):
        with use_tenant(tenant):
            connection = await engine.connect()
            assert (await connection.execute(text("SELECT tenant_id FROM notes"))).scalar() == tenant
            await connection.close()  # neither committed nor rolled back
    await engine.dispose()


def test_an_invalidated_connection_leaves_no_transaction_open(notes_url: str) -> None:
    engine = bound(notes_url)
    for tenant in ("acme", "globex"):
        with use_tenant(tenant), engine.connect() as connection:
            assert connection.execute(TENANTS).scalar() == tenant
            connection.invalidate()
    engine.dispose()


def test_a_detached_connection_keeps_its_check(notes_url: str) -> None:
    engine = bound(notes_url)
    with use_tenant("acme"), engine.connect() as connection:
        assert connection.execute(TENANTS).scalar() == "acme"
        connection.detach()
        with use_tenant("globex"), pytest.raises(OtherTenant):
            connection.execute(TENANTS)
    with use_tenant("acme"), engine.connect() as connection:
        connection.execute(text(f"SELECT set_config('{BINDING.setting}', 'globex', true)"))
        connection.detach()
        with pytest.raises(TenantChanged):
            connection.commit()
    with use_tenant("globex"), engine.begin() as connection:
        assert connection.execute(TENANTS).scalar() == "globex"
    engine.dispose()


def test_a_login_that_cannot_be_bound_is_refused_each_time(notes_admin_url: str) -> None:
    """Also on the same connection, which SQLAlchemy opens anew."""
    engine = bound(notes_admin_url)
    with use_tenant("acme"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with engine.connect() as connection, pytest.raises(LeftBehind):
                connection.execute(TENANTS)
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
async def test_what_commit_refuses_is_sqlalchemys_error(
    notes_url: str, notes_admin_url: str, driver: str
) -> None:
    administer(notes_admin_url, LATE)
    engine = create_async_engine(alchemy_url(notes_url, driver))
    bind_engine(engine, BINDING)
    with use_tenant("acme"):
        connection = await engine.connect()
        for _ in range(2):
            await connection.execute(text("INSERT INTO late VALUES (77)"))
        with pytest.raises(IntegrityError):
            await connection.commit()
        await connection.close()
    with use_tenant("globex"):
        async with engine.begin() as connection:
            assert (await connection.execute(TENANTS)).scalar() == "globex"
    await engine.dispose()


def test_every_way_to_execute_refuses_another_tenants_statement(notes_url: str) -> None:
    engine = bound(notes_url)
    insert = "INSERT INTO notes VALUES ('acme', %(id)s, 'x')"
    with use_tenant("acme"), engine.begin() as connection, use_tenant("globex"):
        for run in (
            lambda: connection.execute(text("SELECT 1")),
            lambda: connection.exec_driver_sql("SELECT 1"),
            lambda: connection.exec_driver_sql(insert, [{"id": 1}, {"id": 2}]),
            lambda: connection.execution_options(no_parameters=True).exec_driver_sql("SELECT '%'"),
            lambda: connection.execution_options(stream_results=True).execute(TENANTS),
        ):
            with pytest.raises(OtherTenant):
                run()
    engine.dispose()
