"""A small tenant beside another's burst of 100,000: how long its jobs wait from submit to start.

A job that had not started when a run was cut off counts with what it had waited by then, in the peers'
favour.
"""

import time
from collections.abc import Sequence

from benchmarks.context import Context
from benchmarks.figures import Goal, Measured, percentile, waits_of
from benchmarks.fleet import Fleet
from benchmarks.systems import AWA, OURS_SYSTEM, PGQUEUER, PROCRASTINATE, System

QUICK = True
BURST, QUICK_BURST = 100_000, 30_000
RATE, BATCH, WORKERS = 20, 100, 4


async def run(context: Context) -> None:
    """Ours and each FIFO peer."""
    systems = (OURS_SYSTEM, PGQUEUER) if context.quick else (OURS_SYSTEM, PGQUEUER, PROCRASTINATE, AWA)
    burst = QUICK_BURST if context.quick else BURST
    at_99 = Measured(f"small tenant's p99 wait under a burst of {burst:,}", "ms", "lower", Goal(50.0))
    at_50 = Measured(f"small tenant's p50 wait under a burst of {burst:,}", "ms", "lower")
    async with context.cell(at_99.claim, systems):
        for n in range(context.runs):
            for system in systems:
                waits = await one(context, system, burst)
                at_99.add(system.name, 1000 * percentile(waits, 0.99))
                at_50.add(system.name, 1000 * percentile(waits, 0.50))
            context.say(f"burst, run {n + 1}")
    context.judge(at_99, at_50)


async def one(context: Context, system: System, burst: int) -> Sequence[float]:
    """The waits of one run, in seconds."""
    seconds, longest = (1.0, 1.8) if context.quick else (4.0, 10.0)
    async with context.server.fresh(system, burst, tenants=1) as url:
        work = Fleet(system, "work", {"url": url, "batch": BATCH, "tenants": 1}, WORKERS)
        trickle = Fleet(system, "trickle", {"url": url, "rate": RATE, "seconds": seconds, "tenants": 1})
        async with work, trickle:
            work.go()
            await work.reach("done", 1, within=30)
            began = time.perf_counter()
            trickle.go()
            sent = await trickle.runners[0].until("sent")
            await work.reach("stamped", sent, within=longest - (time.perf_counter() - began))
            ran_for = time.perf_counter() - began
            waited = [wait for last in await work.stop() for _, wait in last["waits"]]
    due = [max(0.0, ran_for - n / RATE) for n in range(sent)]
    return waits_of(waited, due, in_order=system.fifo)
