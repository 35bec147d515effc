"""Where replays meet the queue, for whoever has no transaction of its own: the same functions of the database
that a replay's store calls in its own."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import asyncpg
import msgspec

from tenantry.kernel.tenant import TenantId
from tenantry.postgres.database import Database
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.statements import statement
from tenantry.queue.model import EndKind, JobId, ReplayedJob, ReplayEnd, ReplayTerms

_FEED = "SELECT tenantry.feed_replay($1, $2, $3, $4, $5, $6, $7, $8)"
_PAUSE = "SELECT tenantry.pause_replay($1, $2, $3)"
_WITHDRAW = "SELECT tenantry.withdraw_replay($1, $2, $3)"


class PostgresReplayFlows:
    """Implements :class:`tenantry.queue.ports.ReplayFlows`, on the engine's login."""

    def __init__(self, database: Database, hints: Hints) -> None:
        self._pool, self._hints = database.side, hints

    async def feed_replay(self, tenant: TenantId, terms: ReplayTerms, jobs: Sequence[ReplayedJob]) -> None:
        with translated("feeding a replay"):
            async with self._pool.acquire() as connection, connection.transaction():
                await connection.execute(
                    statement("replays/keep_terms"), terms.id, tenant, terms.park_after, terms.hold_unknown
                )
                await connection.execute(_FEED, tenant, terms.id, *_columns(jobs))
        self._hints.changed()

    async def pause_replay(self, tenant: TenantId, replay: str, *, paused: bool) -> None:
        with translated("pausing a replay"):
            await self._pool.execute(_PAUSE, tenant, replay, paused)
        self._hints.changed()

    async def withdraw_replay(self, tenant: TenantId, replay: str, *, limit: int) -> list[JobId]:
        with translated("withdrawing a replay"):
            gone = await self._pool.fetchval(_WITHDRAW, tenant, replay, limit)
        if gone:
            self._hints.changed()
        return [JobId(str(id_)) for id_ in gone]

    async def take_ends(self, replay: str, *, limit: int) -> list[ReplayEnd]:
        with translated("taking the ends of a replay"):
            rows = await self._pool.fetch(statement("replays/take_ends"), replay, limit)
        return [end for row in rows for end in ends_of(row)]


def ends_of(row: asyncpg.Record) -> list[ReplayEnd]:
    """The ends that one row of ``tenantry.replay_ends`` tells."""
    columns = (row[name] for name in _ENDS)
    replay, tenant = row["replay_id"], TenantId(row["tenant_id"])
    return [
        ReplayEnd(replay, tenant, JobId(str(job)), EndKind(kind), *rest)
        for job, kind, *rest in zip(*columns, strict=True)
    ]


_ENDS = ("job_ids", "kinds", "attempts", "error_classes", "statuses", "fingerprints", "busy")


def _columns(jobs: Sequence[ReplayedJob]) -> tuple[list[object], ...]:
    return (
        [job.target for job in jobs],
        [UUID(job.id) for job in jobs],
        [job.payload for job in jobs],
        [job.content_type for job in jobs],
        [encoded_headers(job.headers) for job in jobs],
        [job.prior for job in jobs],
    )


def encoded_headers(headers: Mapping[str, str]) -> str | None:
    """Headers as ``jobs.headers`` has them; None for none."""
    return msgspec.json.encode(dict(headers)).decode() if headers else None
