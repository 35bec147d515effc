"""The tenant's side of the store. Each call binds the tenant for its transaction, under the row policies."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from tenantry.algorithms.shedding import Level
from tenantry.kernel.clock import Clock
from tenantry.kernel.instant import Instant, Timestamp, as_timestamp
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.lanes.model import Target, kind_of
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.lane_rows import records, shaper_of
from tenantry.postgres.session import bound
from tenantry.postgres.statements import statement
from tenantry.postgres.turns import Turns
from tenantry.postgres.whole import whole_tables
from tenantry.queue.admission import (
    DEFAULT_LIMITS,
    body_digest,
    check_any_target,
    check_job,
    check_listed,
    key_digest,
    key_reused,
    over_bound,
    over_stored,
    refuse_keys,
)
from tenantry.queue.explain import Facts
from tenantry.queue.lifecycle import KEYS_KEPT_FOR, NODE_FRESH_FOR
from tenantry.queue.model import Accepted, Attempt, BulkSet, JobClass, JobId, JobState, JobView, NewJob
from tenantry.queue.ordering import bucket

_FLOWS_REMEMBERED = 100_000
_DRAINS_REMEMBERED = 10_000

_SUBMIT = "SELECT * FROM tenantry.submit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
_FLOWS = "SELECT tenantry.flows_for($1, $2, $3, $4)"
_BULK = "SELECT * FROM tenantry.submit_bulk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_LATER = "SELECT tenantry.submit_later($1, $2, $3, $4, $5, $6, $7, $8, $9)"

_CANCEL = "SELECT tenantry.cancel($1, $2, $3)"

BY_KEY = "SET LOCAL enable_seqscan = off"
"""For a list of a tenant's jobs: a plan that reads a table whole reads the backlogs of all others."""

FlowKey = tuple[TenantId, Target, JobClass, int]


