"""Tenants' transactions for SQLAlchemy 2, sync and async, over psycopg 3 and asyncpg.

:func:`bind_engine` once, and each transaction of the engine, whoever begins it (a session,
``engine.begin()``, autobegin), is bound to the current tenant. Over psycopg the binding is sent when
SQLAlchemy begins a transaction; over asyncpg with the BEGIN that SQLAlchemy puts off until the first
statement. Either way it takes no message of its own, and neither does the check at COMMIT.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from tenantry.bindings.context import Open, check_statement, enter, leave
from tenantry.bindings.errors import LeftBehind
from tenantry.bindings.model import DEFAULT, Binding, Judged
from tenantry.bindings.rules import Envelope
from tenantry.kernel.errors import InvalidValue, MissingExtra, UsageError

try:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine
except ModuleNotFoundError as missing:
    raise MissingExtra("sqlalchemy", "tenantry.bindings.sqlalchemy") from missing

_OPEN, _UNFIT = "tenantry_open", "tenantry_unfit"
_JUDGED = "tenantry_judged"
_EXECUTORS = ("do_execute", "do_executemany", "do_execute_no_params")
_TWO_PHASE = "a transaction in two phases cannot be bound to a tenant. Use an ordinary one"
_AUTOCOMMIT = (
    "a connection in AUTOCOMMIT has no transaction to bind a tenant to. Use another isolation level, or an "
    "engine that is not bound for work that belongs to no tenant"
)

Lent: TypeAlias = Any
"""A connection as the pool lends it, until it returns: SQLAlchemy's ``PoolProxiedConnection``."""

Driver: TypeAlias = "PsycopgDriver | AsyncpgDriver"


def bind_engine(engine: Engine | AsyncEngine, binding: Binding = DEFAULT) -> None:
    """From now on every transaction of ``engine`` is the current tenant's
    (:func:`tenantry.bindings.use_tenant`).

    Call it once, before the engine's first connection. Statements inside another tenant's transaction are
    refused before they are sent. What is raised is listed in :mod:`tenantry.bindings.errors`; errors of
    connections and statements, also of the binding's own messages, stay SQLAlchemy's. Raises
    :class:`~tenantry.kernel.errors.InvalidValue` for other drivers.
    """
    sync = engine.sync_engine if isinstance(engine, AsyncEngine) else engine
    driver = _driver(sync)
    driver.prepare(sync.dialect)
    _Bound(binding, sync.dialect, driver).take_over(sync)


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
    """What SQLAlchemy asks of one engine's dialect, with the tenant in it. Safe from any thread, as the
    engine is.

    These are a dialect's own methods rather than listeners to the engine's events: where an engine has any,
    SQLAlchemy makes a dispatcher for each connection, which takes longer than all that is done here."""

    def __init__(self, binding: Binding, dialect: Any, driver: Driver) -> None:
        self._binding, self._driver = binding, driver
        self._rolled_back: Callable[[Lent], None] = dialect.do_rollback
        self._committed: Callable[[Lent], None] = dialect.do_commit
        self._executors = {name: self._checked(getattr(dialect, name)) for name in _EXECUTORS}

    def take_over(self, engine: Engine) -> None:
        """Every transaction of ``engine`` from now on, and of what ``execution_options()`` makes of it."""
        vars(engine.dialect).update(
            do_begin=self._begin,
            do_begin_twophase=_refuse_two_phases,
            do_commit=self._commit,
            do_rollback=self._rollback,
            **self._executors,
        )
        event.listen(engine, "reset", self._returned)
        event.listen(engine, "invalidate", self._lost)

    def _begin(self, lent: Lent) -> None:
        _refuse_autocommit(lent)
        opened = enter(self._binding, None, doing="a transaction of SQLAlchemy")
        try:
            envelope = self._driver.begin(lent, opened)
        except BaseException as error:
            leave(opened)
            if isinstance(error, LeftBehind) and not error.cleaned:
                lent.info[_UNFIT] = True
                lent.invalidate(error, soft=True)
            raise
        lent.info[_OPEN] = opened, envelope

    def _commit(self, lent: Lent) -> None:
        kept = _noted(lent).pop(_OPEN, None)
        if kept is None:
            self._committed(lent)
            return
        try:
            self._driver.commit(lent, kept[1])
        finally:
            leave(kept[0])

    def _rollback(self, lent: Lent) -> None:
        """Also when a connection returns to the pool."""
        noted = _noted(lent)
        kept = noted.pop(_OPEN, None)
        if kept is not None:
            leave(kept[0])
        if _UNFIT not in noted:  # else it was closed
            self._rolled_back(lent)

    def _checked(self, execute: Callable[..., None]) -> Callable[..., None]:
        def checked(cursor: Any, statement: str, *rest: Any) -> None:
            context = rest[-1]
            if context is not None:
                kept = _noted(context.root_connection.connection).get(_OPEN)
                if kept is not None:
                    check_statement(kept[0])
            execute(cursor, statement, *rest)

        return checked

    def _returned(self, dbapi_connection: Any, record: Any, state: object) -> None:
        """A connection returns to the pool, however it was lost sight of."""
        self._lost(dbapi_connection, record)
        self._driver.returned(dbapi_connection)

    def _lost(self, dbapi_connection: Any, record: Any, error: object = None) -> None:
        kept = record.info.pop(_OPEN, None) if record is not None else None
        if kept is not None:
            leave(kept[0])


