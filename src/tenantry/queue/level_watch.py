"""What pools shed, as one node knows it: read once a second, answered from memory.

Admission asks for each submit, and must not wait for it. What was read is trusted for as long as the store
said that it is fresh, counted from before it was asked for: a node that is cut off soon sheds nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import DependencyError
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Instant, Seconds
from tenantry.queue.events import StoreFailed
from tenantry.queue.model import PoolLevel, StandingLevel


class LevelSource(Protocol):
    """Where levels are read: :class:`tenantry.queue.ports.OperatorStore` is one."""

    async def levels(self) -> Sequence[StandingLevel]: ...


class LevelWatch:
    """The levels of all pools. ``every``: seconds > 0 between two looks. For the tasks of one event loop."""

    def __init__(self, store: LevelSource, *, clock: Clock, events: EventSink, every: Seconds = 1.0) -> None:
        self._store, self._clock, self._events, self._every = store, clock, events, every
        self._known: dict[str, tuple[PoolLevel, Instant]] = {}

    def level_of(self, pool: str) -> PoolLevel | None:
        """What ``pool`` sheds now; None when it sheds nothing, as far as this node knows. O(1)."""
        known = self._known.get(pool)
        if known is None or self._clock.monotonic() >= known[1]:
            return None
        return known[0]

    async def refresh(self) -> None:
        """Look once. Raises :class:`~tenantry.kernel.errors.StoreUnavailable`."""
        asked_at = self._clock.monotonic()
        self._known = {
            each.level.pool: (each.level, Instant(asked_at + each.fresh_for))
            for each in await self._store.levels()
        }

    async def run(self) -> None:
        """Look again and again, until cancelled. A store that is away leaves what was known to run out."""
        while True:
            try:
                await self.refresh()
            except DependencyError as error:
                self._events(StoreFailed("levels", type(error).__name__, self._every))
            await asyncio.sleep(self._every)
