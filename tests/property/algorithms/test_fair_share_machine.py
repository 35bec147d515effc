"""The rule against a model that is too simple to be wrong: every state reachable by any order of calls."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import ceil, inf, sqrt

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tenantry.algorithms.fair_share import Charge, FairShare

QUANTUM = 0.5
HTTP, MAIL = "http", "mail"
GROUPS: tuple[frozenset[Hashable], ...] = (
    frozenset({HTTP}),
    frozenset({MAIL}),
    frozenset({HTTP, MAIL}),
)


@dataclass
class ModelFlow:
    name: str
    tenant: str
    lane: str
    kind: str
    waiting: int = 0
    in_flight: int = 0
    paused: bool = False
    held: float = -inf
    limit: int | None = None


@dataclass
class ModelLane:
    paused: bool = False
    held: float = -inf
    limit: int | None = None
    in_flight: int = 0


@dataclass(eq=False)
class Running:
    charge: Charge
    flow: ModelFlow
    group: frozenset[Hashable]
    started_at: float


@dataclass
class ModelTenant:
    cap: float = 1.0
    in_flight: int = 0


@dataclass
class Model:
    flows: dict[str, ModelFlow] = field(default_factory=dict)
    lanes: dict[str, ModelLane] = field(default_factory=dict)
    tenants: dict[str, ModelTenant] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)
    slots: dict[frozenset[Hashable], int] = field(default_factory=dict)
    now: float = 0.0

    def most(self, tenant: str) -> int:
        return max(1, ceil(self.tenants[tenant].cap * sum(self.slots.values()) - 1e-9))

    def eligible(self, flow: ModelFlow) -> bool:
        lane = self.lanes[flow.lane]
        return (
            flow.waiting > 0
            and not flow.paused
            and not lane.paused
            and flow.held <= self.now
            and lane.held <= self.now
            and (flow.limit is None or flow.in_flight < flow.limit)
            and (lane.limit is None or lane.in_flight < lane.limit)
            and self.tenants[flow.tenant].in_flight < self.most(flow.tenant)
            and any(n and flow.kind in group for group, n in self.slots.items())
        )

    def free(self) -> dict[frozenset[Hashable], int]:
        busy = [one.group for one in self.running]
        return {group: max(0, n - busy.count(group)) for group, n in self.slots.items()}


class FairShareMachine(RuleBasedStateMachine):
    """A small pool whose slots differ: it has no headroom."""

    headroom = 0

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed: int) -> None:
        self.fair = FairShare(quantum=QUANTUM, floor=seed / 3, prior=1.0)
        self.model = Model()
        for tenant in ("a", "b", "c"):
            self.fair.set_tenant(tenant, weight=1.0)
            self.model.tenants[tenant] = ModelTenant()
            for kind in (HTTP, MAIL):
                lane = f"{tenant}-{kind}"
                self.model.lanes[lane] = ModelLane()
                for rank in (0, 2):
                    name, limit = f"{lane}-{rank}", (2 if tenant == "c" and rank else None)
                    self.fair.open_flow(name, tenant=tenant, lane=lane, kind=kind, rank=rank, limit=limit)
                    self.model.flows[name] = ModelFlow(name, tenant, lane, kind, limit=limit)

    flows = st.sampled_from([f"{t}-{k}-{r}" for t in "abc" for k in (HTTP, MAIL) for r in (0, 2)])
    lanes = st.sampled_from([f"{t}-{k}" for t in "abc" for k in (HTTP, MAIL)])
    tenants = st.sampled_from("abc")
    spans = st.floats(0.0, 20.0)

    @rule(flow=flows, count=st.integers(1, 9), cost=st.none() | st.floats(0.0, 30.0))
    def add(self, flow: str, count: int, cost: float | None) -> None:
        self.fair.add(flow, count, cost=cost)
        self.model.flows[flow].waiting += count

    @rule(flow=flows, data=st.data())
    def withdraw(self, flow: str, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, self.model.flows[flow].waiting))
        self.fair.withdraw(flow, count)
        self.model.flows[flow].waiting -= count

    @rule(flow=flows, paused=st.booleans())
    def pause_flow(self, flow: str, paused: bool) -> None:
        self.fair.pause_flow(flow, paused=paused)
        self.model.flows[flow].paused = paused

    @rule(lane=lanes, paused=st.booleans())
    def pause_lane(self, lane: str, paused: bool) -> None:
        self.fair.pause_lane(lane, paused=paused)
        self.model.lanes[lane].paused = paused

    @rule(lane=lanes, limit=st.none() | st.integers(0, 4))
    def limit_lane(self, lane: str, limit: int | None) -> None:
        self.fair.limit_lane(lane, limit)
        self.model.lanes[lane].limit = limit

    @rule(lane=lanes, span=spans)
    def hold_lane(self, lane: str, span: float) -> None:
        self.model.lanes[lane].held = self.model.now + span
        self.fair.hold_lane(lane, self.model.now + span)

    @rule(flow=flows, span=spans)
    def hold_flow(self, flow: str, span: float) -> None:
        self.model.flows[flow].held = self.model.now + span
        self.fair.hold_flow(flow, self.model.now + span)

    @rule(tenant=tenants, weight=st.floats(0.1, 1_000.0), cap=st.floats(0.01, 1.0))
    def change_tenant(self, tenant: str, weight: float, cap: float) -> None:
        self.fair.set_tenant(tenant, weight=weight, cap=cap)
        self.model.tenants[tenant].cap = cap

    @rule(counts=st.tuples(*[st.integers(0, 5)] * 3))
    def change_slots(self, counts: tuple[int, ...]) -> None:
        self._resize(counts)

    def _resize(self, counts: tuple[int, ...]) -> None:
        self.model.slots = dict(zip(GROUPS, counts, strict=True))
        kinds = frozenset(kind for group, n in self.model.slots.items() if n for kind in group)
        self.fair.set_slots(sum(counts), kinds)

    @rule(span=spans)
    def time_passes(self, span: float) -> None:
        self.model.now += span

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), known=st.booleans())
    def settle(self, data: st.DataObject, known: bool) -> None:
        one = data.draw(st.sampled_from(self.model.running))
        self.model.running.remove(one)
        busy_for = self.model.now - one.started_at if known else None
        self.fair.settle(one.charge, busy_for, self.model.now)
        self._count(one.flow, -1)

    @rule(flow=flows, ago=st.floats(0.0, 50.0))
    def adopt(self, flow: str, ago: float) -> None:
        model, started_at = self.model.flows[flow], self.model.now - ago
        charge = self.fair.adopt(flow, started_at, self.model.now)
        self.model.running.append(Running(charge, model, GROUPS[2], started_at))
        self._count(model, 1)

    @rule()
    def plan(self) -> None:
        free = self.model.free()
        for pick in self.fair.plan(free, self.model.now):
            flow = self.model.flows[str(pick.flow)]
            assert flow.kind in pick.kinds
            assert pick.count >= 1
            for _ in range(pick.count):
                assert self.model.eligible(flow), "a pick of what may not start (F4, limits, pauses)"
                flow.waiting -= 1
                self._count(flow, 1)
                self.model.running.append(Running(pick.charge, flow, pick.kinds, self.model.now))
            free[pick.kinds] -= pick.count
            assert free[pick.kinds] >= 0, "more picks than free slots"
        idle = [group for group, n in free.items() if n]
        able = [f.name for f in self.model.flows.values() if self.model.eligible(f)]
        if sum(free.values()) <= self.headroom:
            return
        for group in idle:
            assert not [name for name in able if self.model.flows[name].kind in group], "F3: a slot idles"

    def _count(self, flow: ModelFlow, change: int) -> None:
        flow.in_flight += change
        self.model.lanes[flow.lane].in_flight += change
        self.model.tenants[flow.tenant].in_flight += change

    @invariant()
    def counts_are_what_was_told(self) -> None:
        if not hasattr(self, "model"):
            return
        for name, flow in self.model.flows.items():
            assert self.fair.waiting(name) == flow.waiting
        for name, tenant in self.model.tenants.items():
            assert self.fair.in_flight(name) == tenant.in_flight

    @invariant()
    def nobody_eligible_has_more_than_a_quantum_of_credit(self) -> None:
        if not hasattr(self, "model"):
            return
        for tenant in self.model.tenants:
            if self.fair.eligible(tenant):
                assert self.fair.deficit(tenant) <= QUANTUM + 1e-6

    @invariant()
    def shares_of_the_eligible_add_up_to_one(self) -> None:
        if not hasattr(self, "model"):
            return
        shares = [self.fair.share(tenant) for tenant in self.model.tenants]
        assert sum(shares) == 0.0 or abs(sum(shares) - 1.0) < 1e-9


class AlikeMachine(FairShareMachine):
    """A pool of slots that are alike, mostly of more than twenty: no more idles than the headroom."""

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed: int) -> None:
        super().begin(seed)
        self._alike(30)

    @rule(counts=st.tuples(*[st.integers(0, 30)] * 3))
    def change_slots(self, counts: tuple[int, ...]) -> None:
        self._alike(sum(counts))

    @rule(flow=FairShareMachine.flows)
    def fill(self, flow: str) -> None:
        self.add(flow, 40, None)

    @rule(data=st.data())
    def end_many(self, data: st.DataObject) -> None:
        for _ in range(min(len(self.model.running), data.draw(st.integers(1, 20)))):
            self.settle(data, True)

    def _alike(self, slots: int) -> None:
        self.headroom = max(1, round(sqrt(slots) / 8)) if slots >= 20 else 0
        self._resize((0, 0, slots))


_settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
FairShareMachine.TestCase.settings = AlikeMachine.TestCase.settings = _settings
TestFairShareMachine = FairShareMachine.TestCase
TestAlikeMachine = AlikeMachine.TestCase
