"""The port :class:`tenantry.rls.workbench.Workbench`: one session that changes row policies."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tenantry.kernel.errors import UsageError
from tenantry.postgres.catalogue import read_facts
from tenantry.postgres.database import connect_once
from tenantry.postgres.errors import FOREIGN, translated
from tenantry.postgres.statements import statement
from tenantry.rls.declaration import TableName
from tenantry.rls.facts import Facts
from tenantry.rls.script import Bounds, Message, timeout
from tenantry.rls.workbench import Holder

TURN = 0x74656E616E747279
"""The key of the advisory lock, of each database its own: "tenantry" in bytes."""

_NOT_TO_BE_HAD = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError, asyncpg.QueryCanceledError)
_SETTINGS = (
    "SET application_name = 'tenantry rls apply'",
    # a client that was killed must not leave its session waiting for a lock, nor keep the turn
    "SET client_connection_check_interval = '500ms'",
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = '10s'",
)


class PostgresWorkbench:
    """See the port. Opened by :func:`workbench`."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def facts(self) -> Facts:
        with translated("reading the catalogue"):
            return await read_facts(self._connection)

    async def take_turn(self, bounds: Bounds) -> bool:
        with translated("taking the turn"):
            await self._connection.execute(timeout(Message(""), bounds))
            try:
                await self._connection.execute(f"SELECT pg_advisory_lock({TURN})")
            except _NOT_TO_BE_HAD:
                return False
            return True

    async def send(self, message: Message, bounds: Bounds) -> bool:
        with translated("changing row policies"):
            await self._connection.execute(timeout(message, bounds))
            try:
                await self._connection.execute(message.sql)
            except _NOT_TO_BE_HAD:
                await self._connection.execute("ROLLBACK")
                return False
            except asyncpg.InternalServerError as error:  # two changes of one catalogue row at once
                await self._connection.execute("ROLLBACK")
                if "tuple concurrently" not in str(error):
                    raise UsageError(_refusal(error, message)) from error
                return False
            except asyncpg.PostgresError as error:
                if self._connection.is_closed() or error.sqlstate[:2] in ("08", "53", "57", "58"):
                    raise
                await self._connection.execute("ROLLBACK")
                raise UsageError(_refusal(error, message)) from error
            return True

    async def holders(self, relations: tuple[TableName, ...], *, older: bool) -> tuple[Holder, ...]:
        with translated("looking who is in the way"):
            rows = await self._connection.fetch(
                statement("rls_write/holders"), [str(each) for each in relations]
            )
            if older and not rows:
                rows = await self._connection.fetch(statement("rls_write/older"))
            return tuple(Holder(**row) for row in rows)

    async def turn_holder(self) -> tuple[Holder, ...]:
        with translated("looking who has the turn"):
            rows = await self._connection.fetch(statement("rls_write/turn_holder"), TURN)
            return tuple(Holder(**row) for row in rows)


@asynccontextmanager
async def workbench(url: str) -> AsyncIterator[PostgresWorkbench]:
    """A session of its own on ``url``, which must lead to the server and not to a pooler: an index is built
    outside of transactions, and the turn is the session's. Raises :class:`StoreUnavailable`."""
    connection = await connect_once(url)
    try:
        with translated("opening a session"):
            for each in _SETTINGS:
                await connection.execute(each)
        yield PostgresWorkbench(connection)
    finally:
        try:
            await connection.close(timeout=5)
        except FOREIGN:
            connection.terminate()


def _refusal(error: asyncpg.PostgresError, message: Message) -> str:
    hint = (
        ". Use the login of the tables' owner that may also create roles, or a superuser's"
        if error.sqlstate == "42501"
        else ""
    )
    first = next(line for line in message.sql.splitlines() if line not in ("BEGIN;",))
    said = " ".join(str(error).split())
    return f"PostgreSQL refused a step ({first.strip()[:80]} …): [{error.sqlstate}] {said}{hint}"
