"""What the queue needs of a store. One conformance suite holds every store to these words.

All calls raise :class:`~tenantry.kernel.errors.StoreUnavailable` when the store cannot be reached. All are
safe to call from many tasks of one event loop, unless a line says otherwise.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.lanes.model import Kind, Lane
from tenantry.lanes.orders import Order, OrderRecord
from tenantry.lanes.plain import Plain
from tenantry.lanes.table import LaneFacts, LaneQuery
from tenantry.queue.changes import ClaimPlan, LiveNode, Round, Standing
from tenantry.queue.explain import Facts
from tenantry.queue.model import (
    Accepted,
    BulkSet,
    ClaimedJob,
    ClaimId,
    Fed,
    FlowId,
    JobId,
    JobState,
    JobView,
    NameHeld,
    NewJob,
    Node,
    NodeId,
    PoolLevel,
    Presence,
    Reclaimed,
    ReplayedJob,
    ReplayEnd,
    ReplayTerms,
    Seq,
    Settlement,
    StandingLevel,
)


class IntakeStore(Protocol):
    """The tenant's side. The tenant is bound for each call; a row of another tenant is not there."""

    async def submit(
        self, tenant: TenantId, jobs: Sequence[NewJob], *, bound: int | None
    ) -> Accepted | Refusal:
        """Append ``jobs``, all or none. Returned means durable (law K1).

        The bound is checked exactly, under concurrency: a tenant never has more than ``bound`` jobs that
        have not ended. A refusal is by BOUND or KEY_REUSED; ``detail`` names the row of a reused key.
        A bound's ``retry_after`` is a bare estimate; intake adds the jitter (law K5).
        """
        ...

    async def submit_bulk(self, tenant: TenantId, jobs: Sequence[NewJob], *, most: int) -> BulkSet | Refusal:
        """Store a set once. Its jobs are fed in as room appears, oldest set first.

        The tenant never has more than ``most`` jobs that are stored and not fed in: a refusal is by BOUND.
        They carry no idempotency keys (:func:`tenantry.queue.admission.check_bulk`): what is fed later has
        nobody to answer to."""
        ...

    async def bulk(self, tenant: TenantId, bulk_id: str) -> BulkSet | None: ...

    async def job(self, tenant: TenantId, job: JobId) -> JobView | None:
        """A job in any state, ended ones as long as outcomes are kept. None: not there for this tenant."""
        ...

    async def states(self, tenant: TenantId, jobs: Collection[JobId]) -> Mapping[JobId, JobState]:
        """The states of those of ``jobs`` that are there for this tenant, in one look."""
        ...

    async def jobs(self, tenant: TenantId, *, state: JobState | None, limit: int) -> list[JobView]:
        """The newest first, at most ``limit``. Payloads are not read. Raises
        :class:`~tenantry.kernel.errors.InvalidValue` for a limit that is not from 1 to 1,000."""
        ...

    async def cancel(self, tenant: TenantId, job: JobId) -> JobState | None:
        """Cancel a waiting, delayed or parked job. The state found: CANCELLED means done now or before; any
        other state means nothing was changed (a running job is not interrupted). None: not there."""
        ...

    async def facts(self, tenant: TenantId, job: JobId, *, pool: str) -> Facts | None:
        """What :func:`tenantry.queue.explain.explain` needs to say why a job waits, as far as a store knows;
        :func:`tenantry.queue.explain.facts_of` adds what is the directory's.

        ``pool``: the one that serves the tenant's tier."""
        ...


