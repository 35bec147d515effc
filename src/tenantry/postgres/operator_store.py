"""The operator's side of the store, and the feeder's: on the engine's login, across tenants."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import asyncpg

from tenantry.kernel.instant import as_timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.orders import Order, OrderRecord, checked_limit
from tenantry.lanes.table import LaneFacts, LaneQuery, LaneSort
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.lane_rows import record, records, shaper_of
from tenantry.postgres.levels import standing_level
from tenantry.postgres.statements import statement
from tenantry.postgres.whole import one_instant, whole_tables
from tenantry.queue.model import Fed, JobId, JobState, StandingLevel

_FEED = "SELECT * FROM tenantry.feed($1, $2, $3, $4)"
_KEYS_A_BATCH = 1_000
_LAST = (1 << 63) - 1
_BYTES_A_FEED = 8 * 1_048_576
"""Of payload in one statement, about: what is moved passes through the server's memory."""


class PostgresOperatorStore:
    """Implements :class:`tenantry.queue.ports.OperatorStore`."""

    def __init__(self, database: Database, hints: Hints) -> None:
        self._pool, self._hints = database.side, hints

    async def order(self, order: Order) -> OrderRecord:
        scope = order.scope
        with translated("giving an order"):
            (row,) = await self._pool.fetch(
                statement("operator/order"),
                order.action,
                scope.tenant or "",
                scope.target or "",
                order.ceiling,
                order.reason,
                order.by,
            )
        self._hints.changed()
        return record(row, as_timestamp(row["ordered_at"]))

    async def orders(self, *, limit: int) -> list[OrderRecord]:
        with translated("reading the orders that stand"):
            rows = await self._pool.fetch(statement("operator/orders"), checked_limit(limit))
        return [record(row, as_timestamp(row["ordered_at"])) for row in rows]

    async def order_log(self, *, limit: int, before: int | None = None) -> list[OrderRecord]:
        below = _LAST if before is None else before
        with translated("reading the log of orders"):
            rows = await self._pool.fetch(statement("operator/order_log"), checked_limit(limit), below)
        return [record(row, as_timestamp(row["ordered_at"])) for row in rows]

    async def lanes(self, query: LaneQuery) -> list[LaneFacts]:
        with translated("reading lanes"):
            async with self._reading(query) as connection:
                ids = [row["lane_id"] for row in await connection.fetch(*_lanes_wanted(query))]
                rows = await connection.fetch(statement("operator/lanes"), ids)
        return [_lane(row) for row in rows]

    def _reading(self, query: LaneQuery) -> AbstractAsyncContextManager[Any]:
        """One instant; and leave to read all flows for a query that must compare them."""
        if query.sort is LaneSort.NAME:
            return one_instant(self._pool.acquire())
        return whole_tables(self._pool.acquire())

    async def counts(self) -> Mapping[JobState, int]:
        with translated("counting jobs"):
            async with whole_tables(self._pool.acquire()) as connection:
                (row,) = await connection.fetch(statement("operator/counts"))
        return {state: row[state.value] for state in JobState}

    async def levels(self) -> Sequence[StandingLevel]:
        with translated("reading what pools shed"):
            return [standing_level(row) for row in await self._pool.fetch(statement("inspection/levels"))]

    async def audit(self) -> Sequence[str]:
        with translated("auditing"):
            async with whole_tables(self._pool.acquire()) as connection:
                return [row["fault"] for row in await connection.fetch(statement("operator/audit"))]


def _lanes_wanted(query: LaneQuery) -> tuple[Any, ...]:
    """The statement that finds the ids of the lanes, and its arguments."""
    tenant, target, state = query.tenant, query.target, query.state
    if query.sort is not LaneSort.NAME:
        return statement("operator/lanes_by_work"), tenant, target, query.sort, query.limit, state
    after = ("", "") if query.after is None else (query.after.tenant, query.after.target)
    return statement("operator/lanes_by_name"), tenant, target, *after, query.limit, state


def _lane(row: asyncpg.Record) -> LaneFacts:
    now = as_timestamp(row["moment"])
    return LaneFacts(
        Lane(TenantId(row["tenant_id"]), Target(row["target"])),
        now,
        waiting=row["waiting"],
        delayed=row["delayed"],
        in_flight=row["running"],
        orders=records(row["orders"]),
        shaper=shaper_of(row["shaper"], in_flight=row["running"], now=now),
    )


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
