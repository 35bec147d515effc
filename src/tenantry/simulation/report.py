"""What came of a simulation: per tenant and as a whole, with the measures by which fairness is judged."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.algorithms.fair_share import least_effective_weight
from tenantry.simulation.model import SimTenant


@dataclass(slots=True)
class TenantReport:
    """One tenant's part. ``waits``: seconds from arrival to start, of each started job, in start order;
    ``slot_seconds``: what its jobs held until the end; ``demand``: slot-seconds accepted;
    ``most``: the most slots it held at once."""

    tenant: SimTenant
    offered: int = 0
    refused: int = 0
    started: int = 0
    finished: int = 0
    in_flight: int = 0
    most: int = 0
    slot_seconds: float = 0.0
    demand: float = 0.0
    waits: list[float] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return self.offered - self.refused - self.started


@dataclass(frozen=True, slots=True)
class Report:
    """``order``: the tenant of each start, in order."""

    tenants: Mapping[str, TenantReport]
    order: Sequence[str]
    slots: int
    ended_at: float

    def wait(self, percent: float, tenants: Iterable[str] | None = None) -> float:
        """The ``percent`` percentile of waits (nearest rank from below, as the worked example counts)."""
        names = self.tenants if tenants is None else tenants
        waits = sorted(wait for name in names for wait in self.tenants[name].waits)
        return waits[min(len(waits) - 1, int(percent / 100 * len(waits)))] if waits else 0.0

    def over_entitlement(self, floor: float = 0.25) -> dict[str, float]:
        """Slot-seconds over what each tenant with demand was entitled to; see :func:`entitlements`."""
        capacity = self.slots * self.ended_at
        due = entitlements(self.tenants.values(), floor=floor, capacity=capacity)
        return {name: self.tenants[name].slot_seconds / part for name, part in due.items()}


def entitlements(reports: Iterable[TenantReport], *, floor: float, capacity: float) -> dict[str, float]:
    """Slot-seconds that each tenant is due of ``capacity``: its demand, or its share of what those who demand
    less than their share leave (law F1, by weight, with the floor φ)."""
    open_ = {report.tenant.id: report for report in reports if report.demand > 0.0}
    due: dict[str, float] = {}
    while open_:
        weights = [report.tenant.weight for report in open_.values()]
        least = least_effective_weight({weight: weights.count(weight) for weight in set(weights)}, floor)
        total = sum(max(weight, least) for weight in weights)
        parts = {name: capacity * max(r.tenant.weight, least) / total for name, r in open_.items()}
        modest = [name for name, report in open_.items() if report.demand <= parts[name]]
        if not modest:
            return due | parts
        for name in modest:
            due[name] = open_.pop(name).demand
            capacity -= due[name]
    return due


def jain(values: Iterable[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything; 1 of nothing.

    Source: R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness" (DEC-TR-301, 1984).
    """
    found = list(values)
    squares = sum(value * value for value in found)
    return sum(found) ** 2 / (len(found) * squares) if squares else 1.0
