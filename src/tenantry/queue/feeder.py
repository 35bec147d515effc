"""The loop that moves stored work into line as room appears, and keeps the house: bulk sets, the inbox,
outcomes and idempotency keys that have had their time. Any number of nodes may run it at once."""

import asyncio
from dataclasses import dataclass

from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.queue.events import JobsFed, StoreFailed
from tenantry.queue.ports import FeederStore


@dataclass(frozen=True, slots=True)
class FeederSettings:
    """``look_every``: seconds between two looks for stored work. ``batch``: most jobs moved per tenant and
    look. ``tidy_every``: seconds between two tidyings. ``keep_days``: how long outcomes are kept."""

    look_every: Seconds = 0.1
    batch: int = 500
    tidy_every: Seconds = 60.0
    keep_days: int = 7


DEFAULTS = FeederSettings()


class Feeder:
    """Runs until cancelled. One task."""

    def __init__(
        self,
        store: FeederStore,
        directory: TenantDirectory,
        *,
        clock: Clock,
        randomness: Randomness,
        events: EventSink,
        settings: FeederSettings = DEFAULTS,
    ) -> None:
        self._store, self._directory, self._clock = store, directory, clock
        self._randomness, self._events, self._settings = randomness, events, settings
        self._tidied_at: Instant | None = None

    async def run(self) -> None:
        while True:
            pause = self._settings.look_every * self._randomness.uniform(0.8, 1.2)
            try:
                moved = await self.feed()
                await self._tidy()
            except StoreUnavailable as error:
                self._events(StoreFailed("feeder", type(error).__name__, pause))
                moved = 0
            await asyncio.sleep(0.0 if moved else pause)

    async def feed(self) -> int:
        """Move what there is room for, a batch a tenant. Returns how many jobs moved."""
        tenants = await self._store.stored_tenants()
        if not tenants:
            return 0
        tiers = {tenant: self._directory.tier_of(tenant) for tenant in tenants}
        # What a removed tenant had stored was accepted, so it still enters; nothing bounds it any more.
        bounds = {tenant: tier.bound if tier else None for tenant, tier in tiers.items()}
        moved = await self._store.feed(bounds, limit=self._settings.batch)
        if moved:
            self._events(JobsFed(moved))
        return moved

    async def _tidy(self) -> None:
        now = self._clock.monotonic()
        if self._tidied_at is None or now - self._tidied_at >= self._settings.tidy_every:
            self._tidied_at = now
            await self._store.tidy(keep_days=self._settings.keep_days)
