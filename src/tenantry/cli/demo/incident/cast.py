"""Who takes part in the incident. Pure: the same fifty as in the first act, the same every time."""

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import cycle

from tenantry.cli.demo.scenario import members
from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import DEFAULT_TIERS
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId, TierName

SLOTS = 36
SERVICE: Seconds = 0.25
"""What a call takes in a target that serves it at once."""

LIVE_RATE: float = 45.0
"""Live jobs a second, of all tenants that go on with live work."""

_STRENGTHS = (1, 2, 3)
_LARGE_STRENGTH = 4
_EACH = 30
_TIMES = 100
"""The large backlog over an ordinary one."""

_POISONED = 200
"""Enough that the rule can see it and stop long before the end."""

_HOLE_RANK, _POISON_RANK, _LARGE_RANK = 21, 28, 41
_LIVE_EACH = 10
"""Every tenth of the fifty has live work too; none of the three above."""

_BYSTANDERS = "aster begonia crocus dahlia freesia iris lupin poppy tulip violet"


class Kind(StrEnum):
    """What becomes of a tenant's target, or of its backlog, when the dependency is back."""

    ORDINARY = "ordinary"
    HOLE = "black hole"  # it takes calls, and answers none
    POISON = "poisoned"  # it answers, and refuses every message of this backlog with 422
    LARGE = "large"  # a hundred times the others' backlog
    BYSTANDER = "bystander"  # it does not depend on it: it only has live work


@dataclass(frozen=True, slots=True)
class Party:
    """One tenant. ``strength``: calls that its target serves at once. ``letters``: how many of its jobs die.
    ``live``: it has live work, at another target."""

    tenant: TenantId
    tier: TierName
    kind: Kind
    strength: int
    letters: int
    live: bool

    @property
    def alone(self) -> Seconds:
        """How long its target takes for the backlog at its own limit."""
        return self.letters * SERVICE / self.strength


@dataclass(frozen=True, slots=True)
class Scale:
    """``quiet``: seconds of live work alone. ``each``: dead letters of an ordinary tenant."""

    quiet: Seconds
    each: int

    @classmethod
    def of(cls, seconds: Seconds) -> "Scale":
        """As large as suits a load of ``seconds`` in the first act: whole from 30 on."""
        return cls(min(6.0, max(3.0, seconds / 4)), max(10, min(_EACH, int(seconds))))


def cast(scale: Scale) -> tuple[Party, ...]:
    """The fifty, and ten bystanders of all tiers."""
    fifty = (_party(member.tenant, member.tier, rank, scale.each) for rank, member in enumerate(members()))
    tiers = cycle(tier.name for tier in DEFAULT_TIERS)
    others = (
        Party(TenantId(name), tier, Kind.BYSTANDER, 0, 0, live=True)
        for name, tier in zip(_BYSTANDERS.split(), tiers, strict=False)
    )
    return (*fifty, *others)


def _party(tenant: TenantId, tier: TierName, rank: int, each: int) -> Party:
    kinds = {_HOLE_RANK: Kind.HOLE, _POISON_RANK: Kind.POISON, _LARGE_RANK: Kind.LARGE}
    kind = kinds.get(rank, Kind.ORDINARY)
    large = kind is Kind.LARGE
    return Party(
        tenant=tenant,
        tier=tier,
        kind=kind,
        strength=_LARGE_STRENGTH if large else _STRENGTHS[rank % len(_STRENGTHS)],
        letters=_TIMES * each if large else _POISONED if kind is Kind.POISON else each,
        live=rank % _LIVE_EACH == 0,
    )


DYING = TargetSettings(max_attempts=1, adaptive=False, limit=12)
"""Of the dependency's lanes while it is down. With the usual eight attempts, and a breaker that stops calling
what is dead, the same jobs would take hours to die. Without a limit the large one would hold every slot when
all others have died, and go into its replay with what it owes for them (law F6)."""

LIVING = TargetSettings(timeout_for=2.0)
"""Of everything else: the product's own, but for a black hole to be felt within the demo."""


def registry(everyone: tuple[Party, ...], *, dying_at: str = "") -> Registry:
    """The default tiers without their bounds and caps, which would keep the incident small.

    ``dying_at``: where the dependency is while it is down, '' when it is not."""
    return Registry(
        tiers=tuple(replace(tier, bound=None, cap=1.0) for tier in DEFAULT_TIERS),
        tenants=tuple(_document(party, dying_at) for party in everyone),
    )


def _document(party: Party, dying_at: str) -> TenantDocument:
    targets = {dying_at + shared_path(party.tenant): DYING} if dying_at else {}
    return TenantDocument(party.tenant, party.tier, LIVING, targets)


def shared_path(tenant: str) -> str:
    """Where a tenant's part of the dependency is."""
    return f"/shared/{tenant}"


def live_path(tenant: str) -> str:
    """Where its live work goes."""
    return f"/live/{tenant}"
