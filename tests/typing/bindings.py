"""Tenants' transactions as a user would write them. Never run; always type-checked."""

from typing import assert_type
from uuid import UUID

import asyncpg
import psycopg
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from tenantry.bindings import Binding, LeftBehind, Leftover, current_tenant, use_tenant
from tenantry.bindings import asyncpg as over_asyncpg
from tenantry.bindings import psycopg as over_psycopg
from tenantry.bindings.django import tenant_atomic
from tenantry.bindings.sqlalchemy import bind_engine
from tenantry.testing.pytest_plugin import AssertIsolated

BY_UUID = Binding(setting="shop.org_id", type="uuid", role="app_user", strict=False)
ONE = UUID(int=1)


async def with_asyncpg(pool: "asyncpg.Pool[asyncpg.Record]") -> list["asyncpg.Record"]:
    tenants = over_asyncpg.Tenants(pool, BY_UUID)
    async with tenants.transaction(ONE, isolation="serializable", readonly=True) as connection:
        async with connection.transaction():
            pass
        return await connection.fetch("SELECT * FROM invoices")


def with_psycopg(pool: ConnectionPool, connection: "psycopg.Connection[tuple[int]]") -> None:
    for source in (pool, connection):
        with over_psycopg.Tenants(source).transaction("acme") as bound:
            bound.execute("SELECT 1").fetchall()


async def with_async_psycopg(pool: AsyncConnectionPool) -> None:
    async with over_psycopg.AsyncTenants(pool, BY_UUID).transaction() as connection:
        await connection.execute("SELECT 1")


def with_engines() -> None:
    bind_engine(create_engine("postgresql+psycopg:///shop"))
    bind_engine(create_async_engine("postgresql+asyncpg:///shop"), BY_UUID)


@tenant_atomic(7)
def with_django() -> None:
    assert_type(current_tenant(), object | None)


def refused(error: LeftBehind) -> bool:
    assert_type(error.leftovers, tuple[Leftover, ...])
    return error.cleaned


def test_isolated(assert_isolated: AssertIsolated) -> None:
    with use_tenant("acme"):
        assert_isolated("invoices", row={"customer": 7})
