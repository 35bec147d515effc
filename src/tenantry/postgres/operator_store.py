"""The operator's side of the store, and the feeder's: on the engine's login, across tenants."""

from collections.abc import Mapping, Sequence

from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.statements import statement
from tenantry.postgres.whole import whole_tables
from tenantry.queue.model import Fed, JobId, JobState

_FEED = "SELECT * FROM tenantry.feed($1, $2, $3, $4)"
_KEYS_A_BATCH = 1_000
_BYTES_A_FEED = 8 * 1_048_576
"""Of payload in one statement, about: what is moved passes through the server's memory."""


class PostgresOperatorStore:
    """Implements :class:`tenantry.queue.ports.OperatorStore`."""

    def __init__(self, database: Database, hints: Hints) -> None:
        self._pool, self._hints = database.side, hints

    async def set_paused(self, tenant: TenantId, target: Target, *, paused: bool) -> None:
        with translated("pausing a lane"):
            await self._pool.execute(statement("operator/pause"), tenant, target, paused)
        self._hints.changed()

    async def counts(self) -> Mapping[JobState, int]:
        with translated("counting jobs"):
            async with whole_tables(self._pool.acquire()) as connection:
                (row,) = await connection.fetch(statement("operator/counts"))
        return {state: row[state.value] for state in JobState}

    async def audit(self) -> Sequence[str]:
        with translated("auditing"):
            async with whole_tables(self._pool.acquire()) as connection:
                return [row["fault"] for row in await connection.fetch(statement("operator/audit"))]


class PostgresFeederStore:
    """Implements :class:`tenantry.queue.ports.FeederStore`."""

    def __init__(self, database: Database, hints: Hints) -> None:
        self._pool, self._hints = database.side, hints

    async def stored_tenants(self) -> list[TenantId]:
        with translated("looking for stored work"):
            rows = await self._pool.fetch(statement("operator/stored_tenants"))
        return [TenantId(row["tenant_id"]) for row in rows]

    async def feed(self, tenant: TenantId, *, bound: int | None, limit: int) -> Fed:
        with translated("feeding stored work"):
            (row,) = await self._pool.fetch(_FEED, tenant, bound, limit, _BYTES_A_FEED)
        if row["moved"]:
            self._hints.changed()
        died = (JobId(str(id_)) for id_ in row["died"])
        return Fed(row["moved"], tuple(zip(died, row["reasons"], strict=True)))

    async def tidy(self, *, keep_days: int) -> None:
        with translated("tidying"):
            await self._pool.execute("SELECT tenantry.tidy_outcomes($1)", keep_days)
            await self._pool.execute(statement("operator/drop_nodes"))
            while await self._pool.fetchval(statement("operator/drop_keys"), _KEYS_A_BATCH) == _KEYS_A_BATCH:
                pass  # small batches, so that none holds its locks for long
