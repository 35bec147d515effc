"""The queue beside pgqueuer, procrastinate and awa-pg."""

from benchmarks.context import Context
from benchmarks.queue import burst, enqueue, handover, million, order, tenants, throughput

CELLS = (order, throughput, tenants, million, burst, handover, enqueue)


async def run(context: Context) -> None:
    """Every cell."""
    await context.each(CELLS)
