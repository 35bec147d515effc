"""Ways to share the slots, side by side. The product's own rule runs as it is; the others are the models that
the seed documents weigh it against."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from tenantry.algorithms.fair_share import Charge, FairShare
from tenantry.simulation.model import FlowKey, Kinds, SimTenant


@dataclass(frozen=True, slots=True)
class Start:
    """``count`` jobs of ``flow`` start on slots of the group ``kinds``; ``token`` goes back to ``end``."""

    flow: FlowKey
    kinds: Kinds
    count: int
    token: Charge | None


class Scheduler(Protocol):
    """What the simulation asks of whoever shares the slots."""

    bounded: bool
    """Whether tenants' bounds are kept at admission."""

    def open(self, tenants: Iterable[SimTenant], slots: Mapping[Kinds, int]) -> None: ...

    def submit(self, flow: FlowKey, count: int, cost: float | None) -> None: ...

    def start(self, free: Mapping[Kinds, int], now: float) -> list[Start]: ...

    def end(self, start: Start, busy_for: float, now: float) -> None: ...

    def next_timer(self) -> float | None: ...


class Fifo:
    """One line for all: whoever came first. No bound, no weight, no cap."""

    bounded = False

    def __init__(self) -> None:
        self._line: deque[tuple[FlowKey, int]] = deque()

    def open(self, tenants: Iterable[SimTenant], slots: Mapping[Kinds, int]) -> None:
        """Who the tenants are makes no difference here."""

    def submit(self, flow: FlowKey, count: int, cost: float | None) -> None:
        self._line.append((flow, count))

    def start(self, free: Mapping[Kinds, int], now: float) -> list[Start]:
        left, starts = dict(free), []
        while self._line:
            flow, waiting = self._line[0]
            kinds = next((group for group, n in left.items() if n and flow.kind in group), None)
            if kinds is None:
                break  # the head of the line blocks all behind it: this is the discipline
            count = min(waiting, left[kinds])
            left[kinds] -= count
            starts.append(Start(flow, kinds, count, None))
            self._line.popleft()
            if waiting > count:
                self._line.appendleft((flow, waiting - count))
        return starts

    def end(self, start: Start, busy_for: float, now: float) -> None:
        """A slot is free; the simulation counts those."""

    def next_timer(self) -> float | None:
        return None


class Fair:
    """The product's rule, as it is. Not ``by_weight``: every tenant weighs 1. Not ``capped``: no caps."""

    def __init__(self, rule: FairShare | None = None, *, by_weight: bool = True, capped: bool = True) -> None:
        self.rule = FairShare() if rule is None else rule
        self.bounded = capped
        self._by_weight, self._capped = by_weight, capped
        self._known: set[FlowKey] = set()

    def open(self, tenants: Iterable[SimTenant], slots: Mapping[Kinds, int]) -> None:
        kinds: frozenset[Hashable] = frozenset().union(*slots)
        self.rule.set_slots(sum(slots.values()), kinds)
        for tenant in tenants:
            self.rule.set_tenant(
                tenant.id,
                weight=tenant.weight if self._by_weight else 1.0,
                cap=tenant.cap if self._capped else 1.0,
                rate=tenant.rate,
            )

    def submit(self, flow: FlowKey, count: int, cost: float | None) -> None:
        if flow not in self._known:
            self._known.add(flow)
            lane = (flow.tenant, flow.lane, flow.kind)
            self.rule.open_flow(flow, tenant=flow.tenant, lane=lane, kind=flow.kind, rank=flow.rank)
        self.rule.add(flow, count, cost=cost)

    def start(self, free: Mapping[Kinds, int], now: float) -> list[Start]:
        picks = self.rule.plan(cast(Mapping[frozenset[Hashable], int], free), now)
        return [Start(cast(FlowKey, p.flow), cast(Kinds, p.kinds), p.count, p.charge) for p in picks]

    def end(self, start: Start, busy_for: float, now: float) -> None:
        if start.token is not None:
            self.rule.settle(start.token, busy_for, now)

    def next_timer(self) -> float | None:
        return self.rule.next_timer()


def fifo() -> Scheduler:
    """First in, first out: a burst blocks everyone behind it."""
    return Fifo()


def equal() -> Scheduler:
    """The same slice for every active tenant, whatever its tier; no caps, no bounds."""
    return Fair(FairShare(floor=0.0), by_weight=False, capped=False)


def weighted() -> Scheduler:
    """By weight alone: no floor, no caps, no bounds."""
    return Fair(FairShare(floor=0.0), capped=False)


def ours(floor: float = 0.25, quantum: float = 0.010) -> Scheduler:
    """By weight with a floor, caps and bounds: what the product does."""
    return Fair(FairShare(floor=floor, quantum=quantum))
