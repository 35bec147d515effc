"""The yardstick of who should be done when: work as a fluid, slots without end of division.

Theory
------
*Generalized processor sharing* (A. Parekh, R. Gallager, "A Generalized Processor Sharing Approach to Flow
Control in Integrated Services Networks: The Single-Node Case", IEEE/ACM Transactions on Networking 1(3),
1993): at each instant everybody who has work is served in proportion to its weight, and what one cannot use
goes to the others in the same proportion. With a most for each this is *max-min fairness*, found by
*progressive filling* (D. Bertsekas, R. Gallager, "Data Networks", 2nd ed., 1992, section 6.5.2): whoever's
most is no more than its share gets that, and the rest is shared again by the rest. Shares have the product's
floor (law F1).

What a lane can use is, by Little's law (1961), what its target serves a second, times what a call takes of it
when nobody waits: more in flight only waits. Live work is served out of its tenant's share before its replay
(law F8). Nothing is discovered here, and nothing is ever waited for: not everybody can be sooner than this,
though one may where another does not take up its share.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tenantry.algorithms.fair_share import least_effective_weight

_DUST = 1e-9
"""Messages: less than the rounding of millions of them."""


@dataclass(frozen=True, slots=True)
class FluidTenant:
    """``messages``: of its replay, 0 for none. ``takes``: slot-seconds of each, > 0. ``most``: slots that it
    can use at once. ``live``: slots that its live work holds, at most ``most``."""

    id: str
    weight: float
    messages: float
    takes: float
    most: float
    live: float = 0.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which nothing begins or ends, in seconds. ``slots``: of each tenant. ``rates``: messages a
    second of each replay that runs."""

    start: float
    end: float
    slots: Mapping[str, float]
    rates: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FluidSchedule:
    """``ends``: when each replay ends, in seconds from their common beginning; infinite for one that cannot.
    ``stretches``: one after the other, to the last end."""

    ends: Mapping[str, float]
    stretches: Sequence[Stretch]

    def drained(self, at: float) -> dict[str, float]:
        """Messages of each replay that have gone at ``at`` seconds. O(stretches · replays)."""
        gone = dict.fromkeys(self.ends, 0.0)
        for stretch in self.stretches:
            lasted = min(at, stretch.end) - stretch.start
            if lasted <= 0.0:
                break
            for name, rate in stretch.rates.items():
                gone[name] += rate * lasted
        return gone


def filled(tenants: Sequence[FluidTenant], slots: float, floor: float) -> dict[str, float]:
    """Slots of each, by weight with the floor φ; nobody has more than its ``most``. Pure, O(n) a round, of
    which there are as many as there are sizes at which somebody has enough.

    Who stands on the floor is decided once, among all who can use anything: what others leave can only add.
    """
    open_ = [tenant for tenant in tenants if tenant.most > 0.0]
    least = least_effective_weight(Counter(tenant.weight for tenant in open_), floor)
    found, left = {tenant.id: 0.0 for tenant in tenants}, slots
    while open_:
        unit = max(0.0, left) / sum(max(tenant.weight, least) for tenant in open_)
        modest = {tenant.id for tenant in open_ if tenant.most <= max(tenant.weight, least) * unit}
        if not modest:
            return found | {tenant.id: max(tenant.weight, least) * unit for tenant in open_}
        for tenant in open_:
            if tenant.id in modest:
                found[tenant.id] = tenant.most
                left -= tenant.most
        open_ = [tenant for tenant in open_ if tenant.id not in modest]
    return found


def fluid(tenants: Sequence[FluidTenant], slots: float, *, floor: float = 0.25) -> FluidSchedule:
    """All replays from their common beginning to their ends. Pure, O(n²) and some."""
    left = {tenant.id: tenant.messages for tenant in tenants if tenant.messages > 0.0}
    ends = dict.fromkeys(left, inf)
    stretches: list[Stretch] = []
    now = 0.0
    while left:
        held = filled([_as_it_is(tenant, left) for tenant in tenants], slots, floor)
        rates = {
            tenant.id: max(0.0, held[tenant.id] - tenant.live) / tenant.takes
            for tenant in tenants
            if tenant.id in left
        }
        lasts = min((left[name] / rate for name, rate in rates.items() if rate > 0.0), default=inf)
        if lasts == inf:
            break
        stretches.append(Stretch(now, now + lasts, held, rates))
        now += lasts
        for name, rate in rates.items():
            left[name] -= rate * lasts
            if left[name] <= _DUST * max(1.0, rate * lasts):
                ends[name] = now
                del left[name]
    return FluidSchedule(ends, stretches)


def _as_it_is(tenant: FluidTenant, left: Mapping[str, float]) -> FluidTenant:
    """A tenant without a replay can use what its live work holds."""
    if tenant.id in left:
        return tenant
    return FluidTenant(tenant.id, tenant.weight, 0.0, tenant.takes, tenant.live, tenant.live)
