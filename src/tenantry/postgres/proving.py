"""The port :class:`tenantry.rls.prove.ports.Range`: one transaction that is always rolled back.

Nothing here commits, so a process that is killed leaves nothing either: the server rolls back what a lost
session had open. What a rollback does not undo: sequences that were drawn from, and what functions do outside
of the transaction, which are not called (:mod:`tenantry.rls.prove.outside`).
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tenantry.kernel.errors import UsageError
from tenantry.kernel.instant import Seconds
from tenantry.postgres.catalogue import read_facts_inside
from tenantry.postgres.database import connect_once
from tenantry.postgres.errors import FOREIGN, translated
from tenantry.postgres.statements import statement
from tenantry.rls.facts import Facts
from tenantry.rls.names import quoted
from tenantry.rls.prove.model import Answer, Attempt
from tenantry.rls.prove.values import Kind, literal

_READ = """\
SELECT count(*) AS count, coalesce(sum(hashtextextended(j::text, 0)::numeric), 0)::text AS print,
       (array_agg(j::text) FILTER (WHERE j <@ ANY (ARRAY[{planted}]::jsonb[])))[1:1] AS shown
  FROM (SELECT to_jsonb(q) AS j FROM ({asked}) AS q) AS s"""
"""Rows stay on the server: it counts and hashes them, and gives out only those that were planted."""

_LOST = ("08", "57P", "58")
"""SQLSTATEs with which the session is gone."""


class PostgresRange:
    """See the port. Opened by :func:`proving_range`."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection
        self._heard: list[str] = []
        connection.add_log_listener(lambda _, message: self._heard.append(str(message)))

    async def facts(self) -> Facts:
        with translated("reading the catalogue"):
            return await read_facts_inside(self._connection)

    async def kinds(self) -> Mapping[int, Kind]:
        with translated("reading the types"):
            rows = await self._connection.fetch(statement("rls_prove/kinds"))
        return {row["oid"]: Kind(row["base"], tuple(row["labels"])) for row in rows}

    async def checks(self) -> Mapping[int, tuple[str, ...]]:
        with translated("reading the checks"):
            rows = await self._connection.fetch(statement("rls_prove/checks"))
        return {row["oid"]: tuple(row["checks"]) for row in rows}

    async def bounds(self) -> Mapping[int, str]:
        with translated("reading the partitions"):
            rows = await self._connection.fetch(statement("rls_prove/bounds"))
        return {row["oid"]: row["bound"] for row in rows}

    async def is_free(self, table: str, column: str, text: str) -> bool:
        query = f"SELECT EXISTS (SELECT FROM {table} WHERE {quoted(column)} = {literal(text)})"  # noqa: S608 - quoted
        async with self._undone():
            try:
                return not await self._connection.fetchval(query)
            except asyncpg.PostgresError as error:
                _unless_lost(error)
                return False

    async def plant(self, statement: str) -> tuple[str | None, str]:
        savepoint = self._connection.transaction()
        await savepoint.start()
        try:
            await self._connection.execute("SET LOCAL session_replication_role = replica")
            title = statement.split("INSERT INTO ", 1)[1].split(" (", 1)[0]
            text = await self._connection.fetchval(f"{statement} RETURNING to_jsonb({title}.*)::text")
            await self._connection.execute("SET LOCAL session_replication_role = origin")
        except asyncpg.PostgresError as error:
            await savepoint.rollback()
            _unless_lost(error)
            return None, _said(error)
        await savepoint.commit()
        return text, ""

    async def keep(self) -> None:
        self._kept = self._connection.transaction()
        await self._kept.start()

    async def take_back(self) -> None:
        await self._kept.rollback()

    async def attempt(self, attempt: Attempt, planted: Sequence[str], watched: Sequence[str]) -> Answer:
        with translated("attacking"):
            async with self._undone():
                try:
                    for each in attempt.prepare:
                        await self._prepare(each)
                    before = await self._states(attempt, watched)
                except asyncpg.PostgresError as error:
                    _unless_lost(error)
                    return Answer(unready=_said(error))
                self._heard.clear()
                try:
                    answer = await self._made(attempt, planted)
                    changed = await self._changed(attempt, before, watched)
                except asyncpg.PostgresError as error:
                    _unless_lost(error)
                    return _refused(error)
        return Answer(**answer, heard=await self._notices(), changed=changed)

    async def _prepare(self, sql: str) -> None:
        await self._connection.execute("SET LOCAL session_replication_role = replica")
        await self._connection.execute(sql)
        await self._connection.execute("SET LOCAL session_replication_role = origin")

    async def _made(self, attempt: Attempt, planted: Sequence[str]) -> dict[str, Any]:
        connection = self._connection
        bound = [
            f"SELECT set_config({literal(name)}, {literal(value)}, true)" for name, value in attempt.settings
        ]
        become = f"SET LOCAL SESSION AUTHORIZATION {quoted(attempt.role)}"
        done = [_wrapped(each, planted) for each in attempt.statements]
        await connection.execute(";\n".join([become, *bound, *done]))
        if attempt.reads:
            row = await connection.fetchrow(_reading(attempt.asked, planted))
            assert row is not None
            return {"count": row["count"], "print": row["print"], "shown": tuple(row["shown"] or ())}
        status = await connection.execute(attempt.asked)
        await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        number = status.rpartition(" ")[2]
        return {"count": int(number) if number.isdigit() else 0}

    async def _states(self, attempt: Attempt, watched: Sequence[str]) -> dict[str, str]:
        if (attempt.reads and attempt.door != "call") or attempt.by_success or not watched:
            return {}
        return dict(await self._connection.fetch(" UNION ALL ".join(watched)))  # type: ignore[arg-type]

    async def _changed(
        self, attempt: Attempt, before: Mapping[str, str], watched: Sequence[str]
    ) -> tuple[str, ...]:
        if not before:
            return ()
        await self._connection.execute("SET LOCAL SESSION AUTHORIZATION DEFAULT")
        after = await self._states(attempt, watched)
        return tuple(sorted(title for title, state in before.items() if after.get(title) != state))

    async def _notices(self) -> tuple[str, ...]:
        await asyncio.sleep(0)  # the driver calls listeners in the loop's next round
        return tuple(self._heard)

    @asynccontextmanager
    async def _undone(self) -> AsyncIterator[None]:
        savepoint = self._connection.transaction()
        await savepoint.start()
        try:
            yield
        finally:
            if not self._connection.is_closed():
                await savepoint.rollback()


