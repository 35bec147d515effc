"""The small loops that belong to a process rather than to a room, and how all loops end."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from tenantry.kernel.errors import (
    DependencyError,
    InvariantBroken,
    StoreUnavailable,
    TenantryError,
    UsageError,
)
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.postgres.directory import PostgresDirectory
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.queue.events import StoreFailed
from tenantry.replay.lifecycle import REPLAY_KEPT_FOR
from tenantry.replay.ports import ReplayStore

_GUARD_EVERY: Seconds = 0.5
_TIDY_EVERY: Seconds = 60.0


class LoopFailed(InvariantBroken):
    """A loop of a node ended by itself. The process must end: it would look alive and do half of its work."""

    def __init__(self, loop: str, error: BaseException | None) -> None:
        self.loop, self.error = loop, error
        why = f"{type(error).__name__}: {error}" if error else "it returned"
        super().__init__(f"the {loop} loop ended, so this process ends too; start it again. It was: {why}")


class Loops:
    """The running loops of one node. A loop is ended by :meth:`end`, or its end is a failure of the
    node's."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ending: set[str] = set()

    def start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._tasks[name] = self._group.create_task(self._watched(name, run), name=f"tenantry-{name}")

    async def end(self, name: str) -> None:
        """Cancel the loop and wait for it. Does nothing for one that is not running."""
        task = self._tasks.get(name)
        if task is not None:
            self._ending.add(name)
            task.cancel()
            await asyncio.wait([task])

    async def ended(self, name: str, *, within: Seconds) -> None:
        """Wait for a loop that was told to end in a way of its own."""
        self._ending.add(name)
        await asyncio.wait([self._tasks[name]], timeout=within)

    async def _watched(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except DependencyError:
            if name not in self._ending:  # on the way out the store may be gone already: leases run out
                raise
        except UsageError:
            raise  # not a fault of the loop's: the call must be changed
        except Exception as error:
            raise LoopFailed(name, error) from error
        else:
            if name not in self._ending:
                raise LoopFailed(name, None)


async def follow_registry(
    directory: PostgresDirectory, *, every: Seconds, randomness: Randomness, events: EventSink
) -> None:
    """Read the registry again and again. What cannot be read, or not be understood, leaves the view as it
    is."""
    while True:
        await asyncio.sleep(every * randomness.uniform(0.8, 1.2))
        try:
            await directory.refresh()
        except InvariantBroken:
            raise
        except TenantryError as error:
            events(StoreFailed("directory", type(error).__name__, every))


async def tidy_replays(store: ReplayStore, *, randomness: Randomness, events: EventSink) -> None:
    """Make the dedup store's coming generations and drop what is past, now and once a minute."""
    while True:
        wait = _TIDY_EVERY * randomness.uniform(0.8, 1.2)
        try:
            await store.tidy(now_kept_for=REPLAY_KEPT_FOR)
        except StoreUnavailable as error:
            events(StoreFailed("replay", type(error).__name__, wait))
        await asyncio.sleep(wait)


class EmbeddedGuard:
    """Keeps the embedded server up: starts it again when it crashed, or when the process that had started it
    left.

    Its clients reconnect to the same URL. Blocking calls run in threads.
    """

    def __init__(self, data_dir: Path, events: EventSink) -> None:
        self.server = EmbeddedServer(data_dir)
        self._events = events

    async def start(self) -> None:
        """As :meth:`EmbeddedServer.start`. Cancelling it waits for the start, then stops what was started."""
        starting = asyncio.create_task(asyncio.to_thread(self.server.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            await self.stop()
            raise

    async def stop(self) -> None:
        await asyncio.to_thread(self.server.stop)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_GUARD_EVERY)
            if not self.server.running:
                self._events(StoreFailed("embedded server", "NotRunning", 0.0))
                await self._start_again()

    async def _start_again(self) -> None:
        try:
            await self.start()
        except StoreUnavailable as error:
            self._events(StoreFailed("embedded server", type(error).__name__, _GUARD_EVERY))
