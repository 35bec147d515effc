"""What the shaper gets out of targets, and how gently: in virtual time, all of it the product's own code.

- contest: ours beside five published rules on nine targets; a score is the median over the seeds.
- queueing, steps: what one lane sustains, how soon it follows, what others at the target notice.
- world: an hour of 300 tenants and 50 jobs a second, and how long that takes to simulate.
"""

import time
from itertools import pairwise

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from tenantry.kernel.randomness import SeededRandomness
from tenantry.simulation.shaping import RULES, TARGETS, LaneReport, Ours, TargetModel, run_lane
from tenantry.simulation.shaping.contest import played, scored, verdict
from tenantry.simulation.shaping.lane import LaneRun
from tenantry.simulation.world import World, WorldReport, WorldRun, an_hour, policies

STEPS = TargetModel(
    "steps", servers=((0.0, 20.0), (60.0, 2.0), (120.0, 20.0)), line=40, foreign=((0.0, 2.0),)
)


QUICK = True
"""Whether it runs in a quick run too."""


async def run(context: Context) -> None:
    """Every part, one after the other."""
    for part in (contest, queueing, steps, world):
        context.say(f"simulated: {part.__name__}")
        part(context)


def contest(context: Context) -> None:
    """Nine targets, six rules."""
    results: list[tuple[str, str, list[LaneReport]]] = []
    for target in TARGETS:
        results += played(seeds=_seeds(context), targets=[target])
        (line,) = scored([result for result in results if result[0] == target.name])
        measured = Measured(f"score on: {target.name}", "of 1", goal=Goal(at_least=0.9))
        for rule in RULES:
            (reports,) = [each for at, name, each in results if (at, name) == (target.name, rule)]
            for report in reports:
                measured.add(OURS if rule == "ours" else rule, report.score)
        context.judge(measured)
        context.say(f"{target.name}: ours {line.behind():.1%} behind the best")
    within, farthest = verdict(scored(results))
    beyond = Measured("targets on which ours is over 2 % behind the best", "of 9", "lower", Goal(at_most=2.0))
    beyond.add(OURS, len(TARGETS) - within)
    behind = Measured("farthest behind the best on any target", "%", "lower", Goal(at_most=10.0))
    behind.add(OURS, 100.0 * farthest)
    context.judge(beyond, behind)


def queueing(context: Context) -> None:
    """One server behind 50 ms of network: throughput kept, and the latency that it costs."""
    for capacity in (10.0, 100.0, 1_000.0):
        model = TargetModel("queueing", servers=((0.0, 1.0),), service=1.0 / capacity, network=0.05)
        lost = Measured(f"of {capacity:g}/s, not sustained", "%", "lower", Goal(at_most=5.0))
        slow = Measured(f"at {capacity:g}/s: p50 over the reference", "times", "lower", Goal(at_most=1.5))
        for seed in range(1, 4 if context.quick else 6):
            report = run_lane(model, Ours(SeededRandomness(seed)), SeededRandomness(100 + seed), until=90.0)
            lost.add(OURS, 100.0 * (1.0 - report.rate(30, 90) / model.rate_at(0.0)))
            slow.add(OURS, report.latency(0.5, 30) / model.reference)
        context.judge(lost, slow)


def steps(context: Context) -> None:
    """200 calls a second, then 20, then 200: errors of others, and the way up."""
    errors = Measured("others' last error after a step down", "s", "lower", Goal(at_most=10.0))
    trips = Measured("round trips from a step up to 90 %", "round trips", "lower", Goal(at_most=30.0))
    over = Measured("most in flight over capacity after it", "%", "lower", Goal(at_most=30.0))
    for seed in range(1, 6):
        report, means = stepped(seed)
        late = [at - 60.0 for at in report.foreign_failed if 60.0 <= at < 120.0]
        errors.add(OURS, max(late, default=0.0))
        trips.add(OURS, next((place for place, mean in enumerate(means) if mean >= 18.0), len(means)))
        over.add(OURS, 100.0 * (max(means) / 20.0 - 1.0))
    context.judge(errors, trips, over)


def world(context: Context) -> None:
    """An hour of 300 tenants, 50 jobs a second in all, under our rule and first in first out."""
    hour = an_hour(lasts=600.0 if context.quick else 3_600.0)
    minutes = f"{hour.lasts / 60.0:g} minutes"
    took = Measured(f"{minutes} of 300 tenants, 50 jobs/s, simulated", "s", "lower", Goal(at_most=60.0))
    wait = Measured("steady tenants' p99 wait in it", "s", "lower")
    slots = Measured("slots, as a part of those for all peaks", "%", "lower", Goal(at_most=50.0))
    for seed in (1,) if context.quick else (1, 2, 3):
        began = time.perf_counter()
        report = _under("ours", seed, hour)
        took.add(OURS, time.perf_counter() - began)
        wait.add(OURS, report.wait(0.99, steady=True))
        wait.add("FIFO", _under("FIFO", seed, hour).wait(0.99, steady=True))
        slots.add(OURS, 100.0 * hour.provisioned / hour.peaks)
    context.judge(took, wait, slots)


def stepped(seed: int) -> tuple[LaneReport, list[float]]:
    """A run of :data:`STEPS`, and the mean in flight of each of 100 round trips from its step up."""
    rule = Ours(SeededRandomness(seed))
    log: list[tuple[float, int]] = []
    allowed = rule.allowed

    def logged(in_flight: int, now: float) -> int:
        count = allowed(in_flight, now)
        log.append((now, in_flight + count))
        return count

    rule.allowed = logged  # type: ignore[method-assign]
    report = LaneRun(STEPS, rule, SeededRandomness(100 + seed), 180.0).run()
    held = [0.0] * 100
    for (at, in_flight), (then, _) in pairwise(log):
        for trip in range(max(0, int((at - 120.0) / 0.1)), min(99, int((then - 120.0) / 0.1)) + 1):
            begins = 120.0 + trip * 0.1
            lasts = min(then, begins + 0.1) - max(at, begins)
            held[trip] += in_flight * max(0.0, lasts) / 0.1
    return report, held


def _under(policy: str, seed: int, hour: World) -> WorldReport:
    return WorldRun(hour, policies(SeededRandomness(seed))[policy](), seed).run()


def _seeds(context: Context) -> range:
    return range(1, 2 if context.quick else 1 + context.runs)
