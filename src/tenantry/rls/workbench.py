"""What carrying out a plan takes from a database: one session, on which nothing else runs."""

from dataclasses import dataclass
from typing import Protocol

from tenantry.kernel.instant import Seconds
from tenantry.rls.declaration import TableName
from tenantry.rls.facts import Facts
from tenantry.rls.script import Bounds, Message


@dataclass(frozen=True, slots=True)
class Holder:
    """A transaction in the way. ``holds``: the lock, as PostgreSQL names it, and on what; '' where it is in
    the way only by being older than an index that is built. ``pid`` is None for a prepared transaction.
    ``open_for``: seconds since it began. ``query``: its last statement, where the login may see it."""

    pid: int | None
    user: str
    application: str
    state: str
    open_for: Seconds
    query: str
    holds: str = ""

    def __str__(self) -> str:
        who = "a prepared transaction" if self.pid is None else f"process {self.pid}"
        named = f" ({', '.join(part for part in (self.user, self.application) if part)})" if self.user else ""
        lock = f" holds {self.holds}," if self.holds else ""
        doing = f"; its last statement: {self.query}" if self.query else ""
        return f"{who}{named}{lock} {self.state or 'open'}, begun {self.open_for:.0f} s ago{doing}"


class Workbench(Protocol):
    """One session, for one task. Every method raises :class:`~tenantry.kernel.errors.StoreUnavailable` where
    the server cannot be reached."""

    async def facts(self) -> Facts:
        """The database as it is now."""
        ...

    async def take_turn(self, bounds: Bounds) -> bool:
        """Whether this session may change the database: one at a time does. It keeps the turn to its end."""
        ...

    async def send(self, message: Message, bounds: Bounds) -> bool:
        """Runs it under its bound. False where a lock was not to be had in time, or was held for too long, or
        PostgreSQL broke a deadlock: then nothing of it is done, but for an invalid index.

        Raises :class:`~tenantry.kernel.errors.UsageError` where the server refuses it for another reason.
        """
        ...

    async def holders(self, relations: tuple[TableName, ...], *, older: bool) -> tuple[Holder, ...]:
        """Who holds locks on ``relations`` now, the longest first; with ``older`` every open transaction of
        the database, since an index that is built CONCURRENTLY waits for them all."""
        ...

    async def turn_holder(self) -> tuple[Holder, ...]:
        """Who has the turn."""
        ...
