"""The queue beside pgqueuer, procrastinate and awa-pg."""

from benchmarks.context import Context
from benchmarks.queue import burst, enqueue, handover, million, tenants, throughput

CELLS = (throughput, tenants, million, burst, handover, enqueue)


async def run(context: Context) -> None:
    """Every cell, one after the other."""
    for cell in CELLS:
        name = cell.__name__.rpartition(".")[2]
        if context.wanted(name) and (cell.QUICK or not context.quick):
            await cell.run(context)
