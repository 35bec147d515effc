"""The arithmetic of shares: floors as a least effective weight (law F1), caps as slots (law F4)."""

from collections.abc import Mapping
from math import ceil


def least_effective_weight(eligible: Mapping[float, int], floor: float) -> float:
    """φ/(n·λ): the weight below which a tenant is served as if it had this one (law F1).

    ``eligible`` maps weights to how many eligible tenants have them; ``floor`` is φ in [0, 1]. O(w) while
    nobody stands on the floor, O(w log w) otherwise, for w distinct weights.
    """
    count = sum(eligible.values())
    if not count or not floor:
        return 0.0
    above = sum(weight * n for weight, n in eligible.items())
    if min(eligible) * count >= floor * above:
        return floor * above / count
    below = 0
    for weight in sorted(eligible):
        scale = (1.0 - floor * below / count) / above  # λ, if only the lighter ones stand on the floor
        if scale * weight >= floor / count:
            return floor / (count * scale)
        below += eligible[weight]
        above -= weight * eligible[weight]
        if above <= 0.0:
            break
    return max(eligible)  # only at φ = 1, to within rounding: all are equal


def cap_slots(cap: float, slots: int) -> int:
    """The most a tenant may hold: ``max(1, ceil(cap · slots))`` (law F4), safe against rounding of cap."""
    return max(1, ceil(cap * slots - 1e-9))


class Shares:
    """How many tenants of each weight are eligible, and what follows for the share of each."""

    __slots__ = ("_counts", "_floor", "_least")

    def __init__(self, floor: float) -> None:
        self._floor = floor
        self._counts: dict[float, int] = {}
        self._least: float | None = 0.0  # None: to be computed

    def count(self, weight: float, change: int) -> None:
        """One eligible tenant of ``weight`` more (1) or less (-1). O(1)."""
        count = self._counts.get(weight, 0) + change
        if count:
            self._counts[weight] = count
        else:
            del self._counts[weight]
        self._least = None

    @property
    def anyone(self) -> bool:
        """Whether any tenant is eligible."""
        return bool(self._counts)

    @property
    def changed(self) -> bool:
        return self._least is None

    def least(self) -> float:
        if self._least is None:
            self._least = least_effective_weight(self._counts, self._floor)
        return self._least

    def total(self) -> float:
        """The effective weights of all eligible tenants, added up. O(w)."""
        least = self.least()
        return sum(max(w, least) * n for w, n in self._counts.items())

    def rise(self, service: float) -> float:
        """How far virtual time rises while so many slot-seconds are given out bit by bit to whoever is last,
        if all who are eligible stand at one place; less than it will, where some are ahead. O(w)."""
        return service / self.total()

    def share(self, weight: float) -> float:
        """The part of the pool of one eligible tenant of ``weight``, in (0, 1]."""
        return max(weight, self.least()) / self.total()
