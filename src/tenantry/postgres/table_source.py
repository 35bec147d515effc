"""Any PostgreSQL table as a source, by a declared mapping of its columns.

``done=keep`` reads by position and changes nothing. ``done=delete`` and ``done=mark`` take a row out of the
source once it was staged, so a later session begins at the start and finds what is left. The login, the table
and the column that fences tenants are the operator's to choose; a tenant's text never becomes SQL
(:mod:`~tenantry.postgres.table_mapping`).
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tenantry.kernel.errors import Closed, InvalidValue, SourceUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.postgres.database import CONNECT_TIMEOUT
from tenantry.postgres.errors import FOREIGN
from tenantry.postgres.statements import statement
from tenantry.postgres.table_mapping import Asked, Column, Done, Statements, statements
from tenantry.replay import fields
from tenantry.replay.connections import Connection
from tenantry.replay.fields import Unreadable
from tenantry.replay.model import Batch, Fetched, Membership, Message, Position, SourceAddress, Traits

_BATCH_BYTES = 16_777_216
_TIMEOUT: Seconds = 120.0
"""For one statement."""

COUNT_FOR: Seconds = 5.0

CONNECTION_OPTIONS = ("tenant_column",)

Keys = tuple[str, ...]


class TableSource:
    """A session over one table; see :class:`~tenantry.replay.ports.Source`. One task only.

    ``connection``: its URL is a login of PostgreSQL's; its option ``tenant_column`` names the column that
    must equal the tenant's id in every row that is read or changed. ``window``: most rows in hand at once.
    Raises :class:`InvalidValue` for an address that says too little; what a table lacks is found when it is
    first looked at, and raised then.
    """

    def __init__(
        self,
        connection: Connection,
        tenant: TenantId,
        address: SourceAddress,
        *,
        window: int = 10_000,
        randomness: Randomness | None = None,
    ) -> None:
        fields.refuse_unknown(connection.options, CONNECTION_OPTIONS)
        column = connection.options.get("tenant_column")
        self._fence = {} if column is None else {column: str(tenant)}
        self._connection, self._asked, self._window = connection, Asked.of(address), window
        self._keeps = self._asked.done is Done.KEEP
        self._uniform = (randomness or SystemRandomness()).uniform
        self._session: asyncpg.Connection[asyncpg.Record] | None = None
        self._statements: Statements | None = None
        self._after: Keys | None = None
        self._end: Keys = ()
        self._held: set[Keys] = set()

    @property
    def traits(self) -> Traits:
        return Traits(counts=True, freezes=True, acknowledges=not self._keeps, window=self._window)

    async def survey(self) -> Membership:
        """A table that takes longer than :data:`COUNT_FOR` to count is estimated, as its planner would."""
        async with self._once() as (session, of):
            last = await session.fetchval(of.last, *of.values)
            try:
                count = await session.fetchval(of.count, *of.values, timeout=COUNT_FOR)
            except TimeoutError:
                explained = await session.fetchval(f"EXPLAIN (FORMAT JSON) {of.count}", *of.values)
                rows = int(json.loads(explained)[0]["Plan"]["Plans"][0]["Plan Rows"])
                return Membership(json.dumps(last or []), rows, counted_exactly=False)
        return Membership(json.dumps(last or []), count)

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """Rows at random, by key; of a table of which that takes longer than :data:`COUNT_FOR`, its first."""
        seed = int(self._uniform(0, 2**53))
        async with self._once() as (session, of):
            try:
                rows = await session.fetch(of.sample, *of.values, limit, seed, timeout=COUNT_FOR)
            except TimeoutError:
                rows = await session.fetch(of.oldest, *of.values, limit)
        return [self._entry(row, position=False) for row in rows]

    async def arrived(self, membership: Membership) -> int | None:
        """Rows whose keys lie behind the end; those that came with keys before it are not seen."""
        end = self._parsed(membership.bound, "membership.bound")
        async with self._once() as (session, of):
            if not end:
                return int(await session.fetchval(of.count, *of.values))
            return int(await session.fetchval(of.count_after, *of.values, *end))

    async def open(self, membership: Membership, after: Position) -> None:
        self._end = self._parsed(membership.bound, "membership.bound")
        self._after = self._parsed(after, "position") if after else ()
        with self._told():
            self._session = await self._connected()
            self._statements = await self._checked(self._session)

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """The next rows. A table never has to be waited for."""
        if self._session is None or self._statements is None or self._after is None:
            raise Closed("this session is not open")
        most = min(limit, self._window - len(self._held))
        if most < 1:
            return Batch(())
        rows = await self._read(self._session, self._statements, most) if self._end else []
        found = [self._entry(row, position=self._keeps) for row in rows]
        if rows:
            self._after = tuple(rows[-1]["keys"])
        if not self._keeps:
            self._held.update(tuple(row["keys"]) for row in rows)
        return Batch(tuple(found), exhausted=not rows)

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """Deletes or marks the rows; of a table that is kept: nothing."""
        keys = [key for key in receipts if isinstance(key, tuple)]
        if self._keeps or not keys or self._session is None or self._statements is None:
            return
        arrays = [list(column) for column in zip(*keys, strict=True)]
        with self._told():
            await self._session.execute(self._statements.done, *self._statements.values, *arrays)
        self._held.difference_update(keys)

    async def leave(self, receipts: Sequence[object]) -> None:
        """They stay; this session has passed them."""
        self._held.difference_update(key for key in receipts if isinstance(key, tuple))

    async def close(self) -> None:
        session, self._session, self._after = self._session, None, None
        self._held.clear()
        if session is not None:
            try:
                await session.close(timeout=CONNECT_TIMEOUT)
            except FOREIGN:
                session.terminate()  # nothing is in it: a row that was read is not locked

    async def _read(
        self, session: "asyncpg.Connection[asyncpg.Record]", of: Statements, most: int
    ) -> "list[asyncpg.Record]":
        after = self._after or ()
        with self._told():
            if after:
                return await session.fetch(of.read, *of.values, *after, *self._end, most, _BATCH_BYTES)
            return await session.fetch(of.read_first, *of.values, *self._end, most, _BATCH_BYTES)

    def _entry(self, row: Any, *, position: bool) -> Fetched:
        keys = tuple(row["keys"])
        place = Position(json.dumps(keys)) if position else None
        try:
            return Fetched(_message(row), keys, place)
        except Unreadable as why:
            name = "row " + "/".join(keys)
            return fields.broken(name[:255], row["payload"] or b"", str(why), receipt=keys, position=place)

    @asynccontextmanager
    async def _once(self) -> "AsyncIterator[tuple[asyncpg.Connection[asyncpg.Record], Statements]]":
        with self._told():
            session = await self._connected()
            try:
                yield session, await self._checked(session)
            finally:
                session.terminate()  # all that it did has been answered

    async def _connected(self) -> "asyncpg.Connection[asyncpg.Record]":
        try:
            return await asyncpg.connect(
                self._connection.url,
                timeout=CONNECT_TIMEOUT,
                command_timeout=_TIMEOUT,
                statement_cache_size=0,
                server_settings={"datestyle": "ISO", "timezone": "UTC"},
            )
        except ValueError:  # it may show the URL
            raise SourceUnavailable(
                f"connection {self._connection.name!r}: its URL is none of PostgreSQL's; expected "
                "postgresql://user:password@host:port/database"
            ) from None

    async def _checked(self, session: "asyncpg.Connection[asyncpg.Record]") -> Statements:
        asked = self._asked
        rows = await session.fetch(statement("sources/table_columns"), asked.schema, asked.table)
        if not rows:
            raise SourceUnavailable(f"there is no table {asked.schema}.{asked.table} that this login can see")
        columns = {row["name"]: Column(row["name"], row["type"], row["not_null"]) for row in rows}
        unique = await session.fetch(statement("sources/table_keys"), asked.schema, asked.table)
        return statements(asked, columns, [row["columns"] for row in unique], fenced=self._fence)

    def _parsed(self, text: str, path: str) -> Keys:
        try:
            keys = json.loads(text)
        except ValueError:
            keys = None
        is_list = isinstance(keys, list) and len(keys) in {0, len(self._asked.keys)}
        if is_list and all(isinstance(each, str) for each in keys):
            return tuple(keys)
        raise InvalidValue(
            path, text, f"a JSON array with the text of each key: {', '.join(self._asked.keys)}"
        )

    def _told(self) -> "_Told":
        return _Told(self._connection.name)


class _Told:
    """What the driver and the server say is the source's state. Holds no URL."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FOREIGN):
            said = str(error).partition("\n")[0] or type(error).__name__
            raise SourceUnavailable(f"connection {self._name!r}: PostgreSQL said: {said[:200]}") from None


def _message(row: Any) -> Message:
    if row["payload"] is None:
        raise Unreadable("payload: its column is NULL")
    if row["size"] > fields.LARGEST_PAYLOAD:
        raise Unreadable(
            f"its payload has {row['size']:,} bytes; at most {fields.LARGEST_PAYLOAD:,} can be fed"
        )
    ids = row["ids"]
    if None in ids:
        raise Unreadable("id: a column of its id is NULL")
    content_type = "application/octet-stream" if row["is_bytes"] else "application/json"
    return Message(
        id=fields.id_text(ids[0] if len(ids) == 1 else json.dumps(ids), "id"),
        payload=row["payload"],
        content_type=fields.word(row["content_type"], "content_type") or content_type,
        target=fields.target_text(row["target"], "target"),
        headers=fields.header_texts(json.loads(row["headers"] or "null"), "headers"),
        failed_at=fields.instant(row["failed_at"], "failed_at"),
        attempts=fields.count(row["attempts"], "attempts"),
        error_class=fields.word(row["error_class"], "error_class"),
        failure=fields.word(row["failure"], "failure"),
    )
