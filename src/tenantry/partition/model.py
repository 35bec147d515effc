"""What placement is decided by: layouts, each in force from an instant. Frozen records, checked when made.

A layout is everything at once (partitions, spreads, pins, reserved partitions, states, slots), and a later
one replaces the whole of it: nothing of an earlier one shines through. That is what makes a replay exact:
the event's own time names one layout, and one layout names one partition.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from operator import index
from types import MappingProxyType
from typing import Any, Literal, get_args

from tenantry.kernel.errors import InvalidValue

Slots = Literal["modulo", "jump"]
"""How a message picks one of its tenant's k partitions: the hash modulo k, or jump consistent hashing.

``modulo`` moves least where k doubles (a half), nearly everything where k grows by one; ``jump`` always moves
the least that is possible, 1 - k/k'.
"""

State = Literal["pending", "active", "draining"]
"""``active``: written and read. ``pending``: read, not yet written. ``draining``: read, no longer written."""

FIRST = float("-inf")
"""The ``effective_from`` of a layout that was always there."""

MOST_PARTITIONS = 100_000
"""More than any broker carries in one topic; a larger number is a slip."""


def _empty() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Spread:
    """Over how many partitions one tenant goes, >= 1, and by which slots (None: the layout's)."""

    partitions: int
    slots: Slots | None = None

    def __post_init__(self) -> None:
        _whole("spread.partitions", self.partitions)
        if self.slots is not None:
            _one_of("spread.slots", self.slots, get_args(Slots))


@dataclass(frozen=True, slots=True)
class Layout:
    """What is in force from ``effective_from`` (seconds since 1970, the event's own time) on.

    ``partitions``: their count, meaning 0 to count - 1, or their ids in any order, as numbers or digits.
    ``spreads``: tenant to k, or to a :class:`Spread`, for those that differ from ``default_spread``; k is
    clamped to the partitions that the tenant may use. ``slots``: for all tenants that name none.
    ``reserved``: partitions that only tenants of ``spreads`` use; with any reserved, those tenants use no
    others, and everyone else ranks the rest. ``pins``: tenant to exactly these partitions, in this order;
    a pin may lie on any active partition. ``states``: of partitions that are not ``active``.

    Raises :class:`InvalidValue` for a part that does not fit. Immutable, safe to share, may be pickled.
    """

    partitions: int | Iterable[int | str]
    spreads: Mapping[str, int | Spread] = field(default_factory=_empty)
    effective_from: float = FIRST
    default_spread: int = 1
    slots: Slots = "modulo"
    reserved: Iterable[int | str] = ()
    pins: Mapping[str, Iterable[int | str]] = field(default_factory=_empty)
    states: Mapping[int, State] = field(default_factory=_empty)
    ids: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = partition_ids(self.partitions)
        put = object.__setattr__
        put(self, "ids", ids)
        put(self, "partitions", ids if ids != tuple(range(len(ids))) else len(ids))
        put(self, "effective_from", _instant(self.effective_from))
        put(self, "spreads", MappingProxyType({each: _spread(each, k) for each, k in self.spreads.items()}))
        put(self, "reserved", tuple(sorted({partition_id("reserved", each) for each in self.reserved})))
        put(self, "pins", MappingProxyType({each: _pinned(each, at) for each, at in self.pins.items()}))
        put(self, "states", MappingProxyType(_not_active(self.states)))
        _whole("default_spread", self.default_spread)
        _one_of("slots", self.slots, get_args(Slots))
        _fits(self)

    def __reduce__(self) -> tuple[Any, ...]:
        parts = [getattr(self, each.name) for each in fields(self) if each.init]
        return Layout, tuple(dict(part) if isinstance(part, MappingProxyType) else part for part in parts)

    @property
    def active(self) -> tuple[int, ...]:
        """The partitions that are written, rising."""
        return tuple(each for each in self.ids if self.state_of(each) == "active")

    def state_of(self, partition: int) -> State:
        """The state of one of :attr:`ids`."""
        return self.states.get(partition, "active")

    def shared(self) -> tuple[int, ...]:
        """The active partitions of everyone who is not in ``spreads``."""
        kept = frozenset(self.reserved)
        return tuple(each for each in self.active if each not in kept)

    def apart(self) -> tuple[int, ...]:
        """The active partitions of the tenants in ``spreads``: the reserved ones, else all."""
        kept = frozenset(self.reserved)
        return tuple(each for each in self.active if each in kept) if kept else self.active

    def spread_of(self, tenant: str) -> int:
        """How many partitions ``tenant`` uses here, clamped to those that there are. O(partitions)."""
        if tenant in self.pins:
            return len(tuple(self.pins[tenant]))
        found = self.spreads.get(tenant)
        if found is None:
            return min(self.default_spread, len(self.shared()))
        return min(_count(found), len(self.apart()))

    def slots_of(self, tenant: str) -> Slots:
        """By which slots the messages of ``tenant`` pick among its partitions."""
        found = self.spreads.get(tenant)
        return (found.slots if isinstance(found, Spread) else None) or self.slots


def partition_ids(partitions: int | Iterable[int | str]) -> tuple[int, ...]:
    """A count, or ids in any order and of any whole type, as rising numbers. Raises :class:`InvalidValue`."""
    if isinstance(partitions, (int, str)):
        count = partition_id("partitions", partitions)
        if not 1 <= count <= MOST_PARTITIONS:
            raise InvalidValue("partitions", partitions, f"a count from 1 to {MOST_PARTITIONS:,}, or ids")
        return tuple(range(count))
    listed = [partition_id("partitions", each) for each in _listing("partitions", partitions)]
    if not 1 <= len(listed) <= MOST_PARTITIONS:
        raise InvalidValue("partitions", f"{len(listed)} ids", f"from 1 to {MOST_PARTITIONS:,} of them")
    if len(set(listed)) < len(listed):
        twice = next(each for each in listed if listed.count(each) > 1)
        raise InvalidValue("partitions", twice, "each id once", "It is listed twice.")
    return tuple(sorted(listed))


def partition_id(path: str, value: object) -> int:
    """One id: a whole number >= 0 of any whole type, or its ASCII digits. Raises :class:`InvalidValue`."""
    try:
        if isinstance(value, str):
            found = int(value) if value.isascii() and value.isdigit() and len(value) <= 10 else -1
        else:
            found = -1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        found = -1
    if 0 <= found < 2**31:
        return found
    raise InvalidValue(path, value, "a partition's number, 0 to 2147483647")


def _listing(path: str, value: Iterable[int | str]) -> Iterable[int | str]:
    if isinstance(value, Iterable):
        return value
    raise InvalidValue(path, value, "partitions' numbers, listed")


def _fits(layout: Layout) -> None:
    """The parts against each other."""
    known = frozenset(layout.ids)
    for path, listed in (("reserved", layout.reserved), ("states", layout.states)):
        for each in listed:
            if each not in known:
                raise InvalidValue(f"{path}[{each}]", each, _known_ids(layout))
    active = frozenset(layout.active)
    if not layout.shared():
        raise InvalidValue(
            "reserved" if layout.reserved else "states",
            "no active partition left",
            "at least one active partition that is not reserved, for the tenants without a spread",
        )
    if layout.reserved and not layout.apart():
        raise InvalidValue("reserved", layout.reserved, "at least one reserved partition that is active")
    for tenant, pinned in layout.pins.items():
        if tenant in layout.spreads:
            hint = "A pin says how many partitions there are: drop the spread, or the pin."
            raise InvalidValue(f"pins.{tenant}", tenant, "a tenant that is not in spreads too", hint)
        for each in pinned:
            if each not in active:
                hint = "Move the pin before the partition drains." if each in known else ""
                raise InvalidValue(f"pins.{tenant}", each, "active partitions of this layout", hint)


def _known_ids(layout: Layout) -> str:
    last = layout.ids[-1]
    return f"a partition of this layout (0 to {last})" if len(layout.ids) == last + 1 else "one of its ids"


def _spread(tenant: str, k: object) -> int | Spread:
    _tenant("spreads", tenant)
    return k if isinstance(k, Spread) else _whole(f"spreads.{tenant}", k)


def _pinned(tenant: str, listed: Iterable[int | str]) -> tuple[int, ...]:
    path = f"pins.{tenant}"
    _tenant("pins", tenant)
    if isinstance(listed, (str, int)):
        return (partition_id(path, listed),)
    found = tuple(partition_id(path, each) for each in _listing(path, listed))
    if found and len(set(found)) == len(found):
        return found
    raise InvalidValue(path, found, "at least one partition, each once")


def _not_active(states: Mapping[int, State]) -> dict[int, State]:
    found: dict[int, State] = {}
    for each, state in states.items():
        _one_of(f"states.{each}", state, get_args(State))
        if state != "active":
            found[partition_id("states", each)] = state
    return dict(sorted(found.items()))


def _tenant(path: str, tenant: object) -> None:
    if not isinstance(tenant, str):
        raise InvalidValue(path, tenant, "tenants as text")


def _count(spread: int | Spread) -> int:
    return spread.partitions if isinstance(spread, Spread) else spread


def _whole(path: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise InvalidValue(path, value, "a whole number of partitions, at least 1")


def _one_of(path: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidValue(path, value, "one of " + ", ".join(known))


def _instant(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and -inf <= value < inf:  # NaN is not
        return value
    raise InvalidValue("effective_from", value, "seconds since 1970-01-01T00:00:00Z, as a number")
