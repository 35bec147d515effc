"""How fast one process puts jobs in: 4 tasks of one event loop, batches of 1, 100 and 1,000, durably."""

from benchmarks.context import Context
from benchmarks.figures import Measured
from benchmarks.fleet import Fleet
from benchmarks.systems import EVERYBODY, System

QUICK = False
CALLERS = 4


async def run(context: Context) -> None:
    """Ours (ten tenants, through admission), the floor and each peer."""
    for batch in (1, 100, 1000):
        measured = Measured(f"enqueued/s from one process, batch {batch}", "jobs/s")
        async with context.cell(measured.claim, EVERYBODY):
            for _ in range(context.runs):
                for system in EVERYBODY:
                    measured.add(system.name, await one(context, system, batch))
        context.judge(measured)


async def one(context: Context, system: System, batch: int) -> float:
    """Jobs a second of one run."""
    async with context.server.fresh(system) as url:
        options = {"url": url, "batch": batch, "callers": CALLERS, "seconds": context.seconds / 2}
        async with Fleet(system, "enqueue", options) as fleet:
            fleet.go()
            jobs = await fleet.runners[0].until("jobs")
            return float(jobs) / float(fleet.runners[0].last["seconds"])
