"""Lanes: what each gets out of its target, and what a broken one costs the others."""

from benchmarks.context import Context
from benchmarks.fleet import RunnerFailed
from benchmarks.lanes import loopback, neighbours, simulated

CELLS = (simulated, loopback, neighbours)


async def run(context: Context) -> None:
    """Every cell, one after the other. One that fails is told and keeps no other from its figures."""
    for cell in CELLS:
        name = cell.__name__.rpartition(".")[2]
        if context.wanted(name) and (cell.QUICK or not context.quick):
            try:
                await cell.run(context)
            except RunnerFailed as error:
                context.fail(name, error)
