"""The queue's books in memory: jobs, flows, claims, accounts, and the moves that keep them in step.

Every move is one call without an await, so on one event loop each is a transaction.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Generic, TypeVar

from tenantry.algorithms.shedding import Level
from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import InvariantBroken, PlaceLost
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane
from tenantry.lanes.orders import STANDING, Action, OrderRecord, Scope, narrowest_first, scopes_over
from tenantry.lanes.plain import Plain
from tenantry.memory.records import (
    Account,
    Bulk,
    Claim,
    Flow,
    FlowKey,
    Job,
    Place,
    PlannersPlace,
    Replay,
    Worker,
)
from tenantry.queue.changes import Change, Deferred, FlowOpened, Held, Left, Ordered, Withdrawn
from tenantry.queue.lifecycle import KEYS_KEPT_FOR, JobEvent, after
from tenantry.queue.model import (
    ClaimId,
    EndKind,
    FlowId,
    JobId,
    JobState,
    NewJob,
    NodeId,
    PoolLevel,
    ReplayEnd,
    Seq,
    StandingLevel,
)
from tenantry.queue.ordering import UNORDERED, bucket
from tenantry.queue.signal import Signal

T = TypeVar("T")


class Books:
    """All of it, and the moves. One event loop."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._clock, self._randomness = clock, randomness
        self.accounts: dict[TenantId, Account] = {}
        self.flows: dict[FlowId, Flow] = {}
        self.orders: dict[tuple[Action, Scope], OrderRecord] = {}  # those that stand
        self.order_log: list[OrderRecord] = []
        self.lanes: dict[Lane, None] = {}  # every one that had a job or an order of its own
        self.shapers: dict[Lane, Sequence[Plain]] = {}
        self.claims: dict[ClaimId, Claim] = {}
        self.deferred: dict[Place, Job] = {}
        self._levels: dict[str, tuple[PoolLevel, Timestamp, Timestamp]] = {}  # with since and until when
        self.workers: dict[NodeId, Worker] = {}
        self.place = PlannersPlace()
        self.changes: list[Change] = []
        self.told: set[FlowId] = set()  # the flows that the planner knows
        self.changed = Signal()
        self._claimed: dict[NodeId, Signal] = {}
        self._flow_ids: dict[FlowKey, FlowId] = {}
        self.ended: dict[JobId, Job] = {}  # in the order in which they ended
        self.replays: dict[str, Replay] = {}
        self.ends: list[ReplayEnd] = []  # of replays' jobs, that nobody has taken
        self._keys: Dated[tuple[TenantId, bytes]] = Dated()
        self._sets: Dated[Bulk] = Dated()
        self._numbers = 0

    def now(self) -> Timestamp:
        """The authority on leases and due times (law K4)."""
        return self._clock.now()

    def number(self) -> int:
        """A number larger than every one before: claims and their tokens."""
        self._numbers += 1
        return self._numbers

    def claims_signal(self, node: NodeId) -> Signal:
        """Set when a claim is written for the node."""
        return self._claimed.setdefault(node, Signal())

    def new_id(self) -> str:
        return self._randomness.time_ordered_id()

    def look(self, tenant: TenantId) -> Account:
        """The tenant's account for reading only: whoever asks for a tenant unknown here leaves no trace."""
        return self.accounts.get(tenant) or Account()

    def account(self, tenant: TenantId) -> Account:
        return self.accounts.setdefault(tenant, Account())

    # -- the planner's place ---------------------------------------------------------------------------

    def planner_lives(self) -> bool:
        return self.now() < self.place.expires_at

    def hold_place(self, term: int) -> None:
        """Raises :class:`PlaceLost` unless ``term`` is the current, unexpired one."""
        if term != self.place.term or not self.planner_lives():
            raise PlaceLost(f"term {term} is not held: the current one is {self.place.term}")

    def tell(self, *changes: Change) -> None:
        """Changes nobody will ever read are not kept: a planner begins by reading everything."""
        if self.planner_lives():
            self.changes.extend(changes)
        self.changed.set()

    def keep_levels(self, levels: Iterable[PoolLevel], fresh_for: Seconds) -> None:
        """How much pools shed, in place of what was said of them before."""
        now = self.now()
        for each in levels:
            before, since, until = self._levels.get(each.pool, (None, now, now))
            goes_on = before is not None and before.level is each.level and now < until
            self._levels[each.pool] = (each, since if goes_on else now, Timestamp(now + fresh_for))

    def fresh_levels(self) -> list[StandingLevel]:
        """The pools that shed, as far as it is fresh."""
        now = self.now()
        return [
            StandingLevel(level, now - since, until - now)
            for _, (level, since, until) in sorted(self._levels.items())
            if level.level and now < until
        ]

    def level_of(self, pool: str) -> Level:
        """What the pool sheds."""
        levels = (each.level.level for each in self.fresh_levels() if each.level.pool == pool)
        return next(levels, Level.NONE)

    # -- a job's way -----------------------------------------------------------------------------------

    def append(self, tenant: TenantId, new: NewJob, *, now: Timestamp, bulk: Bulk | None = None) -> Job:
        """A new job at its flow's tail. The caller has checked the bound and tells the change."""
        flow = self.flow(tenant, new)
        job = Job(JobId(self.new_id()), tenant, flow, Seq(0), new, now, bulk=bulk)
        self.line_up(job, flow)
        self.account(tenant).unended += 1
        if bulk is not None:
            bulk.queued += 1
        return job

    def line_up(self, job: Job, flow: Flow) -> None:
        """The job stands at the flow's tail. The caller tells the change, and counts it."""
        if flow.opened.flow not in self.told:
            self.told.add(flow.opened.flow)
            self.tell(self.opened(flow))
        flow.tail += 1
        job.flow, job.seq = flow, Seq(flow.tail)
        self.account(job.tenant).jobs[job.id] = flow.jobs[job.seq] = job

    def postpone(self, job: Job, due_at: Timestamp, *, first: bool = False) -> Deferred:
        """The job waits outside its flow's line until ``due_at``."""
        job.due_at = due_at
        job.deferred = Deferred(*job.place, due_at, job.attempts, first)
        self.deferred[job.place] = job
        return job.deferred

    def claim(self, job: Job, claim: Claim, attempts: int) -> None:
        """The job goes into a claim. Raises :class:`InvariantBroken` when another one holds it."""
        state = JobState.WAITING if job.claim is None else JobState.RUNNING
        after(state, JobEvent.CLAIMED)
        self._undefer(job)
        job.claim, job.attempts = claim.id, attempts
        claim.held[job.place] = job
        self.account(job.tenant).in_flight += 1

    def leave_claim(self, job: Job, busy_for: Seconds | None, deferred: Deferred | None) -> None:
        """The job is out of its claim; an empty claim is closed."""
        if job.claim is None:
            raise InvariantBroken(f"job {job.id} leaves a claim that it is not in")
        claim = self.claims[job.claim]
        del claim.held[job.place]
        job.claim = None
        self.account(job.tenant).in_flight -= 1
        self.close_if_empty(claim)
        back = () if deferred is None else (deferred,)
        self.tell(Left((job.place,), back, reported=busy_for is not None))

    def close_if_empty(self, claim: Claim) -> None:
        if not claim.held:
            self.claims.pop(claim.id, None)

    def end(self, job: Job, event: JobEvent, *, reason: str = "", status: int | None = None) -> None:
        """The job has ended (law K1: by an event of the table, never otherwise)."""
        now = self.now()
        job.end, job.ended_at, job.reason, job.status = after(job.state(now), event), now, reason, status
        if job.end is JobState.DELIVERED:
            job.history.clear()
        self._close_account(job, now)
        if job.parked is None:
            self.out_of_line(job)
        job.parked = None
        self.ended[job.id] = job

    def out_of_line(self, job: Job) -> None:
        """The job's place in its flow is void, and it is in line no more, or waiting outside it."""
        self._undefer(job)
        del job.flow.jobs[job.seq]
        if job.seq >= job.flow.head:
            job.flow.gone.add(job.seq)
        if job.replay is not None:
            self.account(job.tenant).replayed -= 1

    def cancel(self, job: Job) -> None:
        """A waiting, delayed or parked job ends and its place in line is void."""
        was_parked, replay = job.parked, job.replay
        self.end(job, JobEvent.CANCELLED)
        if was_parked is None:
            self.tell(Withdrawn(*job.place))
        if replay is not None:
            self.ends.append(ReplayEnd(replay, job.tenant, job.id, EndKind.CANCELLED, job.number))

    def _close_account(self, job: Job, now: Timestamp) -> None:
        account = self.account(job.tenant)
        if job.replay is None:
            account.unended -= 1
            account.drain(now)
        if job.key is not None:
            until = account.keys[job.key].until = Timestamp(now + KEYS_KEPT_FOR)
            self._keys.add(until, (job.tenant, job.key))
        if job.bulk is not None:
            self._count_in_set(job.bulk, job.state(now), now)

    def _count_in_set(self, bulk: Bulk, end: JobState, now: Timestamp) -> None:
        bulk.queued -= 1
        bulk.ends[end] += 1
        if bulk.finished:
            self._sets.add(now, bulk)

    def _undefer(self, job: Job) -> None:
        if job.deferred is not None:
            del self.deferred[job.place]
            job.deferred = None

    # -- flows -----------------------------------------------------------------------------------------

    def flow(self, tenant: TenantId, new: NewJob, *, replay: str | None = None) -> Flow:
        """The flow that a job belongs to; made where missing."""
        key: FlowKey = (tenant, new.target, new.job_class, replay, bucket(new.ordering_key))
        known = self._flow_ids.get(key)
        return self.flows[known] if known is not None else self._open(key, new)

    def _open(self, key: FlowKey, new: NewJob) -> Flow:
        tenant, _, job_class, replay, ordered_flow = key
        flow_id = self._flow_ids[key] = FlowId(len(self.flows) + 1)
        opened = FlowOpened(flow_id, tenant, new.target, job_class, replay, ordered=ordered_flow != UNORDERED)
        known = self.replays.get(replay) if replay else None
        flow = self.flows[flow_id] = Flow(opened, paused=known is not None and known.paused)
        self.lanes[Lane(tenant, new.target)] = None
        return flow

    def opened(self, flow: Flow) -> FlowOpened:
        """The flow as it is now: its head moves, and its lane's shaper learns."""
        lane = Lane(flow.opened.tenant, flow.opened.target)
        shaper = self.shapers.get(lane)
        return replace(flow.opened, head=flow.head, shaper=shaper, paused=flow.paused)

    # -- orders ----------------------------------------------------------------------------------------

    def orders_over(self, lane: Lane) -> tuple[OrderRecord, ...]:
        """The orders that stand and cover the lane, the narrowest first."""
        keys = [(action, scope) for scope in scopes_over(lane) for action in STANDING]
        return narrowest_first(self.orders[key] for key in keys if key in self.orders)

    def ordered(self, scope: Scope, *, reset: bool = False) -> Ordered:
        """What stands for a scope, as the planner is told it."""
        ceiling = self.orders.get((Action.CEILING, scope))
        return Ordered(
            scope,
            paused=(Action.PAUSE, scope) in self.orders,
            ceiling=ceiling.order.ceiling if ceiling else None,
            reset=reset,
        )

    # -- what is read ----------------------------------------------------------------------------------

    def job(self, tenant: TenantId, job: JobId) -> Job | None:
        """The tenant's job, ended ones as long as they are kept."""
        return self.look(tenant).jobs.get(job)

    def held(self) -> Iterator[Held]:
        """What every claim holds (law K3)."""
        for claim in self.claims.values():
            for flow, seq in claim.held:
                yield Held(flow, seq, claim.claimed_at, claim.node, claim.incarnation)

    def parked(self) -> Iterator[Job]:
        """Every parked job. O(jobs kept)."""
        return (job for account in self.accounts.values() for job in account.jobs.values() if job.parked)

    def live_workers(self) -> list[Worker]:
        """Those whose heartbeat is fresh."""
        now = self.now()
        return [worker for worker in self.workers.values() if worker.lives(now)]

    def forget_keys(self) -> None:
        """Drop the keys whose day is over. Called by whatever reads them, so none answers beyond its time."""
        for tenant, digest in self._keys.before(self.now()):
            del self.accounts[tenant].keys[digest]

    def forget_ends(self, before: Timestamp) -> None:
        """Drop the jobs and sets that ended by then."""
        for job in self._ended_by(before):
            del self.ended[job.id], self.accounts[job.tenant].jobs[job.id]
        for bulk in self._sets.before(before):
            if bulk.finished:  # a replay may have taken one of its dead letters up again
                self.accounts[bulk.tenant].bulks.pop(bulk.id, None)

    def _ended_by(self, at: Timestamp) -> list[Job]:
        return list(takewhile(lambda job: job.ended_at is None or job.ended_at <= at, self.ended.values()))


class Dated(Generic[T]):
    """Things with an instant each, in the order in which they were added: that of their instants."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Timestamp, T]] = deque()

    def __iter__(self) -> Iterator[T]:
        return (item for _, item in self._kept)

    def add(self, at: Timestamp, item: T) -> None:
        self._kept.append((at, item))

    def before(self, at: Timestamp) -> Iterator[T]:
        """Take out what is dated ``at`` or earlier. A clock that went back only makes some of them late."""
        while self._kept and self._kept[0][0] <= at:
            yield self._kept.popleft()[1]
