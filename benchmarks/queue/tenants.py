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
AIM = Goal(at_most=1.5)


async def run(context: Context) -> None:
    """Ours alone. A claim of 10 jobs comes from as few flows at 20,000 tenants as at 10: what differs is how
    many tenants wait. One of 100 comes from 10 flows or, being fair, from many: that shows in it as well."""
    counts = QUICK_COUNTS if context.quick else COUNTS
    rebuilt = Measured(
        "rebuild of the planner's memory, 20,000 tenants with work", "s", "lower", Goal(at_most=1.0)
    )
    async with context.cell("tenants with work: a claim", [OURS_SYSTEM]):
        cells = [Claims(size, counts) for size in (10, 100)]
        for _ in range(context.runs):
            for cell in cells:
                rebuilt.add(OURS, await cell.add(context))
    context.judge(*(measured for cell in cells for measured in cell.measured()), rebuilt)
    if not context.quick:
        await rates(context)


class Claims:
    """Claims of one size, at each number of tenants."""

    def __init__(self, size: int, counts: tuple[int, ...]) -> None:
        self._size, self._counts = size, counts
        of = f"a claim of {size} jobs"
        self._costs = {
            n: Measured(f"planner's time a job, {of}, {n:,} tenants with work", "µs", "lower") for n in counts
        }
        self._flows = Measured(f"flows in {of}, {counts[-1]:,} tenants with work", "flows", "lower")
        self._against = Measured(f"{of} at {counts[-1]:,} tenants, beside one at 10", "×", "lower", AIM)

    async def add(self, context: Context) -> float:
        """One run of each; how long the last rebuild took."""
        for n in self._counts:
            said = await claims(context, n, self._size)
            self._costs[n].add(OURS, said["per_job"])
        self._flows.add(OURS, said["flows"])
        most, least = (self._costs[n].runs[OURS][-1] for n in (self._counts[-1], self._counts[0]))
        self._against.add(OURS, most / least)
        return said["rebuilt_for"]

    def measured(self) -> tuple[Measured, ...]:
        return (*self._costs.values(), self._flows, self._against)


async def claims(context: Context, tenants: int, slots: int) -> dict[str, float]:
    """One run of rounds."""
    alone = replace(OURS_SYSTEM, script="ours_rounds")
    options = {"tenants": tenants, "slots": slots, "rounds": QUICK_ROUNDS if context.quick else ROUNDS}
    async with context.server.fresh(OURS_SYSTEM, JOBS, tenants) as url:
        return await carry_out(alone, "rounds", {"url": url, **options})


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