class OperatorStore(Protocol):
    """The operator's side: across tenants."""

    async def order(self, order: Order) -> OrderRecord:
        """Put a person's order in force and write it into the log, all or nothing; the planner acts on it in
        its next round. Ordering the same again changes who, when and why. An order on one lane makes the lane
        known. While a lane is paused submits are accepted up to the bound."""
        ...

    async def orders(self, *, limit: int) -> list[OrderRecord]:
        """The orders that stand, the newest first, at most ``limit``. Raises
        :class:`~tenantry.kernel.errors.InvalidValue` for a limit that is not from 1 to 1,000."""
        ...

    async def order_log(self, *, limit: int, before: int | None = None) -> list[OrderRecord]:
        """Every order that was ever given, the newest first, at most ``limit`` of those numbered below
        ``before``. Raises as :meth:`orders`."""
        ...

    async def lanes(self, query: LaneQuery) -> list[LaneFacts]:
        """The lanes that ``query`` asks for, in its order, read at one instant. Lanes without a job and
        without an order of their own are among them, once they had either."""
        ...

    async def counts(self) -> Mapping[JobState, int]:
        """How many jobs are in each state. Waiting, delayed and running are exact; ends are those kept."""
        ...

    async def levels(self) -> Sequence[StandingLevel]:
        """The pools that shed, in the order of their names, as far as it is fresh by the store's clock."""
        ...

    async def audit(self) -> Sequence[str]:
        """Every way in which the books do not add up, as sentences; empty when they do."""
        ...


class PlannerStore(Protocol):
    """The planner's side. Every call but ``take_place`` names the term and raises
    :class:`~tenantry.kernel.errors.PlaceLost` when it is not the current, unexpired one: then nothing was
    written and everything remembered must be discarded. One task only."""

    async def take_place(self, holder: str, lease_for: Seconds) -> int | None:
        """Take the planner's place when it is free or expired. The new term, or None when it is held."""
        ...

    async def keep_place(self, term: int, lease_for: Seconds) -> None: ...

    async def leave_place(self, term: int) -> None:
        """Free the place at once, so that another planner need not wait for its expiry."""
        ...

    async def rebuild(self, term: int) -> Standing:
        """Read everything at one instant, dropping the changes that this reading includes."""
        ...

    async def round(self, term: int, claims: Sequence[ClaimPlan], heads: Mapping[FlowId, int]) -> Round:
        """Write ``claims`` and the new ``heads`` (all or nothing), and take the changes since the last call.

        ``heads`` names every flow in ``claims``; a head has passed every place that was ever claimed.
        A claim for a node that is not there any more is written all the same: its start lease runs out and
        it is reclaimed. A place whose job was cancelled meanwhile is claimed in vain: nothing runs, and by
        the time the claim is taken or reclaimed a change says that it has :class:`Left`.
        """
        ...

    async def keep_shapers(self, term: int, states: Mapping[Lane, Sequence[Plain]]) -> None:
        """Keep the states of these lanes' shapers, for the next rebuild and for people to look at."""
        ...

    async def keep_levels(self, term: int, levels: Sequence[PoolLevel], fresh_for: Seconds) -> None:
        """Say how much these pools shed. It means nothing ``fresh_for`` seconds later, by the store's
        clock."""
        ...

    async def held(self, term: int) -> frozenset[tuple[FlowId, Seq]]:
        """Every job that a live claim holds: what the planner's memory is audited against (law K3)."""
        ...

    async def nodes(self, term: int) -> tuple[LiveNode, ...]:
        """The nodes whose heartbeat is fresh."""
        ...

    async def wait(self, at_most: Seconds) -> None:
        """Return when something may have changed, or after ``at_most``. Only a hint."""
        ...


