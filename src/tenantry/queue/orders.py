"""What persons have ordered of the lanes, as the planner keeps it. Pure."""

from collections.abc import Iterable

from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane, Target
from tenantry.queue.changes import Ordered


class LaneOrders:
    """The orders that stand. One task only.

    Kept by scope and not by lane, so that a lane that opens later is under them from its first job on."""

    def __init__(self, standing: Iterable[Ordered] = ()) -> None:
        self._standing: dict[tuple[TenantId | None, Target | None], Ordered] = {}
        for each in standing:
            self.hear(each)

    def hear(self, ordered: Ordered) -> None:
        """What stands for this scope is from now on this, and nothing else. O(1)."""
        key = (ordered.scope.tenant, ordered.scope.target)
        if ordered.paused or ordered.ceiling is not None:
            self._standing[key] = ordered
        else:
            self._standing.pop(key, None)

    def paused(self, lane: Lane) -> bool:
        """Whether a person has stopped the lane, its target or its tenant. O(1)."""
        return any(each.paused for each in self._over(lane))

    def ceiling(self, lane: Lane) -> int | None:
        """The most in flight in the lane, by the lowest ceiling over it; None: any number. O(1)."""
        return min((each.ceiling for each in self._over(lane) if each.ceiling is not None), default=None)

    def _over(self, lane: Lane) -> list[Ordered]:
        if not self._standing:
            return []
        keys = ((lane.tenant, lane.target), (None, lane.target), (lane.tenant, None))
        return [self._standing[key] for key in keys if key in self._standing]
