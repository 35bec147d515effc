"""The headroom: slots that replays leave free, so that live work need not wait until one of theirs ends.

In a pool that replays keep full, whoever submits live work would wait for somebody's job to end, however
small its use. A few slots stay free of replays: in proportion to the root of the pool's size, as bursts of
independent arrivals grow; two of 200, six of 2,000. Live and background work starts there *out of turn*:

- Charged like any other start, and only while the tenant has used no more than its due but for what it runs
  now: what it borrows is bounded, and its share stays its share.
- All such starts hold no more than the headroom, those of one tenant half of it, or one: it is for those who
  come now and then. Whoever has more work waits for its turn, which comes on all slots.
- A tenant whose own replay is due by its one in ten waits for its turn too (law F8).

Only where all slots run the same kinds of work: of slots that differ, the free ones may be of no use to those
who would start out of turn.
"""

from math import ceil, sqrt

from tenantry.algorithms.fair_share.records import REPLAY, Tenant
from tenantry.algorithms.fair_share.rule import Turn

_OF_ROOT = 0.125
_SMALLEST_POOL = 20  # slots; a slot of fewer would be more than one in twenty


class Headroom:
    """``slots``: how many it is; ``held``: how many of them are held by starts out of turn."""

    __slots__ = ("_each", "held", "slots")

    def __init__(self) -> None:
        self.slots = self.held = self._each = 0

    def resize(self, pool: int) -> None:
        """The pool has so many slots that are alike."""
        self.slots = max(1, round(_OF_ROOT * sqrt(pool))) if pool >= _SMALLEST_POOL else 0
        self._each = ceil(self.slots / 2)

    @property
    def free(self) -> int:
        """Slots that replays must leave free now."""
        return max(0, self.slots - self.held)

    def room(self, tenant: Tenant) -> int:
        """How much more of it ``tenant`` may hold."""
        return self._each - tenant.out_of_turn

    def most(self, turn: Turn, free: int) -> int:
        """What it leaves to this turn of ``free`` slots."""
        if not turn.in_turn:
            return min(free, self.room(turn.line.tenant))
        return free - self.free if turn.rank == REPLAY else free

    def hold(self, tenant: Tenant, jobs: int) -> None:
        """``jobs`` of ``tenant`` took slots of it."""
        self.held += jobs
        tenant.out_of_turn += jobs

    def release(self, tenant: Tenant, jobs: int) -> None:
        """They left."""
        self.held -= jobs
        tenant.out_of_turn -= jobs