def _noted(lent: Lent) -> dict[str, Any]:
    """What is kept with a connection: it moves along when the pool lets go of it."""
    try:
        noted: dict[str, Any] = lent.info
    except NotImplementedError:  # SQLAlchemy looks at its first connection, outside of any pool
        return {}
    return noted


def _refuse_two_phases(connection: object, xid: object) -> None:
    raise UsageError(_TWO_PHASE)


def _refuse_autocommit(lent: Lent) -> None:
    if lent.dbapi_connection.autocommit:
        raise UsageError(_AUTOCOMMIT)


def _envelope(lent: Lent, opened: Open, begin: str) -> Envelope:
    judged = lent.info.get(_JUDGED)
    if judged is None:
        judged = lent.info.setdefault(_JUDGED, Judged())
    return Envelope(opened.binding, opened.value, begin=begin, judged=judged)


class PsycopgDriver:
    """Over psycopg: begins and commits through :mod:`tenantry.bindings.psycopg`."""

    def __init__(self) -> None:
        from tenantry.bindings import psycopg

        self._room = psycopg

    def prepare(self, dialect: Any) -> None:
        """Nothing to add to how it connects."""

    def begin(self, lent: Lent, opened: Open) -> Envelope:
        room, raw = self._room, lent.dbapi_connection
        room.check_idle(raw)
        envelope = _envelope(lent, opened, room.begin_of(raw))
        room.open_transaction(raw, envelope)
        return envelope

    def commit(self, lent: Lent, envelope: Envelope) -> None:
        self._room.commit_transaction(lent.dbapi_connection, envelope)

    def returned(self, dbapi_connection: Any) -> None:
        """Nothing is kept on it."""


class AsyncPsycopgDriver(PsycopgDriver):
    """Over psycopg's async connections, which SQLAlchemy shows to a dialect as if they were sync."""

    def begin(self, lent: Lent, opened: Open) -> Envelope:
        room, raw = self._room, lent.driver_connection
        room.check_idle(raw)
        envelope = _envelope(lent, opened, room.begin_of(raw))
        lent.dbapi_connection.run_async(lambda raw: room.open_transaction_async(raw, envelope))
        return envelope

    def commit(self, lent: Lent, envelope: Envelope) -> None:
        room = self._room
        lent.dbapi_connection.run_async(lambda raw: room.commit_transaction_async(raw, envelope))


class AsyncpgDriver:
    """Over asyncpg: its connections are of a class whose transactions carry the binding."""

    def __init__(self) -> None:
        from tenantry.bindings.asyncpg import CarryingConnection

        self._class = CarryingConnection

    def prepare(self, dialect: Any) -> None:
        """New connections are of our class."""
        connect = dialect.connect
        vars(dialect).update(
            connect=lambda *given, **options: connect(*given, **options | {"connection_class": self._class})
        )

    def begin(self, lent: Lent, opened: Open) -> None:
        raw = lent.driver_connection
        if not isinstance(raw, self._class):
            raise UsageError(
                "a connection was made before bind_engine(), or by an async_creator of yours: call "
                "bind_engine() first, and let the creator pass connection_class="
                "tenantry.bindings.asyncpg.CarryingConnection"
            )
        raw.carry(opened.binding, opened.value)

    def commit(self, lent: Lent, envelope: Envelope | None) -> None:
        """The check travels with asyncpg's own COMMIT."""
        lent.dbapi_connection.commit()

    def returned(self, dbapi_connection: Any) -> None:
        raw: Any = getattr(dbapi_connection, "driver_connection", None)
        if hasattr(raw, "carry"):  # else it was made before bind_engine(), and carries nothing
            raw.carry(None)
