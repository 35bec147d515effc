"""10, 1,000 and 20,000 tenants with work: what a claim costs the planner, and the rate from end to end.

No peer knows tenants; their plain rate, whosever the jobs are, is what the cell of throughput says.
"""

from dataclasses import replace

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from benchmarks.fleet import carry_out
from benchmarks.queue.throughput import Shape, rate
from benchmarks.systems import OURS_SYSTEM

QUICK = True
COUNTS = (10, 1_000, 20_000)
JOBS, ROUNDS = 200_000, 60  # ten jobs a tenant at most tenants: a visit is worth as many at ten tenants
QUICK_COUNTS, QUICK_ROUNDS = (10, 20_000), 25


async def run(context: Context) -> None:
    """Ours alone."""
    counts = QUICK_COUNTS if context.quick else COUNTS
    costs = {n: Measured(f"planner's time a claim, {n:,} tenants with work", "µs", "lower") for n in counts}
    flows = Measured("flows that a claim of 100 jobs comes from, 20,000 tenants with work", "flows", "lower")
    against = Measured("a claim at 20,000 tenants, beside one at 10", "×", "lower", Goal(at_most=1.5))
    rebuilt = Measured(
        "rebuild of the planner's memory, 20,000 tenants with work", "s", "lower", Goal(at_most=1.0)
    )
    async with context.cell("tenants with work: a claim", [OURS_SYSTEM]):
        for _ in range(context.runs):
            for n in counts:
                said = await claims(context, n)
                costs[n].add(OURS, said["per_job"])
            flows.add(OURS, said["flows"])
            against.add(OURS, costs[counts[-1]].runs[OURS][-1] / costs[counts[0]].runs[OURS][-1])
            rebuilt.add(OURS, said["rebuilt_for"])
    context.judge(*costs.values(), flows, against, rebuilt)
    if not context.quick:
        await rates(context)


async def claims(context: Context, tenants: int) -> dict[str, float]:
    """One run of rounds."""
    alone = replace(OURS_SYSTEM, script="ours_rounds")
    rounds = QUICK_ROUNDS if context.quick else ROUNDS
    async with context.server.fresh(OURS_SYSTEM, JOBS, tenants) as url:
        return await carry_out(alone, "rounds", {"url": url, "tenants": tenants, "rounds": rounds})


async def rates(context: Context) -> None:
    """From end to end, 4 workers of 100 slots."""
    measured = {
        n: Measured(f"jobs/s end to end, {n:,} tenants, batch 100, 4 workers", "jobs/s") for n in COUNTS
    }
    jobs = max(OURS_SYSTEM.backlog(100, context.seconds), 2 * COUNTS[-1])
    async with context.cell("tenants with work: end to end", [OURS_SYSTEM]):
        for _ in range(context.runs):
            for n in COUNTS:
                measured[n].add(OURS, await rate(context, OURS_SYSTEM, Shape(jobs, 100, 4, n)))
    context.judge(*measured.values())
