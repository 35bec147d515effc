"""The planner's process is killed, stopped or cut off: how soon the next job starts; none is held twice.

Two processes, each with a planner and a worker; jobs trickle in. Only jobs submitted after the blow count:
they can start by a claim of the next planner alone. The books are audited all along, and on after the first
one comes back.
"""

import asyncio
import shutil
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from benchmarks.fleet import Fleet
from benchmarks.proxy import Proxy
from benchmarks.systems import OURS_SYSTEM
from tenantry.postgres.database import connect_once
from tenantry.postgres.statements import statement

QUICK = False
RATE, SLOTS, LONGEST, BACK_FOR = 50, 4, 30.0, 2.0
BLOWS = ("killed", "stopped", "cut off")


async def run(context: Context) -> None:
    """The three blows side by side, each in a database of its own."""
    goal = Goal(at_most=10.0)
    measured = {
        blow: Measured(f"hand-over, planner {blow}: until the next job starts", "s", "lower", goal)
        for blow in BLOWS
    }
    twice = Measured("jobs in two live claims, at any audit of these", "jobs", "lower", Goal(at_most=0.0))
    other = Measured("other faults of the books, at any audit of these", "faults", "lower", Goal(at_most=0.0))
    async with context.cell("hand-over of the planner's place", [OURS_SYSTEM]):
        for n in range(context.runs):
            found = await asyncio.gather(*(one(context, blow) for blow in BLOWS))
            for blow, (took, _) in zip(BLOWS, found, strict=True):
                measured[blow].add(OURS, took)
            faults = [fault for _, audit in found for fault in audit]
            held_twice = {fault for fault in faults if "live claims" in fault}
            twice.add(OURS, len(held_twice))
            other.add(OURS, len(set(faults) - held_twice))
            context.say(
                f"hand-over, run {n + 1}" + "".join(f"; {fault}" for fault in sorted(set(faults))[:3])
            )
    context.judge(*measured.values(), twice, other)


async def one(context: Context, blow: str) -> tuple[float, list[str]]:
    """Seconds until the next start, and every fault that the audits found."""
    async with context.server.fresh(OURS_SYSTEM) as url, proxied(url) as proxy:
        first = Fleet(OURS_SYSTEM, "work", {"url": proxy.url, "batch": SLOTS})
        second = Fleet(OURS_SYSTEM, "work", {"url": url, "batch": SLOTS})
        trickle = Fleet(OURS_SYSTEM, "trickle", {"url": url, "rate": RATE, "seconds": 2 * LONGEST})
        async with first, second, trickle, audited(url) as faults:
            first.go()
            await first.runners[0].until("elected")
            second.go()
            trickle.go()
            await second.reach("stamped", 10, within=LONGEST)
            strike, undo = blows(blow, first, proxy)
            strike()
            at = time.time()
            await second.reach("newest", at + 0.05, within=LONGEST)
            took = time.time() - at
            undo()
            await asyncio.sleep(BACK_FOR)
    return took, faults


def blows(blow: str, fleet: Fleet, proxy: Proxy) -> tuple[Callable[[], None], Callable[[], None]]:
    """How it is done, and undone."""
    runner = fleet.runners[0]
    return {
        "killed": (lambda: runner.signal(signal.SIGKILL), lambda: None),
        "stopped": (lambda: runner.signal(signal.SIGSTOP), lambda: runner.signal(signal.SIGCONT)),
        "cut off": (proxy.cut, proxy.heal),
    }[blow]


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[Proxy]:
    directory = Path(tempfile.mkdtemp(prefix="tntp-"))
    try:
        async with Proxy(directory, url) as proxy:
            yield proxy
    finally:
        shutil.rmtree(directory)


@asynccontextmanager
async def audited(url: str, every: float = 0.1) -> AsyncIterator[list[str]]:
    """The faults found so far by an audit ten times a second."""
    connection, faults = await connect_once(url), list[str]()

    async def look() -> None:
        while True:
            faults.extend(row["fault"] for row in await connection.fetch(statement("operator/audit")))
            await asyncio.sleep(every)

    looking = asyncio.create_task(look())
    try:
        yield faults
    finally:
        if looking.done():  # an audit that failed proves nothing
            looking.result()
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await connection.close()
