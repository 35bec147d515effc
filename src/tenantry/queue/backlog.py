"""How much stands in the queue, counted by tenant and told by tier. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tenantry.config.tiers import Tier
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.queue.events import Backlog


@dataclass(slots=True)
class Tally:
    """What one tenant, or one tier, has in the queue."""

    waiting: int = 0
    delayed: int = 0
    running: int = 0
    oldest: float = 0.0

    def add(self, other: "Tally") -> None:
        self.waiting += other.waiting
        self.delayed += other.delayed
        self.running += other.running
        self.oldest = max(self.oldest, other.oldest)


def tallies(
    lines: Iterable[tuple[TenantId, int, float]], running: Iterable[TenantId], delayed: Iterable[TenantId]
) -> dict[TenantId, Tally]:
    """``lines``: of each flow its tenant, how many wait, and for how long the oldest has in quota.
    ``running``, ``delayed``: the tenant of each such job."""
    found: dict[TenantId, Tally] = {}
    for tenant, waiting, oldest in lines:
        found.setdefault(tenant, Tally()).add(Tally(waiting=waiting, oldest=oldest))
    for tenant in running:
        found[tenant].running += 1
    for tenant in delayed:
        found[tenant].delayed += 1
    return found


def by_tier(found: Mapping[TenantId, Tally], tiers: Mapping[TenantId, Tier]) -> tuple[Backlog, ...]:
    """The tallies of tenants added up by pool and tier, in the order of their names."""
    sums: dict[tuple[str, TierName], Tally] = {}
    for tenant, tally in found.items():
        tier = tiers[tenant]
        sums.setdefault((tier.pool, tier.name), Tally()).add(tally)
    return tuple(
        Backlog(pool, name, each.waiting, each.delayed, each.running, each.oldest)
        for (pool, name), each in sorted(sums.items())
    )
