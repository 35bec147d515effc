"""One suite for whatever schedules in process: the pure rule, the event loop's executor, the threads' one.

Time is a clock that each job moves by what it takes, so every run is the same run on any machine.
"""

import asyncio
import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tenantry.config.tiers import Tier
from tenantry.kernel.instant import Instant, Timestamp
from tenantry.kernel.tenant import TenantId, TierName, Weight
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.queue.executor import ExecutorCore, FairExecutor, FlowKey, Settings, ThreadFairExecutor
from tenantry.queue.model import JobClass
from tenantry.simulation import jain


class WorkClock:
    """Moved by the work itself."""

    def __init__(self) -> None:
        self._now, self._lock = 0.0, threading.Lock()

    def monotonic(self) -> Instant:
        return Instant(self._now)

    def now(self) -> Timestamp:
        return Timestamp(self._now)

    def pass_by(self, seconds: float) -> None:
        with self._lock:
            self._now += seconds


@dataclass
class Job:
    tenant: str
    takes: float = 0.010
    lane: str = ""


@dataclass
class Ran:
    order: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    most: Counter[str] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def starts(self, tenant: str) -> None:
        with self.lock:
            self.order.append(tenant)
            self.running[tenant] += 1
            self.most[tenant] = max(self.most[tenant], self.running[tenant])

    def ends(self, tenant: str) -> None:
        with self.lock:
            self.running[tenant] -= 1


def tier(name: str = "t", *, weight: float = 1.0, cap: float = 1.0, bound: int | None = None) -> Tier:
    return Tier(TierName(name), Weight(weight), cap=cap, bound=bound)


class Conformance:
    """Subclasses say how jobs are run: all are submitted in order, before the first one ends."""

    def run(self, slots: int, tiers: dict[str, Tier], jobs: list[Job]) -> Ran:
        raise NotImplementedError

    def test_capacity_divides_as_the_weights_1_2_4(self) -> None:
        tiers = {"one": tier(weight=1), "two": tier(weight=2), "four": tier(weight=4)}
        ran = self.run(1, tiers, [Job(name) for name in tiers for _ in range(400)])
        counts = Counter(ran.order[:350])
        assert [counts[name] for name in tiers] == pytest.approx([50, 100, 200], abs=3)

    def test_nobody_holds_more_than_the_cap(self) -> None:
        tiers = {"a": tier(cap=0.5), "b": tier(cap=0.25)}
        ran = self.run(4, tiers, [Job(name) for name in tiers for _ in range(40)])
        assert ran.most["a"] <= 2
        assert ran.most["b"] <= 1
        assert Counter(ran.order) == {"a": 40, "b": 40}

    def test_over_the_bound_is_a_refusal_that_says_when_to_come_back(self) -> None:
        ran = self.run(1, {"a": tier(bound=10), "b": tier()}, [Job("a")] * 15 + [Job("b")] * 15)
        assert len(ran.order) + len(ran.refused) == 30
        assert 4 <= len(ran.refused) <= 5
        assert {refusal.rule for refusal in ran.refused} == {Rule.BOUND}
        assert all(refusal.retry_after is not None and refusal.retry_after > 0 for refusal in ran.refused)

    def test_a_burst_of_400_does_not_hold_up_four_light_tenants(self) -> None:
        lights = [f"light{n}" for n in range(4)]
        jobs = [Job("heavy")] * 400 + [Job(name) for name in lights for _ in range(10)]
        ran = self.run(4, {name: tier() for name in ["heavy", *lights]}, jobs)
        assert next(place for place, who in enumerate(ran.order) if who != "heavy") <= 5
        counts = Counter(ran.order[:50])
        assert jain(counts[name] for name in ["heavy", *lights]) >= 0.98
        assert len(ran.order) == 440

    def test_twenty_lanes_gain_nothing(self) -> None:
        jobs = [Job("many", lane=f"l{n % 20}") for n in range(400)] + [Job("one")] * 400
        ran = self.run(1, {"many": tier(), "one": tier()}, jobs)
        assert Counter(ran.order[:200])["one"] == pytest.approx(100, abs=3)

    def test_slot_seconds_are_shared_and_not_starts(self) -> None:
        jobs = [Job("slow", takes=0.2)] * 60 + [Job("quick", takes=0.01)] * 900
        ran = self.run(1, {"slow": tier(), "quick": tier()}, jobs)
        slow = Counter(ran.order[:630])["slow"]
        assert slow * 0.2 == pytest.approx((630 - slow) * 0.01, rel=0.1)


class TestCore(Conformance):
    def run(self, slots: int, tiers: dict[str, Tier], jobs: list[Job]) -> Ran:
        core: ExecutorCore[Job] = ExecutorCore(Settings(slots, tiers.get))
        ran, now = Ran(), 0.0
        running = []
        for job in jobs:
            found = core.submit(FlowKey(TenantId(job.tenant), job.lane, JobClass.LIVE), job, cost=None)
            if isinstance(found, Refusal):
                ran.refused.append(found)
            running += core.next(Instant(now))
        for entry in running:
            ran.starts(entry.item.tenant)
        while running:
            entry = min(running, key=lambda one: one.started_at + one.item.takes)
            running.remove(entry)
            now = entry.started_at + entry.item.takes
            ran.ends(entry.item.tenant)
            core.end(entry, Instant(now))
            for started in core.next(Instant(now)):
                ran.starts(started.item.tenant)
                running.append(started)
        assert core.idle
        return ran


class TestCoroutines(Conformance):
    def run(self, slots: int, tiers: dict[str, Tier], jobs: list[Job]) -> Ran:
        clock, ran = WorkClock(), Ran()

        async def work(job: Job) -> None:
            ran.starts(job.tenant)
            clock.pass_by(job.takes / slots)
            await asyncio.sleep(0)
            ran.ends(job.tenant)

        async def all_of_them() -> None:
            async with FairExecutor(slots, tiers=tiers.get, clock=clock) as executor:
                for job in jobs:
                    handle = executor.submit(job.tenant, work, job, lane=job.lane)
                    if isinstance(handle, Refusal):
                        ran.refused.append(handle)

        asyncio.run(all_of_them())
        return ran


class TestThreads(Conformance):
    def run(self, slots: int, tiers: dict[str, Tier], jobs: list[Job]) -> Ran:
        clock, ran, begin = WorkClock(), Ran(), threading.Event()

        def work(job: Job) -> None:
            begin.wait(30)
            ran.starts(job.tenant)
            clock.pass_by(job.takes / slots)
            ran.ends(job.tenant)

        with ThreadFairExecutor(slots, tiers=tiers.get, clock=clock) as executor:
            for job in jobs:
                future = executor.submit(job.tenant, work, job, lane=job.lane)
                if isinstance(future, Refusal):
                    ran.refused.append(future)
            begin.set()
        return ran
