"""A queue's store with a hand on the planner's place: what the suites tell their stories with.

The planner here is as plain as can be: per flow a list of who is in line, first come first served, no shares.
It knows only what the ports tell it, so a store that tells too little or too much is found out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tenantry.kernel.errors import PlaceLost
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.lanes.model import HTTP, Target
from tenantry.lanes.orders import Action, Order, OrderRecord, Scope
from tenantry.queue.changes import (
    Change,
    ClaimPlan,
    Deferred,
    FlowOpened,
    FlowPaused,
    Left,
    Round,
    Standing,
    Submitted,
    Withdrawn,
)
from tenantry.queue.model import (
    Accepted,
    Attempt,
    ClaimedJob,
    Ending,
    FlowId,
    JobId,
    NewJob,
    Node,
    NodeId,
    ParkReason,
    ReplayedJob,
    ReplayEnd,
    ReplayTerms,
    Seq,
    Settlement,
)
from tenantry.queue.ports import (
    FeederStore,
    IntakeStore,
    OperatorStore,
    PlannerStore,
    ReplayFlows,
    WorkerStore,
)

ACME, GLOBEX = TenantId("acme"), TenantId("globex")
"""The tenants of the stories. A store that knows its tenants is opened knowing these."""

HOOK = Target("https://hooks.example.com/a")
OTHER_HOOK = Target("https://hooks.example.com/b")
POOL = "shared"
LEASE: Seconds = 30.0
FINGERPRINT = "0123456789abcdef"
LIVE_ENDINGS = tuple(ending for ending in Ending if ending is not Ending.PARKED)
"""How an attempt of a job that is no replay's can end."""
PLACE_LEASE: Seconds = 120.0


