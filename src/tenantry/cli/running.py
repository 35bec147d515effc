"""A node as a process, under signals.

The first SIGTERM, SIGINT or SIGHUP ends it in order, the second without the drain, the third at once.
Whatever is left behind by that, leases and the next start take care of.
"""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tenantry.cli.assembly import Node, assemble
from tenantry.cli.settings import NodeSettings
from tenantry.kernel.events import EventSink

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def serve(
    settings: NodeSettings, announce: Callable[[Node], Awaitable[None]], events: EventSink
) -> None:
    """A node until a signal ends it. ``announce`` is awaited once it serves. Raises as :func:`assemble`."""
    async with ended_by_signals() as stop, assemble(settings, events=events) as node:
        await announce(node)
        gc.freeze()  # modules stay; looking through them for garbage held all up for a twentieth of a second
        await stop.wait()


@asynccontextmanager
async def ended_by_signals() -> AsyncIterator[asyncio.Event]:
    """An event that the first signal sets. The second cancels the task that is inside, the third exits.

    Cancelled like that, the block ends in SystemExit.
    """
    stop, loop, task, seen = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task(), [0]

    def heard(number: int) -> None:
        seen[0] += 1
        if seen[0] == 1:
            stop.set()
        elif seen[0] == 2 and task is not None:
            task.cancel()
        else:
            os._exit(128 + number)

    for number in _ENDING:
        loop.add_signal_handler(number, heard, number)
    try:
        yield stop
    except asyncio.CancelledError:
        if seen[0] < 2:
            raise
        raise SystemExit(130) from None  # a second signal is an order, not a failure
    finally:
        for number in _ENDING:
            loop.remove_signal_handler(number)
