"""Who the fifty tenants are and what each of them does. Pure: the same fifty every time.

The head of the Zipf line wants more than its share (its clients keep a window of events in flight, as
integrations do), the tail wants far less. So every tier has tenants beyond their share, whose shares can be
measured, and tenants within it, whose waits show whether somebody else's burst reaches them.
"""

from dataclasses import dataclass

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import DEFAULT_TIERS
from tenantry.delivery.signature import new_secret
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId, TierName

SLOTS = 24
BURST_JOBS = 20_000
BURST_BATCH = 100
"""Jobs a call: a call over the bound is refused whole, so smaller ones find room sooner."""

_BURST_RANK = 30
_SKEW = 1.5
_OFFERED: float = 800.0
"""Events a second that all tenants together would send: about three times what the slots can deliver."""

_ANSWER_FOR: tuple[Seconds, ...] = (0.060, 0.080, 0.100)
"""How long targets take: three kinds of them, in turns, for the head of the line; the first for the rest."""

_NAMES = """
    acacia alder almond apple ash aspen bamboo banyan baobab beech birch cacao camellia cedar cherry
    chestnut cypress elder elm fig fir ginkgo hawthorn hazel hickory holly hornbeam ivy jasmine juniper
    larch laurel lemon lilac linden magnolia mango maple mulberry myrtle oak olive palm pear pine plum
    poplar rowan spruce willow
"""
_WANT_MORE = 12
"""So many of the head of the line want more than their share; they are of all tiers."""

_TIERS_BY_RANK = (
    *("critical",) * 2, *("enterprise",) * 1, *("standard",) * 3, *("free",) * 6,
    *("critical",) * 3, *("enterprise",) * 9, *("standard",) * 12, *("free",) * 14,
)  # fmt: skip
_WINDOWS = {"critical": 64, "enterprise": 32, "standard": 22, "free": 16}


@dataclass(frozen=True, slots=True)
class Member:
    """One tenant. ``rate``: events a second that it would send. ``window``: events that its client keeps in
    flight at most. ``answer_for``: how long its target takes, in seconds. ``within``: it asks for far less
    than its share."""

    tenant: TenantId
    tier: TierName
    rate: float
    window: int
    answer_for: Seconds
    within: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """In seconds of the load. ``burst_at``: when the burst comes. ``measured_from``: from here to the end
    shares are measured, burst included. ``seconds``: when the clients stop."""

    seconds: Seconds
    burst_at: Seconds
    measured_from: Seconds

    @classmethod
    def of(cls, seconds: Seconds) -> "Timeline":
        burst_at = min(10.0, seconds / 4)
        return cls(seconds, burst_at, burst_at + min(3.0, seconds / 8))


def members() -> tuple[Member, ...]:
    """The fifty tenants by rank: the first sends most."""
    names = _NAMES.split()
    parts = [(rank + 1) ** -_SKEW for rank in range(len(names))]
    return tuple(
        Member(
            tenant=TenantId(names[(rank * 21) % len(names)]),
            tier=TierName(_TIERS_BY_RANK[rank]),
            rate=_OFFERED * part / sum(parts),
            window=_WINDOWS[_TIERS_BY_RANK[rank]],
            answer_for=_ANSWER_FOR[rank % len(_ANSWER_FOR) if rank < _WANT_MORE else 0],
            within=rank >= _WANT_MORE,
        )
        for rank, part in enumerate(parts)
    )


def burster(everyone: tuple[Member, ...]) -> Member:
    """Who bursts: a small tenant of tier standard."""
    return everyone[_BURST_RANK]


def registry(everyone: tuple[Member, ...], randomness: Randomness) -> Registry:
    """The default tiers, and the tenants with a signing secret each."""
    return Registry(
        tiers=DEFAULT_TIERS,
        tenants=tuple(
            TenantDocument(member.tenant, member.tier, TargetSettings(secret=new_secret(randomness)))
            for member in everyone
        ),
    )
