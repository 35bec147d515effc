"""A tenant's own dead letters as a source: read by position, under its row policies; the feed moves them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from tenantry.kernel.errors import Closed, InvalidValue, SourceUnavailable, StoreUnavailable
from tenantry.kernel.instant import Seconds, as_timestamp
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.lanes.outcome import excerpt_of
from tenantry.postgres.database import Database
from tenantry.postgres.session import bound
from tenantry.postgres.statements import statement
from tenantry.queue.model import JobId
from tenantry.replay import fields
from tenantry.replay.model import (
    NO_HEADERS,
    Batch,
    Fetched,
    Membership,
    Message,
    Position,
    SourceAddress,
    Traits,
)

_BATCH_BYTES = 16_777_216
"""After so many bytes of payload a batch is full, whatever its count."""

COUNT_FOR: Seconds = 5.0

_BY_KEY = "SET LOCAL enable_seqscan = off"
"""A plan that reads the table whole reads the dead letters of all others."""


class _Place(NamedTuple):
    """One letter's place in the order of dying. As text: ``2026-11-30T12:00:00.000001+00:00/UUID``."""

    died_at: datetime
    job: UUID

    def __str__(self) -> str:
        return f"{self.died_at.astimezone(UTC).isoformat(timespec='microseconds')}/{self.job}"


_FIRST = _Place(datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


class DeadLetterSource:
    """A session over ``tenant``'s dead letters, in the order in which they died; see
    :class:`~tenantry.replay.ports.Source`. One task only.

    The membership ends with the letter that was last when it was frozen. A letter whose transaction was still
    under way then, and that died before it, is in the membership but not in its count; one that becomes
    visible behind a position that has passed it is not fetched and stays a dead letter. What was fed and dies
    again is a letter behind the end: ``arrived`` counts it with the new ones.

    The address takes no place and no options: what a tenant's replay can see is decided by the tenant.
    """

    def __init__(
        self,
        database: Database,
        tenant: TenantId,
        address: SourceAddress,
        *,
        randomness: Randomness | None = None,
    ) -> None:
        fields.refuse_unknown(address.options, ())
        if address.place:
            raise InvalidValue(
                "source.place", address.place, "nothing: they are the tenant's own dead letters"
            )
        self._pool, self._tenant = database.tenant, tenant
        self._uniform = (randomness or SystemRandomness()).uniform
        self._after: _Place | None = None
        self._end = _FIRST

    @property
    def traits(self) -> Traits:
        return Traits(counts=True, freezes=True, acknowledges=False)

    async def survey(self) -> Membership:
        """Letters that take longer than :data:`COUNT_FOR` to count are estimated, as the planner would."""
        last = await self._rows("sources/letters_last")
        if not last:
            return Membership(str(_FIRST), 0)
        end = _Place(last[0]["died_at"], last[0]["job_id"])
        try:
            (row,) = await self._rows("sources/letters_upto", *end, within=COUNT_FOR)
        except SourceUnavailable as error:
            if not _is_late(error):
                raise
            return Membership(str(end), await self._estimated(end), counted_exactly=False)
        return Membership(str(end), row["count"])

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """Letters at random, in the order in which they died. Where they are so many that to draw among all
        takes longer than :data:`COUNT_FOR`: those that died next to instants at random, else the oldest."""
        seed = int(self._uniform(0, 2**53))  # by which the server orders them
        try:
            rows = await self._rows("sources/letters_sample", limit, seed, within=COUNT_FOR)
        except SourceUnavailable as error:
            if not _is_late(error):
                raise
            parts = [self._uniform(n, n + 1) / limit for n in range(limit)]
            rows = await self._rows("sources/letters_sample_by_time", limit, parts, seed)
        return [Fetched(_message(row), None) for row in rows]

    async def arrived(self, membership: Membership) -> int | None:
        (row,) = await self._rows("sources/letters_after", *_parsed(membership.bound, "membership.bound"))
        count: int = row["count"]
        return count

    async def open(self, membership: Membership, after: Position) -> None:
        self._end = _parsed(membership.bound, "membership.bound")
        self._after = _parsed(after, "position") if after else _FIRST

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """The next letters. A table never has to be waited for."""
        if self._after is None:
            raise Closed("this session is not open")
        most = min(limit, self.traits.window)
        rows = await self._rows("sources/letters", *self._after, *self._end, most, _BATCH_BYTES)
        found = []
        for row in rows:
            self._after = _Place(row["died_at"], row["job_id"])
            found.append(Fetched(_message(row), None, Position(str(self._after))))
        return Batch(tuple(found), exhausted=not found)

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """Nothing: the feed has moved the row in the transaction that staged it."""

    async def leave(self, receipts: Sequence[object]) -> None:
        """Nothing: they stay dead letters."""

    async def close(self) -> None:
        self._after = None

    async def _estimated(self, end: _Place) -> int:
        query = f"EXPLAIN (FORMAT JSON) {statement('sources/letters_upto')}"
        (row,) = await self._fetched(query, end)
        return int(json.loads(row[0])[0]["Plan"]["Plans"][0]["Plan Rows"])

    async def _rows(
        self, name: str, *arguments: object, within: Seconds | None = None
    ) -> "list[asyncpg.Record]":
        return await self._fetched(statement(name), arguments, within=within)

    async def _fetched(
        self, query: str, arguments: Sequence[object], *, within: Seconds | None = None
    ) -> "list[asyncpg.Record]":
        try:
            async with bound(self._pool, self._tenant) as connection:
                await connection.execute(_BY_KEY)
                return await connection.fetch(query, *arguments, timeout=within)
        except StoreUnavailable as error:
            raise SourceUnavailable(str(error)) from error


def _is_late(error: SourceUnavailable) -> bool:
    """Whether it was given up by its time."""
    return error.__cause__ is not None and isinstance(error.__cause__.__cause__, TimeoutError)


def _message(row: Any) -> Message:
    job = str(row["job_id"])
    return Message(
        id=job,
        payload=row["payload"],
        content_type=row["content_type"],
        target=Target(row["target"]),
        headers=json.loads(row["headers"]) if row["headers"] else NO_HEADERS,
        failed_at=as_timestamp(row["died_at"]),
        attempts=row["attempts"],
        error_class=row["error_class"] or "",
        failure=excerpt_of(row["reason"]),
        letter=JobId(job),
    )


def _parsed(text: str, path: str) -> _Place:
    died_at, _, job = text.partition("/")
    try:
        return _Place(datetime.fromisoformat(died_at), UUID(job))
    except ValueError:
        raise InvalidValue(path, text, "a dead letter's place: when it died, a slash, its id") from None
