"""The operator's desk: the database opened for one command, and closed after it. No loops run."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from tenantry.cli.loops import EmbeddedGuard
from tenantry.cli.options import DATABASE_URL, OnDatabase
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import UnknownTenant, UsageError
from tenantry.kernel.events import ignore
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, tenant_id
from tenantry.postgres.database import Database
from tenantry.postgres.directory import PostgresDirectory
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.operator_store import PostgresOperatorStore
from tenantry.postgres.urls import DatabaseUrls


@dataclass(frozen=True, slots=True)
class Desk:
    """What an operator's command uses. ``directory`` is as of the opening."""

    urls: DatabaseUrls
    database: Database
    hints: Hints
    directory: PostgresDirectory
    intake: PostgresIntakeStore
    operator: PostgresOperatorStore

    def known(self, text: str) -> TenantId:
        """``text`` as a tenant that exists. Raises :class:`UnknownTenant` with the nearest one."""
        tenant = tenant_id(text)
        if self.directory.tenant(tenant) is None:
            raise UnknownTenant(tenant, tuple(document.tenant for document in self.directory.tenants()))
        return tenant


def given_urls(options: OnDatabase) -> DatabaseUrls | None:
    """The URLs that options or environment give; None for the embedded server."""
    admin = options.database_url or options.engine_url
    if admin is None:
        return None
    return DatabaseUrls.derived(admin, engine=options.engine_url, tenant=options.tenant_url)


def check_embedded(options: OnDatabase) -> None:
    """Raises :class:`UsageError` unless ``data_dir`` holds a server that ``tenantry up`` made."""
    if not (options.data_dir / "owner.lock").exists():
        raise UsageError(
            f"there is no database: {options.data_dir} holds none. Start one with `tenantry up`, or name "
            f"yours with --database-url or {DATABASE_URL}"
        )


@asynccontextmanager
async def reached(options: OnDatabase) -> AsyncIterator[DatabaseUrls]:
    """The URLs of a database that is there: the given one, or the embedded one, started if need be.

    Raises :class:`UsageError` where neither is.
    """
    urls = given_urls(options)
    if urls is not None:
        yield urls
        return
    check_embedded(options)
    guard = EmbeddedGuard(options.data_dir, ignore)
    await guard.start()
    try:
        yield DatabaseUrls.derived(guard.server.url())
    finally:
        await guard.stop()


@asynccontextmanager
async def opened(options: OnDatabase) -> AsyncIterator[Desk]:
    """The desk on the database of ``options``. Raises as :func:`reached`, and :class:`StoreUnavailable`."""
    async with AsyncExitStack() as stack:
        urls = await stack.enter_async_context(reached(options))
        database = await Database.open(urls, engine_connections=2, tenant_connections=2)
        await stack.enter_async_context(database)
        hints = Hints(database)
        stack.push_async_callback(hints.close)
        directory = PostgresDirectory(database)
        await directory.refresh()
        intake = PostgresIntakeStore(database, hints, SystemClock(), SystemRandomness())
        yield Desk(urls, database, hints, directory, intake, PostgresOperatorStore(database, hints))
