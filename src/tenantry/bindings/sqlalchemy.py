"""Tenants' transactions for SQLAlchemy 2, sync and async, over psycopg 3 and asyncpg.

:func:`bind_engine` once, and each transaction of the engine, whoever begins it (a session,
``engine.begin()``, autobegin), is bound to the current tenant. Over psycopg the binding is sent when
SQLAlchemy says that a transaction begins; over asyncpg with the BEGIN that SQLAlchemy puts off until the
first statement. Either way it takes no message of its own, and neither does the check at COMMIT.
"""

from typing import Any, TypeAlias

from tenantry.bindings.context import Open, check_statement, enter, leave
from tenantry.bindings.errors import LeftBehind
from tenantry.bindings.model import DEFAULT, Binding, Judged
from tenantry.bindings.rules import Envelope
from tenantry.kernel.errors import InvalidValue, MissingExtra, UsageError

try:
    from sqlalchemy import event
    from sqlalchemy.engine import Connection, Engine
    from sqlalchemy.ext.asyncio import AsyncEngine
except ModuleNotFoundError as missing:
    raise MissingExtra("sqlalchemy", "tenantry.bindings.sqlalchemy") from missing

_OPEN = "tenantry_open"
_JUDGED = "tenantry_judged"
_TWO_PHASE = "a transaction in two phases cannot be bound to a tenant. Use an ordinary one"
_AUTOCOMMIT = (
    "a connection in AUTOCOMMIT has no transaction to bind a tenant to. Use another isolation level, or an "
    "engine that is not bound for work that belongs to no tenant"
)

Driver: TypeAlias = "PsycopgDriver | AsyncPsycopgDriver | AsyncpgDriver"


def bind_engine(engine: Engine | AsyncEngine, binding: Binding = DEFAULT) -> None:
    """From now on every transaction of ``engine`` is the current tenant's
    (:func:`tenantry.bindings.use_tenant`).

    Call it once, before the engine's first connection. Statements inside another tenant's transaction are
    refused before they are sent. What is raised is listed in :mod:`tenantry.bindings.errors`; errors of
    connections and statements stay SQLAlchemy's, but for those that the binding's own messages meet over
    psycopg, which are psycopg's. Raises :class:`~tenantry.kernel.errors.InvalidValue` for other drivers.
    """
    sync = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    _Bound(binding, _driver(sync)).listen(sync)


def _driver(engine: Engine) -> Driver:
    name = f"{engine.dialect.name}+{engine.dialect.driver}"
    match name.removesuffix("_async"):
        case "postgresql+psycopg":
            return AsyncPsycopgDriver() if engine.dialect.is_async else PsycopgDriver()
        case "postgresql+asyncpg":
            return AsyncpgDriver()
        case _:
            raise InvalidValue("engine", name, "an engine over postgresql+psycopg or postgresql+asyncpg")


class _Bound:
    """The listeners of one engine. Safe from any thread, as the engine is."""

    def __init__(self, binding: Binding, driver: Driver) -> None:
        self._binding, self._driver = binding, driver

    def listen(self, engine: Engine) -> None:
        event.listen(engine, "do_connect", self._driver.prepare)
        event.listen(engine, "begin", self._begin)
        event.listen(engine, "begin_twophase", self._begin_twophase)
        event.listen(engine, "before_cursor_execute", self._check)
        event.listen(engine, "commit", self._commit)
        event.listen(engine, "rollback", self._rollback)
        event.listen(engine, "reset", self._reset)

    def _begin(self, connection: Connection) -> None:
        _refuse_autocommit(connection)
        opened = enter(self._binding, None, doing="a transaction of SQLAlchemy")
        try:
            envelope = self._driver.begin(connection, opened)
        except BaseException as error:
            leave(opened)
            if isinstance(error, LeftBehind) and not error.cleaned:
                connection.invalidate(error)
            raise
        connection.__dict__[_OPEN] = opened, envelope  # a dictionary of weak keys takes ten times as long
        connection.info[_OPEN] = opened

    def _begin_twophase(self, connection: Connection, xid: object) -> None:
        raise UsageError(_TWO_PHASE)

    def _check(self, connection: Connection, *_: object) -> None:
        kept = connection.__dict__.get(_OPEN)
        if kept is not None:
            check_statement(kept[0])

    def _commit(self, connection: Connection) -> None:
        kept = connection.__dict__.pop(_OPEN, None)
        if kept is not None:
            try:
                self._driver.commit(connection, kept[1])
            finally:
                leave(kept[0])

    def _rollback(self, connection: Connection) -> None:
        kept = connection.__dict__.pop(_OPEN, None)
        if kept is not None:
            leave(kept[0])

    def _reset(self, dbapi_connection: Any, record: Any, state: object) -> None:
        """A connection returns to the pool, however it was lost sight of."""
        opened = record.info.pop(_OPEN, None) if record is not None else None
        if opened is not None:
            leave(opened)
        self._driver.returned(dbapi_connection)


