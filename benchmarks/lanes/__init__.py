"""Lanes: what each gets out of its target, and what a broken one costs the others."""

from benchmarks.context import Context
from benchmarks.lanes import loopback, neighbours, simulated

CELLS = (simulated, loopback, neighbours)


async def run(context: Context) -> None:
    """Every cell."""
    await context.each(CELLS)
