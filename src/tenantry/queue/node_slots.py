"""The nodes that live, and how many of their slots the planner knows to be held. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tenantry.algorithms.fair_share import Kinds
from tenantry.queue.changes import LiveNode
from tenantry.queue.events import PoolSlots
from tenantry.queue.model import NodeId

Holder = tuple[NodeId, int]
"""A node in one incarnation: who holds a slot."""


@dataclass(slots=True)
class NodeSlots:
    """One live node. ``free`` is below 0 where it came back with fewer slots than are held."""

    live: LiveNode
    free: int

    @property
    def holder(self) -> Holder:
        return self.live.id, self.live.incarnation


class Fleet:
    """All live nodes. What a vanished one holds stays held until its leases are reclaimed. One task only."""

    def __init__(self) -> None:
        self._nodes: dict[NodeId, NodeSlots] = {}
        self._held: dict[Holder, int] = {}

    def set(self, nodes: Sequence[LiveNode]) -> None:
        """These nodes live, and no others."""
        self._nodes = {
            node.id: NodeSlots(node, node.slots - self._held.get((node.id, node.incarnation), 0))
            for node in nodes
        }

    def free_nodes(self, pool: str) -> dict[Kinds, list[NodeSlots]]:
        """The nodes of a pool that have a free slot, by what they can run."""
        found: dict[Kinds, list[NodeSlots]] = {}
        for node in self._nodes.values():
            if node.live.pool == pool and node.free > 0:
                found.setdefault(node.live.kinds, []).append(node)
        return found

    def hold(self, holder: Holder, jobs: int) -> None:
        """``jobs`` more slots are held."""
        self._held[holder] = self._held.get(holder, 0) + jobs
        self._change(holder, -jobs)

    def release(self, holder: Holder, jobs: int) -> None:
        """``jobs`` slots came back."""
        self._held[holder] -= jobs
        if not self._held[holder]:
            del self._held[holder]
        self._change(holder, jobs)

    def free(self) -> int:
        """Slots that nothing holds, over all pools."""
        return sum(max(0, node.free) for node in self._nodes.values())

    def pools(self) -> tuple[PoolSlots, ...]:
        """The slots of each pool and how many are held."""
        slots, used = Counter[str](), Counter[str]()
        for node in self._nodes.values():
            slots[node.live.pool] += node.live.slots
            used[node.live.pool] += node.live.slots - node.free
        return tuple(PoolSlots(pool, slots[pool], used[pool]) for pool in sorted(slots))

    def _change(self, holder: Holder, free: int) -> None:
        node = self._nodes.get(holder[0])
        if node is not None and node.live.incarnation == holder[1]:
            node.free += free


def kinds_of(nodes: Iterable[LiveNode]) -> Kinds:
    """What some slot of these nodes can run."""
    return frozenset().union(*(node.kinds for node in nodes if node.slots > 0))
