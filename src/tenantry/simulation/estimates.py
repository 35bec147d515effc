"""Whether the end lies where the estimate says: replays at targets that change, in virtual time.

Each replay is one lane of the product's own shaper, at a target of 6 to 24 servers of 150 to 600 ms, for 4 to
18 minutes. What changes while it runs:

- the target's capacity, by steps of up to 15 % each 50 seconds or so, which come back to where it was;
- its capacity besides, in a slow wave of up to 20 % and 5 to 25 minutes;
- the slots that the pool has for it, each 3 or 4 minutes, as other replays begin and end: 80 to 120 % of what
  the target can use, at first 60 to 120 %;
- in one of three, connections are refused for 8 to 30 seconds, every 5 minutes or so: the breaker holds it;
- where ``hard``, the capacity falls to about half or rises to about double, once and for good.

Only the last cannot be told from what was seen before: it is scored apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log, pi, sin

from tenantry.algorithms import estimate
from tenantry.algorithms.circuit_breaker import BreakerState
from tenantry.algorithms.estimate import Estimate, EstimateSettings
from tenantry.kernel.randomness import Randomness, SeededRandomness
from tenantry.simulation.shaping.lane import run_lane
from tenantry.simulation.shaping.ours import Ours
from tenantry.simulation.shaping.targets import Spell, Steps, TargetModel, value_at

Chance = Callable[[float, float], float]

LONGEST = 1_100.0
"""Seconds that a replay lasts at most."""


@dataclass(frozen=True, slots=True)
class Changing:
    """One replay to come: its target, the slots that it has by time, and how many seconds it lasts.
    ``stepped_at``: when the hard step comes, or None."""

    target: TargetModel
    slots: Steps
    lasts: float
    stepped_at: float | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """What came of one: messages that ended in each second, and the part of it that it was held for."""

    changing: Changing
    ended: Sequence[int]
    held: Sequence[float]


@dataclass(frozen=True, slots=True)
class Told:
    """One answer. ``at``: seconds since the beginning. ``true``: seconds that were left in truth, pauses that
    came later included."""

    at: float
    true: float
    answer: Estimate

    @property
    def right(self) -> bool:
        """Whether the true end lies in the range that was shown."""
        found = self.answer.remaining
        return found is not None and found.low <= self.true <= found.high

    @property
    def width(self) -> float:
        """The range as a part of the true remainder; 0 where there was none."""
        found = self.answer.remaining
        return (found.high - found.low) / self.true if found is not None else 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """Parts of 1. ``right``: of the ranges shown. ``shown``: of the instants at which it was not held.
    ``width``: the median, as a part of the true remainder; ``narrow``: ranges of at most half of it."""

    right: float
    shown: float
    width: float
    narrow: float
    answers: int


class _Pooled(Ours):
    """The shaper, of which the pool has only so many slots; and when its breaker held it."""

    def __init__(self, randomness: Randomness, slots: Steps) -> None:
        super().__init__(randomness)
        self.held: list[tuple[float, float]] = []
        self._slots, self._since = slots, -1.0

    def allowed(self, in_flight: int, now: float) -> int:
        starts = super().allowed(in_flight, now)
        if self.state.breaker.state is not BreakerState.CLOSED:
            self._since = now if self._since < 0.0 else self._since
        elif self._since >= 0.0:
            self.held.append((self._since, now))
            self._since = -1.0
        return max(0, min(starts, int(value_at(self._slots, now)) - in_flight))


def drawn(seed: int, *, hard: bool = False) -> Changing:
    """The replay of a seed. The same with and without the hard step, but for the step. Pure."""
    chance = SeededRandomness(seed).uniform
    base, service, lasts = chance(6.0, 24.0), chance(0.15, 0.6), chance(240.0, LONGEST)
    step = (0.0, 1.0) if not hard else (lasts * chance(0.2, 0.8), 2.0 ** chance(0.7, 1.3))
    if hard and chance(0.0, 1.0) < 0.5:
        step = (step[0], 1.0 / step[1])
    chance = SeededRandomness(seed + 10_000).uniform
    target = TargetModel(
        "changing",
        servers=_servers(chance, base, step),
        service=service,
        line=60,
        spells=_spells(chance) if chance(0.0, 1.0) < 1.0 / 3.0 else (),
    )
    return Changing(target, _slots(chance, base), lasts, step[0] if hard else None)


def _servers(chance: Chance, base: float, step: tuple[float, float]) -> Steps:
    """Small steps and a wave, looked at each ten seconds; and ``step``: (when, by what factor)."""
    depth, period, phase = chance(0.0, 0.2), chance(300.0, 1_500.0), chance(0.0, 2.0 * pi)
    found, level, changes_at = [], 0.0, 0.0
    for at in (10.0 * n for n in range(int(LONGEST / 10.0) + 1)):
        if at >= changes_at:
            level = 0.6 * level + chance(-0.15, 0.15)
            changes_at = at + 5.0 + _wait(chance, 45.0)
        wave = 1.0 + depth * sin(2.0 * pi * at / period + phase)
        servers = base * exp(level) * wave * (step[1] if at >= step[0] else 1.0)
        found.append((at, float(max(2, round(servers)))))
    return tuple(found)


def _spells(chance: Chance) -> tuple[tuple[float, float, Spell], ...]:
    found, at = [], 40.0 + _wait(chance, 300.0)
    while at < LONGEST:
        until = at + chance(8.0, 30.0)
        found.append((at, until, Spell.DOWN))
        at = until + 40.0 + _wait(chance, 300.0)
    return tuple(found)


def _slots(chance: Chance, base: float) -> Steps:
    found, at = [(0.0, base * chance(0.6, 1.2))], 20.0 + _wait(chance, 200.0)
    while at < LONGEST:
        found.append((at, base * chance(0.8, 1.2)))
        at += 20.0 + _wait(chance, 200.0)
    return tuple(found)


def _wait(chance: Chance, mean: float) -> float:
    return -mean * log(1.0 - min(chance(0.0, 1.0), 1.0 - 1e-12))


def played(changing: Changing, seed: int) -> Story:
    """The replay played: every message of it."""
    rule = _Pooled(SeededRandomness(seed + 50_000), changing.slots)
    report = run_lane(changing.target, rule, SeededRandomness(seed + 90_000), until=changing.lasts)
    ended = [second.succeeded for second in report.seconds]
    held = [0.0] * len(ended)
    for since, until in rule.held:
        for second in range(int(since), min(len(held), int(until) + 1)):
            held[second] += max(0.0, min(until, second + 1.0) - max(since, float(second)))
    return Story(changing, ended, held)


def told(story: Story, *, every: int = 5, settings: EstimateSettings = estimate.DEFAULTS) -> list[Told]:
    """The answers that were given while it ran, each ``every`` seconds. Pure."""
    seen, answers = estimate.opened(0.0, settings), []
    done = list(accumulate(story.ended))
    end = next(second + 1.0 for second, count in enumerate(done) if count == done[-1])
    for second, (ended, held) in enumerate(zip(story.ended, story.held, strict=True)):
        now = second + 1.0
        seen = estimate.observed(seen, ended, held_for=held, now=now)
        left = done[-1] - done[second]
        if not left:
            break
        if int(now) % every == 0:
            answer = estimate.estimate(seen, left, held=held > 0.5, settings=settings)
            answers.append(Told(now, end - now, answer))
    return answers


def scored(answers: Sequence[Told]) -> Score:
    """What answers came to. Pure."""
    asked = [each for each in answers if each.answer.phase is not estimate.Phase.HELD]
    shown = [each for each in asked if each.answer.remaining is not None]
    widths, of_all = sorted(each.width for each in shown), max(1, len(shown))
    return Score(
        right=sum(each.right for each in shown) / of_all,
        shown=len(shown) / max(1, len(asked)),
        width=widths[len(widths) // 2] if widths else 0.0,
        narrow=sum(width <= estimate.DEFAULTS.widest for width in widths) / of_all,
        answers=len(asked),
    )