class PostgresIntakeStore:
    """Implements :class:`tenantry.queue.ports.IntakeStore`."""

    def __init__(self, database: Database, hints: Hints, clock: Clock, randomness: Randomness) -> None:
        self._pool, self._engine, self._hints = database.tenant, database.side, hints
        self._clock, self._randomness = clock, randomness
        self._flows: dict[FlowKey, int] = {}  # flows are never deleted, so an id once read stays true
        self._drains: dict[TenantId, tuple[int, Instant]] = {}
        self._turns = Turns()  # one tenant's submits wait for one row: let them wait without a connection

    async def submit(
        self, tenant: TenantId, jobs: Sequence[NewJob], *, bound: int | None
    ) -> Accepted | Refusal:
        keyed = any(job.idempotency_key is not None for job in jobs)
        ids = self._ids(len(jobs))
        async with self._turns.of(tenant):
            with translated("submitting"):
                (row,) = await self._pool.fetch(
                    _SUBMIT,
                    tenant,
                    bound,
                    await self._flow_ids(tenant, jobs),
                    ids,
                    [job.payload for job in jobs],
                    [job.content_type for job in jobs],
                    [job.delay_for for job in jobs],
                    [job.cost for job in jobs],
                    [_key(tenant, job) for job in jobs] if keyed else None,
                    [body_digest(job) for job in jobs] if keyed else None,
                )
        if row["refused"]:
            return self._refused(tenant, row, bound, len(jobs))
        self._hints.changed()
        return Accepted(tuple(JobId(str(id_)) for id_ in row["ids"]), frozenset(row["existing"]))

    async def submit_bulk(self, tenant: TenantId, jobs: Sequence[NewJob], *, most: int) -> BulkSet | Refusal:
        refuse_keys(jobs)
        bulk_id = UUID(self._randomness.time_ordered_id())
        with translated("storing a bulk set"):
            (row,) = await self._pool.fetch(
                _BULK,
                tenant,
                most,
                bulk_id,
                [job.target for job in jobs],
                [int(job.job_class) for job in jobs],
                [bucket(job.ordering_key) for job in jobs],
                self._ids(len(jobs)),
                [job.payload for job in jobs],
                [job.content_type for job in jobs],
                [job.delay_for for job in jobs],
                [job.cost for job in jobs],
            )
        if row["stored_at"] is None:
            return over_stored(most=most, stored=row["stored"], wanted=len(jobs))
        return BulkSet(str(bulk_id), tenant, len(jobs), len(jobs), 0, 0, 0, 0, as_timestamp(row["stored_at"]))

    async def bulk(self, tenant: TenantId, bulk_id: str) -> BulkSet | None:
        key = _uuid(bulk_id)
        if key is None:
            return None
        async with bound(self._pool, tenant) as connection:
            row = await connection.fetchrow(statement("intake/bulk"), key)
        if row is None:
            return None
        ended = row["delivered"] + row["dead"] + row["cancelled"]
        return BulkSet(
            id=str(row["bulk_id"]),
            tenant=tenant,
            total=row["total"],
            stored=row["stored"],
            queued=row["total"] - row["stored"] - ended,
            delivered=row["delivered"],
            dead=row["dead"],
            cancelled=row["cancelled"],
            created_at=as_timestamp(row["created_at"]),
        )

    async def job(self, tenant: TenantId, job: JobId) -> JobView | None:
        key = _uuid(job)
        if key is None:
            return None
        async with bound(self._pool, tenant) as connection:
            row = await connection.fetchrow(statement("intake/job"), key)
        return None if row is None else _view(tenant, row)

    async def states(self, tenant: TenantId, jobs: Collection[JobId]) -> Mapping[JobId, JobState]:
        keys = [key for job in jobs if (key := _uuid(job)) is not None]
        async with bound(self._pool, tenant) as connection:
            rows = await connection.fetch(statement("intake/states"), keys)
        return {JobId(str(row["job_id"])): JobState(row["state"]) for row in rows}

    async def jobs(self, tenant: TenantId, *, state: JobState | None, limit: int) -> list[JobView]:
        check_listed(limit)
        async with bound(self._pool, tenant) as connection:
            await connection.execute(BY_KEY)
            rows = await connection.fetch(statement("intake/jobs"), state and state.value, limit)
        return [_view(tenant, row) for row in rows]

    async def cancel(self, tenant: TenantId, job: JobId) -> JobState | None:
        key = _uuid(job)
        if key is None:
            return None
        with translated("cancelling"):
            found = await self._pool.fetchval(_CANCEL, tenant, key, KEYS_KEPT_FOR)
        if found == JobState.CANCELLED:
            self._hints.changed()
        return None if found is None else JobState(found)

    async def facts(self, tenant: TenantId, job: JobId, *, pool: str) -> Facts | None:
        """Read on the engine's login: what a job waits for is the work of others, counted and not named."""
        key = _uuid(job)
        if key is None:
            return None
        with translated("explaining"):
            async with whole_tables(self._engine.acquire()) as connection:
                row = await connection.fetchrow(statement("intake/facts"), tenant, key, pool, NODE_FRESH_FOR)
        return None if row is None else _facts(tenant, row, pool)

    async def submit_later(self, connection: Any, tenant: TenantId, job: NewJob) -> JobId:
        """Submit inside the caller's own asyncpg transaction: the job exists if and only if it commits.

        ``connection``: the caller's, whose role must be a member of ``tenantry_submitter``. No lock is taken
        that another submit waits for. The bound is reserved after the commit; a job over it is dead-lettered
        with the reason "over bound". Idempotency keys are not taken here: the transaction is one.
        Raises :class:`InvalidValue` for what no submit accepts, before anything is sent.
        """
        check_job(job, position=0, limits=DEFAULT_LIMITS, check_target=check_any_target)
        refuse_keys([job])
        id_ = self._randomness.time_ordered_id()
        with translated("submitting in the caller's transaction"):
            await connection.execute(
                _LATER,
                tenant,
                job.target,
                job.payload,
                int(job.job_class),
                UUID(id_),
                job.content_type,
                job.delay_for,
                job.cost,
                bucket(job.ordering_key),
            )
        return JobId(id_)

    # ---------------------------------------------------------------------------------------------------

    def _ids(self, count: int) -> list[UUID]:
        return [UUID(self._randomness.time_ordered_id()) for _ in range(count)]

    async def _flow_ids(self, tenant: TenantId, jobs: Sequence[NewJob]) -> list[int]:
        keys = [(tenant, job.target, job.job_class, bucket(job.ordering_key)) for job in jobs]
        known = {key: self._flows[key] for key in keys if key in self._flows}
        unknown = sorted(set(keys) - known.keys())
        if unknown:  # while they are asked for, another submit may clear what was remembered: `known` is ours
            _, targets, classes, buckets = zip(*unknown, strict=True)
            found = await self._pool.fetchval(_FLOWS, tenant, targets, [int(c) for c in classes], buckets)
            if len(self._flows) > _FLOWS_REMEMBERED:
                self._flows.clear()
            fresh = dict(zip(unknown, found, strict=True))
            self._flows.update(fresh)
            known |= fresh
        return [known[key] for key in keys]

    def _refused(self, tenant: TenantId, row: Any, bound: int | None, wanted: int) -> Refusal:
        if row["refused"] == "key" or bound is None:
            return key_reused(row["at"])
        rate = self._drain_rate(tenant, row["ended_so_far"])
        return over_bound(bound=bound, unended=row["unended"], wanted=wanted, drain_rate=rate)

    def _drain_rate(self, tenant: TenantId, ended: int) -> float:
        """Jobs of the tenant that ended a second, between this refusal and an earlier one; 0 at the first."""
        now = self._clock.monotonic()
        before, at = self._drains.get(tenant, (ended, now))
        if tenant not in self._drains or now - at > 1.0:
            if len(self._drains) > _DRAINS_REMEMBERED:
                self._drains.clear()
            self._drains[tenant] = (ended, now)
        return (ended - before) / (now - at) if now > at else 0.0


