"""Which spread costs least: what each way to widen a tenant would move, and what traffic asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

from tenantry.kernel.errors import InvalidValue
from tenantry.partition.model import Layout, Slots, Spread
from tenantry.partition.movement import Use, share_moved, use_of
from tenantry.partition.placement import Placement

_SHRINKS_AT = 4
"""A spread is only narrowed when a quarter of it would do: every change moves keys."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to spread a tenant: over ``spread`` partitions by ``slots``, and the part of keys it moves."""

    spread: int
    slots: Slots
    moved: float


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A spread for one tenant by its measured traffic.

    ``rate``: its traffic, in the unit given. ``spread`` and ``slots``: now. ``choice``: what to take.
    ``needed``: the least spread that keeps its part of one partition within ``most``; more than there are
    partitions means that the topic is too small for it.
    """

    tenant: str
    rate: float
    spread: int
    slots: Slots
    needed: int
    choice: Choice


def choices(layout: Layout, tenant: str, spread: int, slots: Slots | None = None) -> tuple[Choice, ...]:
    """Ways to spread ``tenant`` over ``spread``: the one asked for first, then others, cheapest first.

    The others are jump slots for the same spread and, by its present slots, the next doubling of what it has
    that is not less than ``spread``; to narrow it, the last halving that is not.
    Pure. Raises :class:`InvalidValue` for a pinned tenant, whose pin says it all.
    """
    if tenant in layout.pins:
        raise InvalidValue("tenant", tenant, "a tenant without a pin", "Change its pin.")
    had = use_of(Placement(layout), tenant)
    asked = _choice(layout, tenant, spread, slots or had.slots)
    ways = {(spread, "jump"), (_by_twos(len(had.partitions), spread), had.slots)}
    others = [_choice(layout, tenant, k, rule) for k, rule in ways if k <= len(layout.apart())]
    others = [each for each in others if each != asked and each.spread != len(had.partitions)]
    return (asked, *sorted(others, key=lambda each: (each.moved, each.spread)))


def _by_twos(had: int, spread: int) -> int:
    """``had``, doubled until it is not less than ``spread``, or halved for as long as it is not."""
    while had < spread:
        had *= 2
    while had % 2 == 0 and had // 2 >= spread:
        had //= 2
    return had


def cheaper(found: tuple[Choice, ...]) -> Choice | None:
    """The choice that moves least, where that is less than what was asked for."""
    best = min(found, key=lambda each: each.moved)
    return best if best.moved < found[0].moved - 1e-9 else None


def best_possible(had: int, spread: int) -> float:
    """The part of keys that any rule must move from ``had`` to ``spread`` partitions to use them evenly."""
    return 1 - min(had, spread) / max(had, spread)


def suggest(
    layout: Layout, traffic: Mapping[str, float], *, most: float | None = None
) -> tuple[Suggestion, ...]:
    """Spreads to change, most traffic first. Pure; O(tenants log tenants), and O(spreads + P log P) for
    each change.

    ``most``: the rate that one partition should carry of one tenant, in the unit of ``traffic``; an equal
    share of all traffic unless given. A pinned tenant is left alone. A spread grows by doubling, which moves
    least; it shrinks only where a quarter of it would do.
    """
    if most is not None and not 0 < most < inf:
        raise InvalidValue("most", most, "a rate above 0")
    bound = most or sum(traffic.values()) / len(layout.active)
    ordinary, widest = min(layout.default_spread, len(layout.shared())), len(layout.apart())
    found = []
    for tenant, rate in sorted(traffic.items(), key=lambda each: (-each[1], each[0])):
        if tenant in layout.pins or not rate:
            continue
        now = layout.spread_of(tenant) if tenant in layout.spreads else ordinary
        needed = max(1, ceil(rate / bound - 1e-9))
        wanted = _wanted(now, needed, widest)
        if wanted != now:
            slots = _slots(layout, tenant, now, wanted)
            moved = _choice(layout, tenant, wanted, slots)
            found.append(Suggestion(tenant, rate, now, layout.slots_of(tenant), needed, moved))
    return tuple(found)


def with_spreads(layout: Layout, found: tuple[Suggestion, ...], effective_from: float) -> Layout:
    """``layout`` with what was suggested, in force from ``effective_from``."""
    spreads = dict(layout.spreads)
    for each in found:
        if each.choice.spread == 1 == layout.default_spread and not layout.reserved:
            spreads.pop(each.tenant, None)
        else:
            spreads[each.tenant] = _spread(layout, each.choice)
    return replace(layout, spreads=spreads, effective_from=effective_from)


def _spread(layout: Layout, choice: Choice) -> int | Spread:
    return choice.spread if choice.slots == layout.slots else Spread(choice.spread, choice.slots)


def _wanted(now: int, needed: int, most: int) -> int:
    if needed > now:
        wanted = now
        while wanted < needed:
            wanted *= 2
        return min(wanted, most)
    return max(1, needed) if needed * _SHRINKS_AT <= now else now


def _slots(layout: Layout, tenant: str, now: int, wanted: int) -> Slots:
    """The present rule; from one partition the better rule can still be taken for free."""
    present = layout.slots_of(tenant)
    return "jump" if now == 1 and wanted & (wanted - 1) else present


def _choice(layout: Layout, tenant: str, spread: int, slots: Slots) -> Choice:
    had = use_of(Placement(layout), tenant)
    wider = replace(layout, spreads={**layout.spreads, tenant: Spread(spread, slots)})
    then = Use(Placement(wider).partitions_of(tenant, inf), slots)
    return Choice(len(then.partitions), slots, share_moved(had, then))
