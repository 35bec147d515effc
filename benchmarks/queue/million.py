"""A million jobs wait: how fast work goes on, and how soon the first starts once workers do."""

import asyncio
import time

from benchmarks.context import Context
from benchmarks.figures import Goal, Measured
from benchmarks.fleet import Fleet
from benchmarks.systems import EVERYBODY, System

QUICK = False
JOBS, BATCH, WORKERS = 1_000_000, 100, 4


async def run(context: Context) -> None:
    """Ours, the floor and each peer."""
    rates = Measured(
        "jobs/s with a million waiting, batch 100, 4 workers", "jobs/s", goal=Goal(2.0, "pgqueuer")
    )
    firsts = Measured("first start after the workers', a million waiting", "ms", "lower")
    async with context.cell(rates.claim, EVERYBODY):
        for n in range(context.runs):
            for system in EVERYBODY:
                rate, first = await one(context, system)
                rates.add(system.name, rate)
                firsts.add(system.name, first)
            context.say(f"a million waiting, run {n + 1}")
    context.judge(rates, firsts)


async def one(context: Context, system: System) -> tuple[float, float]:
    """Jobs a second over the run, and milliseconds to the first start."""
    async with (
        context.server.fresh(system, JOBS) as url,
        Fleet(system, "work", {"url": url, "batch": BATCH}, WORKERS) as fleet,
    ):
        went = fleet.go()
        await fleet.reach("done", 1, within=30)
        await asyncio.sleep(context.seconds)
        done, took = fleet.done, time.time() - went
        return done / took, 1000 * (fleet.first_at - went)
