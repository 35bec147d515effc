"""Lag by tenant: what a partition's one number hides. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from tenantry.brokers.kafka.backlog import Share
from tenantry.brokers.kafka.model import Spot
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId


@dataclass(frozen=True, slots=True)
class TenantLag:
    """One tenant in one partition: ``unfinished`` records taken and not finished. ``oldest_for``: seconds
    since the time of its oldest one, by this machine's wall clock, >= 0; None where none has a time."""

    spot: Spot
    tenant: TenantId
    unfinished: int
    oldest_for: Seconds | None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition. ``unfetched``: records above the last taken, of tenants not yet known; None before one
    was taken, or before the client has learned the end of the log. ``paused``: a bound was reached."""

    spot: Spot
    unfinished: int
    unfetched: int | None
    paused: bool
    tenants: tuple[TenantLag, ...]


def lag_of(share: Share, end: int | None, now: Timestamp) -> PartitionLag:
    """The lag of what is held of one partition, most first. ``end``: the offset after its log's last.
    O(held)."""
    counts: dict[TenantId, int] = {}
    oldest: dict[TenantId, Timestamp] = {}
    for item in share.items.values():
        if item.identity is None:
            continue
        tenant, at = item.identity.tenant, item.record.at
        counts[tenant] = counts.get(tenant, 0) + 1
        if at is not None:
            oldest[tenant] = min(at, oldest.get(tenant, at))
    tenants = (
        TenantLag(share.spot, tenant, count, max(0.0, now - oldest[tenant]) if tenant in oldest else None)
        for tenant, count in counts.items()
    )
    return PartitionLag(
        share.spot, len(share.items), _unfetched(share, end), share.full, _most_first(tenants)
    )


def _unfetched(share: Share, end: int | None) -> int | None:
    if end is None or share.tracker.last is None:
        return None
    return max(0, end - share.tracker.last - 1)


def _most_first(tenants: Iterable[TenantLag]) -> tuple[TenantLag, ...]:
    return tuple(sorted(tenants, key=lambda each: (-each.unfinished, each.tenant)))
