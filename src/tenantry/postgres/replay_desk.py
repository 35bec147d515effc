"""The side of people. Whose a replay is, the row policies say: each call that names a tenant reads under them
first. What an order then changes is beyond a tenant's own rights (places of others, flows, counters) and is
done on the engine's login, for that replay of that tenant."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.outcome import MESSAGE_FAULTS
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.replay_rows import KNOWN, decoded_spec, encoded_spec, headers_of, parked_of, view_of
from tenantry.postgres.session import bound
from tenantry.postgres.statements import statement
from tenantry.queue.admission import check_listed
from tenantry.queue.lifecycle import KEYS_KEPT_FOR
from tenantry.queue.model import JobId
from tenantry.replay.dedup import LIFETIME
from tenantry.replay.lifecycle import LIVE, PLAN_KEPT_FOR, ReplayEvent, ordered
from tenantry.replay.model import (
    Known,
    Membership,
    MessageKey,
    OnUnknown,
    ParkedMessage,
    Quotas,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
)
from tenantry.replay.quotas import over_running
from tenantry.replay.repairs import Repair

# What a person was told outlives a crash of the server, though the engine's other commits do not wait for the
# disk: a message that was dropped, or a replay that was cancelled, is not sent after all.
_DURABLY = "set_config('synchronous_commit', 'on', true)"
_START = f"SELECT tenantry.start_replay($1, $2, $3, $4, $5), {_DURABLY}"
_ORDER = f"SELECT tenantry.order_replay($1, $2, $3, $4, $5, $6), {_DURABLY}"
_SEND_BACK = f"SELECT tenantry.send_back($1, $2, $3, $4, $5), {_DURABLY}"
_DROP = f"SELECT tenantry.drop_parked($1, $2, $3), {_DURABLY}"


class PostgresReplayDesk:
    """Implements :class:`tenantry.replay.ports.ReplayDesk`."""

    def __init__(self, database: Database, hints: Hints, randomness: Randomness) -> None:
        self._tenant, self._engine, self._hints = database.tenant, database.side, hints
        self._randomness = randomness

    async def plan(self, spec: ReplaySpec, membership: Membership, report: str) -> ReplayView:
        id_ = ReplayId(self._randomness.time_ordered_id())
        async with bound(self._tenant, spec.tenant) as connection:
            await connection.execute(
                statement("replay/plan"),
                id_,
                spec.tenant,
                encoded_spec(spec),
                spec.again,
                spec.on_unknown is OnUnknown.HOLD,
                spec.park_after,
                report,
                membership.bound,
                membership.count,
                membership.counted_exactly,
            )
        (view,) = await self._views([id_])
        return view

    async def replay(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        if not await self._is_mine(tenant, replay):
            return None
        views = await self._views([replay])
        return views[0] if views else None

    async def replays(
        self, tenant: TenantId | None, *, states: Collection[ReplayState] | None, limit: int
    ) -> list[ReplayView]:
        check_listed(limit)
        wanted = (tenant, None if states is None else list(states), limit)
        if tenant is None:
            with translated("listing replays"):
                rows = await self._engine.fetch(statement("replay/newest"), *wanted)
        else:
            async with bound(self._tenant, tenant) as connection:
                rows = await connection.fetch(statement("replay/newest"), *wanted)
        return await self._views([row["replay_id"] for row in rows])

    async def start(self, tenant: TenantId, replay: ReplayId, quotas: Quotas) -> ReplayView | None:
        reason = over_running(quotas.replays).reason
        return await self._give(tenant, replay, _START, quotas.replays, PLAN_KEPT_FOR, reason)

    async def pause(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        return await self._order(tenant, replay, "pause", ReplayEvent.PAUSED)

    async def resume(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        return await self._order(tenant, replay, "resume", ReplayEvent.RESUMED)

    async def proceed(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        return await self._order(tenant, replay, "continue", ReplayEvent.CONTINUED)

    async def cancel(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        return await self._order(tenant, replay, "cancel", ReplayEvent.CANCELLED)

    async def rebudget(self, tenant: TenantId, replay: ReplayId, spec: ReplaySpec) -> ReplayView | None:
        async with bound(self._tenant, tenant) as connection:
            before = await connection.fetchval(statement("replay/spec"), tenant, replay)
        if before is None:
            return None
        kept = decoded_spec(tenant, before)
        if replace(spec, budget=kept.budget) != kept:
            raise InvalidValue("spec", spec, "the replay's own spec with another budget")
        states = [*LIVE, ReplayState.PLANNED]
        with translated("changing a budget"):
            given = (tenant, replay, encoded_spec(spec), before, states)
            done = await self._engine.fetchval(statement("replay/rebudget"), *given)
        return None if done is None else await self.replay(tenant, replay)

    async def known(self, tenant: TenantId, keys: Collection[MessageKey]) -> Mapping[MessageKey, Known]:
        async with bound(self._tenant, tenant) as connection:
            rows = await connection.fetch(statement("replay/known"), tenant, list(keys), LIFETIME)
        return {MessageKey(row["key"]): KNOWN[row["state"]] for row in rows}

    async def used(self, tenant: TenantId) -> Quotas:
        async with bound(self._tenant, tenant) as connection:
            (row,) = await connection.fetch(statement("replay/used"), tenant)
        return Quotas(row["a_day"], row["keys"], row["running"])

    async def parked(
        self, tenant: TenantId, replay: ReplayId | None, *, limit: int, after: JobId | None = None
    ) -> list[ParkedMessage]:
        check_listed(limit)
        behind = None if after is None else UUID(after)
        async with bound(self._tenant, tenant) as connection:
            rows = await connection.fetch(statement("replay/parked"), tenant, replay, behind, limit)
        return [parked_of(row) for row in rows]

    async def send_back(self, tenant: TenantId, job: JobId, repair: Repair) -> bool:
        given = (repair.payload, headers_of(repair.headers), MESSAGE_FAULTS)
        if repair.target is None and repair.content_type is None:
            return await self._handle(tenant, job, _SEND_BACK, *given)
        return await self._handle(tenant, job, _SEND_BACK, *given, first=(repair.target, repair.content_type))

    async def drop(self, tenant: TenantId, job: JobId) -> bool:
        return await self._handle(tenant, job, _DROP, KEYS_KEPT_FOR)

    # ---------------------------------------------------------------------------------------------------

    async def _order(
        self, tenant: TenantId, replay: ReplayId, order: str, event: ReplayEvent
    ) -> ReplayView | None:
        reason = "it waits for a place among the tenant's running replays"
        return await self._give(tenant, replay, _ORDER, order, list(ordered(event)), reason, MESSAGE_FAULTS)

    async def _give(self, tenant: TenantId, replay: ReplayId, order: str, *rest: object) -> ReplayView | None:
        if not await self._is_mine(tenant, replay):
            return None
        with translated("giving an order to a replay"):
            given = await self._engine.fetchval(order, tenant, replay, *rest)
        if given is None:
            return None
        self._hints.changed()
        return await self.replay(tenant, replay)

    async def _handle(
        self,
        tenant: TenantId,
        job: JobId,
        order: str,
        *rest: object,
        first: tuple[str | None, str | None] | None = None,
    ) -> bool:
        """``first``: the message's target and content type, where they change with the order."""
        key = _uuid(job)
        if key is None:
            return False
        async with bound(self._tenant, tenant) as connection:
            if not await connection.fetchval(statement("replay/is_parked"), key):
                return False
        with translated("handling a parked message"):
            async with self._engine.acquire() as connection, connection.transaction():
                if first is not None:
                    await connection.execute(statement("replay/readdress"), tenant, key, *first)
                done: bool = await connection.fetchval(order, tenant, key, *rest)
        self._hints.changed()
        return done

    async def _is_mine(self, tenant: TenantId, replay: ReplayId) -> bool:
        async with bound(self._tenant, tenant) as connection:
            found: bool = await connection.fetchval(statement("replay/mine"), replay)
        return found

    async def _views(self, ids: Collection[Any]) -> list[ReplayView]:
        with translated("reading replays"):
            rows = await self._engine.fetch(statement("replay/views"), list(ids), MESSAGE_FAULTS)
        return [view_of(row) for row in rows]


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
