"""What replays want to know of their lanes and shares, read from the queue's tables; see
:class:`tenantry.replay.ports.Standing`."""

from collections.abc import Collection, Mapping
from typing import Final

from tenantry.algorithms.fair_share.shares import Shares
from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.table import MOST_LANES, LaneFacts, LaneQuery, row_of
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.operator_store import PostgresOperatorStore
from tenantry.postgres.statements import statement
from tenantry.postgres.whole import whole_tables
from tenantry.queue.lifecycle import NODE_FRESH_FOR
from tenantry.replay.model import LanePace

SHARES_KEPT_FOR: Final[Seconds] = 2.0
"""One reading serves all replays of a node for so long: it looks at every flow."""


class PostgresStanding:
    """One event loop. ``directory``: whose tenants, tiers and floor the shares go by."""

    def __init__(self, database: Database, hints: Hints, directory: TenantDirectory, clock: Clock) -> None:
        self._pool, self._directory, self._clock = database.side, directory, clock
        self._operator = PostgresOperatorStore(database, hints)
        self._read_at: Instant | None = None
        self._running: Mapping[TenantId, int] = {}
        self._slots: Mapping[str, int] = {}

    async def shares(self, tenant: TenantId) -> tuple[float, float] | None:
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= SHARES_KEPT_FOR:
            self._read_at = now
            await self._read()
        tier = self._directory.tier_of(tenant)
        slots = self._slots.get(tier.pool, 0) if tier else 0
        if tier is None or not slots:
            return None
        shares = Shares(self._directory.floor)
        for each in self._running.keys() | {tenant}:
            other = self._directory.tier_of(each)
            if other is not None and other.pool == tier.pool:
                shares.count(other.weight, 1)
        return min(shares.share(tier.weight), tier.cap), self._running.get(tenant, 0) / slots

    async def lanes(self, tenant: TenantId, targets: Collection[str]) -> Mapping[str, LanePace]:
        wanted = frozenset(targets)
        found = await self._operator.lanes(LaneQuery(tenant=tenant, limit=MOST_LANES))
        paces = {each.lane.target: self._pace(each) for each in found if each.lane.target in wanted}
        return {target: pace for target, pace in paces.items() if pace is not None}

    def _pace(self, facts: LaneFacts) -> LanePace | None:
        row = row_of(facts, self._directory)
        return None if row.limit is None else LanePace(row.limit, row.latency or row.reference)

    async def _read(self) -> None:
        with translated("reading shares"):
            async with whole_tables(self._pool.acquire()) as connection:
                rows = await connection.fetch(statement("replay/shares"))
                nodes = await connection.fetch(statement("replay/slots"), NODE_FRESH_FOR)
        self._running = {TenantId(row["tenant_id"]): row["running"] for row in rows}
        self._slots = {node["pool"]: node["slots"] for node in nodes}
