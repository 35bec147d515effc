"""Tenants' transactions for psycopg 3, sync and async, over a pool or one connection.

The binding travels with BEGIN and the check with COMMIT, each as one simple message, below psycopg's
cursors: psycopg sees that a transaction is open, begins none of its own, and takes savepoints where asked
for one. The connection's ``isolation_level``, ``read_only`` and ``deferrable`` are kept to; whether it is
in autocommit makes no difference.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import Any, Protocol, TypeAlias, cast

from tenantry.bindings.context import Open, enter, leave, open_here
from tenantry.bindings.errors import LeftBehind, TransactionOpen
from tenantry.bindings.model import DEFAULT, Binding, Judged
from tenantry.bindings.rules import Envelope, drive, drive_async, why_not_committed
from tenantry.bindings.statements import begin
from tenantry.kernel.errors import MissingExtra

try:
    import psycopg
    from psycopg import generators
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus, TransactionStatus
    from psycopg.pq.abc import PGresult
    from psycopg.rows import tuple_row
except ModuleNotFoundError as missing:
    raise MissingExtra("psycopg", "tenantry.bindings.psycopg") from missing

Connection: TypeAlias = "psycopg.Connection[Any]"
AsyncConnection: TypeAlias = "psycopg.AsyncConnection[Any]"
Either: TypeAlias = "Connection | AsyncConnection"

_FAILED = ExecStatus.FATAL_ERROR
_IDLE, _IN, _IN_ERROR = TransactionStatus.IDLE, TransactionStatus.INTRANS, TransactionStatus.INERROR


class Pool(Protocol):
    """A ``psycopg_pool.ConnectionPool``, or anything that lends connections as it does."""

    def connection(self) -> AbstractContextManager[Connection]: ...


class AsyncPool(Protocol):
    """A ``psycopg_pool.AsyncConnectionPool``, or anything that lends connections as it does."""

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection]: ...


class _Tenants:
    """What the sync and the async face share: all but the waiting."""

    def __init__(self, source: Any, binding: Binding = DEFAULT) -> None:
        self._source, self.binding = source, binding
        self._own = source if isinstance(source, psycopg.Connection | psycopg.AsyncConnection) else None
        self._lends = hasattr(source, "getconn") and hasattr(source, "putconn")
        self._judged = Judged()

    def _connection(self) -> Any:
        """A context, for ``with`` or ``async with`` as the source is."""
        if self._own is not None:
            return nullcontext(self._source)
        return _Lent(self._source) if self._lends else self._source.connection()

    def _entered(self, tenant: object | None) -> tuple[Open, bool]:
        """The transaction noted, and whether it is a savepoint of one that is open on the same connection."""
        own = self._own
        outer = open_here(self.binding) if own is not None else None
        opened = enter(self.binding, tenant, own, doing="a transaction over psycopg")
        return opened, outer is not None and outer.connection is own

    def _envelope(self, connection: Either, value: str) -> Envelope:
        return Envelope(self.binding, value, begin=begin_of(connection), judged=self._judged)


class Tenants(_Tenants):
    """Transactions of tenants over a pool, or over one connection of yours.

    Over a pool any number of threads may have transactions at once; over a connection one at a time. What a
    login may do is asked once, by the first transaction.
    """

    def __init__(self, source: "Pool | Connection", binding: Binding = DEFAULT) -> None:
        super().__init__(source, binding)

    @contextmanager
    def transaction(self, tenant: object | None = None) -> Iterator[Connection]:
        """A connection in a transaction whose row policies see ``tenant`` alone; without one, the current
        tenant.

        Commits at the end, rolls back on any exception. Inside, savepoints are ``connection.transaction()``;
        over a connection of yours ``transaction()`` of the same tenant is one, too. Raises what
        :mod:`tenantry.bindings.errors` lists, :class:`~tenantry.kernel.errors.InvalidValue` for what is no
        tenant, and what psycopg raises.
        """
        opened, nested = self._entered(tenant)
        try:
            with self._connection() as connection:
                if nested:
                    with connection.transaction():
                        yield connection
                    return
                check_idle(connection)
                envelope = self._envelope(connection, opened.value)
                open_transaction(connection, envelope)
                try:
                    yield connection
                except BaseException:
                    roll_back(connection)
                    raise
                commit_transaction(connection, envelope)
        finally:
            leave(opened)


class _Lent:
    """A connection of a pool of psycopg's. The pool's own ``connection()`` would commit as well, which is
    done by then and costs a tenth of a short transaction."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def __enter__(self) -> Any:
        connection = self._connection = self._pool.getconn()
        return connection

    def __exit__(self, *_: object) -> None:
        self._pool.putconn(self._connection)

    async def __aenter__(self) -> Any:
        connection = self._connection = await self._pool.getconn()
        return connection

    async def __aexit__(self, *_: object) -> None:
        await self._pool.putconn(self._connection)


class AsyncTenants(_Tenants):
    """:class:`Tenants` for psycopg's async connections and pools. For one event loop."""

    def __init__(self, source: "AsyncPool | AsyncConnection", binding: Binding = DEFAULT) -> None:
        super().__init__(source, binding)

    @asynccontextmanager
    async def transaction(self, tenant: object | None = None) -> AsyncIterator[AsyncConnection]:
        """As :meth:`Tenants.transaction`."""
        opened, nested = self._entered(tenant)
        try:
            async with self._connection() as connection:
                if nested:
                    async with connection.transaction():
                        yield connection
                    return
                check_idle(connection)
                envelope = self._envelope(connection, opened.value)
                await open_transaction_async(connection, envelope)
                try:
                    yield connection
                except BaseException:
                    await roll_back_async(connection)
                    raise
                await commit_transaction_async(connection, envelope)
        finally:
            leave(opened)


