"""One backlog against one target, of nine kinds, discovery included; a redrive at a fixed rate beside it.

The yardstick is what the target could have served until the backlog was delivered, over the backlog: where
the capacity is constant, the time over backlog / capacity. Both have the same 200 slots, both send again what
failed. The fixed rate is 500 starts a second, what a cloud's queue offers for a redrive by hand.
"""

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from tenantry.simulation.shaping import TARGETS, LaneReport, Ours, TargetModel
from tenantry.simulation.shaping.drain import FixedRate, drained, played

QUICK = True
"""Whether it runs in a quick run too."""

BACKLOGS = (60.0, 120.0)
"""Seconds that the target needs for them at best."""


async def run(context: Context) -> None:
    """Every target; two of them in a quick run."""
    for model in TARGETS[:1] + TARGETS[4:5] if context.quick else TARGETS:
        one(context, model)


def one(context: Context, model: TargetModel) -> None:
    """Both backlogs of one target."""
    context.say(f"drain: {model.name}")
    seeds = range(1, 1 + context.runs)
    runs: dict[str, list[LaneReport]] = {
        OURS: [played(model, Ours, seed) for seed in seeds],
        FixedRate.name: [played(model, lambda _: FixedRate(), seed) for seed in seeds],
    }
    for ideal in BACKLOGS:
        over = Measured(f"{model.name}: {ideal:g} s of backlog", "× capacity", "lower", Goal(at_most=1.1))
        failed = Measured(f"{model.name}: {ideal:g} s, calls that failed", "% of it", "lower")
        for system, reports in runs.items():
            for report in reports:
                found = drained(report, ideal)
                over.add(system, found.over)
                failed.add(system, 100.0 * found.failed)
        context.judge(over, failed)