class Time(Protocol):
    """How a suite lets time pass for a store."""

    async def pass_time(self, seconds: Seconds) -> None:
        """For everything the store measures by its own clock, ``seconds`` more have passed: leases, due
        times, heartbeats, retentions. A clock is moved; a database waits, or moves its rows into the past."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """One job in line. ``returned``: it was deferred, so the claim must say so."""

    seq: Seq
    attempts: int = 0
    returned: bool = False


@dataclass(slots=True)
class Line:
    """A flow as the hand knows it: who is in line, in order."""

    opened: FlowOpened
    tail: int
    turns: list[Turn]
    head: int
    paused: bool = False

    def drop(self, seq: Seq) -> None:
        self.turns = [turn for turn in self.turns if turn.seq != seq]

    def take(self, count: int) -> list[Turn]:
        taken, self.turns = self.turns[:count], self.turns[count:]
        self.head = max([self.head, *(turn.seq + 1 for turn in taken)])
        return taken


@dataclass(slots=True)
class Hand:
    """A planner driven by hand. Takes the place when it is not held, and rebuilds whenever it was lost."""

    store: PlannerStore
    term: int | None = None
    lines: dict[FlowId, Line] = field(default_factory=dict)
    deferred: dict[tuple[FlowId, Seq], Deferred] = field(default_factory=dict)
    running: set[tuple[FlowId, Seq]] = field(default_factory=set)
    stale: bool = False
    now: Timestamp = Timestamp(0.0)  # noqa: RUF009 - a NewType is a plain float

    async def listen(self) -> Sequence[Change]:
        """Hear what changed; the changes of a fresh start are in the rebuilt standing, so none."""
        if not await self._holds():
            await self.begin()
            return ()
        if self.stale:
            await self.rebuild()
            return ()
        return (await self._round((), {})).changes

    async def begin(self) -> Standing:
        """Take the place and read everything."""
        self.term = await self.store.take_place("hand", PLACE_LEASE)
        assert self.term is not None, "another planner holds the place"
        return await self.rebuild()

    async def rebuild(self) -> Standing:
        assert self.term is not None
        standing = await self.store.rebuild(self.term)
        self._learn(standing)
        return standing

    async def claim(self, node: Node, count: int, target: Target | None = None) -> int:
        """Write one claim of up to ``count`` due jobs, lines in the order in which they opened. How many."""
        await self.listen()
        self._release_due()
        flows: list[FlowId] = []
        turns: list[Turn] = []
        heads: dict[FlowId, int] = {}
        for flow, line in self.lines.items():
            taken = line.take(self._room(line, count - len(turns))) if self._serves(line, target) else []
            flows += [flow] * len(taken)
            turns += taken
            if taken:
                heads[flow] = line.head
        if turns:
            await self._round((_plan(node, flows, turns),), heads)
            self.running.update(zip(flows, (turn.seq for turn in turns), strict=True))
        return len(turns)

    def waiting(self) -> int:
        return sum(len(line.turns) for line in self.lines.values())

    def known(self) -> tuple[object, ...]:
        """What it knows of work, in a form that two hands can be compared by."""
        lines = {flow: line.turns for flow, line in self.lines.items() if line.turns}
        return lines, self.deferred, self.running

    # -- listening -------------------------------------------------------------------------------------

    async def _holds(self) -> bool:
        if self.term is None:
            return False
        try:
            await self.store.keep_place(self.term, PLACE_LEASE)
        except PlaceLost:
            return False
        return True

    async def _round(self, claims: Sequence[ClaimPlan], heads: Mapping[FlowId, int]) -> Round:
        assert self.term is not None
        answer = await self.store.round(self.term, claims, heads)
        self.now = answer.now
        self._hear(answer.changes)
        return answer

    def _learn(self, standing: Standing) -> None:
        self.stale = False
        self.now = standing.now
        self.deferred = {(each.flow, each.seq): each for each in standing.deferred}
        self.running = {(each.flow, each.seq) for each in standing.held}
        absent = {(each.flow, each.seq) for each in standing.withdrawn} | self.deferred.keys() | self.running
        self.lines = {}
        for flow in standing.flows:
            seqs = map(Seq, range(flow.opened.head, flow.tail + 1))
            turns = [Turn(seq) for seq in seqs if (flow.opened.flow, seq) not in absent]
            line = Line(flow.opened, flow.tail, turns, flow.opened.head, flow.opened.paused)
            self.lines[flow.opened.flow] = line

    def _hear(self, changes: Iterable[Change]) -> None:
        for change in changes:
            match change:
                case FlowOpened():
                    fresh = Line(change, change.head - 1, [], change.head, change.paused)
                    self.lines.setdefault(change.flow, fresh)
                case Submitted():
                    self._submitted(change)
                case Deferred():
                    self._defer(change)
                case Left():
                    self.running.difference_update(change.places)
                    for deferred in change.deferred:
                        self._defer(deferred)
                case Withdrawn():
                    self.deferred.pop((change.flow, change.seq), None)
                    self.lines[change.flow].drop(change.seq)
                case FlowPaused():
                    if change.flow in self.lines:
                        self.lines[change.flow].paused = change.paused
                case _:
                    pass  # lanes and nodes are not this planner's concern

    def _submitted(self, change: Submitted) -> None:
        line = self.lines[change.flow]
        line.turns += [Turn(Seq(line.tail + place)) for place in range(1, change.count + 1)]
        line.tail += change.count

    def _defer(self, deferred: Deferred) -> None:
        self.lines[deferred.flow].drop(deferred.seq)
        self.deferred[deferred.flow, deferred.seq] = deferred

    # -- deciding --------------------------------------------------------------------------------------

    def _release_due(self) -> None:
        due = [each for each in self.deferred.values() if each.due_at <= self.now]
        for each in sorted(due, key=lambda item: (item.due_at, item.seq)):
            del self.deferred[each.flow, each.seq]
            line = self.lines[each.flow]
            turn = Turn(each.seq, each.attempts, returned=True)
            first = each.first or (line.opened.ordered and each.attempts > 0)
            line.turns.insert(0 if first else len(line.turns), turn)

    def _serves(self, line: Line, target: Target | None) -> bool:
        return not line.paused and (target is None or line.opened.target == target)

    def _room(self, line: Line, count: int) -> int:
        if not line.opened.ordered:
            return count
        busy = any(flow == line.opened.flow for flow, _ in self.running)
        return 0 if busy else min(1, count)


def _plan(node: Node, flows: Sequence[FlowId], turns: Sequence[Turn]) -> ClaimPlan:
    return ClaimPlan(
        node.id,
        node.incarnation,
        tuple(flows),
        tuple(turn.seq for turn in turns),
        tuple(turn.attempts for turn in turns),
        tuple(position for position, turn in enumerate(turns) if turn.returned),
    )


@dataclass(slots=True)
class World:
    """A store's six sides, its time, and the hand on its planner's place, with the verbs of the stories."""

    intake: IntakeStore
    operator: OperatorStore
    planner: PlannerStore
    worker: WorkerStore
    feeder: FeederStore
    time: Time
    replays: ReplayFlows
    hand: Hand = field(init=False)

    def __post_init__(self) -> None:
        self.hand = Hand(self.planner)

    async def node(self, name: str = "node", *, slots: int = 100) -> Node:
        node = await self.worker.register(NodeId(name), POOL, slots, {HTTP})
        assert isinstance(node, Node), node
        return node

    async def restarted(self, node: Node, *, slots: int = 100) -> Node:
        """The next incarnation under the name of ``node``, which is gone as a killed worker is whose
        heartbeat has become old: its claims stay."""
        await self.worker.leave(node)
        return await self.node(node.id, slots=slots)

    async def submit(
        self, *jobs: NewJob, tenant: TenantId = ACME, bound: int | None = None
    ) -> tuple[JobId, ...]:
        """Submit what is expected to be accepted."""
        answer = await self.intake.submit(tenant, jobs, bound=bound)
        assert isinstance(answer, Accepted), answer
        return answer.ids

    async def refused(self, *jobs: NewJob, tenant: TenantId = ACME, bound: int | None = None) -> Refusal:
        """Submit what is expected to be refused."""
        answer = await self.intake.submit(tenant, jobs, bound=bound)
        assert isinstance(answer, Refusal), answer
        return answer

    async def feed(
        self, *jobs: ReplayedJob, replay: str | ReplayTerms = "r1", tenant: TenantId = ACME
    ) -> tuple[JobId, ...]:
        """Feed a replay. Their ids."""
        terms = replay if isinstance(replay, ReplayTerms) else ReplayTerms(replay)
        await self.replays.feed_replay(tenant, terms, jobs)
        return tuple(job.id for job in jobs)

    async def ends(self, replay: str = "r1") -> list[ReplayEnd]:
        """What its jobs came to since the last call."""
        return await self.replays.take_ends(replay, limit=1_000)

    async def claim(
        self, node: Node, count: int = 1_000, *, target: Target | None = None, lease_for: Seconds = LEASE
    ) -> list[ClaimedJob]:
        """Plan, claim and start up to ``count`` due jobs."""
        await self.hand.claim(node, count, target)
        return await self.worker.take(node, lease_for)

    async def pass_time(self, seconds: Seconds) -> None:
        """Time passes. Where a database moved its rows for it, moments remembered before mean nothing now."""
        await self.time.pass_time(seconds)
        self.hand.stale = True

    async def settle(self, node: Node, jobs: Sequence[ClaimedJob], ending: Ending) -> int:
        return await self.worker.settle(node, [settlement(job, ending) for job in jobs])

    async def pause(self, tenant: TenantId | None = ACME, target: Target | None = HOOK) -> OrderRecord:
        return await self.order(Action.PAUSE, tenant, target)

    async def resume(self, tenant: TenantId | None = ACME, target: Target | None = HOOK) -> OrderRecord:
        return await self.order(Action.RESUME, tenant, target)

    async def order(
        self, action: Action, tenant: TenantId | None, target: Target | None, ceiling: int | None = None
    ) -> OrderRecord:
        """An order of Ada's."""
        return await self.operator.order(Order(action, Scope(tenant, target), "maintenance", "ada", ceiling))

    async def room(self) -> None:
        """Let a planner's round fold in what has ended: until then a bound may count it still."""
        await self.hand.listen()