def _refuse_autocommit(connection: Connection) -> None:
    if _dbapi(connection).autocommit:
        raise UsageError(_AUTOCOMMIT)


def _judged(connection: Connection) -> Judged:
    judged: Judged = connection.info.setdefault(_JUDGED, Judged())
    return judged


def _envelope(connection: Connection, opened: Open, begin: str) -> Envelope:
    return Envelope(opened.binding, opened.value, begin=begin, judged=_judged(connection))


def _dbapi(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


class PsycopgDriver:
    """Over psycopg: begins and commits through :mod:`tenantry.bindings.psycopg`. SQLAlchemy's own COMMIT and
    ROLLBACK send nothing where all is done."""

    def prepare(self, dialect: object, record: object, arguments: object, options: dict[str, Any]) -> None:
        """Nothing to add to how it connects."""

    def begin(self, connection: Connection, opened: Open) -> Envelope:
        from tenantry.bindings import psycopg as room

        raw = _dbapi(connection)
        room.check_idle(raw)
        envelope = _envelope(connection, opened, room.begin_of(raw))
        room.open_transaction(raw, envelope)
        return envelope

    def commit(self, connection: Connection, envelope: Envelope | None) -> None:
        from tenantry.bindings import psycopg as room

        if envelope is not None:
            room.commit_transaction(_dbapi(connection), envelope)

    def returned(self, dbapi_connection: Any) -> None:
        """Nothing is kept on it."""


class AsyncPsycopgDriver:
    """Over psycopg's async connections, which SQLAlchemy shows to its events as if they were sync."""

    def prepare(self, dialect: object, record: object, arguments: object, options: dict[str, Any]) -> None:
        """Nothing to add to how it connects."""

    def begin(self, connection: Connection, opened: Open) -> Envelope:
        from tenantry.bindings import psycopg as room

        adapted = _dbapi(connection)
        raw: Any = connection.connection.driver_connection
        room.check_idle(raw)
        envelope = _envelope(connection, opened, room.begin_of(raw))
        adapted.run_async(lambda raw: room.open_transaction_async(raw, envelope))
        return envelope

    def commit(self, connection: Connection, envelope: Envelope | None) -> None:
        from tenantry.bindings import psycopg as room

        if envelope is not None:
            _dbapi(connection).run_async(lambda raw: room.commit_transaction_async(raw, envelope))

    def returned(self, dbapi_connection: Any) -> None:
        """Nothing is kept on it."""


class AsyncpgDriver:
    """Over asyncpg: its connections are of a class whose transactions carry the binding."""

    def prepare(self, dialect: object, record: object, arguments: object, options: dict[str, Any]) -> None:
        from tenantry.bindings.asyncpg import CarryingConnection

        options["connection_class"] = CarryingConnection

    def begin(self, connection: Connection, opened: Open) -> None:
        self._carrying(_dbapi(connection)).carry(opened.binding, opened.value)

    def commit(self, connection: Connection, envelope: Envelope | None) -> None:
        """The check travels with asyncpg's own COMMIT."""

    def returned(self, dbapi_connection: Any) -> None:
        raw: Any = getattr(dbapi_connection, "driver_connection", None)
        if hasattr(raw, "carry"):  # else it was made before bind_engine(), and carries nothing
            raw.carry(None)

    def _carrying(self, dbapi_connection: Any) -> Any:
        from tenantry.bindings.asyncpg import CarryingConnection

        raw = dbapi_connection.driver_connection
        if not isinstance(raw, CarryingConnection):
            raise UsageError(
                "a connection was made before bind_engine(), or by an async_creator of yours: call "
                "bind_engine() first, and let the creator pass connection_class="
                "tenantry.bindings.asyncpg.CarryingConnection"
            )
        return raw
