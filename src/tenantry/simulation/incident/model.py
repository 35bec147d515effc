"""What a mass incident is made of: a shared dependency failed, and everybody replays at once. Frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, exp
from statistics import NormalDist

from tenantry.algorithms.fair_share import cap_slots
from tenantry.kernel.randomness import Randomness, SeededRandomness
from tenantry.simulation.fluid import FluidSchedule, FluidTenant, fluid
from tenantry.simulation.shaping.targets import Spell, TargetModel

TIERS: Mapping[str, float] = {"critical": 4.0, "standard": 2.0, "basic": 1.0}
"""Weights by tier."""

BEGINS = 120.0
"""Seconds of live traffic before all replays start."""

_NORMAL = NormalDist()


class Backlog(StrEnum):
    """What there is to replay, and whether it can be."""

    USUAL = "usual"
    POISON = "poison"  # every message is refused by the target as bad
    HOLE = "hole"  # the target answers nothing from the incident on
    NONE = "none"  # live traffic only


@dataclass(frozen=True, slots=True)
class IncidentTenant:
    """One tenant, with one target and so one lane. ``rate``: live jobs a second, coming independently of each
    other. ``messages``: of its replay."""

    id: str
    tier: str
    target: TargetModel
    rate: float
    messages: int = 0
    backlog: Backlog = Backlog.USUAL

    @property
    def weight(self) -> float:
        return TIERS[self.tier]

    @property
    def takes(self) -> float:
        """Slot-seconds of a call when nobody waits: the mean of the target's log-normal, and the network."""
        return self.target.network + self.target.service * exp(self.target.spread**2 / 2.0)

    @property
    def most(self) -> float:
        """Calls in flight that keep the target busy, by Little's law."""
        return self.target.rate_at(0.0) * self.takes


@dataclass(frozen=True, slots=True)
class Incident:
    """``slots``: of the pool. ``cap``: most of them that one tenant may hold, in (0, 1]. ``at``: seconds of
    live traffic before all replays start."""

    name: str
    tenants: Sequence[IncidentTenant]
    slots: int
    cap: float = 0.2
    floor: float = 0.25
    at: float = BEGINS
    timeout: float = 5.0

    @property
    def messages(self) -> int:
        """Of all replays."""
        return sum(tenant.messages for tenant in self.tenants)

    def schedule(self) -> FluidSchedule:
        """The fluid one of the same targets and slots, from the instant of the incident. What cannot be
        delivered gets nothing in it: slots that poison and a black hole take in truth count against us."""
        return fluid([self._fluid(each) for each in self.tenants], self.slots, floor=self.floor)

    def _fluid(self, tenant: IncidentTenant) -> FluidTenant:
        gone = tenant.backlog is Backlog.HOLE
        most = 0.0 if gone else min(tenant.most, float(cap_slots(self.cap, self.slots)))
        return FluidTenant(
            tenant.id,
            tenant.weight,
            float(tenant.messages) if tenant.backlog is Backlog.USUAL else 0.0,
            tenant.takes,
            most,
            min(most, tenant.rate * tenant.takes),
        )


@dataclass(frozen=True, slots=True)
class Scale:
    """How large an incident is. ``replays`` >= 5 of them; ``bystanders``: tenants without one. ``median``:
    messages of a replay; one has 100 times that and one ``largest``. ``servers``: of the largest one's
    target. ``live``: jobs a second of each tenant."""

    replays: int = 300
    bystanders: int = 20
    slots: int = 2_000
    median: int = 4_000
    largest: int = 5_000_000
    servers: int = 100
    live: float = 0.2


def mass_incident(scale: Scale = Scale(), *, seed: int = 1) -> Incident:
    """Replays of all tiers at once, at targets of different strength: 4 to 40 servers, 100 to 400 ms a call.

    Sizes are log-normal. One replay has 100 times the median, one is the largest, one's target is a black
    hole from the incident on, one is all poison. Raises ValueError for fewer than five replays.
    """
    if scale.replays < 5:
        raise ValueError(f"replays must be >= 5, not {scale.replays!r}")
    chance = SeededRandomness(seed)
    found = [_tenant(place, scale, chance) for place in range(scale.replays + scale.bystanders)]
    strong = TargetModel("strong", servers=((0.0, float(scale.servers)),))
    usual = TargetModel("usual", servers=((0.0, 40.0),))
    hole = TargetModel("hole", spells=((BEGINS, 1e9, Spell.HOLE),))
    quick = TargetModel("quick", service=0.02)
    special = (
        ("largest", scale.largest, Backlog.USUAL, strong),
        ("hundredfold", 100 * scale.median, Backlog.USUAL, usual),
        ("hole", scale.median, Backlog.HOLE, hole),
        ("poison", 10 * scale.median, Backlog.POISON, quick),
    )
    for place, (name, messages, backlog, target) in enumerate(special):
        found[place] = IncidentTenant(name, "standard", target, scale.live, messages, backlog)
    return Incident(f"{scale.replays} replays at once", found, scale.slots)


def _tenant(place: int, scale: Scale, chance: Randomness) -> IncidentTenant:
    servers = round(4.0 * 10.0 ** chance.uniform(0.0, 1.0))
    target = TargetModel("usual", servers=((0.0, float(servers)),), service=chance.uniform(0.1, 0.4))
    tier = tuple(TIERS)[place % 3]
    if place >= scale.replays:
        return IncidentTenant(f"bystander-{place + 1}", tier, target, scale.live, 0, Backlog.NONE)
    drawn = min(max(chance.uniform(0.0, 1.0), 1e-9), 1.0 - 1e-9)
    messages = ceil(scale.median * exp(_NORMAL.inv_cdf(drawn)))
    return IncidentTenant(f"tenant-{place + 1}", tier, target, scale.live, messages)
