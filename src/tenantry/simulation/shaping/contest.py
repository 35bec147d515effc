"""Our rule beside five published ones, on the same nine targets: a table that anyone can run again.

Every pair of rule and target runs with the same seeds; a score is the median over them. Score = (goodput /
capacity) x (1 - share of calls slower than 1.5 x reference, or failed).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import pi, sin
from statistics import median

from tenantry.kernel.randomness import Randomness, SeededRandomness
from tenantry.simulation.shaping.lane import LaneReport, Rule, run_lane
from tenantry.simulation.shaping.ours import Ours
from tenantry.simulation.shaping.published import BotoCubic, EnvoyGradient, Gradient2, VectorArc, Vegas
from tenantry.simulation.shaping.targets import Spell, TargetModel

LASTS = 180.0
"""Seconds of virtual time that a run lasts: the targets' stories are written for it."""

RULES: Mapping[str, Callable[[Randomness], Rule]] = {
    "ours": Ours,
    "Vegas": Vegas,
    "Gradient2": lambda _: Gradient2(),
    "Envoy gradient": EnvoyGradient,
    "Vector ARC": lambda _: VectorArc(),
    "boto3 cubic": lambda _: BotoCubic(),
}
"""Those that compete, by the names of the table."""

TARGETS: Sequence[TargetModel] = (
    TargetModel("constant capacity", line=40),
    TargetModel("steps 200, 20, 200", servers=((0.0, 20.0), (60.0, 2.0), (120.0, 20.0)), line=40),
    TargetModel(
        "slow drift",
        servers=tuple((2.0 * at, float(round(13 + 7 * sin(2 * pi * at / 60)))) for at in range(90)),
    ),
    TargetModel("queueing", servers=((0.0, 1.0),), service=0.005, network=0.05),
    TargetModel("own rate limit", servers=((0.0, 200.0),), service=0.05, rate=100.0),
    TargetModel("hard timeout", servers=((0.0, 1_000.0),), hang_beyond=20),
    TargetModel("black hole", spells=((60.0, 120.0, Spell.HOLE),)),
    TargetModel("flapping", spells=tuple((at + 20.0, at + 30.0, Spell.DOWN) for at in range(0, 180, 30))),
    TargetModel(
        "foreign load",
        foreign=((0.0, 0.0), (30.0, 120.0), (60.0, 60.0), (90.0, 160.0), (120.0, 20.0), (150.0, 100.0)),
    ),
)
"""200 calls a second unless said otherwise: 20 servers of 100 ms. Queueing: one server of 5 ms behind 50 ms
of network. Drift: from 60 to 200 calls a second and back in two minutes. Hard timeout: beyond 20 calls in it
a call hangs."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One target's line: the median score of each rule, and the parts of it of the run in the middle."""

    target: str
    scores: Mapping[str, float]
    goodput: Mapping[str, float]
    bad: Mapping[str, float]

    @property
    def best(self) -> float:
        return max(self.scores.values())

    def behind(self, rule: str = "ours") -> float:
        """How far a rule is behind the best, as a part of the best's score; 0 when it is the best."""
        return 1.0 - self.scores[rule] / self.best if self.best else 0.0


def played(
    *,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    targets: Sequence[TargetModel] = TARGETS,
    rules: Mapping[str, Callable[[Randomness], Rule]] = RULES,
) -> Iterator[tuple[str, str, list[LaneReport]]]:
    """Every pair of target and rule, one after the other: (target, rule, a report for each seed)."""
    for model in targets:
        for name, make in rules.items():
            yield model.name, name, [one(model, make, seed) for seed in seeds]


def one(model: TargetModel, make: Callable[[Randomness], Rule], seed: int) -> LaneReport:
    """One run. The target's chance and the rule's are drawn apart, so that all rules meet the same target."""
    return run_lane(model, make(SeededRandomness(seed)), SeededRandomness(1_000 + seed), until=LASTS)


def scored(results: Sequence[tuple[str, str, Sequence[LaneReport]]]) -> list[Scored]:
    """The table of what was played. Pure."""
    lines: dict[str, dict[str, Sequence[LaneReport]]] = {}
    for target, rule, reports in results:
        lines.setdefault(target, {})[rule] = reports
    return [
        Scored(
            target,
            {rule: median(report.score for report in reports) for rule, reports in by_rule.items()},
            {rule: median(report.goodput for report in reports) for rule, reports in by_rule.items()},
            {rule: median(report.bad for report in reports) for rule, reports in by_rule.items()},
        )
        for target, by_rule in lines.items()
    ]


def markdown(lines: Sequence[Scored]) -> str:
    """The table for the docs: the best of each line in bold."""
    rules = list(lines[0].scores)
    rows = [["target", *rules, "ours behind the best"], ["---"] + ["---:"] * (len(rules) + 1)]
    for line in lines:
        cells = [_cell(line.scores[rule], line.best) for rule in rules]
        rows.append([line.target, *cells, f"{line.behind():.1%}" if line.behind() else "–"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def verdict(lines: Sequence[Scored]) -> tuple[int, float]:
    """(targets on which ours is the best or within 2 % of it, the farthest it is behind on any). Pure."""
    behind = [line.behind() for line in lines]
    return sum(each <= 0.02 for each in behind), max(behind)


def _cell(score: float, best: float) -> str:
    return f"**{score:.3f}**" if score == best else f"{score:.3f}"
