"""Tiers: the classes of service an operator sells or assigns.

Source: the seed documents (weights from a service tier; a floor for everyone; a cap whatever the weight;
bounds by tier). Figures are the defaults of this product.
"""

from dataclasses import dataclass
from enum import StrEnum

from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TierName, Weight

SHARED_POOL = "shared"
"""The pool that serves every tier without a dedicated one."""

DAY: Seconds = 86_400.0
LONGEST_DEDUP: Seconds = 90 * DAY
"""Nothing remembers a delivery for longer."""

DEDICATED_POOL_HANDFUL = 5
"""A dedicated pool for more tenants than this is warned of: its idle cost buys little isolation."""


class Shedding(StrEnum):
    """In which order tiers give way while their pool is overloaded (:mod:`tenantry.algorithms.shedding`)."""

    FIRST = "first"  # new background work is refused before anything else
    MIDDLE = "middle"  # retries are put off, then new work of every class is refused
    LAST = "last"  # never


@dataclass(frozen=True, slots=True)
class Tier:
    """What a class of service may use. Frozen; made by :mod:`tenantry.config.registry` or by hand.

    ``weight``: relative share, > 0 and <= 1e6. ``cap``: largest part of the pool's live slots, in (0, 1].
    ``bound``: most jobs waiting per tenant, >= 1, or None for no bound. ``submit_rate``: jobs accepted a
    second and ``dispatch_rate``: jobs started a second, per tenant, or None for no limit. ``pool``: the pool
    that serves it. The floor is the pool's, not a tier's.

    Of replays, per tenant: ``replays`` running at once, >= 1; ``replayed_a_day``: messages taken a UTC day,
    >= 1; ``dedup_keys``: kept at once, >= 1; None for no limit. ``dedup_for``: seconds that the delivery of a
    message is remembered, from first sight, > 0 and at most :data:`LONGEST_DEDUP`.
    """

    name: TierName
    weight: Weight = Weight(1.0)  # noqa: RUF009 - a NewType: the number itself
    cap: float = 1.0
    bound: int | None = None
    submit_rate: float | None = None
    dispatch_rate: float | None = None
    shedding: Shedding = Shedding.MIDDLE
    pool: str = SHARED_POOL
    replays: int | None = None
    replayed_a_day: int | None = None
    dedup_keys: int | None = None
    dedup_for: Seconds = 14 * DAY


DEFAULT_TIERS: tuple[Tier, ...] = (
    Tier(
        TierName("free"),
        Weight(1.0),
        cap=0.10,
        bound=100,
        shedding=Shedding.FIRST,
        replays=1,
        replayed_a_day=50_000,
        dedup_keys=200_000,
    ),
    Tier(
        TierName("standard"),
        Weight(2.0),
        cap=0.20,
        bound=200,
        replays=3,
        replayed_a_day=1_000_000,
        dedup_keys=5_000_000,
    ),
    Tier(
        TierName("enterprise"),
        Weight(4.0),
        cap=0.40,
        bound=2_000,
        shedding=Shedding.LAST,
        replays=10,
        replayed_a_day=20_000_000,
    ),
    Tier(TierName("critical"), Weight(8.0), cap=0.60, bound=5_000, shedding=Shedding.LAST, replays=20),
)
