"""The other strategy: every node gets a part of the limit, and parts move to where the calls come. Pure.

Even at first: of 500/s and a burst of 1,000 over ten nodes each has 50/s and 100. A node refills its part by
its own clock and reports its demand now and then; what others do not use moves to it at its next report.
Parts that are in force never add up to more than one, so neither rate nor burst is ever passed: a part that
shrinks is given to others only once its node has reported again, which says that it has taken the smaller
one. The price beside leases: skew is throttled until the next report, and a burst that was saved up elsewhere
stays there.

A tenth of an even part is every node's always, whether it has reported or not: it decides first contacts.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tenantry.kernel.instant import Instant, Seconds

OPENING: Final = 0.1
"""Which part of an even part is always a node's own."""
_MEMORY: Final = 0.5  # how much of the demand of before is remembered at a report


class Held(NamedTuple):
    """One node's part. ``told``: by the last answer; ``before``: by the one before, which may be in force
    until the node reports again. ``demand``: tokens a second, of late."""

    told: float
    before: float
    demand: float
    seen_at: Instant

    @property
    def in_force(self) -> float:
        """The most that the node may be using."""
        return max(self.told, self.before)


Division = Mapping[str, Held]
"""The parts of one limit, by node."""


def reported(
    division: Division, node: str, demand: float, *, nodes: int, now: Instant, gone_after: Seconds
) -> tuple[Division, float]:
    """The division after a report of ``demand`` tokens since the last one, and what the node's part is now.

    ``nodes``: how many there are. A node that was silent for ``gone_after`` has lost its part. O(nodes).
    """
    here = {name: held for name, held in division.items() if held.seen_at + gone_after > now}
    last = here.pop(node, None)
    floor, nodes = OPENING / max(nodes, len(here) + 1), max(nodes, len(here) + 1)
    free = 1.0 - floor * (nodes - len(here)) - sum(max(floor, held.in_force) for held in here.values())
    if last is None:
        rate, part = demand, 1.0 / nodes
    else:
        passed = max(now - last.seen_at, 1e-3)
        rate = _MEMORY * last.demand + (1 - _MEMORY) * demand / passed
        part = _wanted(rate, sum(held.demand for held in here.values()), nodes, floor)
    told = floor + max(0.0, min(part - floor, free))
    before = last.told if last is not None else floor
    return {**here, node: Held(told, before, rate, now)}, told


def _wanted(rate: float, others: float, nodes: int, floor: float) -> float:
    """Its floor, and of what is above all floors a part like its part of the demand."""
    if rate + others <= 0:
        return 1.0 / nodes
    return floor + (1.0 - floor * nodes) * rate / (rate + others)
