"""What the queue tells. One event covers a batch: at thousands of jobs a second, an event a job is a cost.

Where a batch mixes tenants, the event carries one small record a job or a group; tiers, classes and error
classes are closed sets, so they are safe as labels. No event holds a payload, a target (its URL may hold a
credential) or a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.algorithms.shedding import Level
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.kernel.verdict import Rule
from tenantry.lanes.shaper import Held
from tenantry.queue.model import Ending, JobClass, JobId, NodeId, PoolLevel

# intake


@dataclass(frozen=True, slots=True)
class JobsAccepted(Event):
    """``count`` jobs of one submit and class were accepted, ``existing`` of them known by idempotency key."""

    tenant: TenantId
    tier: TierName
    job_class: JobClass
    count: int
    existing: int = 0


@dataclass(frozen=True, slots=True)
class SubmitRefused(Event):
    """One submit of ``count`` jobs was refused as a whole, by ``rule``."""

    tenant: TenantId
    tier: TierName
    rule: Rule
    count: int
    retry_after: Seconds | None


@dataclass(frozen=True, slots=True)
class BulkStored(Event):
    """A bulk set was stored; its jobs are fed in as room appears."""

    tenant: TenantId
    tier: TierName
    count: int


@dataclass(frozen=True, slots=True)
class JobsFed(Event):
    """Stored jobs (of bulk sets, of the inbox) were moved into their flows; the dead are not counted."""

    count: int


@dataclass(frozen=True, slots=True)
class FeedFailed(Event):
    """The stored work of one tenant could not be moved, by an error of ours of class ``error``; it is left
    for ``retry_for`` seconds while the others' goes on."""

    tenant: TenantId
    error: str
    retry_for: Seconds


@dataclass(frozen=True, slots=True)
class JobsCancelled(Event):
    """A tenant cancelled ``count`` waiting, delayed or parked jobs; asked again, it is told again."""

    tenant: TenantId
    tier: TierName
    count: int


# workers


class Start(NamedTuple):
    """One job's start. ``waited_for``: from submit or due, the later of the two, to the claim."""

    tenant: TenantId
    tier: TierName
    job_class: JobClass
    waited_for: Seconds


@dataclass(frozen=True, slots=True)
class JobsClaimed(Event):
    """A node took a batch of jobs under its lease."""

    node: NodeId
    starts: tuple[Start, ...]


class JobEnd(NamedTuple):
    """How one attempt ended. ``busy_for``: slot-seconds used. ``error_class``: empty when delivered."""

    tenant: TenantId
    tier: TierName
    job_class: JobClass
    ending: Ending
    busy_for: Seconds
    error_class: str = ""


@dataclass(frozen=True, slots=True)
class JobsSettled(Event):
    """A node recorded the ends of a batch. ``took_for``: the settling statement. ``lost``: ends that changed
    nothing, since the claim was no longer held (law K2)."""

    node: NodeId
    ends: tuple[JobEnd, ...]
    took_for: Seconds
    lost: int = 0


@dataclass(frozen=True, slots=True)
class JobDied:
    """One new dead letter and why: ``http_403 after 3 attempts: …``."""

    job: JobId
    tenant: TenantId
    reason: str


@dataclass(frozen=True, slots=True)
class JobsDied(Event):
    """New dead letters, for people: of one settled batch (:class:`JobsSettled` counts them), or, without a
    ``node``, of stored work that could not be queued."""

    node: NodeId | None
    jobs: tuple[JobDied, ...]


@dataclass(frozen=True, slots=True)
class HandlerOverran(Event):
    """The async handler ``handler`` goes on a second after it was cancelled for its timeout: it ignores the
    cancellation. It keeps its slot until it returns, and its attempt is a timeout then."""

    handler: str
    job: JobId
    tenant: TenantId
    timeout_for: Seconds


@dataclass(frozen=True, slots=True)
class JobsReclaimed(Event):
    """Expired claims were taken back, whoever held them."""

    count: int