def _wrapped(sql: str, planted: Sequence[str]) -> str:
    """A query that is prepared is asked for in the form in which its rows stay on the server."""
    head, found, query = sql.partition("PREPARE kept AS ")
    return f"{found}{_reading(query, planted)}" if found and not head else sql


def _reading(asked: str, planted: Sequence[str]) -> str:
    if asked.startswith("EXECUTE "):
        return asked
    return _READ.format(asked=asked, planted=", ".join(map(literal, planted)))


def _unless_lost(error: asyncpg.PostgresError) -> None:
    """Raises it again where it says that the session is gone."""
    if (error.sqlstate or "").startswith(_LOST):
        raise error


def _refused(error: asyncpg.PostgresError) -> Answer:
    told = error.as_dict()
    name, schema, table = (told.get(f"{each}_name") or "" for each in ("constraint", "schema", "table"))
    violated = f"{quoted(name)} on {quoted(schema)}.{quoted(table)}" if name and table else ""
    refused = error.sqlstate or "XX000"
    return Answer(refused=refused, message=_said(error), print=str(error), violated=violated)


def _said(error: asyncpg.PostgresError) -> str:
    """Without its detail, in which whole rows may stand."""
    return " ".join(str(error.args[0]).split())


@asynccontextmanager
async def proving_range(
    url: str, *, statement_timeout: Seconds, lock_timeout: Seconds
) -> AsyncIterator[PostgresRange]:
    """A transaction on ``url`` to attack in; it is rolled back at the end, however it comes.

    Raises :class:`StoreUnavailable`, and :class:`UsageError` for a standby, and for a login that is no
    superuser: it could neither plant rows past the policies nor act as the application.
    """
    connection = await connect_once(url)
    try:
        with translated("opening a session"):
            await _refuse(connection)
            await connection.execute("SET application_name = 'tenantry rls prove'")
            await connection.execute("SET client_connection_check_interval = '500ms'")
            await connection.execute("SET idle_in_transaction_session_timeout = '60s'")
            transaction = connection.transaction()
            await transaction.start()
            await connection.execute(f"SET LOCAL statement_timeout = {int(statement_timeout * 1000)}")
            await connection.execute(f"SET LOCAL lock_timeout = {int(lock_timeout * 1000)}")
        yield PostgresRange(connection)
    finally:
        await _ended(connection)


async def _refuse(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        raise UsageError("this server is a standby: rows cannot be planted there. Use the primary, or a copy")
    if not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        raise UsageError(
            "the attack needs a superuser's login: it plants rows past the policies, and acts as the "
            "application. Give it a copy of the database on a server of your own where you have none"
        )


async def _ended(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Closes the session: what it had open is rolled back, by us or by the server."""
    try:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        await connection.close(timeout=5)
    except FOREIGN:
        connection.terminate()
