"""A drain plan: which partitions must be read up to the change before which others are read past it.

Events of one entity keep their order across a change when a reader hands out nothing of the time of the new
layout from a partition until the partitions that the same entities came from are read up to that time.
"""

from dataclasses import dataclass
from math import isfinite

from tenantry.kernel.instant import Timestamp, as_datetime
from tenantry.partition.model import Layout
from tenantry.partition.movement import Movement, flows


@dataclass(frozen=True, slots=True)
class Wait:
    """Before events from ``at`` on are read from ``to``, these partitions are read up to ``at``.

    ``tenants``: whose events those are; tenants who are not named need not wait.
    """

    to: int
    sources: tuple[int, ...]
    tenants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """``at``: when the new layout comes into force. ``waits``: by rising ``to``. ``steps``: in words.

    ``new``: partitions to be made first. ``retired``: partitions not written after ``at``; they are read
    until they are empty, and kept for as long as anyone replays the time before ``at``.
    """

    at: float
    new: tuple[int, ...]
    retired: tuple[int, ...]
    waits: tuple[Wait, ...]
    steps: tuple[str, ...]


def drain_plan(old: Layout, new: Layout, found: Movement) -> DrainPlan:
    """How to go from ``old`` to ``new`` in order, for what :func:`movement` found between them. Pure."""
    at = new.effective_from
    made = tuple(sorted(set(new.ids) - set(old.ids)))
    retired = tuple(sorted(set(old.active) - set(new.active)))
    waits = _waits(found)
    return DrainPlan(at, made, retired, waits, tuple(_steps(at, made, retired, waits)))


def _waits(found: Movement) -> tuple[Wait, ...]:
    sources: dict[int, set[int]] = {}
    tenants: dict[int, set[str]] = {}
    for move in found.moves:
        for source, to in flows(move.old, move.new):
            sources.setdefault(to, set()).add(source)
            tenants.setdefault(to, set()).add(move.tenant)
    return tuple(Wait(to, tuple(sorted(sources[to])), tuple(sorted(tenants[to]))) for to in sorted(sources))


def _steps(
    at: float, made: tuple[int, ...], retired: tuple[int, ...], waits: tuple[Wait, ...]
) -> "list[str]":
    steps, when = list[str](), _named(at)
    if made:
        steps.append(
            f"Make {_listed(made)}, and have every consumer assigned to them; nothing writes there yet."
        )
    steps.append(
        f"Give every producer the new layout well before {when}: longer than it takes to reach the last "
        "one, plus the worst clock difference, plus the longest retry."
    )
    if waits:
        steps.append(
            f"From {when} on, {_counted(len(waits))} held at the first event of the new layout, for the "
            "tenants that moved, until the partitions that those came from are read up to that time."
        )
    if retired:
        steps.append(
            f"Read {_listed(retired)} until empty; keep what is there while events before {when} are "
            "replayed."
        )
    steps.append("Keep the old layout in the history for ever: replays go by it.")
    return steps


def _named(at: float) -> str:
    """A time as people read it; where it is none, or of no calendar, what it is."""
    try:
        return as_datetime(Timestamp(at)).isoformat().replace("+00:00", "Z") if isfinite(at) else "the change"
    except (ValueError, OverflowError, OSError):
        return f"{at:.0f}"


def _counted(partitions: int) -> str:
    return "one partition is" if partitions == 1 else f"each of {partitions} partitions is"


def _listed(partitions: tuple[int, ...]) -> str:
    if len(partitions) == 1:
        return f"partition {partitions[0]}"
    if partitions[-1] - partitions[0] + 1 == len(partitions):
        return f"partitions {partitions[0]} to {partitions[-1]}"
    return "partitions " + ", ".join(map(str, partitions))
