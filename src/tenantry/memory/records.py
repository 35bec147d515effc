"""The rows of the queue's books in memory. This room's own: nothing outside ``memory`` sees them."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp

from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Kind
from tenantry.queue.changes import Deferred, FlowOpened
from tenantry.queue.lifecycle import NODE_FRESH_FOR
from tenantry.queue.model import (
    ENDS,
    NO_HEADERS,
    Attempt,
    ClaimId,
    FlowId,
    JobClass,
    JobId,
    JobState,
    NewJob,
    NodeId,
    ParkReason,
    ReplayTerms,
    Seq,
)

_DRAIN_SEEN_FOR: Seconds = 60.0  # how far back the estimate of a tenant's drain rate looks

Place = tuple[FlowId, Seq]
FlowKey = tuple[TenantId, str, JobClass, str | None, int]
"""(tenant, target, class, replay, ordered bucket or -1): what makes two flows two."""


@dataclass(frozen=True, slots=True)
class Parked:
    """How a job came to be parked."""

    replay: str
    why: ParkReason
    fingerprint: str
    error_class: str
    at: Timestamp


@dataclass(slots=True)
class Replay:
    """What the queue knows of a replay."""

    tenant: TenantId
    terms: ReplayTerms
    paused: bool = False


@dataclass(slots=True)
class Job:
    """A job, also after its end for as long as outcomes are kept. ``deferred``: where it waits outside its
    flow's line. ``claim``: who holds it. At most one of the two is set. ``prior``: attempts before its
    replay; ``attempts`` counts those in it. ``fed_at``: when its replay put it in line."""

    id: JobId
    tenant: TenantId
    flow: "Flow"
    seq: Seq
    new: NewJob
    submitted_at: Timestamp
    attempts: int = 0
    deferred: Deferred | None = None
    due_at: Timestamp | None = None  # of its last deferral
    claim: ClaimId | None = None
    key: bytes | None = None
    bulk: "Bulk | None" = None
    history: list[Attempt] = field(default_factory=list)
    end: JobState | None = None
    ended_at: Timestamp | None = None
    reason: str = ""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS)
    prior: int = 0
    fed_at: Timestamp | None = None
    parked: Parked | None = None

    @property
    def replay(self) -> str | None:
        return self.flow.opened.replay

    @property
    def number(self) -> int:
        """Attempts that counted, through all replays."""
        return self.prior + self.attempts

    @property
    def lined_up_at(self) -> Timestamp:
        return self.submitted_at if self.fed_at is None else self.fed_at

    @property
    def place(self) -> Place:
        return self.flow.opened.flow, self.seq

    def state(self, now: Timestamp) -> JobState:
        """Waiting or delayed is a matter of the clock alone: nothing is written when a job falls due."""
        if self.end is not None:
            return self.end
        if self.parked is not None:
            return JobState.PARKED
        if self.claim is not None:
            return JobState.RUNNING
        if self.deferred is not None and self.deferred.due_at > now:
            return JobState.DELAYED
        return JobState.WAITING


@dataclass(slots=True)
class Flow:
    """``opened`` as it was told first. ``jobs``: those that have not ended. ``gone``: places ahead of the
    head whose job has ended."""

    opened: FlowOpened
    head: int = 1
    tail: int = 0
    jobs: dict[Seq, Job] = field(default_factory=dict)
    gone: set[Seq] = field(default_factory=set)
    paused: bool = False


@dataclass(slots=True)
class Claim:
    """A batch in a node's hands, or on its way there while ``taken_at`` is None."""

    id: ClaimId
    token: int
    node: NodeId
    incarnation: int
    pool: str | None
    claimed_at: Timestamp
    expires_at: Timestamp
    held: dict[Place, Job]
    taken_at: Timestamp | None = None


@dataclass(slots=True)
class Key:
    """An idempotency key. ``until`` is None while its job has not ended."""

    body: bytes
    job: JobId
    until: Timestamp | None = None


@dataclass(slots=True)
class Bulk:
    """A stored set. ``waiting``: the jobs that have not been fed in."""

    id: str
    tenant: TenantId
    created_at: Timestamp
    total: int
    waiting: deque[NewJob]
    queued: int = 0
    ends: dict[JobState, int] = field(default_factory=lambda: dict.fromkeys(ENDS, 0))

    @property
    def finished(self) -> bool:
        return sum(self.ends.values()) == self.total


@dataclass(slots=True)
class Account:
    """One tenant. ``jobs``: every job kept, in submit order. ``unended``: what its bound counts.
    ``replayed``: jobs of replays in line, out of it or running, which the bound does not count. ``feeding``:
    the sets that have jobs to feed in, the oldest first."""

    unended: int = 0
    replayed: int = 0
    in_flight: int = 0
    jobs: dict[JobId, Job] = field(default_factory=dict)
    keys: dict[bytes, Key] = field(default_factory=dict)
    bulks: dict[str, Bulk] = field(default_factory=dict)
    feeding: deque[Bulk] = field(default_factory=deque)
    drained: float = 0.0
    drained_at: float = 0.0

    @property
    def in_line(self) -> int:
        """Jobs that have not ended and that nobody holds, delayed ones included."""
        return self.unended + self.replayed - self.in_flight

    def drain(self, now: Timestamp) -> None:
        """One job ended."""
        self.drained = self._drained(now) + 1.0
        self.drained_at = now

    def drain_rate(self, now: Timestamp) -> float:
        """Jobs that ended a second, lately: an exponentially weighted count over a minute."""
        return self._drained(now) / _DRAIN_SEEN_FOR

    def _drained(self, now: Timestamp) -> float:
        return self.drained * exp(-max(0.0, now - self.drained_at) / _DRAIN_SEEN_FOR)


@dataclass(slots=True)
class Worker:
    """A node as it registered and was last heard of."""

    id: NodeId
    incarnation: int
    pool: str
    slots: int
    kinds: frozenset[Kind]
    seen_at: Timestamp
    draining: bool = False
    left: bool = False

    def lives(self, now: Timestamp) -> bool:
        return not self.left and now < self.seen_at + NODE_FRESH_FOR


@dataclass(slots=True)
class PlannersPlace:
    """The row that a planner holds. ``expires_at`` in the past: anyone may take it."""

    term: int = 0
    expires_at: float = float("-inf")
    holder: str = ""
