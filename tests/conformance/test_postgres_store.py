"""The store in PostgreSQL keeps every promise of the queue's ports, on a real server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TierName
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.directory import write_registry
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.operator_store import PostgresFeederStore, PostgresOperatorStore
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.replay_flows import PostgresReplayFlows
from tenantry.postgres.urls import DatabaseUrls
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.changes import Change, ClaimPlan, Deferred, Left, Round, Standing
from tenantry.queue.model import FlowId
from tenantry.testing.conformance.queue_store import OpenWorld, QueueStoreConformance
from tenantry.testing.conformance.world import ACME, GLOBEX, World

pytestmark = pytest.mark.needs_postgres

_At = TypeVar("_At", Timestamp, Timestamp | None)

_PAST_PARTITION = """
    DO $$
    DECLARE day date := (now() AT TIME ZONE 'UTC')::date - {day};
    BEGIN
        EXECUTE format('CREATE TABLE IF NOT EXISTS tenantry.%I PARTITION OF tenantry.outcomes FOR VALUES FROM (%L) TO (%L)',
                       'outcomes_' || to_char(day, 'YYYYMMDD'), day::timestamp AT TIME ZONE 'UTC',
                       (day + 1)::timestamp AT TIME ZONE 'UTC');
    END
    $$
"""  # noqa: E501 - SQL

_MOMENTS = {
    "deferred": ["due_at"],
    "claims": ["expires_at", "claimed_at"],
    "nodes": ["seen_at"],
    "place": ["expires_at"],
    "shedding": ["changed_at", "expires_at"],
    "stored": ["due_at", "submitted_at"],
    "jobs": ["submitted_at", "accepted_at"],
    "idempotency": ["expires_at"],
    "outcomes": ["ended_at"],
    "dead_letters": ["died_at", "submitted_at"],
    "attempts": ["ended_at"],
    "parked": ["parked_at", "submitted_at"],
}


_TABLES = (  # in an order that foreign keys allow
    "tails", "flows", "lanes", "load", "endings", "jobs", "deferred", "withdrawn", "attempts", "claims",
    "changes", "nodes", "idempotency", "outcomes", "dead_letters", "stored", "bulk_sets", "orders",
    "order_log", "shedding", "replay_terms", "parked", "replay_ends",
)  # fmt: skip


class ShiftedPlanner(PostgresPlannerStore):
    """Tells moments as they would be if time had passed instead of rows having moved."""

    passed: Seconds = 0.0

    async def rebuild(self, term: int) -> Standing:
        read = await super().rebuild(term)
        return replace(
            read,
            now=self._later(read.now),
            flows=tuple(replace(each, waiting_since=self._later(each.waiting_since)) for each in read.flows),
            deferred=tuple(self._deferred(each) for each in read.deferred),
            held=tuple(replace(each, claimed_at=self._later(each.claimed_at)) for each in read.held),
        )

    async def round(self, term: int, claims: Sequence[ClaimPlan], heads: Mapping[FlowId, int]) -> Round:
        read = await super().round(term, claims, heads)
        return replace(read, now=self._later(read.now), changes=tuple(map(self._change, read.changes)))

    def _change(self, change: Change) -> Change:
        match change:
            case Deferred():
                return self._deferred(change)
            case Left():
                return replace(change, deferred=tuple(map(self._deferred, change.deferred)))
            case _:
                return change

    def _deferred(self, deferred: Deferred) -> Deferred:
        return replace(deferred, due_at=self._later(deferred.due_at))

    def _later(self, at: _At) -> _At:
        return at if at is None else Timestamp(at + self.passed)


class ShiftedRows:
    """Time passes because every moment that the database remembers moves into the past."""

    def __init__(self, admin_url: str, planner: ShiftedPlanner) -> None:
        self._admin_url, self._planner = admin_url, planner

    async def pass_time(self, seconds: Seconds) -> None:
        self._planner.passed += seconds
        connection = await connect_once(self._admin_url)
        try:
            for day in range(2, 3 + int(self._planner.passed // 86_400)):  # somewhere for old outcomes to go
                await connection.execute(_PAST_PARTITION.format(day=day))
            for table, columns in _MOMENTS.items():
                moved = ", ".join(f"{column} = {column} - make_interval(secs => $1)" for column in columns)
                await connection.execute(f"UPDATE tenantry.{table} SET {moved}", seconds)
        finally:
            await connection.close()


class TestPostgresStore(QueueStoreConformance):
    @pytest.fixture
    async def open_world(self, shared_database: DatabaseUrls) -> AsyncIterator[OpenWorld]:
        opened: list[tuple[Database, Hints]] = []
        urls = shared_database

        async def open_one() -> World:
            await close(opened)
            await _empty(urls.admin)
            database = await Database.open(urls, engine_connections=1, tenant_connections=1)
            hints = Hints(database)
            opened.append((database, hints))
            planner = ShiftedPlanner(database, hints)
            return World(
                PostgresIntakeStore(database, hints, SystemClock(), SystemRandomness()),
                PostgresOperatorStore(database, hints),
                planner,
                PostgresWorkerStore(database, hints),
                PostgresFeederStore(database, hints),
                ShiftedRows(urls.admin, planner),
                PostgresReplayFlows(database, hints),
            )

        yield open_one
        await close(opened)


async def close(opened: list[tuple[Database, Hints]]) -> None:
    while opened:
        database, hints = opened.pop()
        await hints.close()
        await database.close()


async def _empty(admin_url: str) -> None:
    """An empty store that knows the tenants of the stories: cheaper than a database a world."""
    registry = Registry(tenants=tuple(TenantDocument(t, TierName("standard")) for t in (ACME, GLOBEX)))
    await write_registry(admin_url, registry)
    connection = await connect_once(admin_url)
    try:
        await connection.execute("".join(f"DELETE FROM tenantry.{table};" for table in _TABLES))
        await connection.execute("UPDATE tenantry.place SET term = 0, holder = '', expires_at = '-infinity'")
    finally:
        await connection.close()
