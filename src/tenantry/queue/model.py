"""The records of the queue. Frozen; validated at the edge that makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import NewType

from tenantry.algorithms.shedding import Level
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId, identifier
from tenantry.lanes.model import Kind, Target
from tenantry.lanes.outcome import Outcome

JobId = NewType("JobId", str)
"""A UUIDv7 in canonical text."""
FlowId = NewType("FlowId", int)
"""One class, or one replay, in one lane."""
Seq = NewType("Seq", int)
"""A job's place in its flow: 1, 2, 3, … without gaps, in the order in which submits committed."""
ClaimId = NewType("ClaimId", int)
NodeId = NewType("NodeId", str)


class JobClass(IntEnum):
    """In the order of service across one tenant's lanes (law F8)."""

    LIVE = 0
    BACKGROUND = 1
    REPLAY = 2


class JobState(StrEnum):
    """Where a job is. ``delivered``, ``dead`` and ``cancelled`` are ends (law K1); the others are not."""

    WAITING = "waiting"  # due, in its flow's line
    DELAYED = "delayed"  # not due yet: submitted with a delay, or between two attempts
    RUNNING = "running"  # held by a live claim
    PARKED = "parked"  # put aside by a replay, until a person sends it back or drops it
    DELIVERED = "delivered"
    DEAD = "dead"
    CANCELLED = "cancelled"


MOST_PARK_AFTER = 100

ENDS = frozenset({JobState.DELIVERED, JobState.DEAD, JobState.CANCELLED})


NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as a tenant submits it. Durations in seconds.

    ``payload``: what the target gets, at most 1 MiB by default. ``delay_for``: 0 to 366 days. ``cost``: the
    slot-seconds the tenant expects, > 0 and <= 86,400, or None to go by the lane's own average; it is only
    an estimate and is corrected by what the job really takes (law F6). ``ordering_key``: jobs with the same
    key in one lane and class run one at a time, in submit order. ``idempotency_key``: a second submit with
    the same key and body answers with the first job; with another body it is refused.
    """

    target: Target
    payload: bytes
    job_class: JobClass = JobClass.LIVE
    delay_for: Seconds = 0.0
    cost: Seconds | None = None
    ordering_key: str | None = None
    idempotency_key: str | None = None
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class ReplayTerms:
    """What the queue must know of a replay. Raises :class:`InvalidValue`.

    ``park_after``: failures that speak about the message, 1 to 100, after which its job is parked.
    ``hold_unknown``: a job whose worker was lost may have been delivered: True parks it, False sends it
    again.
    """

    id: str
    park_after: int = 3
    hold_unknown: bool = False

    def __post_init__(self) -> None:
        identifier(self.id, path="replay.id")
        if not 1 <= self.park_after <= MOST_PARK_AFTER:
            raise InvalidValue("replay.park_after", self.park_after, f"1 to {MOST_PARK_AFTER} failures")


@dataclass(frozen=True, slots=True)
class ReplayedJob:
    """A message as a replay feeds it. One whose ``id`` is a dead letter's or a parked job's goes on as that
    one, with its history and the attempts it had; for any other ``prior`` says how many were made elsewhere,
    >= 0. ``headers``: of the message; what of them a target gets is :mod:`tenantry.lanes.headers`' to say."""

    id: JobId
    target: Target
    payload: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    prior: int = 0


class ParkReason(StrEnum):
    """Why a job is parked."""

    POISON = "poison"  # it failed too often, or for good, and the fault is the message's
    UNKNOWN = "unknown"  # its worker was lost: it may have been delivered
    CLASS = "class"  # failures like its own are held
    BROKEN = "broken"  # it cannot become a job
    PERSON = "person"  # somebody said so


class EndKind(IntEnum):
    """What became of a replay's job, or of one attempt of it."""

    DELIVERED = 1
    DEAD = 2
    PARKED = 3
    FAILED = 4  # it is tried again
    UNKNOWN = 5  # its worker was lost; it is tried again
    CANCELLED = 6


@dataclass(frozen=True, slots=True)
class ReplayEnd:
    """``attempts``: the number of the attempt, those before the replay included. ``error_class`` and
    ``fingerprint`` (:mod:`tenantry.lanes.fingerprint`) are empty where nothing failed. ``busy_for``:
    slot-seconds of the attempt."""

    replay: str
    tenant: TenantId
    job: JobId
    kind: EndKind
    attempts: int
    error_class: str = ""
    status: int | None = None
    fingerprint: str = ""
    busy_for: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """Durably accepted (law K1): one id a job, in the order given.

    ``existing`` holds the positions that an idempotency key answered with a job submitted before.
    """

    ids: tuple[JobId, ...]
    existing: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class BulkSet:
    """A set larger than the bound: stored once, fed in as room appears. Counts add up to ``total``:
    total = stored + queued + delivered + dead + cancelled."""

    id: str
    tenant: TenantId
    total: int
    stored: int
    queued: int
    delivered: int
    dead: int
    cancelled: int
    created_at: Timestamp