@dataclass(frozen=True, slots=True)
class LeasesLost(Event):
    """A node found that claims it was running are no longer its own: it dropped their ``jobs`` jobs."""

    node: NodeId
    claims: int
    jobs: int


@dataclass(frozen=True, slots=True)
class NodeJoined(Event):
    """A worker registered under a new incarnation."""

    node: NodeId
    incarnation: int
    pool: str
    slots: int


@dataclass(frozen=True, slots=True)
class NodeNameHeld(Event):
    """A worker waits for its name: a heartbeat under it is fresh, of incarnation ``incarnation``. Without
    another one the name is free in ``frees_in``."""

    node: NodeId
    incarnation: int
    frees_in: Seconds


@dataclass(frozen=True, slots=True)
class NodeDraining(Event):
    """A worker takes nothing new and lets ``running`` jobs end, for at most ``grace_for``."""

    node: NodeId
    running: int
    grace_for: Seconds


@dataclass(frozen=True, slots=True)
class NodeLeft(Event):
    """A worker is gone from the books; ``released`` jobs went back unharmed."""

    node: NodeId
    released: int


# the planner


@dataclass(frozen=True, slots=True)
class PlannerElected(Event):
    """This process took the planner's place."""

    holder: str
    term: int


@dataclass(frozen=True, slots=True)
class PlannerLeft(Event):
    """This process gave the planner's place up, so that another need not wait for it to run out."""

    holder: str
    term: int


@dataclass(frozen=True, slots=True)
class PlannerLost(Event):
    """This process lost the planner's place, by an error or to another; its memory was discarded."""

    holder: str
    term: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlannerRebuilt(Event):
    """The planner read everything afresh."""

    term: int
    took_for: Seconds
    flows: int
    held: int


@dataclass(frozen=True, slots=True)
class RoundPlanned(Event):
    """One round of the planner: ``changes`` folded in, ``picks`` jobs claimed, ``free`` slots left."""

    picks: int
    changes: int
    free: int
    took_for: Seconds


@dataclass(frozen=True, slots=True)
class Backlog:
    """What stands in one tier of one pool. ``oldest_in_quota_for``: how long the oldest job has been waiting
    that its tenant's cap, rate, lane limit and delays would let run now, in seconds; 0 when there is none.
    What replays wait for is not in it."""

    pool: str
    tier: TierName
    waiting: int
    delayed: int
    running: int
    oldest_in_quota_for: Seconds


@dataclass(frozen=True, slots=True)
class PoolSlots:
    """The slots of one pool's live nodes, and how many of them live claims hold."""

    pool: str
    slots: int
    used: int


@dataclass(frozen=True, slots=True)
class BacklogMeasured(Event):
    """The whole backlog at one instant, every few seconds: what is not in it is empty. ``held``: lanes that
    their shaper holds, by reason."""

    backlogs: tuple[Backlog, ...]
    pools: tuple[PoolSlots, ...] = ()
    held: Mapping[Held, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BreakerMoved(Event):
    """The breaker of one of a tenant's lanes came into another state: ``open``, ``half_open``, ``closed``."""

    tenant: TenantId
    state: BreakerState


@dataclass(frozen=True, slots=True)
class LevelsMeasured(Event):
    """How hard every pool is pressed and how much it sheds, once a second: what is not in it sheds
    nothing."""

    levels: tuple[PoolLevel, ...]


@dataclass(frozen=True, slots=True)
class LevelChanged(Event):
    """A pool came from the level ``before`` to one that sheds more, or less."""

    level: PoolLevel
    before: Level


@dataclass(frozen=True, slots=True)
class StoreFailed(Event):
    """A loop (``planner``, ``worker``, ``renewal``, ``feeder``, ``levels``) met an unreachable store and will
    try again.

    ``error``: the class of the error, never its text (driver messages may hold addresses and values).
    """

    loop: str
    error: str
    retry_for: Seconds
