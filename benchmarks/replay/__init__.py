"""Replays: how fast a backlog drains, how fairly many at once, and whether the end is foretold."""

from benchmarks.context import Context
from benchmarks.replay import dedup, drain, estimates, incident, loopback

CELLS = (estimates, drain, incident, dedup, loopback)


async def run(context: Context) -> None:
    """Every cell."""
    await context.each(CELLS)
