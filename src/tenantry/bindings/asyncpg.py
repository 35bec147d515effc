"""Tenants' transactions for asyncpg: the binding travels with BEGIN, the check with COMMIT, at no round trip.

A pool that is left to reset its connections as asyncpg does has that in COMMIT's message too, so that a bound
transaction takes one round trip less than another.

asyncpg's own transaction object runs as ever, nested ones included; only the messages that begin and commit
are carried out by this room. Behind a PgBouncer in transaction mode connect with
``statement_cache_size=0``, as asyncpg's documentation says.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tenantry.bindings.context import enter, leave, open_here
from tenantry.bindings.errors import LeftBehind, TransactionOpen
from tenantry.bindings.model import DEFAULT, Binding, Judged
from tenantry.bindings.rules import Envelope, drive_async, why_not_committed
from tenantry.kernel.errors import MissingExtra

try:
    import asyncpg
    from asyncpg.transaction import Transaction
except ModuleNotFoundError as missing:
    raise MissingExtra("postgres", "tenantry.bindings.asyncpg") from missing

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Pooled: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"
Isolation = Literal["read_uncommitted", "read_committed", "repeatable_read", "serializable"]

if TYPE_CHECKING:
    _Base = asyncpg.Connection[asyncpg.Record]
else:
    _Base = asyncpg.Connection

_FOREIGN = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class Tenants:
    """Transactions of tenants over a pool, or over one connection of yours. For one event loop.

    Over a pool any number of tasks may have transactions at once; over a connection one at a time. What a
    login may do is asked once, by the first transaction."""

    def __init__(self, source: "Pool | Connection | Pooled", binding: Binding = DEFAULT) -> None:
        self._source, self.binding = source, binding
        self._judged = Judged()
        self._is_pool = isinstance(source, asyncpg.Pool)
        # a pool that was given a way to reset is left to go it
        self._resets = self._is_pool and getattr(source, "_reset", source) is None

    @asynccontextmanager
    async def transaction(
        self,
        tenant: object | None = None,
        *,
        isolation: Isolation | None = None,
        readonly: bool = False,
        deferrable: bool = False,
    ) -> "AsyncIterator[Connection | Pooled]":
        """A connection in a transaction whose row policies see ``tenant`` alone; without one, the current
        tenant.

        Commits at the end, rolls back on any exception; the modes are asyncpg's. Inside, savepoints are
        ``connection.transaction()``; over a connection of yours ``transaction()`` of the same tenant is
        one, too. Raises what :mod:`tenantry.bindings.errors` lists,
        :class:`~tenantry.kernel.errors.InvalidValue` for what is no tenant, and what asyncpg raises."""
        own = None if self._is_pool else self._source
        outer = open_here(self.binding) if own is not None else None
        opened = enter(self.binding, tenant, own, doing="a transaction over asyncpg")
        try:
            async with self._connection() as connection:
                begun = connection.transaction(isolation=isolation, readonly=readonly, deferrable=deferrable)
                if outer is None or outer.connection is not own:
                    _carry(begun, self._messages(begun, opened.value))
                await begun.__aenter__()
                try:
                    yield connection
                except BaseException as error:
                    await _roll_back(begun, connection, error)
                    raise
                await begun.__aexit__(None, None, None)
        finally:
            leave(opened)

    def _connection(self) -> "AbstractAsyncContextManager[Connection | Pooled]":
        if isinstance(self._source, asyncpg.Pool):
            return self._source.acquire()
        return nullcontext(self._source)

    def _messages(self, begun: Any, value: str) -> "Messages":
        return Messages(begun._connection, self.binding, value, self._judged, resets=self._resets)


async def _roll_back(begun: Transaction, connection: "Connection | Pooled", error: BaseException) -> None:
    """End the transaction, or the connection where that cannot be done; ``error`` is what is to be told."""
    try:
        await begun.__aexit__(type(error), error, error.__traceback__)
    except BaseException as second:
        _end(connection)
        if not isinstance(second, _FOREIGN):
            raise


def _carry(begun: Any, messages: "Messages") -> None:
    begun._connection = messages  # a connection, to all that asyncpg's transaction does with it


class CarryingConnection(_Base):
    """A connection whose transactions carry the binding that it was last given, for those who begin them
    through asyncpg's own ``transaction()``. SQLAlchemy's are of this class."""

    __slots__ = ("_carried", "_judged")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._carried: tuple[Binding, str] | None = None
        self._judged = Judged()

    def carry(self, binding: Binding | None, value: str = "") -> None:
        """Bind ``value`` in every transaction from the next one on; None: bind nothing more."""
        self._carried = None if binding is None else (binding, value)

    def transaction(
        self, *, isolation: Isolation | None = None, readonly: bool = False, deferrable: bool = False
    ) -> Transaction:
        begun = super().transaction(isolation=isolation, readonly=readonly, deferrable=deferrable)
        if self._carried is not None and not self.is_in_transaction():
            _carry(begun, Messages(self, *self._carried, self._judged))
        return begun


class Messages:
    """Stands before a connection for its transaction object: what begins and commits goes through the rules.

    All else is the connection's. ``resets``: nobody has the connection between COMMIT and the pool's reset.
    """

    __slots__ = ("_binding", "_envelope", "_judged", "_real", "_resets", "_value")

    def __init__(
        self, real: Any, binding: Binding, value: str, judged: Judged, *, resets: bool = False
    ) -> None:
        if real.is_in_transaction():
            raise TransactionOpen
        self._real, self._binding, self._value, self._judged = real, binding, value, judged
        self._resets = resets
        self._envelope: Envelope | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    @property
    def _top_xact(self) -> Any:
        """The one attribute of a connection that its transactions set."""
        return self._real._top_xact

    @_top_xact.setter
    def _top_xact(self, begun: Any) -> None:
        self._real._top_xact = begun

    async def execute(self, query: str) -> str:
        """Send ``query``, which is one of asyncpg's own: BEGIN with modes, COMMIT, ROLLBACK."""
        text = query.rstrip("; ")
        if text.startswith("BEGIN"):
            await self._begin(text)
        elif text == "COMMIT" and self._envelope is not None:
            await self._commit(self._envelope)
        else:
            await self._real.execute(text)
        return text

    async def _begin(self, text: str) -> None:
        self._envelope = Envelope(self._binding, self._value, begin=text, judged=self._judged)
        try:
            await self._open(self._envelope)
        except BaseException as error:
            self._real._top_xact = None
            if isinstance(error, LeftBehind) and not error.cleaned:
                _end(self._real)
            await self._roll_back()
            raise

    async def _open(self, envelope: Envelope) -> None:
        answer: int | Exception | None = None
        if (message := envelope.opening()) is not None:
            try:
                answer = await self._run(message)
            except asyncpg.PostgresError as error:
                answer = error
            if envelope.is_fit(answer):
                return
        await drive_async(envelope.steps(answer), self._run, self._read)

    async def _commit(self, envelope: Envelope) -> None:
        was_open = self._real.is_in_transaction()
        reset = _reset_of(self._real) if self._resets else ""
        try:
            try:
                await self._real.execute(f"{envelope.closing()};{reset}")
            except asyncpg.PostgresError as error:
                message = envelope.closing_anyhow(error, is_open=self._real.is_in_transaction())
                if message is None:
                    raise
                await self._real.execute(f"{message};{reset}")
        except BaseException as error:
            state = getattr(error, "sqlstate", None)
            why = why_not_committed(state, was_open=was_open, is_open=self._real.is_in_transaction())
            await self._roll_back()
            if why is not None:
                raise why from error
            raise
        if reset:
            self._real._reset_query = _ResetSent(self._real, reset)

    async def _roll_back(self) -> None:
        """End what may be open, and the connection where that cannot be done."""
        try:
            if not self._real.is_closed() and self._real.is_in_transaction():
                await self._real.execute("ROLLBACK")
        except BaseException as error:
            _end(self._real)
            if not isinstance(error, _FOREIGN):
                raise

    async def _run(self, sql: str) -> int:
        tag = await self._real.execute(sql)
        count = tag.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def _read(self, sql: str) -> Sequence[Any]:
        return tuple(await self._real.fetchrow(sql))


class _ResetSent:
    """Stands for a connection's reset query that came with COMMIT, and says once that there is nothing to
    send. ``Connection.reset()`` asks; its other duties it does as ever."""

    __slots__ = ("_real", "_reset")

    def __init__(self, real: Any, reset: str) -> None:
        self._real, self._reset = real, reset

    def __bool__(self) -> bool:
        self._real._reset_query = self._reset
        return False


def _reset_of(real: Any) -> str:
    """What asyncpg's pool sends when it takes ``real`` back; empty where a class of yours decides that, or an
    asyncpg that keeps it elsewhere: then the pool sends it as ever."""
    kind = type(real)
    if not hasattr(real, "_reset_query"):
        return ""
    if kind.get_reset_query is not _Base.get_reset_query or kind.reset is not _Base.reset:
        return ""
    said = real.get_reset_query()
    return said if isinstance(said, str) else ""


def _end(connection: Any) -> None:
    with suppress(asyncpg.InterfaceError):  # the pool has taken it back, and ended it, already
        connection.terminate()
