"""The replays' store in PostgreSQL keeps every promise of its ports, on a real server."""

from collections.abc import AsyncIterator

import pytest
import test_postgres_store

from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import SystemRandomness
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.hints import Hints
from tenantry.postgres.replay_desk import PostgresReplayDesk
from tenantry.postgres.replay_store import PostgresReplayStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.testing.conformance.queue_store import OpenWorld
from tenantry.testing.conformance.replay_store import OpenReplays, ReplayStoreConformance
from tenantry.testing.conformance.replay_world import ReplayWorld

pytestmark = pytest.mark.needs_postgres

_EMPTIED = "replays", "replay_fed", "replay_classes", "replay_tenants", "replay_generations", "replay_keys"

_SHIFT = """
    SELECT tenantry.roll_keys((now() - make_interval(secs => {all}))::date - 1, (now() AT TIME ZONE 'UTC')::date + 1);
    UPDATE tenantry.replays SET created_at = created_at - make_interval(secs => {s}),
           started_at = started_at - make_interval(secs => {s}), ended_at = ended_at - make_interval(secs => {s}),
           lease_until = lease_until - make_interval(secs => {s}), frees_at = frees_at - make_interval(secs => {s});
    UPDATE tenantry.replay_keys SET seen_at = seen_at - make_interval(secs => {s});
    UPDATE tenantry.replay_fed SET seen_at = seen_at - make_interval(secs => {s});
    UPDATE tenantry.replay_tenants
       SET day = (day + (now() AT TIME ZONE 'UTC')::time - make_interval(secs => {s}))::date;
    DELETE FROM tenantry.replay_generations;
    INSERT INTO tenantry.replay_generations (tenant_id, day, keys)
    SELECT tenant_id, (seen_at AT TIME ZONE 'UTC')::date, count(*) FROM tenantry.replay_keys GROUP BY 1, 2;
"""  # noqa: E501 - SQL


class ShiftedReplays:
    """Time passes for the replays as it does for the queue: every remembered moment moves into the past."""

    def __init__(self, queue: test_postgres_store.ShiftedRows, admin_url: str) -> None:
        self._queue, self._admin_url, self._passed = queue, admin_url, 0.0

    async def pass_time(self, seconds: Seconds) -> None:
        await self._queue.pass_time(seconds)
        self._passed += seconds
        connection = await connect_once(self._admin_url)
        try:
            await connection.execute(_SHIFT.format(s=float(seconds), all=self._passed))
        finally:
            await connection.close()


class TestPostgresReplays(ReplayStoreConformance):
    open_world = test_postgres_store.TestPostgresStore.open_world

    @pytest.fixture
    async def open_replays(
        self, open_world: OpenWorld, shared_database: DatabaseUrls
    ) -> AsyncIterator[OpenReplays]:
        opened: list[tuple[Database, Hints]] = []

        async def open_one() -> ReplayWorld:
            await test_postgres_store.close(opened)
            queue = await open_world()
            connection = await connect_once(shared_database.admin)
            await connection.execute("".join(f"DELETE FROM tenantry.{table};" for table in _EMPTIED))
            await connection.close()
            database = await Database.open(shared_database, engine_connections=1, tenant_connections=2)
            hints = Hints(database)
            opened.append((database, hints))
            assert isinstance(queue.time, test_postgres_store.ShiftedRows)
            queue.time = ShiftedReplays(queue.time, shared_database.admin)
            return ReplayWorld(
                queue,
                PostgresReplayDesk(database, hints, SystemRandomness()),
                PostgresReplayStore(database, hints),
            )

        yield open_one
        await test_postgres_store.close(opened)
