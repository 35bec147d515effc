"""The life of a job as a table, and the figures that every store keeps to.

States are adjectives, events past participles. A store asks :func:`after` before it changes a state, so
that a move that is not in the table is an error of ours and never a row. The diagram in the docs is drawn
from the table by :func:`diagram`.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds
from tenantry.queue.model import ENDS, JobState

START_LEASE: Final[Seconds] = 5.0
"""How long a claim may lie untaken before it is reclaimed; the attempt then does not count."""

NODE_FRESH_FOR: Final[Seconds] = 5.0
"""A node is given work, and keeps its name, for so long after its last heartbeat."""

KEYS_KEPT_FOR: Final[Seconds] = 86_400.0
"""An idempotency key answers for so long after its job's end."""

MOST_ATTEMPTS: Final = 100
"""No target may have more (``TargetSettings.max_attempts``): a job reclaimed at this count is dead."""

WORKER_LOST: Final = "worker_lost"
"""The error class of an attempt whose worker let its lease run out."""

LOST_EXCERPT: Final = "the lease of the worker ran out"
RETURNED_REASON: Final = "returned: the replay was cancelled"
UNKNOWN_REASON: Final = "unknown: its worker was lost, and it may have been delivered"


class JobEvent(StrEnum):
    """What can happen to a job."""

    SUBMITTED = "submitted"
    POSTPONED = "postponed"  # submitted with a delay
    DUE = "due"
    CLAIMED = "claimed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # to be tried again
    EXHAUSTED = "exhausted"  # failed for good
    RELEASED = "released"  # given back unharmed
    RECLAIMED = "reclaimed"  # its lease ran out
    CANCELLED = "cancelled"
    PARKED = "parked"  # put aside by its replay
    SENT_BACK = "sent_back"  # into line again
    RETURNED = "returned"  # its replay was cancelled: a dead letter as before
    REPLAYED = "replayed"  # a message or a dead letter that a replay feeds


BIRTHS: Mapping[JobEvent, JobState] = MappingProxyType(
    {
        JobEvent.SUBMITTED: JobState.WAITING,
        JobEvent.POSTPONED: JobState.DELAYED,
        JobEvent.REPLAYED: JobState.WAITING,
    }
)
"""How a job begins, and how a dead letter begins anew: under its id, with its history."""

TRANSITIONS: Mapping[tuple[JobState, JobEvent], JobState] = MappingProxyType(
    {
        (JobState.DELAYED, JobEvent.DUE): JobState.WAITING,
        (JobState.DELAYED, JobEvent.CANCELLED): JobState.CANCELLED,
        (JobState.DELAYED, JobEvent.RETURNED): JobState.DEAD,
        (JobState.WAITING, JobEvent.CLAIMED): JobState.RUNNING,
        (JobState.WAITING, JobEvent.CANCELLED): JobState.CANCELLED,
        (JobState.WAITING, JobEvent.RETURNED): JobState.DEAD,
        (JobState.RUNNING, JobEvent.SUCCEEDED): JobState.DELIVERED,
        (JobState.RUNNING, JobEvent.FAILED): JobState.DELAYED,
        (JobState.RUNNING, JobEvent.EXHAUSTED): JobState.DEAD,
        (JobState.RUNNING, JobEvent.RELEASED): JobState.WAITING,
        (JobState.RUNNING, JobEvent.RECLAIMED): JobState.WAITING,
        (JobState.RUNNING, JobEvent.PARKED): JobState.PARKED,
        (JobState.PARKED, JobEvent.SENT_BACK): JobState.WAITING,
        (JobState.PARKED, JobEvent.CANCELLED): JobState.CANCELLED,
    }
)
"""Every move there is. A running job is not cancelled: nobody can call back what a target has received."""


def after(state: JobState, event: JobEvent) -> JobState:
    """The state that ``event`` leads to. Pure, O(1). Raises :class:`InvariantBroken` for a move not in the
    table."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise InvariantBroken(f"a {state} job cannot be {event}") from None


def allows(state: JobState, event: JobEvent) -> bool:
    """Whether the table has this move. Pure, O(1)."""
    return (state, event) in TRANSITIONS


def diagram() -> str:
    """The table as a Mermaid state diagram, the same text for the same table. Pure."""
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {state}: {event}" for event, state in BIRTHS.items()]
    lines += [f"    {state} --> {to}: {event}" for (state, event), to in TRANSITIONS.items()]
    lines += [f"    {state} --> [*]" for state in JobState if state in ENDS]
    return "\n".join(lines) + "\n"