def _key(tenant: TenantId, job: NewJob) -> bytes | None:
    return None if job.idempotency_key is None else key_digest(tenant, job.idempotency_key)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _at(moment: datetime | None) -> Timestamp | None:
    return None if moment is None else as_timestamp(moment)


def _view(tenant: TenantId, row: asyncpg.Record) -> JobView:
    history = json.loads(row["history"]) if row["history"] else []
    return JobView(
        id=JobId(str(row["job_id"])),
        tenant=tenant,
        target=None if row["target"] is None else Target(row["target"]),
        job_class=None if row["job_class"] is None else JobClass(row["job_class"]),
        state=JobState(row["state"]),
        attempts=row["attempts"],
        submitted_at=_at(row["submitted_at"]),
        due_at=_at(row["due_at"]),
        ended_at=_at(row["ended_at"]),
        reason=row["reason"],
        status=row["status"],
        history=tuple(Attempt(**attempt) for attempt in history),
    )


def _facts(tenant: TenantId, row: asyncpg.Record, pool: str) -> Facts:
    target, now = Target(row["target"]), as_timestamp(row["moment"])
    running = int(row["lane_running"])
    return Facts(
        state=JobState(row["state"]),
        tenant=tenant,
        target=target,
        kind=kind_of(target),
        now=now,
        due_at=_at(row["due_at"]),
        attempts=row["attempts"],
        ahead_in_flow=row["ahead"],
        flow_in_flight=int(row["flow_running"]),
        ordered=row["bucket"] >= 0,
        lane_in_flight=running,
        lane_limit=None,
        tenant_in_flight=int(row["tenant_running"]),
        tenant_waiting=int(row["tenant_waiting"]),
        pool_slots=row["slots"],
        pool_in_flight=int(row["running"]),
        pool_slots_of_kind=row["slots_of_kind"],
        tenants_waiting=len(row["waiting"]),
        orders=records(row["orders"]),
        shaper=shaper_of(row["shaper"], in_flight=running, now=now),
        waiting=frozenset(TenantId(each) for each in row["waiting"]),
        planner_live=row["planner"],
        pool_level=Level(row["level"]),
        pool=pool,
    )