def job(number: int = 0, *, target: Target = HOOK) -> NewJob:
    """A plain job, told apart by its number."""
    return NewJob(target, f'{{"number": {number}}}'.encode())


def batch(count: int, *, target: Target = HOOK) -> list[NewJob]:
    return [job(number, target=target) for number in range(count)]


def messages(count: int, *, target: Target = HOOK, **options: Any) -> list[ReplayedJob]:
    """Messages that were no jobs before."""
    ids = (JobId(SystemRandomness().time_ordered_id()) for _ in range(count))
    return [ReplayedJob(id_, target, b"{}", **options) for id_ in ids]


def keyed(key: str, number: int = 0) -> NewJob:
    return replace(job(number), idempotency_key=key)


def settlement(held: ClaimedJob, ending: Ending, *, retry_for: Seconds = 0.0) -> Settlement:
    """A settlement as a worker would write it."""
    if ending in {Ending.DELIVERED, Ending.RELEASED}:
        return Settlement(held, ending, 0.01, status=200 if ending is Ending.DELIVERED else None)
    failure = Attempt(held.number, Timestamp(0.0), 0.01, 503, "http_503", "overloaded")
    gone = ending in {Ending.DEAD, Ending.PARKED}
    return Settlement(
        held,
        ending,
        0.01,
        retry_for,
        failure,
        reason=f"http_503 after {held.number} attempts" if gone else "",
        status=503,
        park_reason=ParkReason.POISON if ending is Ending.PARKED else None,
        fingerprint=FINGERPRINT if held.replay else "",
    )