@dataclass(frozen=True, slots=True)
class Fed:
    """One look at a tenant's stored work: ``moved`` jobs left the store, those among them included that
    ``died`` on the way, with the reason of each."""

    moved: int
    died: tuple[tuple[JobId, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt, as kept in a job's history. ``excerpt`` is at most 500 characters of the answer."""

    number: int
    ended_at: Timestamp
    busy_for: Seconds
    status: int | None
    error_class: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class JobView:
    """What the owner of a job may see of it. ``reason`` says why a dead job died."""

    id: JobId
    tenant: TenantId
    target: Target | None
    job_class: JobClass | None
    state: JobState
    attempts: int
    submitted_at: Timestamp | None
    due_at: Timestamp | None
    ended_at: Timestamp | None
    reason: str = ""
    status: int | None = None
    history: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A worker process: its slots, what they can run, and its incarnation, which a restart raises.

    Free slots are never announced: they are the slots less what live claims hold (law K3).
    """

    id: NodeId
    incarnation: int
    pool: str
    slots: int
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job in a worker's hands. ``attempt`` counts from 1. Settled by (claim, token, flow, seq).

    ``waited_for``: from submit or due, the later of the two, to the claim, by the store's clock (law K4).
    ``replay``: the terms of the replay whose job it is, or None. Of a replay ``attempt`` counts those in it;
    ``prior`` were made before it, and ``faults`` of those in it failed by the message's fault. ``headers``:
    the message's own. ``last``: how the attempt before this one ended, where it counted and was recorded.
    """

    claim: ClaimId
    token: int
    flow: FlowId
    seq: Seq
    id: JobId
    tenant: TenantId
    target: Target
    job_class: JobClass
    attempt: int
    payload: bytes
    content_type: str
    submitted_at: Timestamp
    ordered: bool
    waited_for: Seconds
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    replay: ReplayTerms | None = None
    prior: int = 0
    faults: int = 0
    last: Outcome | None = None

    @property
    def number(self) -> int:
        """Of this attempt, through all replays."""
        return self.prior + self.attempt


@dataclass(frozen=True, slots=True)
class Burial:
    """One new dead letter and why it is one."""

    job: JobId
    tenant: TenantId
    reason: str


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """What a reclaim did: ``jobs`` left claims that had run out; of these ``dead`` had no attempt left.

    Those that it parked are told as ends of their replays."""

    jobs: int
    dead: tuple[Burial, ...] = ()


@dataclass(frozen=True, slots=True)
class NameHeld:
    """A name that another worker has, since its heartbeat is fresh by the store's clock.

    ``beat_at``: when it last came, and ``incarnation``: both only rise, and only while somebody lives under
    the name. ``frees_in``: seconds >= 0 until the name is free, unless another heartbeat comes.
    """

    node: NodeId
    incarnation: int
    beat_at: Timestamp
    frees_in: Seconds
    draining: bool


class Presence(StrEnum):
    """What the store knows of a node that sends a heartbeat."""

    PRESENT = "present"
    FORGOTTEN = "forgotten"  # it must register again
    SUPERSEDED = "superseded"  # a later incarnation has its name


class Ending(StrEnum):
    """What a settle does with a job."""

    DELIVERED = "delivered"
    RETRY = "retry"
    DEAD = "dead"
    RELEASED = "released"  # given back unharmed: the attempt does not count
    PARKED = "parked"  # put aside: a replay's job only


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of one job's attempt, as a worker reports it.

    ``busy_for``: slot-seconds used. ``retry_for``: seconds until the next attempt (RETRY only).
    ``failure``: the record of a failed attempt (RETRY, DEAD and PARKED; None for a job that is dead before it
    was tried once more: then no attempt counts). ``reason``: set for DEAD and PARKED. ``status``: what the
    target answered. ``outcome``: what the lane's shaper is to hear of it; None where there is no shaper, or
    nothing to hear. ``park_reason``: set for PARKED. ``fingerprint``: of the failure of a replay's job.
    """

    job: ClaimedJob
    ending: Ending
    busy_for: Seconds
    retry_for: Seconds = 0.0
    failure: Attempt | None = None
    reason: str = ""
    status: int | None = None
    outcome: Outcome | None = None
    park_reason: ParkReason | None = None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class PoolLevel:
    """How much one pool sheds, and why: its planner's last word.

    ``age``: seconds that more than half of the tenants, by their shares, have waited in quota. ``used``:
    part of the slots in use, in [0, 1]. ``falls_in``: seconds in which the level can have fallen to nothing,
    at best.
    """

    pool: str
    level: Level
    age: Seconds
    used: float
    falls_in: Seconds


@dataclass(frozen=True, slots=True)
class StandingLevel:
    """A level as a store answers it. ``stands_for``: seconds since the pool came to it. ``fresh_for``:
    seconds > 0 until it means nothing, unless a planner says it again."""

    level: PoolLevel
    stands_for: Seconds
    fresh_for: Seconds
