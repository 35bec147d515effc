"""The queue beside pgqueuer, procrastinate and awa-pg."""

from benchmarks.context import Context
from benchmarks.fleet import RunnerFailed
from benchmarks.queue import burst, enqueue, handover, million, order, tenants, throughput

CELLS = (order, throughput, tenants, million, burst, handover, enqueue)


async def run(context: Context) -> None:
    """Every cell, one after the other. One that fails is told and keeps no other from its figures."""
    for cell in CELLS:
        name = cell.__name__.rpartition(".")[2]
        if context.wanted(name) and (cell.QUICK or not context.quick):
            try:
                await cell.run(context)
            except RunnerFailed as error:
                context.fail(name, error)
