"""What the store tells the planner: durable facts, each written with the rows that it speaks of.

A change is a hint about rows that are there anyway: a planner that loses some of them rebuilds from the
rows (:class:`Standing`) and knows the same.
"""

from dataclasses import dataclass

from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Kind, Target
from tenantry.lanes.orders import Scope
from tenantry.lanes.summary import Summary
from tenantry.queue.model import FlowId, JobClass, NodeId, PoolLevel, Seq

Place = tuple[FlowId, Seq]
"""Where a job stands in the log of its flow."""


@dataclass(frozen=True, slots=True)
class FlowOpened:
    """A flow exists. ``ordered``: one job at a time, and a retry keeps its place.

    ``head``: the next seq to claim when the flow is first heard of; everything before it has been claimed.
    ``shaper``: the lane's state as it was last kept (:mod:`tenantry.lanes.shaper_state`), or None.
    ``paused``: its replay is paused.
    """

    flow: FlowId
    tenant: TenantId
    target: Target
    job_class: JobClass
    replay: str | None
    ordered: bool
    head: int = 1
    shaper: object = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Submitted:
    """``count`` jobs were appended to a flow, from place ``first`` on; ``cost`` is what the submitter expects
    of each, if it said. Of one flow these are told in the order of their places."""

    flow: FlowId
    first: Seq
    count: int
    cost: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Deferred:
    """A job that waits outside its flow's line until ``due_at``. ``attempts``: those that counted so far.

    ``first``: it goes to the front of its flow (it was given back unharmed), not to the end (a retry).
    """

    flow: FlowId
    seq: Seq
    due_at: Timestamp
    attempts: int
    first: bool = False


@dataclass(frozen=True, slots=True)
class Left:
    """Jobs left their claims. ``deferred``: where those of them wait that have not ended. ``reported``: their
    worker said how they ended; of a worker that is gone nobody can say, and a lane does not learn from it."""

    places: tuple[Place, ...]
    deferred: tuple[Deferred, ...] = ()
    reported: bool = True


@dataclass(frozen=True, slots=True)
class Heard:
    """What a worker says of the target of a flow's lane, in the order in which it came."""

    flow: FlowId
    summary: Summary


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A waiting or delayed job was cancelled, or returned by its replay."""

    flow: FlowId
    seq: Seq


@dataclass(frozen=True, slots=True)
class FlowPaused:
    """A flow's replay was paused, or goes on."""

    flow: FlowId
    paused: bool


@dataclass(frozen=True, slots=True)
class Ordered:
    """What stands by a person's order for the lanes of ``scope``, now: all of it, whatever it was before.
    ``reset``: their shapers are to forget what they learned."""

    scope: Scope
    paused: bool = False
    ceiling: int | None = None
    reset: bool = False


@dataclass(frozen=True, slots=True)
class NodesChanged:
    """A node joined, left, or began to drain: read them again."""


Change = FlowOpened | Submitted | Deferred | Left | Heard | Withdrawn | FlowPaused | Ordered | NodesChanged


@dataclass(frozen=True, slots=True)
class Held:
    """A job in flight, as a live claim holds it."""

    flow: FlowId
    seq: Seq
    claimed_at: Timestamp
    node: NodeId
    incarnation: int


@dataclass(frozen=True, slots=True)
class FlowStanding:
    """A flow with work. ``tail``: the last seq given. ``waiting_since``: when the job at the head was
    submitted, None when nobody waits."""

    opened: FlowOpened
    tail: int
    waiting_since: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A node whose heartbeat is fresh. A draining one has no slots."""

    id: NodeId
    incarnation: int
    pool: str
    slots: int
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything a planner must know, read at one instant. Waiting jobs are counted, never read."""

    now: Timestamp
    flows: tuple[FlowStanding, ...]
    deferred: tuple[Deferred, ...]
    held: tuple[Held, ...]
    withdrawn: tuple[Withdrawn, ...]  # cancelled places that the head has not passed
    nodes: tuple[LiveNode, ...]
    orders: tuple[Ordered, ...] = ()
    levels: tuple[PoolLevel, ...] = ()  # what pools shed, as far as it is fresh


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """One claim to be written: what one node is to run next. The three arrays run in parallel.

    ``attempts``: those that counted before this one. ``returned``: positions of the jobs that were deferred.
    """

    node: NodeId
    incarnation: int
    flows: tuple[FlowId, ...]
    seqs: tuple[Seq, ...]
    attempts: tuple[int, ...]
    returned: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """The answer to one round: the store's clock, and what changed since the last."""

    now: Timestamp
    changes: tuple[Change, ...]
