"""Handlers for nodes that are real processes: ``tenantry worker --handlers story_handlers``."""

import asyncio

from tenantry.delivery.handlers import Handlers
from tenantry.queue.model import ClaimedJob

handlers = Handlers(threads=1)
idle = Handlers(threads=1)
"""For a node that stands by as planner and runs nothing of the story."""


@handlers.register("brief")
async def brief(job: ClaimedJob) -> None:
    """A few milliseconds, so that a kill finds jobs in every state."""
    await asyncio.sleep(0.002 + job.seq % 7 / 1_000)


@handlers.register("steady")
async def steady(job: ClaimedJob) -> None:
    """Always as long, so that a rate of them is a number of busy slots."""
    await asyncio.sleep(0.05)


@handlers.register("long")
async def long(job: ClaimedJob) -> None:
    """As many seconds as its payload says."""
    await asyncio.sleep(float(job.payload))


@idle.register("idle")
async def nothing(job: ClaimedJob) -> None:
    """Nobody submits these."""
