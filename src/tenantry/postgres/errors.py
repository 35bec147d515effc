"""Where exceptions of the driver and the socket end. Nothing above this room knows asyncpg.

=================================  ==========================================================
what the server or socket said     what is raised
=================================  ==========================================================
classes 08, 53, 57, 58; 40, 55P03  StoreUnavailable: gone, full, or busy; trying again is reasonable
25006                              StoreUnavailable: a standby answered
3D000, 28xxx                       StoreUnavailable: no such database, or the login was refused
3F000, 42P01, 42883                StoreUnavailable: not migrated
23514 of outcomes                  StoreUnavailable: no partition for today, nobody has tidied for days
OSError, TimeoutError, closed      StoreUnavailable
asyncpg.InternalClientError        StoreUnavailable: what the driver says, now and then, of a session that the
                                   server has ended (asyncpg issues 784 and 1069)
anything else                      InvariantBroken: a statement of ours is wrong
=================================  ==========================================================

Source of the codes: PostgreSQL's appendix A.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

import asyncpg

from tenantry.kernel.errors import InvariantBroken, StoreUnavailable, TenantryError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_CLASSES = {
    "08": "the connection to PostgreSQL broke. It is opened again at the next use; check network and server",
    "28": "PostgreSQL refused the login. Check user and password in the URL, and pg_hba.conf",
    "40": "PostgreSQL undid the transaction because of a concurrent one. Try again",
    "53": "PostgreSQL is out of a resource (connections, disk or memory). Free some, or raise its limit",
    "57": "PostgreSQL is shutting down, starting up, or cancelled the statement. Try again",
    "58": "PostgreSQL cannot use its files. See the server's log",
}
_CODES = {
    "25006": "PostgreSQL is read-only: this is a standby. Point the URL at the primary, or add "
    "target_session_attrs=read-write",
    "3D000": "there is no such database. Create it (CREATE DATABASE), or correct the URL",
    "3F000": "the schema tenantry is missing. Run `tenantry migrate`",
    "42P01": "a table of the schema tenantry is missing. Run `tenantry migrate`",
    "42883": "a function of the schema tenantry is missing. Run `tenantry migrate`",
    "55P03": "a lock was not to be had in time. Try again",
}
_NO_PARTITION = (
    "there is no partition of outcomes for today, so no job can end. See `tenantry doctor`, and run a node "
    "with a feeder: its tidy() makes the partitions of the days ahead"
)
_GONE = (
    "connection is closed",
    "connection was closed",
    "pool is closed",
    "pool is closing",
    "cannot perform operation: connection",
    "released back to the pool",  # a pool takes a broken connection back at once
)

FOREIGN = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What the driver and the socket raise."""


class translated:
    """A context manager, and a decorator of coroutine functions, that ends foreign exceptions at this edge.

    ``doing`` says what was tried ("claiming") and ``where`` names the server without its password; both open
    the message. Holds no state: safe to share and to nest. Exceptions of Tenantry pass unchanged.
    """

    def __init__(self, doing: str = "", *, where: str = "") -> None:
        self._doing, self._where = doing, where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FOREIGN):
            raise translation(error, doing=self._doing, where=self._where) from error

    def __call__(self, function: Callable[_P, Awaitable[_R]]) -> Callable[_P, Awaitable[_R]]:
        @wraps(function)
        async def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self:
                return await function(*args, **kwargs)

        return guarded


def translation(error: BaseException, *, doing: str = "", where: str = "") -> TenantryError:
    """What to raise in place of a foreign exception. Pure; the table stands at the top of this file."""
    about = " ".join(part for part in (doing, where and f"({where})") if part)
    opening = f"{about}: " if about else ""
    advice = _advice(error)
    if advice is None:
        return InvariantBroken(f"{opening}PostgreSQL refused a statement of ours: {_said(error)}")
    return StoreUnavailable(f"{opening}{advice}. It said: {_said(error)}")


def _advice(error: BaseException) -> str | None:
    if isinstance(error, asyncpg.PostgresError):
        code = error.sqlstate or ""
        if code == "23514" and "no partition of relation" in str(error):
            return _NO_PARTITION
        return _CODES.get(code) or _CLASSES.get(code[:2])
    if isinstance(error, asyncpg.InterfaceError) and not any(phrase in str(error) for phrase in _GONE):
        return None
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return "the connection to PostgreSQL is gone. It is opened again at the next use"
    if isinstance(error, TimeoutError):
        return "PostgreSQL did not answer in time. Check the network and the server's load"
    return "no PostgreSQL answers there. Check that the server runs, and host and port in the URL"


def _said(error: BaseException) -> str:
    code = f"[{error.sqlstate}] " if isinstance(error, asyncpg.PostgresError) and error.sqlstate else ""
    words = str(error).partition("\nDETAIL:")[0]  # which shows the row that a rule refuses, a payload too
    return code + (" ".join(words.split()) or type(error).__name__)
