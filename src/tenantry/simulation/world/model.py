"""What a world is made of: tenants, each with a target of its own kind, bursts, slots. Frozen records."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from tenantry.simulation.shaping.targets import TargetModel


@dataclass(frozen=True, slots=True)
class Burst:
    """``jobs`` that are submitted at once at ``at`` seconds."""

    at: float
    jobs: int


@dataclass(frozen=True, slots=True)
class WorldTenant:
    """One tenant. ``rate``: jobs a second on average, coming independently of each other. ``target``: the
    model of its own target: each tenant has one to itself. ``weight`` > 0, ``cap`` in (0, 1], ``bound``: the
    most jobs that have not ended."""

    id: str
    rate: float
    target: TargetModel
    weight: float = 1.0
    cap: float = 1.0
    bound: int | None = None
    bursts: tuple[Burst, ...] = ()

    @property
    def steady(self) -> bool:
        """Whether it never bursts and its target is never away: those whom others must not disturb."""
        return not self.bursts and not self.target.spells

    def jobs(self, lasts: float) -> float:
        """Jobs that it submits in so many seconds, on average."""
        return self.rate * lasts + sum(burst.jobs for burst in self.bursts if burst.at < lasts)

    def mean(self) -> float:
        """Slots that its steady work holds on average: what it is guaranteed is provisioned for this."""
        return self.rate * self.target.reference

    def peak(self, within: float) -> float:
        """Slots that it would need at its highest, to have each burst done within so many seconds."""
        most = max((burst.jobs for burst in self.bursts), default=0)
        return self.mean() + most * self.target.reference / within


@dataclass(frozen=True, slots=True)
class World:
    """``lasts``: virtual seconds. ``slots``: of the pool, or None for the floors and the buffer.
    ``buffer``: what is provisioned on top of the floors, as a part of them. ``within``: seconds in which a
    tenant would want its burst done if slots cost nothing. ``timeout``: seconds; ``attempts``: of each
    job."""

    name: str
    tenants: Sequence[WorldTenant]
    lasts: float = 3_600.0
    slots: int | None = None
    buffer: float = 0.5
    within: float = 60.0
    timeout: float = 5.0
    attempts: int = 3
    backoff: float = 2.0

    @property
    def floors(self) -> int:
        """Slots for what all tenants do steadily."""
        return max(1, ceil(sum(tenant.mean() for tenant in self.tenants)))

    @property
    def peaks(self) -> int:
        """Slots for every tenant's own peak at once."""
        return max(1, ceil(sum(tenant.peak(self.within) for tenant in self.tenants)))

    @property
    def provisioned(self) -> int:
        """Slots that the world has."""
        return self.slots if self.slots is not None else max(1, ceil(self.floors * (1.0 + self.buffer)))
