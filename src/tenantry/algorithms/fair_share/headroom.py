"""The headroom: slots that replays leave free, so that live work need not wait until one of theirs ends.

In a pool that replays keep full, whoever submits live work would wait for somebody's job to end, however
small its use. A few slots stay free of replays: in proportion to the root of the pool's size, as bursts of
independent arrivals grow; two of 200, six of 2,000. Live and background work start there out of
turn, and are charged for it like for any other start, so that no share moves. All such starts hold no more
than the headroom, and one tenant no more than half of it: it is for those who come now and then. Whoever has
more work than that waits for its turn, which comes on all slots.
"""

from math import ceil, sqrt

from tenantry.algorithms.fair_share.records import Tenant

_OF_ROOT = 0.125
_SMALLEST_POOL = 20  # slots; a slot of fewer would be more than one in twenty


class Headroom:
    """``slots``: how many it is; ``held``: how many of them are held by starts out of turn."""

    __slots__ = ("_each", "held", "slots")

    def __init__(self) -> None:
        self.slots = self.held = self._each = 0

    def resize(self, pool: int) -> None:
        """The pool has so many slots now."""
        self.slots = max(1, round(_OF_ROOT * sqrt(pool))) if pool >= _SMALLEST_POOL else 0
        self._each = ceil(self.slots / 2)

    @property
    def free(self) -> int:
        """Slots that replays must leave free now."""
        return max(0, self.slots - self.held)

    def room(self, tenant: Tenant) -> int:
        """How much more of it ``tenant`` may hold."""
        return self._each - tenant.ahead

    def hold(self, tenant: Tenant, jobs: int) -> None:
        """``jobs`` of ``tenant`` took slots of it; negative: they left."""
        self.held += jobs
        tenant.ahead += jobs
