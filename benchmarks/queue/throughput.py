"""Jobs a second from end to end: a backlog is released, and all of it done and recorded.

Timed from the first start, so that nobody is charged for how long its workers take to come up.
"""

import time
from dataclasses import dataclass

from benchmarks.context import Context
from benchmarks.figures import BEST, OURS, Goal, Measured
from benchmarks.fleet import Fleet
from benchmarks.server import recorded
from benchmarks.systems import AWA, EVERYBODY, OURS_SYSTEM, PGQUEUER, System
from tenantry.postgres.database import connect_once

QUICK = True
TENANTS = 10
LONGEST = 4  # times the wanted seconds: a run that takes longer is cut off and counts what it has done


@dataclass(frozen=True, slots=True)
class Shape:
    """What one run is made of."""

    jobs: int
    batch: int
    workers: int
    tenants: int = TENANTS


async def run(context: Context) -> None:
    """Batches of 1, 10 and 100 at 4 and 8 worker processes."""
    shapes = [(100, 4)] if context.quick else [(batch, n) for batch in (100, 10, 1) for n in (4, 8)]
    systems = (OURS_SYSTEM, PGQUEUER, AWA) if context.quick else EVERYBODY
    for batch, workers in shapes:
        name = f"jobs/s end to end, batch {batch}, {workers} workers"
        async with context.cell(name, systems):
            measured = Measured(
                name, "jobs/s", goal=Goal(2.0, "pgqueuer") if batch == 100 else Goal(1.0, BEST)
            )
            for _ in range(context.runs):
                for system in systems:
                    jobs = system.backlog(batch, context.seconds)
                    measured.add(system.name, await rate(context, system, Shape(jobs, batch, workers)))
            context.judge(measured)
            if batch == 100:
                context.judge(beside_awa(measured))


def beside_awa(measured: Measured) -> Measured:
    """The same runs, held to the second goal."""
    runs = {name: measured.runs[name] for name in (OURS, AWA.name)}
    return Measured(f"{measured.claim}, beside awa", "jobs/s", goal=Goal(1.0, AWA.name), runs=runs)


async def rate(context: Context, system: System, shape: Shape) -> float:
    """Jobs a second of one run."""
    jobs = shape.jobs
    async with context.server.fresh(system, jobs, shape.tenants) as url:
        options = {"url": url, "batch": shape.batch, "tenants": shape.tenants}
        connection = await connect_once(url)
        try:
            async with Fleet(system, "work", options, shape.workers) as fleet:
                fleet.go()
                if await fleet.reach("done", jobs, within=LONGEST * context.seconds):
                    await recorded(connection, system, within=LONGEST * context.seconds)
                return fleet.done / (time.time() - fleet.first_at)
        finally:
            await connection.close()
