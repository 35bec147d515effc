"""A worker's side of the store. Heartbeats and renewals go over the reserved connection, so that no burst of
jobs can make a worker lose its leases."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

import asyncpg
import msgspec

from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.instant import Seconds, Timestamp, as_timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Kind, Target
from tenantry.lanes.outcome import CAUSES, MESSAGE_FAULTS, Outcome
from tenantry.lanes.summary import encoded
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.statements import statement
from tenantry.queue.lifecycle import MOST_ATTEMPTS, NODE_FRESH_FOR
from tenantry.queue.model import (
    NO_HEADERS,
    Burial,
    ClaimedJob,
    ClaimId,
    Ending,
    FlowId,
    JobClass,
    JobId,
    NameHeld,
    Node,
    NodeId,
    Presence,
    Reclaimed,
    ReplayTerms,
    Seq,
    Settlement,
)
from tenantry.queue.settling import LOST_FINGERPRINT, checked_parking, summaries_of

_GONE = 4
_DELIVERED, _FAILED = "worker/settle_delivered", "worker/settle_failed"
_ENDINGS = {Ending.RETRY: 1, Ending.DEAD: 2, Ending.RELEASED: 3, Ending.PARKED: 5}

Row: TypeAlias = asyncpg.Record


class PostgresWorkerStore:
    """Implements :class:`tenantry.queue.ports.WorkerStore`."""

    def __init__(self, database: Database, hints: Hints) -> None:
        self._pool, self._control, self._hints = database.engine, database.control, hints
        self._opened = database.engine_opened
        self._gone: dict[tuple[NodeId, int], list[Row]] = {}  # cancelled before their start, not yet dropped
        self._taken: dict[tuple[NodeId, int], tuple[int, int]] = {}  # connections opened, the last claim's id

    async def register(self, node: NodeId, pool: str, slots: int, kinds: Collection[Kind]) -> Node | NameHeld:
        given = (node, pool, slots, sorted(kinds), NODE_FRESH_FOR)
        with translated("joining as a worker"):
            while (row := await self._control.fetchrow(statement("worker/register"), *given)) is None:
                pass  # somebody took the name at this very moment: now he is seen
        if not row["joined"]:
            return _name_held(node, row)
        self._hints.node = node
        self._hints.changed()
        return Node(node, row["incarnation"], pool, slots, frozenset(kinds))

    async def heartbeat(self, node: Node, *, draining: bool) -> Presence:
        with translated("sending a heartbeat"):
            found = await self._control.fetchval(
                statement("worker/heartbeat"), node.id, node.incarnation, draining
            )
        if draining:
            self._hints.changed()
        return Presence(found)

    async def leave(self, node: Node) -> None:
        with translated("leaving"):
            await self._control.execute(statement("worker/leave"), node.id, node.incarnation)
        self._hints.changed()

    async def take(self, node: Node, lease_for: Seconds) -> list[ClaimedJob]:
        """Claim ids of a node only rise, so it looks above the last; but after a new connection it looks at
        all that it holds: an answer may have been lost with the old one; a crash undoes ids and settles."""
        key = (node.id, node.incarnation)
        await self._drop(node)
        with translated("taking claims"):
            async with self._pool.acquire() as connection:
                opened, above = self._taken.get(key, (-1, 0))
                afresh = opened != self._opened.count
                opened, above = self._opened.count, 0 if afresh else above
                rows = await connection.fetch(
                    statement("worker/take"), *key, above, lease_for, afresh, MESSAGE_FAULTS
                )
        self._taken[key] = opened, rows[-1]["claim_id"] if rows else above
        if not rows:
            return []
        gone = [row for row in rows if row["job_id"] is None]
        if gone:
            self._gone.setdefault(key, []).extend(gone)
            with suppress(StoreUnavailable):  # the others are started: the next take tries again, and says so
                await self._drop(node)
        return [_claimed(row) for row in rows if row["job_id"] is not None]

    async def renew(self, node: Node, claims: Collection[ClaimId], lease_for: Seconds) -> set[ClaimId]:
        with translated("renewing leases"):
            rows = await self._control.fetch(
                statement("worker/renew"), node.id, node.incarnation, list(claims), lease_for
            )
        return {ClaimId(row["claim_id"]) for row in rows}

    async def settle(self, node: Node, settlements: Sequence[Settlement]) -> int:
        """Delivered jobs and others are two statements, in one transaction when a batch has both. What the
        endings say of targets goes with the last of them, for their order counts, and is told only when all
        of them were still held."""
        for settlement in settlements:
            if settlement.ending is Ending.PARKED:
                checked_parking(settlement)
        once: dict[tuple[int, int, int], Settlement] = {}
        for settlement in settlements:
            once.setdefault((settlement.job.claim, settlement.job.flow, settlement.job.seq), settlement)
        delivered = [s for s in once.values() if s.ending is Ending.DELIVERED]
        failed = [s for s in once.values() if s.ending is not Ending.DELIVERED]
        told = _summaries(once.values())
        with translated("settling"):
            async with self._pool.acquire() as connection:
                if delivered and failed:
                    async with connection.transaction():
                        settled = await _settle(connection, _DELIVERED, _delivered(node, delivered, None))
                        told = told if settled == len(delivered) else None
                        settled += await _settle(connection, _FAILED, _failed(node, failed, told))
                elif delivered:
                    settled = await _settle(connection, _DELIVERED, _delivered(node, delivered, told))
                elif failed:
                    settled = await _settle(connection, _FAILED, _failed(node, failed, told))
                else:
                    return 0
        self._hints.changed()
        return settled

    async def reclaim(self, *, limit: int) -> Reclaimed:
        with translated("reclaiming expired claims"):
            rows = await self._pool.fetch(statement("worker/reclaim"), limit, MOST_ATTEMPTS, LOST_FINGERPRINT)
        count = rows[0]["jobs"]
        if count:
            self._hints.changed()
        return Reclaimed(count, tuple(_burial(row) for row in rows if row["job_id"] is not None))

    async def wait(self, node: Node, at_most: Seconds) -> None:
        await self._hints.claims.wait(at_most)

    async def _drop(self, node: Node) -> None:
        """Jobs that were cancelled between plan and start: their slots come back at once."""
        key = (node.id, node.incarnation)
        gone = self._gone.get(key)
        if not gone:
            return
        jobs = [[row[key] for row in gone] for key in ("claim_id", "token", "flow_id", "seq")]
        n = len(gone)
        with translated("dropping cancelled jobs"):
            await self._pool.fetchval(
                statement(_FAILED), node.id, node.incarnation, *jobs, [0.0] * n, [_GONE] * n,
                *([None] * n for _ in range(5)), [0] * n, None, None, None,
            )  # fmt: skip
        del self._gone[key]
        self._hints.changed()


async def _settle(connection: Any, name: str, arguments: tuple[object, ...]) -> int:
    settled: int = await connection.fetchval(statement(name), *arguments)
    return settled


def _name_held(node: NodeId, row: Row) -> NameHeld:
    beat_at, frees_in = as_timestamp(row["beat_at"]), max(0.0, row["frees_in"])
    return NameHeld(node, row["incarnation"], beat_at, frees_in, row["draining"])


def _claimed(row: Row) -> ClaimedJob:
    job = ClaimedJob(
        claim=ClaimId(row["claim_id"]),
        token=row["token"],
        flow=FlowId(row["flow_id"]),
        seq=Seq(row["seq"]),
        id=JobId(str(row["job_id"])),
        tenant=TenantId(row["tenant_id"]),
        target=Target(row["target"]),
        job_class=JobClass(row["job_class"]),
        attempt=row["attempts"] + 1,
        payload=row["payload"],
        content_type=row["content_type"],
        submitted_at=as_timestamp(row["submitted_at"]),
        ordered=row["bucket"] >= 0,
        waited_for=max(0.0, row["waited_for"]),
        last=None if row["failed"] is None else _outcome(msgspec.json.decode(row["failed"])),
    )
    return job if row["replayed"] is None else _replayed(job, msgspec.json.decode(row["replayed"]))


def _outcome(told: Mapping[str, Any]) -> Outcome | None:
    """How an attempt ended; None for a class that another version of the product knew."""
    if told["error_class"] not in CAUSES:
        return None
    return Outcome(told["error_class"], told["status"], excerpt=told["excerpt"] or "")


def _replayed(job: ClaimedJob, told: Mapping[str, Any]) -> ClaimedJob:
    """Terms that are gone say nothing against going on by the default ones."""
    terms = told["terms"] or {}
    known = {name: terms[name] for name in ("park_after", "hold_unknown") if name in terms}
    return replace(
        job,
        submitted_at=job.submitted_at if told["accepted_at"] is None else Timestamp(told["accepted_at"]),
        headers=told["headers"] or NO_HEADERS,
        replay=ReplayTerms(told["id"], **known),
        prior=told["prior"],
        faults=told["faults"],
    )


def _burial(row: Row) -> Burial:
    return Burial(JobId(str(row["job_id"])), TenantId(row["tenant_id"]), row["reason"])


def _places(settlements: Sequence[Settlement]) -> tuple[list[int], ...]:
    jobs = [s.job for s in settlements]
    return (
        [job.claim for job in jobs],
        [job.token for job in jobs],
        [job.flow for job in jobs],
        [job.seq for job in jobs],
    )


def _delivered(node: Node, settlements: Sequence[Settlement], told: str | None) -> tuple[object, ...]:
    return (
        node.id,
        node.incarnation,
        *_places(settlements),
        [s.status for s in settlements],
        [s.job.number - 1 for s in settlements],
        told,
        *_rerun(settlements),
    )


def _rerun(settlements: Sequence[Settlement]) -> tuple[object, object]:
    """Which of them are replays' and how long each ran; nothing at all where none is."""
    if all(s.job.replay is None for s in settlements):
        return None, None
    return [s.job.replay and s.job.replay.id for s in settlements], [s.busy_for for s in settlements]


def _aside(settlements: Sequence[Settlement]) -> tuple[object, object]:
    if all(s.job.replay is None for s in settlements):
        return None, None
    return [s.park_reason for s in settlements], [s.fingerprint for s in settlements]


def _failed(node: Node, settlements: Sequence[Settlement], told: str | None) -> tuple[object, ...]:
    failures = [s.failure for s in settlements]
    return (
        node.id,
        node.incarnation,
        *_places(settlements),
        [s.busy_for for s in settlements],
        [_ENDINGS[s.ending] for s in settlements],
        [s.retry_for for s in settlements],
        [s.status for s in settlements],
        [f.error_class if f else None for f in failures],
        [f.excerpt if f else None for f in failures],
        [s.reason or None for s in settlements],
        [s.job.attempt - 1 for s in settlements],
        told,
        *_aside(settlements),
    )


def _summaries(settlements: Iterable[Settlement]) -> str | None:
    told = {str(flow): encoded(summary) for flow, summary in summaries_of(settlements).items()}
    return msgspec.json.encode(told).decode() if told else None