def begin_of(connection: Either) -> str:
    """BEGIN with the modes that the connection's attributes ask for."""
    level, read_only, deferrable = connection.isolation_level, connection.read_only, connection.deferrable
    if level is None and read_only is None and deferrable is None:
        return "BEGIN"
    named = level.name.replace("_", " ") if level is not None else None
    return begin(named, read_only=read_only, deferrable=deferrable)


def check_idle(connection: Either) -> None:
    """Raises :class:`TransactionOpen`."""
    if connection.pgconn.transaction_status in (_IN, _IN_ERROR):
        raise TransactionOpen


def open_transaction(connection: Connection, envelope: Envelope) -> None:
    """Begin and bind on an idle connection; where that fails nothing is left open."""
    try:
        answer: int | Exception | None = None
        if (message := envelope.opening()) is not None:
            answer = _answer_of(_exchange(connection, message))
            if envelope.is_fit(answer):
                return
        steps = envelope.steps(answer)
        drive(steps, lambda sql: _run(connection, sql), lambda sql: _read(connection, sql))
    except BaseException as error:
        if isinstance(error, LeftBehind) and not error.cleaned:
            connection.close()
        roll_back(connection)
        raise


def commit_transaction(connection: Connection, envelope: Envelope) -> None:
    """Commit what :func:`open_transaction` opened, or roll back and say why."""
    was_open = _may_be_open(connection)
    try:
        result = _exchange(connection, envelope.closing())
        if result.status == _FAILED:
            _run(connection, _again(connection, envelope, error_from_result(result)))
    except BaseException as error:
        why = _why(connection, error, was_open)
        roll_back(connection)
        if why is not None:
            raise why from error
        raise


def _again(connection: Either, envelope: Envelope, error: psycopg.Error) -> str:
    """What is sent after ``error``; raises it where nothing is."""
    message = envelope.closing_anyhow(error, is_open=_may_be_open(connection))
    if message is None:
        raise error
    return message


def roll_back(connection: Connection) -> None:
    """End what may be open, and the connection where that cannot be done."""
    try:
        if _may_be_open(connection):
            connection.rollback()
    except BaseException as error:
        connection.close()
        if not isinstance(error, psycopg.Error):
            raise


async def open_transaction_async(connection: AsyncConnection, envelope: Envelope) -> None:
    """As :func:`open_transaction`."""
    try:
        answer: int | Exception | None = None
        if (message := envelope.opening()) is not None:
            answer = _answer_of(await _exchange_async(connection, message))
            if envelope.is_fit(answer):
                return
        steps = envelope.steps(answer)
        await drive_async(
            steps, lambda sql: _run_async(connection, sql), lambda sql: _read_async(connection, sql)
        )
    except BaseException as error:
        if isinstance(error, LeftBehind) and not error.cleaned:
            await connection.close()
        await roll_back_async(connection)
        raise


async def commit_transaction_async(connection: AsyncConnection, envelope: Envelope) -> None:
    """As :func:`commit_transaction`."""
    was_open = _may_be_open(connection)
    try:
        result = await _exchange_async(connection, envelope.closing())
        if result.status == _FAILED:
            await _run_async(connection, _again(connection, envelope, error_from_result(result)))
    except BaseException as error:
        why = _why(connection, error, was_open)
        await roll_back_async(connection)
        if why is not None:
            raise why from error
        raise


async def roll_back_async(connection: AsyncConnection) -> None:
    """As :func:`roll_back`."""
    try:
        if _may_be_open(connection):
            await connection.rollback()
    except BaseException as error:
        await connection.close()
        if not isinstance(error, psycopg.Error):
            raise


def _may_be_open(connection: Either) -> bool:
    return connection.pgconn.transaction_status != _IDLE and not connection.closed


def _why(connection: Either, error: BaseException, was_open: bool) -> Exception | None:
    is_open = _may_be_open(connection)
    return why_not_committed(getattr(error, "sqlstate", None), was_open=was_open, is_open=is_open)


def _exchange(connection: Connection, sql: str) -> PGresult:
    """One message of several commands, and the result of the last that the server came to."""
    pgconn = connection.pgconn
    with connection.lock:
        pgconn.send_query(sql.encode())
        return cast(PGresult, connection.wait(generators.execute(pgconn))[-1])


async def _exchange_async(connection: AsyncConnection, sql: str) -> PGresult:
    """As :func:`_exchange`."""
    pgconn = connection.pgconn
    async with connection.lock:
        pgconn.send_query(sql.encode())
        return cast(PGresult, (await connection.wait(generators.execute(pgconn)))[-1])


def _answer_of(result: PGresult) -> int | Exception:
    """The number of rows, or the error."""
    return result.ntuples if result.status != _FAILED else error_from_result(result)


def _run(connection: Connection, sql: str) -> int:
    return _rows_of(_exchange(connection, sql))


async def _run_async(connection: AsyncConnection, sql: str) -> int:
    return _rows_of(await _exchange_async(connection, sql))


def _rows_of(result: PGresult) -> int:
    answer = _answer_of(result)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _read(connection: Connection, sql: str) -> Sequence[Any]:
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return cursor.execute(sql.encode(), prepare=False).fetchone() or ()


async def _read_async(connection: AsyncConnection, sql: str) -> Sequence[Any]:
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(sql.encode(), prepare=False)
        return await cursor.fetchone() or ()
