"""Whether the true end lies in the range that is shown, over simulated replays at targets that change.

What changes is told in :mod:`tenantry.simulation.estimates`. In virtual time: the figures follow from the
seeds and the code, whatever the machine. Ten replays say little of a hundred, each being nearly all right or
nearly all wrong: a quick run shows what it finds and asks for nothing.
"""

from benchmarks.context import Context
from benchmarks.figures import NONE, OURS, Goal, Measured
from tenantry.simulation.estimates import Told, drawn, played, scored, told

QUICK = True
"""Whether it runs in a quick run too."""


async def run(context: Context) -> None:
    """All seeds, as they are and with a hard step."""
    replays = 10 if context.quick else 100
    usual(context, replays)
    hard(context, replays // 2 if context.quick else replays)


def usual(context: Context, replays: int) -> None:
    """Targets that change all the time."""
    context.say(f"estimates: {replays} replays at targets that change")
    answers = [each for seed in range(1, replays + 1) for each in told(played(drawn(seed), seed))]
    score = scored(answers)
    missed = Measured(f"{replays} replays: ranges without the true end", "%", "lower", _goal(context, 10.0))
    missed.add(OURS, 100.0 * (1.0 - score.right))
    width = Measured("range over the true remainder, median", "%", "lower", _goal(context, 50.0))
    width.add(OURS, 100.0 * score.width)
    wide = Measured("ranges wider than half of the true remainder", "%", "lower")
    wide.add(OURS, 100.0 * (1.0 - score.narrow))
    silent = Measured("answers that show no range, while it runs", "%", "lower")
    silent.add(OURS, 100.0 * (1.0 - score.shown))
    context.judge(missed, width, wide, silent)


def hard(context: Context, replays: int) -> None:
    """Targets that besides halve or double at one instant: nobody can know it before."""
    context.say(f"estimates: {replays} replays with a hard step")
    answers: list[Told] = []
    later: list[Told] = []
    for seed in range(1, replays + 1):
        changing = drawn(seed, hard=True)
        found = told(played(changing, seed))
        answers += found
        later += [each for each in found if each.at >= (changing.stepped_at or 0.0)]
    for what, chosen in (("all the time", answers), ("from the step on", later)):
        missed = Measured(f"a hard step: ranges without the true end, {what}", "%", "lower")
        missed.add(OURS, 100.0 * (1.0 - scored(chosen).right))
        silent = Measured(f"a hard step: answers without a range, {what}", "%", "lower")
        silent.add(OURS, 100.0 * (1.0 - scored(chosen).shown))
        context.judge(missed, silent)


def _goal(context: Context, at_most: float) -> Goal:
    return NONE if context.quick else Goal(at_most=at_most)
