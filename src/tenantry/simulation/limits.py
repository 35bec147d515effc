"""A fleet of limiters under one authority, in virtual time: the real decisions, the real leases, the real
rule.

Calls come as a Poisson stream, by a Zipf law over tenants, at nodes chosen evenly or at a few of them. Asks
travel at each tick, reach the authority after half a round trip, and their answers come after the other half.
Beside it every tenant has one ideal bucket, of which everything that passes is taken: how far that one falls
below zero is what has been overspent, whatever the fleet believes."""

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import log

from tenantry.kernel.instant import Instant, Seconds, Timestamp
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.buckets import Refilled
from tenantry.limiter.exchange import Answer, Ask
from tenantry.limiter.leasing import LeasingLimiter
from tenantry.limiter.model import Basis, Limit, Plan
from tenantry.limiter.renewal import Pending, Renewals
from tenantry.limiter.settings import LimiterSettings
from tenantry.memory.lease_authority import MemoryLeaseAuthority


class VirtualClock:
    """Time that the simulation sets."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def monotonic(self) -> Instant:
        return Instant(self.at)

    def now(self) -> Timestamp:
        return Timestamp(1.767e9 + self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """``rate``: calls a second in all. ``tenants``: how many call, the most frequent first; the n-th calls in
    proportion to n**-skew. ``places``: which nodes the calls reach; all unless given."""

    rate: float
    tenants: int
    skew: float = 1.0
    places: tuple[int, ...] | None = None


@dataclass(slots=True)
class FleetReport:
    """What a run came to. ``calls``: asks of shards, each for all tenants of a tick. ``overspent``: by
    tenant, the most tokens that its ideal bucket was ever short of. ``passed_by_second``: of each tenant, at
    its n-th second."""

    decisions: int = 0
    calls: int = 0
    asks: int = 0
    bases: Counter[Basis] = field(default_factory=Counter)
    refused: int = 0
    overspent: dict[str, float] = field(default_factory=dict)
    passed_by_second: dict[str, Counter[int]] = field(default_factory=dict)

    @property
    def decisions_a_call(self) -> float:
        """Decisions for each call of the authority."""
        return self.decisions / max(1, self.calls)

    @property
    def first_contacts(self) -> float:
        """Which part of all decisions the conservative share made, since no answer was there yet."""
        return self.bases[Basis.FIRST] / max(1, self.decisions)

    @property
    def other_fallbacks(self) -> int:
        """Decisions by the conservative share because the authority was away."""
        return self.bases[Basis.DOWN]


class LimiterFleet:
    """``nodes`` limiters with one plan for every tenant. ``round_trip``: seconds to the authority and back,
    less than a tick. ``watched``: tenants whose passes are counted by the second."""

    def __init__(
        self,
        limit: Limit,
        *,
        nodes: int = 20,
        seed: int = 1,
        round_trip: Seconds = 0.002,
        settings: LimiterSettings | None = None,
        watched: Sequence[str] = (),
    ) -> None:
        self.clock, self._chance = VirtualClock(), SeededRandomness(seed)
        self.limit, self.authority = limit, MemoryLeaseAuthority(self.clock)
        chosen = settings or LimiterSettings(nodes=nodes)
        self._renewals = [Renewals(f"node-{n}", self.clock, chosen) for n in range(nodes)]
        plan = Plan(limit)
        self.limiters = [LeasingLimiter(plan, each, clock=self.clock) for each in self._renewals]
        self._every, self._round_trip = chosen.every, round_trip
        self._began = self.clock.at
        self._ideal: dict[str, Refilled] = {}
        self.report = FleetReport(passed_by_second={tenant: Counter() for tenant in watched})

    def run(self, seconds: Seconds, traffic: Traffic) -> FleetReport:
        """Let so much time pass under ``traffic``; it goes on from where it was. The report is of all
        runs."""
        arrivals = self._arrivals(seconds, traffic)
        until, arrival = self.clock.at + seconds, next(arrivals, None)
        while self.clock.at < until - 1e-9:
            tick = self.clock.at
            sent = [pending for renewals in self._renewals for pending in self._sent(renewals)]
            arrival = self._calls_until(tick + self._round_trip / 2, arrival, arrivals)
            answers = self.authority.exchanged([ask for _, ask in sent])
            arrival = self._calls_until(tick + self._round_trip, arrival, arrivals)
            self._answered(sent, answers)
            arrival = self._calls_until(tick + self._every, arrival, arrivals)
        return self.report

    def _sent(self, renewals: Renewals) -> list[tuple[tuple[Renewals, Pending], Ask]]:
        due = renewals.due()
        self.report.calls += bool(due)
        self.report.asks += len(due)
        return [((renewals, pending), pending.ask) for pending in due]

    def _answered(self, sent: list[tuple[tuple[Renewals, Pending], Ask]], answers: list[Answer]) -> None:
        for ((renewals, pending), _), answer in zip(sent, answers, strict=True):
            renewals.answered(pending, answer)

    def _calls_until(
        self,
        until: float,
        arrival: tuple[float, int, str] | None,
        arrivals: Iterator[tuple[float, int, str]],
    ) -> tuple[float, int, str] | None:
        """All calls before ``until``; the first one after it is handed on."""
        clock = self.clock
        while arrival is not None and arrival[0] < until:
            clock.at, place, tenant = arrival
            self._call(place, tenant)
            arrival = next(arrivals, None)
        clock.at = until
        return arrival

    def _call(self, place: int, tenant: str) -> None:
        verdict, report = self.limiters[place].try_acquire(tenant), self.report
        report.decisions += 1
        report.bases[verdict.basis] += 1
        if verdict.allowed:
            self._passed(tenant)
        else:
            report.refused += 1

    def _passed(self, tenant: str) -> None:
        """Taken from the ideal bucket, whether it is there or not."""
        now = self.clock.monotonic()
        ideal = self._ideal.get(tenant)
        if ideal is None:
            ideal = self._ideal[tenant] = Refilled(self.limit)
        ideal.spend(1.0, now)
        short = (ideal.full_at - now - self.limit.window) * self.limit.base
        if short > 1e-6:
            self.report.overspent[tenant] = max(short, self.report.overspent.get(tenant, 0.0))
        watched = self.report.passed_by_second.get(tenant)
        if watched is not None:
            watched[int(now - self._began)] += 1

    def _arrivals(self, seconds: Seconds, traffic: Traffic) -> Iterator[tuple[float, int, str]]:
        """When, at which node, of which tenant."""
        draw = self._chance.uniform
        shares = list(accumulate((rank + 1) ** -traffic.skew for rank in range(traffic.tenants)))
        names = [TenantId(f"tenant-{rank}") for rank in range(traffic.tenants)]
        places = traffic.places or tuple(range(len(self.limiters)))
        at, until, last = self.clock.at, self.clock.at + seconds, len(shares) - 1
        while True:
            at -= log(1.0 - draw(0.0, 1.0) * (1 - 1e-12)) / traffic.rate
            if at >= until:
                return
            rank = min(last, bisect(shares, draw(0.0, shares[-1])))
            yield at, places[int(draw(0.0, 1.0) * len(places)) % len(places)], names[rank]
