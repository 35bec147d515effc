"""The loop that moves stored work into line as room appears, and keeps the house: bulk sets, the inbox,
outcomes and idempotency keys that have had their time. Any number of nodes may run it at once."""

import asyncio
from dataclasses import dataclass

from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import InvariantBroken, StoreUnavailable
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId
from tenantry.queue.events import FeedFailed, JobDied, JobsDied, JobsFed, StoreFailed
from tenantry.queue.model import Fed
from tenantry.queue.ports import FeederStore


@dataclass(frozen=True, slots=True)
class FeederSettings:
    """``look_every``: seconds between two looks for stored work. ``batch``: most jobs moved per tenant and
    look. ``tidy_every``: seconds between two tidyings. ``keep_days``: how long outcomes are kept.
    ``put_off_for``: seconds for which a tenant is passed over whose stored work an error of ours met."""

    look_every: Seconds = 0.1
    batch: int = 500
    tidy_every: Seconds = 60.0
    keep_days: int = 7
    put_off_for: Seconds = 30.0


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
        self._put_off: dict[TenantId, Instant] = {}  # until when

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
        """Move what there is room for, a batch a tenant. Returns how many jobs left the store.

        What is wrong with one tenant's stored work is told and put off; the others' goes on.
        """
        now = self._clock.monotonic()
        self._put_off = {tenant: until for tenant, until in self._put_off.items() if now < until}
        tenants = [each for each in await self._store.stored_tenants() if each not in self._put_off]
        return sum([await self._feed(tenant, now) for tenant in tenants])

    async def _feed(self, tenant: TenantId, now: Instant) -> int:
        tier = self._directory.tier_of(tenant)
        # What a removed tenant had stored was accepted, so it still enters; nothing bounds it any more.
        bound = tier.bound if tier else None
        try:
            fed = await self._store.feed(tenant, bound=bound, limit=self._settings.batch)
        except InvariantBroken as error:
            pause = self._settings.put_off_for
            self._put_off[tenant] = Instant(now + pause)
            self._events(FeedFailed(tenant, type(error).__name__, pause))
            return 0
        self._tell(tenant, fed)
        return fed.moved

    def _tell(self, tenant: TenantId, fed: Fed) -> None:
        if fed.moved > len(fed.died):
            self._events(JobsFed(fed.moved - len(fed.died)))
        if fed.died:
            self._events(JobsDied(None, tuple(JobDied(job, tenant, reason) for job, reason in fed.died)))

    async def _tidy(self) -> None:
        now = self._clock.monotonic()
        if self._tidied_at is None or now - self._tidied_at >= self._settings.tidy_every:
            self._tidied_at = now
            await self._store.tidy(keep_days=self._settings.keep_days)
