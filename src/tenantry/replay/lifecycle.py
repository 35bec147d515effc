"""The life of a replay as a table, and the figures that every store keeps to.

States are adjectives, events past participles. People's orders (:data:`ORDERS`) and the coordinator's moves
(:data:`MOVES`) stand apart: where both come at once the order goes first, and the move finds a state that it
does not lead from. The diagram in the docs is drawn from the table by :func:`diagram`.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds
from tenantry.replay.model import ReplayState

PLAN_KEPT_FOR: Final[Seconds] = 86_400.0
"""How long a plan can be started: what it found in its source grows old."""

REPLAY_KEPT_FOR: Final[Seconds] = 30 * 86_400.0
"""How long a replay is kept after its end."""

_S = ReplayState
ENDED: Final = frozenset({_S.FINISHED, _S.CANCELLED})
LIVE: Final = frozenset(ReplayState) - ENDED - {_S.PLANNED}
"""The states in which a replay needs a coordinator."""


class ReplayEvent(StrEnum):
    """What can happen to a replay."""

    STARTED = "started"
    QUEUED = "queued"  # started, or resumed, while the tenant has its most replays running
    PAUSED = "paused"  # by a person
    RESUMED = "resumed"
    CONTINUED = "continued"  # a person's `continue`
    CANCELLED = "cancelled"  # by a person
    SENT_BACK = "sent back"  # a parked message goes back in line
    HELD = "held"  # by a rule
    FREED = "freed"  # the rule holds it no longer
    EXHAUSTED = "exhausted"  # the source has no more
    DRAINED = "drained"  # and nothing is under way any more
    RETURNED = "returned"  # what waited is back among the dead letters, and nothing is in flight


_E = ReplayEvent
TRANSITIONS: Final[Mapping[tuple[ReplayState, ReplayEvent], ReplayState]] = MappingProxyType(
    {
        (_S.PLANNED, _E.STARTED): _S.RUNNING,
        (_S.PLANNED, _E.QUEUED): _S.HELD,
        (_S.PLANNED, _E.CANCELLED): _S.CANCELLED,
        (_S.RUNNING, _E.PAUSED): _S.PAUSED,
        (_S.RUNNING, _E.CANCELLED): _S.CANCELLING,
        (_S.RUNNING, _E.HELD): _S.HELD,
        (_S.RUNNING, _E.EXHAUSTED): _S.DRAINING,
        (_S.HELD, _E.PAUSED): _S.PAUSED,
        (_S.HELD, _E.CONTINUED): _S.RUNNING,
        (_S.HELD, _E.CANCELLED): _S.CANCELLING,
        (_S.HELD, _E.HELD): _S.HELD,
        (_S.HELD, _E.FREED): _S.RUNNING,
        (_S.HELD, _E.EXHAUSTED): _S.DRAINING,
        (_S.PAUSED, _E.RESUMED): _S.RUNNING,
        (_S.PAUSED, _E.QUEUED): _S.HELD,
        (_S.PAUSED, _E.CANCELLED): _S.CANCELLING,
        (_S.DRAINING, _E.PAUSED): _S.PAUSED,
        (_S.DRAINING, _E.CANCELLED): _S.CANCELLING,
        (_S.DRAINING, _E.HELD): _S.HELD,
        (_S.DRAINING, _E.DRAINED): _S.FINISHED,
        (_S.CANCELLING, _E.RETURNED): _S.CANCELLED,
        (_S.FINISHED, _E.SENT_BACK): _S.DRAINING,
        (_S.CANCELLED, _E.SENT_BACK): _S.DRAINING,
    }
)
"""Every move there is. A replay that has ended lives again while a message that was sent back is under way,
so that its counts stay true and its coordinator's work is done; then it has finished."""

ORDERS: Final = frozenset(
    {_E.STARTED, _E.QUEUED, _E.PAUSED, _E.RESUMED, _E.CONTINUED, _E.CANCELLED, _E.SENT_BACK}
)
MOVES: Final = frozenset(ReplayEvent) - ORDERS


def after(state: ReplayState, event: ReplayEvent) -> ReplayState:
    """The state that ``event`` leads to. Pure, O(1). Raises :class:`InvariantBroken` for a move not in the
    table."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise InvariantBroken(f"a {state} replay cannot be {event}") from None


def ordered(event: ReplayEvent) -> frozenset[ReplayState]:
    """The states in which the order ``event`` can be given. Pure, O(1)."""
    return frozenset(state for state, happened in TRANSITIONS if happened is event)


_COMMANDS: Final[Mapping[ReplayEvent, str]] = MappingProxyType(
    {
        _E.RESUMED: "resume",
        _E.CONTINUED: "continue",
        _E.STARTED: "start",
        _E.PAUSED: "pause",
        _E.CANCELLED: "cancel",
    }
)
"""What a person may order, the likeliest first."""


def commands(state: ReplayState) -> tuple[str, ...]:
    """What a person may order in ``state``, as it is called, the likeliest first. Pure, O(1)."""
    return tuple(name for event, name in _COMMANDS.items() if (state, event) in TRANSITIONS)


def moved_from(state: ReplayState) -> frozenset[ReplayState]:
    """The states from which a coordinator may come to ``state``, itself among them: it only writes its
    record then. Pure, O(1). Raises :class:`InvariantBroken` for a state that no move of its leads to."""
    found = {before for (before, event), to in TRANSITIONS.items() if to is state and event in MOVES}
    if state not in LIVE and not found:
        raise InvariantBroken(f"a coordinator moves no replay to {state}")
    return frozenset(found | {state}) if state in LIVE else frozenset(found)


def diagram() -> str:
    """The table as a Mermaid state diagram, the same text for the same table. Pure."""
    lines = ["stateDiagram-v2", "    [*] --> planned"]
    lines += [f"    {state} --> {to}: {event}" for (state, event), to in TRANSITIONS.items()]
    lines += [f"    {state} --> [*]" for state in ReplayState if state in ENDED]
    return "\n".join(lines) + "\n"
