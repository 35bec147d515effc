"""A world at work: arrivals, slots, calls to targets, retries. The same seed gives the same report."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf, log
from typing import cast

from tenantry.algorithms.backoff import Backoff
from tenantry.kernel.randomness import Randomness, SeededRandomness
from tenantry.lanes.outcome import Outcome
from tenantry.simulation.model import FlowKey
from tenantry.simulation.schedulers import Start
from tenantry.simulation.shaping.targets import Call, Moment, Ports, SimTarget
from tenantry.simulation.world.model import World, WorldTenant
from tenantry.simulation.world.policies import Policy

Progress = Callable[[float], None]
"""Told of virtual seconds that have passed."""

MINUTE = 60.0

_CLASSES = {200: "ok", 429: "http_429", 503: "http_503", 0: "refused", -1: "timeout"}


@dataclass(slots=True)
class TenantResult:
    """One tenant's part. ``waits``: (when due, seconds until started) of every attempt; those
    that never started waited to the end at least, and count so."""

    tenant: WorldTenant
    submitted: int = 0
    refused: int = 0
    succeeded: int = 0
    dead: int = 0
    open: int = 0
    slot_seconds: float = 0.0
    waits: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WorldReport:
    """``used``: mean slots in use, by minute."""

    policy: str
    world: World
    tenants: Mapping[str, TenantResult]
    used: tuple[float, ...]

    def wait(self, part: float, *, steady: bool) -> float:
        """The wait in seconds that ``part`` of the attempts did not exceed, of steady tenants or of the
        others. 0 of none."""
        return _at(
            part,
            [
                waited
                for result in self.tenants.values()
                if result.tenant.steady is steady
                for _, waited in result.waits
            ],
        )

    def waits_by_minute(self, part: float) -> list[float]:
        """The same of steady tenants, of the attempts due in each minute."""
        found: list[list[float]] = [[] for _ in self.used]
        for result in self.tenants.values():
            if result.tenant.steady:
                for due, waited in result.waits:
                    found[min(len(found) - 1, int(due / MINUTE))].append(waited)
        return [_at(part, waits) for waits in found]

    def total(self, what: str) -> float:
        """The sum over tenants of one of their numbers."""
        return sum(cast(float, getattr(result, what)) for result in self.tenants.values())


def _at(part: float, values: list[float]) -> float:
    values.sort()
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0.0


class _Job:
    __slots__ = ("attempt", "call", "due", "result", "start")

    def __init__(self, result: TenantResult, due: float) -> None:
        self.result, self.due, self.attempt = result, due, 1
        self.call: Call | None = None
        self.start: Start | None = None


class WorldRun:
    """One world under one policy."""

    def __init__(self, world: World, policy: Policy, seed: int) -> None:
        self._world, self._policy, self._moment = world, policy, Moment()
        self._events: list[tuple[float, int, Callable[[Call | None], None], Call | None]] = []
        self._serial = self._busy = 0
        self._slots = world.provisioned
        self._randomness: Randomness = SeededRandomness(seed)
        self._results = {each.id: TenantResult(each) for each in world.tenants}
        self._targets = {
            each.id: self._target(each, seed + place) for place, each in enumerate(world.tenants)
        }
        self._lines: dict[FlowKey, deque[_Job]] = {}
        self._running: dict[Call, _Job] = {}
        self._used = [0.0] * (int(world.lasts / MINUTE) + 1)
        self._counted_at, self._changed = 0.0, True
        self._backoff = Backoff(world.backoff, 60.0)
        policy.open(world, self._wake)

    def run(self, progress: Progress = lambda _: None) -> WorldReport:
        """To the end of the world."""
        for tenant in self._world.tenants:
            self._plant(tenant)
        told = 0.0
        while (instant := self._next_instant()) < self._world.lasts:
            self._count(instant)
            self._moment.now = instant
            while self._events and self._events[0][0] <= instant:
                _, _, happens, call = heappop(self._events)
                happens(call)
            self._start()
            if instant - told >= MINUTE:
                progress(instant - told)
                told = instant
        self._count(self._world.lasts)
        progress(self._world.lasts - told)
        return self._report()

    def _target(self, tenant: WorldTenant, seed: int) -> SimTarget:
        ports = Ports(self._moment, self._later, self._answered)
        return SimTarget(tenant.target, SeededRandomness(seed), ports=ports)

    def _next_instant(self) -> float:
        found = self._events[0][0] if self._events else inf
        timer = self._policy.next_timer()
        if timer is None or timer >= found:
            return found
        self._changed = True
        return max(timer, self._moment.now + 1e-6)

    def _plant(self, tenant: WorldTenant) -> None:
        """What will be submitted: the next arrival, and all bursts."""
        chance = SeededRandomness(int(self._randomness.uniform(0.0, 2.0**31)))

        def arrives(_: Call | None) -> None:
            self._submit(self._results[tenant.id])
            self._later(self._moment.now + gap(), arrives, None)

        def gap() -> float:
            return -log(1.0 - min(chance.uniform(0.0, 1.0), 1.0 - 1e-12)) / tenant.rate

        if tenant.rate > 0.0:
            self._later(gap(), arrives, None)
        for burst in tenant.bursts:
            self._later(burst.at, self._burst(self._results[tenant.id], burst.jobs), None)

    def _burst(self, result: TenantResult, jobs: int) -> Callable[[Call | None], None]:
        def arrives(_: Call | None) -> None:
            for _job in range(jobs):
                self._submit(result)

        return arrives

    def _submit(self, result: TenantResult) -> None:
        result.submitted += 1
        bound = result.tenant.bound
        if self._policy.bounded and bound is not None and result.open >= bound:
            result.refused += 1
            return
        result.open += 1
        self._line_up(_Job(result, self._moment.now))

    def _line_up(self, job: _Job) -> None:
        flow = FlowKey(job.result.tenant.id)
        self._lines.setdefault(flow, deque()).append(job)
        self._policy.submit(flow)
        self._changed = True

    def _start(self) -> None:
        if not self._changed:
            return
        self._changed = False
        now = self._moment.now
        for start in self._policy.start(self._slots - self._busy, now):
            line = self._lines[start.flow]
            for _ in range(start.count):
                self._send(line.popleft(), start, now)

    def _send(self, job: _Job, start: Start, now: float) -> None:
        job.result.waits.append((job.due, now - job.due))
        call = Call(now, 0, ours=True)
        job.call, job.start = call, start
        self._running[call] = job
        self._busy += 1
        self._later(now + self._world.timeout, self._give_up, call)
        self._targets[job.result.tenant.id].arrive(call, now)

    def _give_up(self, call: Call | None) -> None:
        if call is not None and not call.done:
            self._answered(call, -1, None)

    def _answered(self, call: Call, status: int, retry_after: float | None) -> None:
        if call.done:
            return
        call.done = self._changed = True
        job, now = self._running.pop(call), self._moment.now
        took = now - call.sent_at
        self._busy -= 1
        job.result.slot_seconds += took
        outcome = Outcome(_CLASSES[status], retry_after=retry_after, busy_for=took)
        if job.start is not None:
            self._policy.end(Start(job.start.flow, job.start.kinds, 1, job.start.token), outcome, now)
        self._settle(job, outcome)

    def _settle(self, job: _Job, outcome: Outcome) -> None:
        result = job.result
        if outcome.succeeded:
            result.succeeded += 1
        elif job.attempt < self._world.attempts:
            self._retry(job, outcome.retry_after or 0.0)
            return
        else:
            result.dead += 1
        result.open -= 1

    def _retry(self, job: _Job, hint: float) -> None:
        delay = max(hint, self._backoff.delay(job.attempt, self._randomness.uniform(0.0, 1.0)))
        job.attempt += 1
        job.due = self._moment.now + delay

        def again(_: Call | None) -> None:
            self._line_up(job)

        self._later(job.due, again, None)

    def _wake(self, at: float, flow: FlowKey) -> None:
        def look(_: Call | None) -> None:
            self._changed = self._policy.woken(flow, self._moment.now) or self._changed

        self._later(at, look, None)

    def _later(self, at: float, happens: Callable[[Call | None], None], call: Call | None) -> None:
        self._serial += 1
        heappush(self._events, (at, self._serial, happens, call))

    def _count(self, until: float) -> None:
        """Slots in use up to ``until``, by minute."""
        at = self._counted_at
        while at < until:
            minute = int(at / MINUTE)
            end = min(until, (minute + 1) * MINUTE)
            self._used[minute] += self._busy * (end - at) / MINUTE
            at = end
        self._counted_at = until

    def _report(self) -> WorldReport:
        lasts = self._world.lasts
        for line in self._lines.values():
            for job in line:  # those that never started waited to the end at least
                job.result.waits.append((job.due, lasts - job.due))
        for job in self._running.values():
            if job.call is not None:
                job.result.slot_seconds += lasts - job.call.sent_at
        used = tuple(self._used[: max(1, int(lasts / MINUTE))])
        return WorldReport(self._policy.name, self._world, self._results, used)
