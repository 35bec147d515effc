"""The arithmetic of a benchmark: medians, spreads, ratios, goals. Pure.

A figure is the median of its runs. A ratio is one of medians, and says how many times better ours is: above
1 is better, whichever way the unit goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from statistics import median
from typing import Any, Literal

Better = Literal["higher", "lower"]

OURS, FLOOR = "ours", "floor"
BEST = "the best peer"


@dataclass(frozen=True, slots=True)
class Goal:
    """What a claim is held to.

    ``at_least``: the ratio to ``against`` (a peer's name, or :data:`BEST`). ``at_most``: ours itself, in
    the claim's unit. One of the two, or neither: then the ratio is shown and nothing is asked.
    """

    at_least: float | None = None
    against: str = BEST
    at_most: float | None = None

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g} × {self.against}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"


NONE = Goal()


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of a benchmark's table; :func:`as_json` is the form that is written.

    ``ratio``: how many times better ours is than the peer that the goal names, else than the best one; None
    without a peer. ``met``: None where nothing is asked. ``spread``: (largest - smallest) / median of our
    runs.
    """

    claim: str
    unit: str
    ours: float
    floor: float | None
    peers: Mapping[str, float]
    ratio: float | None
    goal: str
    met: bool | None
    runs: int
    spread: float


@dataclass(slots=True)
class Measured:
    """The runs of one claim, by system. Fill it with :meth:`add`, then :meth:`judged`."""

    claim: str
    unit: str
    better: Better = "higher"
    goal: Goal = NONE
    runs: dict[str, list[float]] = field(default_factory=dict)

    def add(self, system: str, value: float) -> None:
        """One run's figure."""
        self.runs.setdefault(system, []).append(value)

    def judged(self) -> Claim:
        """The claim, from the medians. Raises :class:`ValueError` when ours was never measured."""
        if OURS not in self.runs:
            raise ValueError(f"{self.claim}: ours was not measured")
        medians = {system: median(values) for system, values in self.runs.items()}
        ours, floor = medians.pop(OURS), medians.pop(FLOOR, None)
        ratio = ratio_of(ours, medians, self.better, self.goal.against)
        return Claim(
            claim=self.claim,
            unit=self.unit,
            ours=ours,
            floor=floor,
            peers=medians,
            ratio=ratio,
            goal=str(self.goal),
            met=met(self.goal, ours, ratio),
            runs=len(self.runs[OURS]),
            spread=spread(self.runs[OURS]),
        )


def ratio_of(ours: float, peers: Mapping[str, float], better: Better, against: str = BEST) -> float | None:
    """How many times better ``ours`` is; None when there is nobody to compare with, or a figure is 0."""
    if not peers or (against != BEST and against not in peers):
        return None
    best = max(peers.values()) if better == "higher" else min(peers.values())
    other = best if against == BEST else peers[against]
    above, below = (ours, other) if better == "higher" else (other, ours)
    return above / below if below else None


def met(goal: Goal, ours: float, ratio: float | None) -> bool | None:
    """Whether the goal is reached; None when nothing is asked, or nobody was there to compare with."""
    if goal.at_most is not None:
        return ours <= goal.at_most
    if goal.at_least is None or ratio is None:
        return None
    return ratio >= goal.at_least


def spread(values: Sequence[float]) -> float:
    """(largest - smallest) / median; 0 for one run, or for a median of 0."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least ``part`` of all do not exceed (nearest rank). Raises for no values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, ceil(part * len(ordered)) - 1)]


def waits_of(waited: Sequence[float], due: Sequence[float], *, in_order: bool) -> list[float]:
    """The waits of all submissions, of which some had not started when the run was stopped.

    ``due``: for each submission, in order, how long before the stop it was made. One that had not started
    counts with that: a lower bound. ``in_order``: work starts in the order of submission, so the last ones
    have not started; else it is taken for the first ones, the worst that may be.
    """
    missing = max(0, len(due) - len(waited))
    return [*waited, *(due[len(due) - missing :] if in_order else due[:missing])]


def as_json(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """What is written to ``benchmarks/results/NAME.json``."""
    return [asdict(claim) for claim in claims]


def from_json(objects: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """What :func:`as_json` gave."""
    return [Claim(**each) for each in objects]


def short(value: float | None) -> str:
    """A figure for people: three significant digits, thousands with a comma."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
