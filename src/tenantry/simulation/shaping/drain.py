"""One backlog, one target: how long until all of it is delivered, discovery included.

The yardstick is the target itself: what it could have served until the backlog was delivered, over the
backlog (1 is perfect). Where the capacity is constant that is the time taken over backlog / capacity; where
the target is away for a while, the time away is nobody's fault, but what is lost finding out that it is back
counts. What fails is sent again, by whoever drains.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from math import floor, inf

from tenantry.kernel.randomness import Randomness, SeededRandomness
from tenantry.simulation.shaping.contest import LASTS
from tenantry.simulation.shaping.lane import SLOTS, Ending, LaneReport, Rule, run_lane
from tenantry.simulation.shaping.targets import TargetModel

FIXED = 500.0
"""Starts a second of a redrive by hand, as the cloud's queues offer it."""


@dataclass(frozen=True, slots=True)
class Drained:
    """``lasted``: seconds until the backlog was delivered, infinite if it was not within the target's story.
    ``over``: what the target could have served until then, over the backlog. ``failed``: calls that failed
    until then, over the backlog."""

    backlog: int
    lasted: float
    over: float
    failed: float


class FixedRate:
    """Starts :data:`FIXED` calls a second, whatever comes back; what no slot was free for is made up for
    within a second, or not at all."""

    name = f"fixed {FIXED:g}/s"

    def __init__(self, rate: float = FIXED) -> None:
        self._rate, self._tokens, self._at = rate, 0.0, 0.0

    def allowed(self, in_flight: int, now: float) -> int:
        self._tokens = min(self._rate, self._tokens + (now - self._at) * self._rate)
        self._at = now
        return floor(self._tokens + 1e-6)

    def started(self, count: int, in_flight: int, now: float) -> None:
        self._tokens -= count

    def ended(self, ending: Ending, in_flight: int, now: float) -> None:
        """Nothing is learned."""

    def next_at(self, in_flight: int, now: float) -> float | None:
        return self._at + (1.0 - self._tokens) / self._rate if in_flight < SLOTS else None

    def limit(self) -> float:
        return inf


def drain(model: TargetModel, make: Callable[[Randomness], Rule], *, ideal: float, seed: int) -> Drained:
    """Drain what the target can serve in ``ideal`` seconds. It has its whole story's time for it."""
    return drained(played(model, make, seed), ideal)


def played(model: TargetModel, make: Callable[[Randomness], Rule], seed: int) -> LaneReport:
    """The target's whole story, with work without end: any backlog that is drained in it is its beginning."""
    return run_lane(model, make(SeededRandomness(seed)), SeededRandomness(1_000 + seed), until=LASTS)


def drained(report: LaneReport, ideal: float) -> Drained:
    """When the backlog of ``ideal`` seconds had been delivered. Pure."""
    backlog = int(report.model.capacity(ideal))
    failed = list(accumulate(second.failed for second in report.seconds))
    before = 0
    for second, done in enumerate(accumulate(second.succeeded for second in report.seconds)):
        if done >= backlog:
            lasted = second + (backlog - before) / (done - before)
            over = report.model.capacity(lasted) / backlog
            return Drained(backlog, lasted, over, failed[second] / backlog)
        before = done
    return Drained(backlog, inf, inf, failed[-1] / backlog)
