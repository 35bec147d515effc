"""One lane with work without end, one target, one rule: virtual time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import Protocol

from tenantry.kernel.randomness import Randomness
from tenantry.simulation.shaping.targets import Call, Moment, Ports, SimTarget, TargetModel

TIMEOUT = 5.0
"""Seconds after which a call is given up."""

SLOTS = 200
"""The pool's: no rule has more in flight, whatever it allows itself."""

SLOW = 1.5
"""A call that takes more than this many times the target's reference is slow."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call ended. ``status``: 200, 429, 503, 0 for refused, -1 for a timeout. ``took``: seconds.
    ``in_flight``: calls in flight when it was sent, itself among them."""

    status: int
    took: float
    in_flight: int
    retry_after: float | None = None

    @property
    def succeeded(self) -> bool:
        return self.status == 200


class Rule(Protocol):
    """What decides how much may be in flight. Told of every start and end; time never goes back."""

    name: str

    def allowed(self, in_flight: int, now: float) -> int:
        """How many calls may start now."""
        ...

    def started(self, count: int, in_flight: int, now: float) -> None: ...

    def ended(self, ending: Ending, in_flight: int, now: float) -> None: ...

    def next_at(self, in_flight: int, now: float) -> float | None:
        """When :meth:`allowed` may say more though nothing ended; None: never."""
        ...

    def limit(self) -> float:
        """The limit, for the plot."""
        ...


@dataclass(slots=True)
class Second:
    """One second of a run. ``latencies``: of calls that succeeded in it. ``most``: most in flight."""

    succeeded: int = 0
    failed: int = 0
    slow: int = 0
    most: int = 0
    limit: float = 0.0
    latencies: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LaneReport:
    """What came of a run, by second. ``foreign_failed``: when foreign clients met errors."""

    model: TargetModel
    rule: str
    until: float
    seconds: tuple[Second, ...]
    foreign_failed: tuple[float, ...]

    @property
    def succeeded(self) -> int:
        return sum(second.succeeded for second in self.seconds)

    @property
    def failed(self) -> int:
        return sum(second.failed for second in self.seconds)

    @property
    def goodput(self) -> float:
        """Calls that succeeded, as a part of what the target could serve; at most 1."""
        capacity = self.model.capacity(self.until)
        return min(1.0, self.succeeded / capacity) if capacity else 1.0

    @property
    def bad(self) -> float:
        """The part of calls that failed or were slow."""
        ended = self.succeeded + self.failed
        return (self.failed + sum(second.slow for second in self.seconds)) / ended if ended else 0.0

    @property
    def score(self) -> float:
        """(goodput / capacity) x (1 - share of calls slower than 1.5 x reference, or failed)."""
        return self.goodput * (1.0 - self.bad)

    def latency(self, part: float, start: float = 0.0, end: float = inf) -> float:
        """The latency that ``part`` of the successes of some seconds did not exceed; 0 of none."""
        found = sorted(
            took for at, second in enumerate(self.seconds) if start <= at < end for took in second.latencies
        )
        return found[min(len(found) - 1, int(part * len(found)))] if found else 0.0

    def rate(self, start: float, end: float) -> float:
        """Successes a second in the seconds from ``start`` to before ``end``."""
        chosen = [second for at, second in enumerate(self.seconds) if start <= at < end]
        return sum(second.succeeded for second in chosen) / len(chosen) if chosen else 0.0


class LaneRun:
    """A run in progress. The same model, rule and seed give the same report."""

    def __init__(self, model: TargetModel, rule: Rule, randomness: Randomness, until: float) -> None:
        self.until, self._moment = until, Moment()
        self._rule, self._in_flight, self._serial = rule, 0, 0
        self._events: list[tuple[float, int, Callable[[Call | None], None], Call | None]] = []
        self._sent: deque[Call] = deque()
        self._slow_beyond = SLOW * model.reference
        self._seconds = [Second() for _ in range(int(until) + 1)]
        self._target = SimTarget(model, randomness, ports=Ports(self._moment, self._later, self._answered))

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self._moment.now

    def run(self) -> LaneReport:
        """To the end."""
        while self.now < self.until:
            self._start()
            instant = self._next_instant()
            if instant >= self.until:
                break
            self._moment.now = instant
            self._give_up()
            while self._events and self._events[0][0] <= instant:
                _, _, happens, call = heappop(self._events)
                happens(call)
        return LaneReport(
            self._target.model,
            self._rule.name,
            self.until,
            tuple(self._seconds[: int(self.until)]),
            tuple(self._target.foreign_failed),
        )

    def _start(self) -> None:
        count = min(self._rule.allowed(self._in_flight, self.now), SLOTS - self._in_flight)
        second = self._seconds[int(self.now)]
        if count > 0:
            self._in_flight += count
            self._rule.started(count, self._in_flight, self.now)
            for place in range(count):
                call = Call(self.now, self._in_flight - count + place + 1, ours=True)
                self._sent.append(call)
                self._target.arrive(call, self.now)
        second.most = max(second.most, self._in_flight)
        second.limit = self._rule.limit()

    def _next_instant(self) -> float:
        while self._sent and self._sent[0].done:
            self._sent.popleft()
        found = self._events[0][0] if self._events else inf
        if self._sent:
            found = min(found, self._sent[0].sent_at + TIMEOUT)
        timer = self._rule.next_at(self._in_flight, self.now)
        if timer is not None:
            found = min(found, max(timer, self.now + 1e-6))
        return found

    def _give_up(self) -> None:
        while self._sent and (self._sent[0].done or self._sent[0].sent_at + TIMEOUT <= self.now):
            call = self._sent.popleft()
            if not call.done:
                self._finish(call, -1, None)

    def _answered(self, call: Call, status: int, retry_after: float | None) -> None:
        if not call.done:
            self._finish(call, status, retry_after)

    def _finish(self, call: Call, status: int, retry_after: float | None) -> None:
        call.done = True
        self._in_flight -= 1
        took = self.now - call.sent_at
        second = self._seconds[int(self.now)]
        if status == 200:
            second.succeeded += 1
            second.latencies.append(took)
            second.slow += took > self._slow_beyond
        else:
            second.failed += 1
        self._rule.ended(Ending(status, took, call.in_flight, retry_after), self._in_flight, self.now)

    def _later(self, at: float, happens: Callable[[Call | None], None], call: Call | None) -> None:
        self._serial += 1
        heappush(self._events, (at, self._serial, happens, call))


def run_lane(model: TargetModel, rule: Rule, randomness: Randomness, *, until: float) -> LaneReport:
    """Run one rule against one target for ``until`` virtual seconds."""
    return LaneRun(model, rule, randomness, until).run()