class WorkerStore(Protocol):
    """A worker's side."""

    async def register(self, node: NodeId, pool: str, slots: int, kinds: Collection[Kind]) -> Node | NameHeld:
        """Join under a new incarnation, unless a heartbeat under this name is fresh. Claims of earlier
        incarnations run out by their own leases."""
        ...

    async def heartbeat(self, node: Node, *, draining: bool) -> Presence:
        """Say that the node lives; a draining one is given nothing more. A node that is not PRESENT has said
        nothing, and will be given nothing."""
        ...

    async def take(self, node: Node, lease_for: Seconds) -> list[ClaimedJob]:
        """Start the claims that are waiting for this node: from here on they are under ``lease_for``.

        After a broken connection it also returns what the node has been given before and holds still, lest
        an answer was lost: the worker passes over what it knows."""
        ...

    async def renew(self, node: Node, claims: Collection[ClaimId], lease_for: Seconds) -> set[ClaimId]:
        """Extend leases. Returns those that are still held; the others are lost and must be dropped. A lease
        that has run out is lost, also where nobody has taken it back yet."""
        ...

    async def settle(self, node: Node, settlements: Sequence[Settlement]) -> int:
        """Record ends, all in one transaction. Returns how many were still held; the others change nothing
        (law K2)."""
        ...

    async def reclaim(self, *, limit: int) -> Reclaimed:
        """Take back up to ``limit`` expired claims, whoever held them.

        A started attempt counts; one that never started does not. Where its replay holds what is unknown,
        its job is parked. At the product's most attempts a job is dead, with its history; the target's own,
        smaller number is the worker's to keep, before it starts one more."""
        ...

    async def leave(self, node: Node) -> None: ...

    async def wait(self, node: Node, at_most: Seconds) -> None:
        """Return when a claim may be waiting for this node, or after ``at_most``. Only a hint."""
        ...


class FeederStore(Protocol):
    """Moves stored work into flows as room appears: bulk sets and the transactional inbox. Any node may."""

    async def feed(self, tenant: TenantId, *, bound: int | None, limit: int) -> Fed:
        """Move up to ``limit`` stored jobs of one tenant in, as far as its bound leaves room.

        Fewer where they are large. An inbox job over the bound, or one that cannot be queued, is
        dead-lettered and holds up nothing behind it."""
        ...

    async def stored_tenants(self) -> list[TenantId]:
        """The tenants with stored work."""
        ...

    async def tidy(self, *, keep_days: int) -> None:
        """Drop outcomes older than ``keep_days`` days, sets all of whose jobs ended before that, and
        idempotency keys past their time. What is left of a set still counts the ends that were dropped."""
        ...


class ReplayFlows(Protocol):
    """Where replays meet the queue: their jobs stand in flows of their own in the lanes of the tenant.

    A replay's jobs do not count to their tenant's bound. They are claimed, renewed, settled and reclaimed as
    all others are, and what becomes of them is told in the same transaction."""

    async def feed_replay(self, tenant: TenantId, terms: ReplayTerms, jobs: Sequence[ReplayedJob]) -> None:
        """Append ``jobs`` to the replay's flows, all or none, and let ``terms`` hold from now on. A dead
        letter or a parked job goes on as itself: it is no dead letter and not parked any more. That a message
        is in one replay only is the caller's to see to. Raises
        :class:`~tenantry.kernel.errors.InvariantBroken` for an id whose job has not ended."""
        ...

    async def pause_replay(self, tenant: TenantId, replay: str, *, paused: bool) -> None:
        """A paused replay is given nothing, in flows that are yet to be opened too, and accrues nothing (law
        F8). Running jobs are not interrupted. A replay that was never fed is not there to be paused."""
        ...

    async def withdraw_replay(self, tenant: TenantId, replay: str, *, limit: int) -> list[JobId]:
        """Take up to ``limit`` waiting or delayed jobs of the replay out of line and make them dead letters,
        with their attempts and histories: which. Empty: none waits. Running ones are not interrupted."""
        ...

    async def take_ends(self, replay: str, *, limit: int) -> list[ReplayEnd]:
        """What became of its jobs since the last call, each told once: the ends of up to ``limit`` batches,
        as workers recorded them."""
        ...


class RateGate(Protocol):
    """Whether a tenant may submit now, by its submit rate. Answers from memory: calls never wait."""

    def try_acquire(self, tenant: TenantId, cost: int) -> Refusal | None:
        """Charge ``cost`` >= 1 jobs, or refuse by RATE and charge nothing. ``retry_after`` is exact for a
        lone caller, None where ``cost`` is more than the rate ever allows at once."""
        ...

    def give_back(self, tenant: TenantId, cost: int) -> None:
        """Undo a charge: the jobs were refused by a later rule. What is refused is not charged."""
        ...
