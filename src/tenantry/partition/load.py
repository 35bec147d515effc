"""Who carries what, and who stands beside whom: load per partition, shared partitions, a simulated crowd."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, islice
from math import inf

from tenantry.kernel.errors import InvalidValue
from tenantry.partition.model import Layout
from tenantry.partition.placement import Placement

MOST_COMPARED = 2_000
"""So many tenants are compared with each other at most: two million pairs."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """``pairs``: how many pairs of tenants share so many partitions. ``compared``: of how many tenants."""

    compared: int
    pairs: Mapping[int, int]

    @property
    def apart(self) -> float:
        """The part of pairs that share no partition: whom a fault of one tenant cannot reach."""
        return self.pairs.get(0, 0) / max(1, sum(self.pairs.values()))


def load_of(layout: Layout, traffic: Mapping[str, float]) -> dict[int, float]:
    """What each active partition carries of ``traffic`` (tenant to rate): slots divide evenly. Pure."""
    placement, found = Placement(layout), dict.fromkeys(layout.active, 0.0)
    for tenant, rate in traffic.items():
        used = placement.partitions_of(tenant, inf)
        for each in used:
            found[each] += rate / len(used)
    return found


def overlap(layout: Layout, tenants: Iterable[str]) -> Overlap:
    """How many partitions pairs of tenants share; of the first :data:`MOST_COMPARED` tenants. Pure."""
    placement, pairs = Placement(layout), dict[int, int]()
    bits = _bits(layout)
    masks = [_mask(placement.partitions_of(each, inf), bits) for each in islice(tenants, MOST_COMPARED)]
    for one, other in combinations(masks, 2):
        shared = (one & other).bit_count()
        pairs[shared] = pairs.get(shared, 0) + 1
    return Overlap(len(masks), dict(sorted(pairs.items())))


def neighbours(layout: Layout, tenant: str, tenants: Iterable[str]) -> tuple[str, ...]:
    """The tenants that share a partition with ``tenant``: its blast radius. In the order given."""
    placement = Placement(layout)
    own = frozenset(placement.partitions_of(tenant, inf))
    return tuple(
        each for each in tenants if each != tenant and not own.isdisjoint(placement.partitions_of(each, inf))
    )


def crowd(tenants: int, *, skew: float = 1.1, total: float = 100_000.0) -> dict[str, float]:
    """So many tenants whose rates fall as 1/rank**skew (Zipf) and add up to ``total``. Pure, no chance.

    Raises :class:`InvalidValue` for no tenant, or a skew outside [0, 10].
    """
    if not 1 <= tenants <= 10_000_000:
        raise InvalidValue("tenants", tenants, "a number of tenants, 1 to 10,000,000")
    if not 0 <= skew <= 10:
        raise InvalidValue("skew", skew, "a number from 0 (all alike) to 10")
    weights = [1 / rank**skew for rank in range(1, tenants + 1)]
    scale = total / sum(weights)
    return {f"tenant-{rank}": weight * scale for rank, weight in enumerate(weights, 1)}


def unevenness(load: Mapping[int, float]) -> float:
    """The fullest partition over the mean: 1 is even. 1 for no load at all."""
    total = sum(load.values())
    return max(load.values()) * len(load) / total if total else 1.0


def _bits(layout: Layout) -> dict[int, int]:
    """A bit for each partition, by its place and not its number: ids may be as large as 2**31 - 1."""
    return {each: 1 << place for place, each in enumerate(layout.ids)}


def _mask(partitions: Iterable[int], bits: Mapping[int, int]) -> int:
    return sum(bits[each] for each in partitions)
