"""Submit rates kept in one process. Several processes allow the sum of what each allows."""

from collections import OrderedDict
from math import ceil

from tenantry.algorithms.token_bucket import Bucket, Rate, full, give_back, is_full, take
from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock
from tenantry.kernel.instant import Instant
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal, Rule

_SWEPT = 2  # buckets looked at for each one used: the sweep outruns the growth


class MemoryRateGate:
    """Implements :class:`~tenantry.queue.ports.RateGate`; one event loop.

    The rate is the tenant's tier's ``submit_rate``; a tenant without one, and one that does not exist, is let
    pass. ``burst``: jobs that may be saved up beyond one second's rate, >= 0. Memory: one small record for
    each tenant whose bucket is not full; a full one is dropped, since it says no more than a new one.
    """

    def __init__(self, directory: TenantDirectory, clock: Clock, *, burst: float = 0.0) -> None:
        self._directory, self._clock, self._burst = directory, clock, burst
        self._buckets: OrderedDict[TenantId, Bucket] = OrderedDict()

    def __len__(self) -> int:
        """How many buckets are kept."""
        return len(self._buckets)

    def try_acquire(self, tenant: TenantId, cost: int) -> Refusal | None:
        """Charge ``cost`` jobs, or refuse and charge nothing. Never waits. O(1)."""
        now = self._clock.monotonic()
        self._sweep(now)
        rate = self._rate(tenant)
        if rate is None:
            return None
        taken = take(self._bucket(tenant, rate, now), rate, cost, now)
        self._buckets[tenant] = taken.bucket
        return None if taken.passed else _refusal(rate, cost, taken.wait_for)

    def give_back(self, tenant: TenantId, cost: int) -> None:
        """Undo a charge. O(1)."""
        now, rate = self._clock.monotonic(), self._rate(tenant)
        if rate is not None and tenant in self._buckets:
            self._buckets[tenant] = give_back(self._buckets[tenant], rate, cost, now)

    def _rate(self, tenant: TenantId) -> Rate | None:
        tier = self._directory.tier_of(tenant)
        if tier is None or tier.submit_rate is None:
            return None
        return Rate(tier.submit_rate, self._burst)

    def _bucket(self, tenant: TenantId, rate: Rate, now: Instant) -> Bucket:
        return self._buckets.get(tenant) or full(rate, now)

    def _sweep(self, now: Instant) -> None:
        """Look at the next few buckets, as a clock's hand goes round, and drop those that are full."""
        for _ in range(min(_SWEPT, len(self._buckets))):
            tenant, bucket = self._buckets.popitem(last=False)
            rate = self._rate(tenant)
            if rate is not None and not is_full(bucket, rate, now):
                self._buckets[tenant] = bucket


def _refusal(rate: Rate, cost: int, wait_for: float | None) -> Refusal:
    allowed = f"{rate.base:g} jobs a second"
    if wait_for is None:
        most = int(rate.capacity)
        return Refusal(
            Rule.RATE, f"{cost} jobs at once are more than {allowed} allow: send at most {most}", None
        )
    return Refusal(Rule.RATE, f"over the submit rate of {allowed}: come back in {_shown(wait_for)}", wait_for)


def _shown(seconds: float) -> str:
    return f"{ceil(seconds * 1000)} ms" if seconds < 1 else f"{seconds:.1f} s"
