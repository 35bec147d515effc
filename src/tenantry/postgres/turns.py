"""One at a time, by key."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager


class Turns:
    """Locks that exist while somebody wants them. One event loop's.

    For work that the database does one after the other for each key anyway: whoever waits for its turn here
    waits without a connection in hand, so that a crowd of one tenant leaves the pool to the others.
    """

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, key: Hashable) -> AsyncIterator[None]:
        lock, wanted = self._locks.get(key) or (asyncio.Lock(), 0)
        self._locks[key] = lock, wanted + 1
        try:
            async with lock:
                yield
        finally:
            _, wanted = self._locks.pop(key)
            if wanted > 1:
                self._locks[key] = lock, wanted - 1
