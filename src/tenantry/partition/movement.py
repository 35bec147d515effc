"""What a change of layout would move, told before it is made: tenants, keys, and from where to where.

Nothing is sampled. A tenant's keys are uniform over the hash, so what moves follows from the two slot rules:

- modulo k to modulo k': slots i and j meet where i = j modulo gcd(k, k'), each such pair with 1/lcm(k, k').
- jump k to jump k' > k: a key stays with k/k', else goes to one of the new slots.
- modulo to jump, or back: the two are independent, each pair of slots with 1/(k k').
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, inf, lcm

from tenantry.algorithms.murmur2 import murmur2_partition
from tenantry.partition.model import Layout, Slots
from tenantry.partition.placement import Placement


@dataclass(frozen=True, slots=True)
class Use:
    """What one tenant uses under one layout: its partitions in the order of its slots, and the slot rule."""

    partitions: tuple[int, ...]
    slots: Slots = "modulo"


@dataclass(frozen=True, slots=True)
class Move:
    """One tenant whose keys would move. ``share``: what part of them, in (0, 1]. ``rate``: its traffic."""

    tenant: str
    rate: float
    old: Use
    new: Use
    share: float


@dataclass(frozen=True, slots=True)
class Movement:
    """What a change moves.

    ``tenants``: how many were looked at, ``moves``: those of whom anything moves, most traffic first.
    ``first_moved``: the part of tenants whose first partition changes. ``keys_moved``: the part of keys, each
    tenant weighed by its traffic. ``between_old``: the part of keys that goes to a partition which the old
    layout had too: none for tenants of one partition when partitions are added. ``murmur2_moved``: the part
    of tenants that Kafka's ``murmur2(tenant) % n`` would have moved for the same two counts.
    """

    tenants: int
    moves: tuple[Move, ...]
    first_moved: float
    keys_moved: float
    between_old: float
    murmur2_moved: float


def use_of(placement: Placement, tenant: str, at: float = inf) -> Use:
    """What ``tenant`` uses by the layout in force at ``at``; by the newest unless it is given."""
    return Use(placement.partitions_of(tenant, at), placement.history.at(at).slots_of(tenant))


def meetings(old: Use, new: Use) -> Iterator[tuple[int, int, float]]:
    """Which slot before meets which after, and for what part of the keys; the parts add up to 1."""
    k, then = len(old.partitions), len(new.partitions)
    if _same_rule(old, new) == "modulo":
        step, part = gcd(k, then), 1 / lcm(k, then)
        yield from ((i, j, part) for i in range(k) for j in range(i % step, then, step))
    elif _same_rule(old, new) == "jump":
        yield from _jump_meetings(k, then)
    else:
        yield from ((i, j, 1 / (k * then)) for i in range(k) for j in range(then))


def flows(old: Use, new: Use) -> dict[tuple[int, int], float]:
    """The part of a tenant's keys that goes from one partition to another, for those that move. O(k k')."""
    found: dict[tuple[int, int], float] = {}
    for i, j, part in meetings(old, new):
        leg = old.partitions[i], new.partitions[j]
        if leg[0] != leg[1]:
            found[leg] = found.get(leg, 0.0) + part
    return found


def share_moved(old: Use, new: Use) -> float:
    """The part of a tenant's keys that moves, in [0, 1]."""
    return min(1.0, sum(flows(old, new).values()))


def movement(old: Layout, new: Layout, traffic: Mapping[str, float]) -> Movement:
    """What going from ``old`` to ``new`` moves of ``traffic`` (tenant to rate, in any one unit). Pure.

    O(tenants · P log P). Nothing is said of tenants that ``traffic`` does not name.
    """
    before, after = Placement(old), Placement(new)
    total, known = sum(traffic.values()) or 1.0, frozenset(old.ids)
    moves: list[Move] = []
    first = crossing = moved = 0.0
    for tenant, rate in traffic.items():
        was, then = use_of(before, tenant), use_of(after, tenant)
        first += was.partitions[0] != then.partitions[0]
        legs = flows(was, then) if was != then else {}
        if legs:
            moves.append(Move(tenant, rate, was, then, min(1.0, sum(legs.values()))))
            moved += rate * moves[-1].share
            crossing += rate * sum(part for (_, to), part in legs.items() if to in known)
    count = max(1, len(traffic))
    ranked = tuple(sorted(moves, key=lambda move: (-move.rate * move.share, move.tenant)))
    plain = murmur2_moved(traffic, len(old.ids), len(new.ids))
    return Movement(len(traffic), ranked, first / count, moved / total, crossing / total, plain)


def murmur2_moved(tenants: Iterable[str], old: int, new: int) -> float:
    """The part of ``tenants`` that ``murmur2(tenant) % n`` moves from ``old`` partitions to ``new``."""
    found = [murmur2_partition(each, old) != murmur2_partition(each, new) for each in tenants]
    return sum(found) / max(1, len(found))


def _same_rule(old: Use, new: Use) -> Slots | None:
    """The rule of both; a spread of one has only one slot and follows either."""
    if len(old.partitions) == 1:
        return new.slots
    return old.slots if len(new.partitions) == 1 or old.slots == new.slots else None


def _jump_meetings(k: int, then: int) -> Iterator[tuple[int, int, float]]:
    few, many = min(k, then), max(k, then)
    for i in range(few):
        yield i, i, 1 / many
    for i in range(few):
        for j in range(few, many):
            yield (i, j, 1 / (k * then)) if k < then else (j, i, 1 / (k * then))
