"""The order check of the fair executor: a heavy tenant's 400 jobs, then four light ones' 10 each, 4 slots.

Each job sleeps 10 ms, so the ideal is 440 jobs * 10 ms / 4 slots = 1.1 s. The floor is the same work through
a plain semaphore of 4 in one line.
"""

import asyncio
import time
from collections.abc import Sequence

from benchmarks.context import Context
from benchmarks.figures import Goal, Measured
from benchmarks.systems import OURS_SYSTEM
from tenantry.kernel.tenant import TenantId
from tenantry.queue.executor import FairExecutor
from tenantry.simulation import jain

QUICK = True
SLOTS, LENGTH = 4, 0.010
LOAD = (("heavy", 400), ("light-1", 10), ("light-2", 10), ("light-3", 10), ("light-4", 10))
IDEAL = sum(count for _, count in LOAD) * LENGTH / SLOTS


async def run(context: Context) -> None:
    """Ours alone, and the plain line beside its time."""
    took = Measured("order check: time over the ideal 1.1 s", "×", "lower", Goal(at_most=1.3))
    first = Measured("order check: the first light job's dispatch", "th", "lower", Goal(at_most=5))
    shared = Measured("order check: 1 - Jain over the first 50", "", "lower", Goal(at_most=0.02))
    async with context.cell("order check", (OURS_SYSTEM,)):
        for _ in range(context.runs):
            seconds, order = await fairly()
            took.add("ours", seconds / IDEAL)
            took.add("floor", await plainly() / IDEAL)
            first.add("ours", 1 + next(n for n, tenant in enumerate(order) if tenant != "heavy"))
            shared.add("ours", 1 - jain([order[:50].count(tenant) for tenant, _ in LOAD]))
    context.judge(took, first, shared)


async def fairly() -> tuple[float, Sequence[str]]:
    """How long it took, and who was started in which order."""
    order: list[str] = []

    async def work(tenant: str) -> None:
        order.append(tenant)
        await asyncio.sleep(LENGTH)

    async with FairExecutor(SLOTS) as executor:
        began = time.perf_counter()
        handles = [executor.submit(TenantId(t), work, t) for t, count in LOAD for _ in range(count)]
        await asyncio.gather(*handles)  # type: ignore[arg-type]  # nothing is refused: no bound
        return time.perf_counter() - began, order


async def plainly() -> float:
    """The same jobs through a semaphore: what the machine's timers alone cost."""
    gate = asyncio.Semaphore(SLOTS)

    async def work() -> None:
        async with gate:
            await asyncio.sleep(LENGTH)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _, count in LOAD for _ in range(count)))
    return time.perf_counter() - began
