"""A small world of nodes, one authority and a network that loses things, in virtual time."""

from dataclasses import dataclass, field

from tenantry.kernel.instant import Instant, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Answer
from tenantry.limiter.leasing import LeasingLimiter
from tenantry.limiter.model import Basis, Limit, Plan, Verdict
from tenantry.limiter.renewal import Pending, Renewals
from tenantry.limiter.settings import LimiterSettings
from tenantry.memory.lease_authority import REMEMBERED_FOR, MemoryLeaseAuthority

TENANT = TenantId("acme")


class Sun:
    """The world's own time."""

    def __init__(self) -> None:
        self.at, self.wall_step = 0.0, 0.0


class LocalClock:
    """A machine's clocks: its monotonic one has a zero of its own and runs a little fast or slow."""

    def __init__(self, sun: Sun, zero: float = 0.0, pace: float = 1.0) -> None:
        self._sun, self._zero, self._pace = sun, zero, pace

    def monotonic(self) -> Instant:
        return Instant(self._zero + self._sun.at * self._pace)

    def now(self) -> Timestamp:
        return Timestamp(1.8e9 + self._sun.at + self._sun.wall_step)


@dataclass(slots=True)
class Node:
    """One process: its limiter, what it has under way, and what it let pass, by basis."""

    limiter: LeasingLimiter
    renewals: Renewals
    clock: LocalClock
    outbox: list[Pending] = field(default_factory=list)  # sent, not at the authority yet
    inbox: list[tuple[Pending, Answer]] = field(default_factory=list)  # answered, not arrived yet
    passed: dict[Basis, float] = field(default_factory=dict)
    answers: int = 0

    def count(self, *bases: Basis) -> float:
        return sum(self.passed.get(basis, 0.0) for basis in bases)


class World:
    """``nodes`` nodes that share one tenant's ``limit``. What they let pass outlives them."""

    def __init__(self, limit: Limit, nodes: int, settings: LimiterSettings | None = None) -> None:
        self.sun, self.limit, self.size = Sun(), limit, nodes
        self.settings = settings or LimiterSettings(nodes=nodes)
        self.authority = MemoryLeaseAuthority(LocalClock(self.sun, zero=5e4))
        self.born = 0
        self.heard: dict[tuple[str, int], float] = {}  # when the authority last heard of each ask
        self.repeated = 0.0  # told again after it had been forgotten: the package's one exception
        self.dead: list[Node] = []
        self.nodes = [self._new() for _ in range(nodes)]

    def _new(self) -> Node:
        self.born += 1
        clock = LocalClock(self.sun, zero=1e3 * self.born, pace=(0.96, 1.0, 1.04)[self.born % 3])
        renewals = Renewals(f"node-{self.born}", clock, self.settings)
        plan = Plan(self.limit, ledger=True)
        return Node(LeasingLimiter(plan, renewals, clock=clock), renewals, clock)

    def call(self, place: int, cost: float = 1.0) -> Verdict:
        node = self.nodes[place]
        verdict = node.limiter.try_acquire(TENANT, cost=cost)
        if verdict:
            node.passed[verdict.basis] = node.passed.get(verdict.basis, 0.0) + cost
        return verdict

    def send(self, place: int) -> None:
        self.nodes[place].outbox.extend(self.nodes[place].renewals.due())

    def deliver(self, place: int, *, twice: bool = False) -> None:
        """What was sent arrives at the authority, perhaps in two copies."""
        node = self.nodes[place]
        sent, node.outbox = node.outbox, []
        for pending in sent:
            self._hear(pending)
            (answer,) = self.authority.exchanged([pending.ask])
            if twice:
                assert self.authority.exchanged([pending.ask]) == [answer]
            node.inbox.append((pending, answer))

    def _hear(self, pending: Pending) -> None:
        ask = (pending.ask.node, pending.ask.sequence)
        if self.heard.get(ask, self.sun.at) + REMEMBERED_FOR <= self.sun.at:
            self.repeated += sum(part.spent + part.unleased for part in pending.ask.parts)
        self.heard[ask] = self.sun.at

    def answer(self, place: int) -> None:
        """The answers arrive."""
        node = self.nodes[place]
        arrived, node.inbox = node.inbox, []
        for pending, answer in arrived:
            node.answers += 1
            node.renewals.answered(pending, answer)

    def lose(self, place: int) -> None:
        """Whatever is under way is lost, on the way there or back; the node gives up waiting and sends
        again."""
        node = self.nodes[place]
        lost = [*node.outbox, *(pending for pending, _ in node.inbox)]
        node.inbox = []
        for pending in lost:
            node.renewals.failed(pending)
        node.outbox = [node.renewals.again(pending) for pending in lost]

    def round_trip(self, place: int) -> None:
        self.send(place)
        self.deliver(place)
        self.answer(place)

    def crash(self, place: int) -> None:
        """The process dies with what it holds; another one starts in its place."""
        self.dead.append(self.nodes[place])
        self.nodes[place] = self._new()

    def passed(self, *bases: Basis) -> float:
        return sum(node.count(*(bases or tuple(Basis))) for node in [*self.nodes, *self.dead])
