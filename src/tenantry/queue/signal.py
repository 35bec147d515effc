"""A hint that something may have changed. Losing one costs a poll, never a job."""

import asyncio
from contextlib import suppress

from tenantry.kernel.instant import Seconds


class Signal:
    """Set by writers, waited for by one task. A set before the wait is not lost. One event loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, at_most: Seconds) -> None:
        """Return when it is or was set since the last wait, or after ``at_most`` seconds."""
        if not self._event.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(at_most):
                    await self._event.wait()
        self._event.clear()
