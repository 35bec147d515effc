"""Who to wake. Only hints: polling stands behind every one of them.

Within one process an event wakes at once. Between processes one debounced NOTIFY a node does: a NOTIFY in
each submit would make all submits commit one after the other.
"""

import asyncio
from collections.abc import Collection

from tenantry.kernel.errors import DependencyError, UsageError
from tenantry.postgres.database import Database
from tenantry.queue.signal import Signal

CHANGES = "tenantry_changes"
CLAIMS = "tenantry_claims"
EVERYONE = "*"
_DEBOUNCE = 0.005
_LONGEST_PAYLOAD = 7_000  # of the 8,000 bytes that PostgreSQL allows
_BETWEEN = "\x1f"


class Hints:
    """One a process and database. ``planner_here``: a planner of this process holds the place, so that its
    own changes need no NOTIFY. ``node``: the worker of this process. Belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self._control = database.control
        self.changes = Signal()
        self.claims = Signal()
        self.planner_here = False
        self.node: str | None = None
        self._unsent = False
        self._sending: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Hear other processes, where the connection allows it (a PgBouncer in between does not)."""
        if self._control.can_listen:
            await self._control.listen(CHANGES, lambda _: self.changes.set())
            await self._control.listen(CLAIMS, self._claimed)

    def changed(self) -> None:
        """Something was written that a planner should take up. Never waits."""
        self.changes.set()
        if not self.planner_here and self._control.can_listen:
            self._unsent = True
            if self._sending is None:
                self._sending = asyncio.create_task(self._notify(), name="tenantry-notify")

    def claimed(self, nodes: Collection[str]) -> None:
        """Claims for ``nodes`` are committed: wake the worker of this process if it is one of them."""
        if self.node in nodes:
            self.claims.set()

    def payload(self, nodes: Collection[str]) -> str:
        """What to notify other processes with when claims for ``nodes`` commit; '' for nothing."""
        others = _BETWEEN.join(node for node in nodes if node != self.node)
        return others if len(others.encode()) <= _LONGEST_PAYLOAD else EVERYONE

    def _claimed(self, payload: str) -> None:
        """An empty payload says that some notifications may have been missed."""
        if payload in {"", EVERYONE} or self.node in payload.split(_BETWEEN):
            self.claims.set()

    async def _notify(self) -> None:
        """At once, then at most one every few milliseconds while there is more to tell."""
        try:
            while self._unsent:
                self._unsent = False
                await self._control.execute(f"NOTIFY {CHANGES}")
                await asyncio.sleep(_DEBOUNCE)
        except (DependencyError, UsageError):
            pass  # the planner polls; the next change tries again
        finally:
            self._sending = None

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
