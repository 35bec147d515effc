"""Where an event goes: the tenant's ranking of the partitions, its first k, and a slot among them.

The same tenant, entity and time give the same partition in every process, on every machine, at every replay.
The figures of the document that this room was built from come out of it, one for one.
"""

from collections.abc import Iterable
from hashlib import blake2b

from tenantry.algorithms.jump_hash import jump
from tenantry.algorithms.rendezvous import Candidates
from tenantry.kernel.errors import InvalidValue
from tenantry.partition.model import Layout
from tenantry.partition.spread import History, place_of

_Places = tuple[tuple[int, ...], int, bool]
"""A tenant's partitions, best first; their number; whether its slots are jump slots."""

_LONGEST_KEPT = 255  # characters; a longer id is ranked anew each time, so that memory stays bounded in bytes
_from_bytes = int.from_bytes  # big-endian, as stable_hash; written out below, where a call would cost a tenth


class _Epoch:
    """One layout, prepared, with what tenants ranked lately.

    Two generations instead of a linked list: a hit is one dictionary look-up, and every step is atomic, so
    that threads need no lock. Two that miss at once both compute the same answer.
    """

    __slots__ = ("_aged", "_all", "_most", "_one", "_rest", "layout", "since", "young")

    def __init__(self, layout: Layout, most: int) -> None:
        self.layout, self.since = layout, layout.effective_from
        self.young: dict[str, _Places] = {}
        self._aged: dict[str, _Places] = {}
        self._most = max(1, most // 2)
        self._all, self._rest = Candidates.of(layout.apart()), Candidates.of(layout.shared())
        self._one: dict[int, _Places] = {}

    def places(self, tenant: str) -> _Places:
        """What :attr:`young` has no entry for."""
        found = self._aged.get(tenant)
        if found is None:
            found = self._ranked(tenant)
        if len(tenant) <= _LONGEST_KEPT:
            self._keep(tenant, found)
        return found

    def _ranked(self, tenant: str) -> _Places:
        layout = self.layout
        jumps = layout.slots_of(tenant) == "jump"
        pinned = layout.pins.get(tenant)
        if pinned is not None:
            partitions = tuple(int(each) for each in pinned)
            return partitions, len(partitions), jumps
        hot = tenant in layout.spreads
        count = layout.spread_of(tenant) if hot else layout.default_spread
        partitions = (self._all if hot else self._rest).first(_text("tenant", tenant), count)
        if len(partitions) > 1:
            return partitions, len(partitions), jumps
        # tenants of one partition share its record: a million of them cost their keys, no more
        return self._one.setdefault(partitions[0], (partitions, 1, False))

    def _keep(self, tenant: str, found: _Places) -> None:
        if len(self.young) >= self._most:
            self._aged, self.young = self.young, {}
        self.young[tenant] = found


class Placement:
    """Places events by a history of layouts. Safe to share between threads and tasks; nothing waits.

    ``layouts``: one :class:`Layout`, several, or a :class:`History`. ``cached_tenants``: for so many tenants
    a layout their partitions are remembered; the rest are ranked anew, O(P), when they come.
    """

    __slots__ = ("_epochs", "_newest", "_times", "history")

    def __init__(
        self, layouts: Layout | History | Iterable[Layout], *, cached_tenants: int = 100_000
    ) -> None:
        if isinstance(cached_tenants, bool) or not isinstance(cached_tenants, int) or cached_tenants < 1:
            raise InvalidValue("cached_tenants", cached_tenants, "a whole number of tenants, at least 1")
        self.history = History.of(layouts)
        self._times = self.history.times
        self._epochs = tuple(_Epoch(layout, cached_tenants) for layout in self.history)
        self._newest = self._epochs[-1]

    def partition_for(self, tenant: str, entity: str, at: float) -> int:
        """The partition of the event ``entity`` of ``tenant`` at ``at``.

        ``entity``: whose events must stay in order among themselves (an order, a user), else the message's
        own id; any text, the empty one too. ``at``: the event's own time in seconds since 1970, kept by its
        retries. O(1) for a tenant seen lately, else O(P), or O(P log P) when it is spread.

        Raises :class:`InvalidValue` for an id that is no text, or a time that is no number.
        """
        epoch = self._newest
        try:
            earlier = not at >= epoch.since
        except TypeError:
            earlier = True  # no number: the look-up says so
        if earlier:
            epoch = self._epoch(at)
        found = epoch.young.get(tenant)
        partitions, count, jumps = found if found is not None else epoch.places(_text("tenant", tenant))
        if count == 1:
            if isinstance(entity, str):
                return partitions[0]
            raise _not_text("entity", entity)  # not only on the day the tenant is widened
        try:
            data = (tenant + "\x1f" + entity).encode()
        except (TypeError, UnicodeEncodeError):
            raise _not_text("entity", entity) from None
        number = _from_bytes(blake2b(data, digest_size=8).digest())
        return partitions[jump(number, count) if jumps else number % count]

    def partitions_for(self, events: Iterable[tuple[str, str, float]]) -> list[int]:
        """The partitions of many (tenant, entity, time) at once, in their order. As :meth:`partition_for`."""
        place = self.partition_for
        return [place(tenant, entity, at) for tenant, entity, at in events]

    def partitions_of(self, tenant: str, at: float) -> tuple[int, ...]:
        """The partitions that ``tenant`` uses at ``at``, in the order of its ranking (its pin's order)."""
        epoch = self._epoch(at)
        found = epoch.young.get(tenant)
        return (found if found is not None else epoch.places(_text("tenant", tenant)))[0]

    def where_at(self, tenant: str, entity: str | None, at: float) -> tuple[int, ...]:
        """Where events of ``tenant`` of the time ``at`` may lie, rising; with an ``entity``, its own only."""
        if entity is None:
            return tuple(sorted(self.partitions_of(tenant, at)))
        return (self.partition_for(tenant, entity, at),)

    def where_during(
        self, tenant: str, start: float, end: float, entity: str | None = None
    ) -> tuple[int, ...]:
        """Where events of any time of [start, end] may lie, rising: what a reader of that span must read.

        Raises :class:`InvalidValue` where ``start`` is after ``end``.
        """
        moments = (max(start, layout.effective_from) for layout in self.history.during(start, end))
        return tuple(sorted({place for at in moments for place in self.where_at(tenant, entity, at)}))

    def readable_at(self, at: float) -> tuple[int, ...]:
        """Every partition that consumers read at ``at``, in whatever state, rising."""
        return self._epoch(at).layout.ids

    def _epoch(self, at: float) -> _Epoch:
        return self._epochs[place_of(self._times, at)]


def _text(path: str, value: object) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _not_text(path, value) from None
        return value
    raise _not_text(path, value)


def _not_text(path: str, value: object) -> InvalidValue:
    hint = "Decode it first, the same way in every producer." if isinstance(value, bytes) else ""
    return InvalidValue(path, value, "text that UTF-8 can hold", hint)
