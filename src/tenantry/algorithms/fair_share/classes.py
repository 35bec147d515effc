"""Which class of a tenant's work is next: live before background before replay, each with its one in ten."""

from collections.abc import Iterable
from math import inf

from tenantry.algorithms.fair_share.records import RANKS, Line, Tenant

_FORCED_AFTER = 8  # picks of other ranks; with two lower ranks due at once both still get one in ten


def next_rank(tenant: Tenant, lines: Iterable[Line], *, below: int = RANKS) -> int:
    """Live before background before replay, but each lower one has its one in ten (law F8). ``below``: of
    the ranks before this one."""
    if len(tenant.classes) == 1:
        return tenant.classes[0]
    for rank in range(1, below):
        if tenant.since[rank] >= _FORCED_AFTER and any(line.ranks[rank].count for line in lines):
            return rank
    return next(rank for rank in range(below) if any(line.ranks[rank].count for line in lines))


def is_due(tenant: Tenant, rank: int) -> bool:
    """Whether the next pick of the tenant belongs to this lower rank, whatever waits in others."""
    return tenant.since[rank] >= _FORCED_AFTER and _due(tenant, rank)


def count_picks(tenant: Tenant, picked: int, count: int) -> None:
    if len(tenant.classes) == 1:
        return
    for rank in range(1, RANKS):
        if rank == picked:
            tenant.since[rank] = 0
        elif _due(tenant, rank):
            tenant.since[rank] = min(tenant.since[rank] + count, 2 * _FORCED_AFTER)


def _due(tenant: Tenant, rank: int) -> bool:
    return any(line.ranks[rank].count and line.entry is not None for line in tenant.lines.values())


def of_its_class(tenant: Tenant, rank: int) -> float:
    """How many jobs of one class a visit may start before another class's one in ten is due (law F8)."""
    if rank and any(_due(tenant, higher) for higher in range(rank)):
        return 1  # it is here by its one in ten
    lower = [_FORCED_AFTER - tenant.since[each] for each in range(rank + 1, RANKS) if _due(tenant, each)]
    return min(lower, default=inf)
