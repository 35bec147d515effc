"""What a tenant's quotas say when they are reached, and the day that they count by. Pure."""

from tenantry.config.tiers import Tier
from tenantry.kernel.instant import Timestamp
from tenantry.replay.model import Hold, HoldRule, Quotas

_DAY = 86_400


def day_of(at: Timestamp) -> int:
    """The UTC day, counted from 1970-01-01."""
    return int(at // _DAY)


def start_of(day: int) -> Timestamp:
    """When a day begins."""
    return Timestamp(float(day * _DAY))


def over_a_day(most: int, frees_at: Timestamp) -> Hold:
    """The tenant's messages of the day are used up."""
    return Hold(HoldRule.QUOTA, f"the tenant's {most} replayed messages a day are used up", frees_at)


def over_keys(most: int, frees_at: Timestamp) -> Hold:
    """As many messages as the tenant may have remembered are remembered."""
    return Hold(HoldRule.QUOTA, f"the tenant's {most} remembered messages are used up", frees_at)


def over_running(most: int | None) -> Hold:
    """The tenant has its most replays running; ``most`` is None only where nobody waits."""
    return Hold(HoldRule.CONCURRENCY, f"the tenant's {most} replays are running: it waits for a place")


def gone(again_at: Timestamp) -> Hold:
    """The tenant is in the registry no more, so no tier gives it anything."""
    return Hold(HoldRule.QUOTA, "the tenant is in the registry no more: add it again, or cancel", again_at)


def quotas_of(tier: Tier | None) -> Quotas:
    """What a tier gives each of its tenants; none to a tenant that is in the registry no more. Pure."""
    return Quotas() if tier is None else Quotas(tier.replayed_a_day, tier.dedup_keys, tier.replays)
