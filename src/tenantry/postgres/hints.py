"""Who to wake. Only hints: polling stands behind every one of them.

Within one process an event wakes at once. Between processes one debounced NOTIFY a node does: a NOTIFY in
each submit would make all submits commit one after the other.
"""

import asyncio

from tenantry.kernel.errors import DependencyError, UsageError
from tenantry.postgres.database import Database

CHANGES = "tenantry_changes"
CLAIMS = "tenantry_claims"
_DEBOUNCE = 0.005


class Hints:
    """One a process and database. ``planner_here``: a planner of this process holds the place, so that its
    own changes need no NOTIFY. Belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self._control = database.control
        self.changes = asyncio.Event()
        self.claims = asyncio.Event()
        self.planner_here = False
        self._sending: asyncio.Task[None] | None = None

    async def listen(self) -> None:
        """Hear other processes, where the connection allows it (a PgBouncer in between does not)."""
        if self._control.can_listen:
            await self._control.listen(CHANGES, lambda _: self.changes.set())
            await self._control.listen(CLAIMS, lambda _: self.claims.set())

    def changed(self) -> None:
        """Something was written that a planner should take up. Never waits."""
        self.changes.set()
        if not self.planner_here and self._control.can_listen and self._sending is None:
            self._sending = asyncio.create_task(self._notify(), name="tenantry-notify")

    async def _notify(self) -> None:
        try:
            await asyncio.sleep(_DEBOUNCE)
            self._sending = None
            await self._control.execute(f"NOTIFY {CHANGES}")
        except (DependencyError, UsageError):
            self._sending = None  # the planner polls; the next change tries again

    async def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)


async def wait_for(event: asyncio.Event, at_most: float) -> None:
    """Return when ``event`` is set, or after ``at_most`` seconds; clears it."""
    if not event.is_set():
        try:
            async with asyncio.timeout(at_most):
                await event.wait()
        except TimeoutError:
            return
    event.clear()
