"""Liveness and readiness. Nobody needs a key for them, so they say no more than yes or no."""

import asyncio

from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.instant import Instant
from tenantry.web.calls import Answer
from tenantry.web.exchange import Exchange, Step
from tenantry.web.problems import refused_with, retry_headers
from tenantry.web.services import Answers, ApiServices
from tenantry.web.wire import Health


class ReadinessCheck:
    """Asks the store, and keeps the answer for a moment: whoever asks without a key, and how often, costs one
    query a second at most. For the tasks of one event loop."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self._asking = asyncio.Lock()
        self._known: tuple[bool, Instant] | None = None

    async def ready(self) -> bool:
        """Whether the store answers in time."""
        async with self._asking:
            if self._known is None or self._services.clock.monotonic() >= self._known[1]:
                answers = await self._answers()
                kept_until = self._services.clock.monotonic() + self._services.limits.ready_kept_for
                self._known = (answers, Instant(kept_until))
            return self._known[0]

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(self._services.limits.ready_for):
                await self._services.readiness.check()
        except (StoreUnavailable, TimeoutError):
            return False
        return True


def readiness_step(check: Answers) -> Step:
    """200 when ``check`` says yes, else 503."""

    async def ready(exchange: Exchange) -> Answer:
        if await check.ready():
            return Answer(200, Health("ready"), {"cache-control": "no-store"})
        headers = retry_headers(1.0)
        raise refused_with("store-unavailable", "The store does not answer.", headers, retry_after=1.0)

    return ready
