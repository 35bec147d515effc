"""Tenants' transactions for psycopg 3, sync and async, over a pool or one connection.

The binding travels with BEGIN and the check with COMMIT, each as one simple message, for which the connection
is switched to autocommit while the transaction lasts: psycopg then begins none of its own. Its attributes
``isolation_level``, ``read_only`` and ``deferrable`` are kept to.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import Any, Protocol, TypeAlias

from tenantry.bindings.context import Open, enter, leave, open_here
from tenantry.bindings.errors import LeftBehind, TransactionOpen
from tenantry.bindings.model import DEFAULT, Binding, Judged
from tenantry.bindings.rules import (
    Procedure,
    drive,
    drive_async,
    ending,
    opening,
    why_not_committed,
)
from tenantry.bindings.statements import begin
from tenantry.kernel.errors import MissingExtra

try:
    import psycopg
    from psycopg.pq import TransactionStatus
    from psycopg.rows import tuple_row
except ModuleNotFoundError as missing:
    raise MissingExtra("psycopg", "tenantry.bindings.psycopg") from missing

Connection: TypeAlias = "psycopg.Connection[Any]"
AsyncConnection: TypeAlias = "psycopg.AsyncConnection[Any]"
Either: TypeAlias = "Connection | AsyncConnection"


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
        self._judged = Judged()

    def _entered(self, tenant: object | None) -> tuple[Open, bool]:
        """The transaction noted, and whether it is a savepoint of one that is open on the same connection."""
        outer = open_here(self.binding)
        opened = enter(self.binding, tenant, self._own, doing="a transaction over psycopg")
        return opened, self._own is not None and outer is not None and outer.connection is self._own

    def _opening(self, connection: Either, value: str) -> Procedure:
        return opening(self.binding, value, begin=begin_of(connection), judged=self._judged)


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
            with self._connection() as connection, self._begun(connection, opened, nested):
                yield connection
        finally:
            leave(opened)

    def _connection(self) -> AbstractContextManager[Connection]:
        return self._source.connection() if self._own is None else nullcontext(self._source)

    def _begun(self, connection: Connection, opened: Open, nested: bool) -> AbstractContextManager[object]:
        return connection.transaction() if nested else self._bound(connection, opened.value)

    @contextmanager
    def _bound(self, connection: Connection, value: str) -> Iterator[None]:
        was = checked_idle(connection)
        connection.autocommit = True
        try:
            open_transaction(connection, self._opening(connection, value))
            try:
                yield
            except BaseException:
                roll_back(connection)
                raise
            commit_transaction(connection, ending(self.binding, value))
        finally:
            if not connection.closed:
                connection.autocommit = was


class AsyncTenants(_Tenants):
    """:class:`Tenants` for psycopg's async connections and pools. For one event loop."""

    def __init__(self, source: "AsyncPool | AsyncConnection", binding: Binding = DEFAULT) -> None:
        super().__init__(source, binding)

    @asynccontextmanager
    async def transaction(self, tenant: object | None = None) -> AsyncIterator[AsyncConnection]:
        """As :meth:`Tenants.transaction`."""
        opened, nested = self._entered(tenant)
        try:
            async with self._connection() as connection, self._begun(connection, opened, nested):
                yield connection
        finally:
            leave(opened)

    def _connection(self) -> AbstractAsyncContextManager[AsyncConnection]:
        return self._source.connection() if self._own is None else nullcontext(self._source)

    def _begun(
        self, connection: AsyncConnection, opened: Open, nested: bool
    ) -> AbstractAsyncContextManager[object]:
        return connection.transaction() if nested else self._bound(connection, opened.value)

    @asynccontextmanager
    async def _bound(self, connection: AsyncConnection, value: str) -> AsyncIterator[None]:
        was = checked_idle(connection)
        await connection.set_autocommit(True)
        try:
            await open_transaction_async(connection, self._opening(connection, value))
            try:
                yield
            except BaseException:
                await roll_back_async(connection)
                raise
            await commit_transaction_async(connection, ending(self.binding, value))
        finally:
            if not connection.closed:
                await connection.set_autocommit(was)


def begin_of(connection: Either) -> str:
    """BEGIN with the modes that the connection's attributes ask for."""
    level = connection.isolation_level
    return begin(
        level.name.replace("_", " ") if level is not None else None,
        read_only=connection.read_only,
        deferrable=connection.deferrable,
    )


def checked_idle(connection: Either) -> bool:
    """Whether it is in autocommit. Raises :class:`TransactionOpen`."""
    if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
        raise TransactionOpen
    return connection.autocommit


def open_transaction(connection: Connection, steps: Procedure) -> None:
    """Carry ``steps`` out on a connection in autocommit; where they fail nothing is left open."""
    try:
        drive(steps, lambda sql: _run(connection, sql), lambda sql: _read(connection, sql))
    except BaseException as error:
        if isinstance(error, LeftBehind) and not error.cleaned:
            connection.close()
        roll_back(connection)
        raise


def commit_transaction(connection: Connection, message: str) -> None:
    """Commit what :func:`open_transaction` opened, or roll back and say why."""
    was_open = _may_be_open(connection)
    try:
        _run(connection, message)
    except BaseException as error:
        why = _why(connection, error, was_open)
        roll_back(connection)
        if why is not None:
            raise why from error
        raise


def roll_back(connection: Connection) -> None:
    """End what may be open, and the connection where that cannot be done."""
    try:
        if _may_be_open(connection):
            _run(connection, "ROLLBACK")
    except BaseException as error:
        connection.close()
        if not isinstance(error, psycopg.Error):
            raise


async def open_transaction_async(connection: AsyncConnection, steps: Procedure) -> None:
    """As :func:`open_transaction`."""
    try:
        await drive_async(
            steps, lambda sql: _run_async(connection, sql), lambda sql: _read_async(connection, sql)
        )
    except BaseException as error:
        if isinstance(error, LeftBehind) and not error.cleaned:
            await connection.close()
        await roll_back_async(connection)
        raise


async def commit_transaction_async(connection: AsyncConnection, message: str) -> None:
    """As :func:`commit_transaction`."""
    was_open = _may_be_open(connection)
    try:
        await _run_async(connection, message)
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
            await _run_async(connection, "ROLLBACK")
    except BaseException as error:
        await connection.close()
        if not isinstance(error, psycopg.Error):
            raise


def _may_be_open(connection: Either) -> bool:
    return not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE


def _why(connection: Either, error: BaseException, was_open: bool) -> Exception | None:
    is_open = _may_be_open(connection)
    return why_not_committed(getattr(error, "sqlstate", None), was_open=was_open, is_open=is_open)


def _run(connection: Connection, sql: str) -> int:
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return _last(cursor.execute(sql.encode(), prepare=False))


def _read(connection: Connection, sql: str) -> Sequence[Any]:
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return _one(cursor.execute(sql.encode(), prepare=False).fetchone())


async def _run_async(connection: AsyncConnection, sql: str) -> int:
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        return _last(await cursor.execute(sql.encode(), prepare=False))


async def _read_async(connection: AsyncConnection, sql: str) -> Sequence[Any]:
    async with psycopg.AsyncCursor(connection, row_factory=tuple_row) as cursor:
        await cursor.execute(sql.encode(), prepare=False)
        return _one(await cursor.fetchone())


def _last(cursor: "psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]") -> int:
    while cursor.nextset():
        pass
    return cursor.rowcount


def _one(row: Sequence[Any] | None) -> Sequence[Any]:
    return row or ()
