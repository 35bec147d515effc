"""The reorder window around a change of layout: the new partition waits for the old one. Pure.

A change at T moves some entities from partition A to B: events before T lie in A, those from T on in B, and
nothing in Kafka orders A before B. So a record in B whose entity was elsewhere before T waits at a gate:
until the group has *finished* A up to T, whoever owns A, or until the window is over.

Guaranteed, while a gate opens by passing: every record of the entity that lies in A before A's first record
of time >= T was finished before the first in B starts. When A has no such record yet, A counts as passed once
the group has finished all that lies in A at that look. Not guaranteed: order after the window was over (an
event says so), or for records of times before T that producers append to A later than that.

A gate is one (partition, T), whatever the tenant, so there are few; the records that wait count in the
backlog's bounds, so they are bounded too.
"""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from tenantry.brokers.kafka.model import Identity, Record, Spot
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Instant, Seconds, Timestamp
from tenantry.partition import Placement

T = TypeVar("T")


class Gate(NamedTuple):
    """``spot`` must be finished up to the time ``until``."""

    spot: Spot
    until: Timestamp


Gates = Callable[[Record, Identity], tuple[Gate, ...]]
"""The gates that stand before a record: where its entity was in earlier layouts. Pure and fast."""


def gates_of(placement: Placement) -> Gates:
    """The gates of a topic whose events were placed by ``placement``. O(layouts before the record's)."""
    layouts = tuple(placement.history)
    ends = [Timestamp(layout.effective_from) for layout in layouts[1:]]

    def gates(record: Record, identity: Identity) -> tuple[Gate, ...]:
        if record.at is None or identity.entity is None:
            return ()
        found: dict[Spot, Gate] = {}
        for layout, end in zip(layouts, ends, strict=False):
            if end > record.at:
                break
            place = placement.partition_for(identity.tenant, identity.entity, layout.effective_from)
            if place != record.spot.partition:
                spot = Spot(record.spot.topic, place)
                found[spot] = Gate(spot, end)  # the last layout that used it needs it furthest
        return tuple(found.values())

    return gates


class ReorderWindow(Generic[T]):
    """Holds ``T`` before gates. ``hold_for``: seconds from a gate's first waiter to its end, >= 0. One
    thread."""

    def __init__(self, hold_for: Seconds) -> None:
        if not hold_for >= 0:
            raise InvalidValue("hold_for", hold_for, "seconds >= 0")
        self._hold_for = hold_for
        self._open: set[Gate] = set()
        self._since: dict[Gate, Instant] = {}
        self._waiting: dict[Gate, list[T]] = {}

    def holds(self, item: T, gates: Iterable[Gate], now: Instant) -> bool:
        """Whether ``item`` must wait. If so it is held, and comes out of :meth:`opened` or :meth:`over`;
        ask then again, for its other gates."""
        for gate in gates:
            if gate not in self._open:
                self._since.setdefault(gate, now)
                self._waiting.setdefault(gate, []).append(item)
                return True
        return False

    def shut(self) -> list[Gate]:
        """The gates that somebody waits at: find out whether they were passed."""
        return list(self._waiting)

    def opened(self, gate: Gate) -> list[T]:
        """The old partition has passed. Returns those who waited, in their order."""
        self._open.add(gate)
        self._since.pop(gate, None)
        return self._waiting.pop(gate, [])

    def over(self, now: Instant) -> dict[Gate, list[T]]:
        """The gates whose window has ended; they are open from now on, and who waited there is returned."""
        ended = [gate for gate, since in self._since.items() if now - since >= self._hold_for]
        return {gate: self.opened(gate) for gate in ended}

    def forget(self) -> None:
        """Partitions changed hands, positions may have gone back: nothing counts as passed any more."""
        self._open.clear()

    def discard(self, gone: Callable[[T], bool]) -> None:
        """Those of whom ``gone`` is true wait no more. O(waiting)."""
        for gate, items in list(self._waiting.items()):
            self._waiting[gate] = [item for item in items if not gone(item)]
            if not self._waiting[gate]:
                del self._waiting[gate], self._since[gate]
