"""How a world's slots are shared: the three models of the seed documents, and the product.

The product is its fair-share rule with the shaper and the breaker of each lane. The models have neither: they
are what there is without.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.randomness import Randomness
from tenantry.lanes import shaper
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.shaper import ShaperSettings, ShaperState, Standing
from tenantry.lanes.summary import EMPTY, summary_of
from tenantry.simulation.model import ANY, FlowKey, SimTenant
from tenantry.simulation.schedulers import Fair, Scheduler, Start, equal, fifo, ours, weighted
from tenantry.simulation.world.model import World

Wake = Callable[[float, FlowKey], None]
"""Asks to be woken about a flow at a time."""


class Policy:
    """A scheduler, and nothing about targets."""

    def __init__(self, name: str, scheduler: Scheduler) -> None:
        self.name, self._scheduler = name, scheduler
        self.bounded = scheduler.bounded

    def open(self, world: World, wake: Wake) -> None:
        tenants = [SimTenant(each.id, each.weight, each.cap) for each in world.tenants]
        self._scheduler.open(tenants, {ANY: world.provisioned})

    def submit(self, flow: FlowKey) -> None:
        self._scheduler.submit(flow, 1, None)

    def start(self, free: int, now: float) -> Iterable[Start]:
        return self._scheduler.start({ANY: free}, now) if free else ()

    def end(self, start: Start, outcome: Outcome, now: float) -> None:
        self._scheduler.end(start, outcome.busy_for, now)

    def woken(self, flow: FlowKey, now: float) -> bool:
        """Looks at a flow again; whether more of it may start now."""
        return False

    def next_timer(self) -> float | None:
        return self._scheduler.next_timer()


class Shaped(Policy):
    """The product: each lane's shaper says what the rule may start in it."""

    def __init__(self, randomness: Randomness) -> None:
        fair = ours()
        assert isinstance(fair, Fair)
        super().__init__("ours", fair)
        self._rule, self._randomness = fair.rule, randomness
        self._states: dict[FlowKey, ShaperState] = {}
        self._in_flight: dict[FlowKey, int] = {}
        self._limits: dict[FlowKey, int] = {}
        self._awake: dict[FlowKey, float] = {}

    def open(self, world: World, wake: Wake) -> None:
        super().open(world, wake)
        self._wake, self._settings = wake, ShaperSettings(timeout_for=world.timeout)

    def submit(self, flow: FlowKey) -> None:
        super().submit(flow)
        if flow not in self._states:
            self._states[flow] = shaper.opened(Timestamp(0.0))
            self._in_flight[flow] = 0
            self._limit(flow, 0.0)

    def start(self, free: int, now: float) -> Iterable[Start]:
        starts: Sequence[Start] = list(super().start(free, now))
        for start in starts:
            flow = start.flow
            self._in_flight[flow] += start.count
            self._states[flow] = shaper.started(
                self._states[flow],
                start.count,
                in_flight=self._in_flight[flow],
                now=Timestamp(now),
                settings=self._settings,
            )
            self._limit(flow, now)
        return starts

    def end(self, start: Start, outcome: Outcome, now: float) -> None:
        super().end(start, outcome, now)
        self._in_flight[start.flow] -= 1
        self._step(start.flow, outcome, now)

    def woken(self, flow: FlowKey, now: float) -> bool:
        if self._awake.get(flow, 0.0) <= now:
            self._awake.pop(flow, None)
        before = self._limits[flow]
        self._step(flow, None, now)
        return self._limits[flow] > before

    def _step(self, flow: FlowKey, outcome: Outcome | None, now: float) -> None:
        summary = EMPTY if outcome is None else summary_of((outcome,))
        standing = Standing(self._in_flight[flow], Timestamp(now))
        draw = self._randomness.uniform(0.0, 1.0)
        self._states[flow] = shaper.step(self._states[flow], summary, standing, self._settings, draw=draw)
        self._limit(flow, now)

    def _limit(self, flow: FlowKey, now: float) -> None:
        """Tell the rule what the shaper permits, and be woken when that may change by itself."""
        state, in_flight = self._states[flow], self._in_flight[flow]
        grant = shaper.permission(state, in_flight=in_flight, now=Timestamp(now), settings=self._settings)
        if self._limits.get(flow) != in_flight + grant.starts:
            self._limits[flow] = in_flight + grant.starts
            self._rule.limit_lane((flow.tenant, flow.lane, flow.kind), self._limits[flow])
        due = shaper.due_at(state, in_flight=in_flight, settings=self._settings)
        moments = [at for at in (grant.not_before, due) if at is not None]
        if moments:
            at = max(min(moments), now + 1e-6)
            if at < self._awake.get(flow, float("inf")):
                self._awake[flow] = at
                self._wake(at, flow)


def policies(randomness: Randomness) -> Mapping[str, Callable[[], Policy]]:
    """By the names of the tables: FIFO, equal share, weighted share, ours."""
    return {
        "FIFO": lambda: Policy("FIFO", fifo()),
        "equal share": lambda: Policy("equal share", equal()),
        "weighted share": lambda: Policy("weighted share", weighted()),
        "ours": lambda: Shaped(randomness),
    }
