"""How a worker gets its name.

A name belongs to the worker whose heartbeat under it is fresh, by the store's clock (law K4). A worker that
was killed cannot say that it is gone: what it left is a last heartbeat, and nobody can tell that from a live
worker's by looking once. So a newcomer looks again. Another heartbeat proves that somebody lives, and the
newcomer is refused; without one the name is free once the last has aged.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenantry.kernel.errors import UsageError
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Seconds
from tenantry.queue.events import NodeNameHeld
from tenantry.queue.lifecycle import NODE_FRESH_FOR
from tenantry.queue.model import NameHeld, Node

Register = Callable[[], Awaitable[Node | NameHeld]]


@dataclass(frozen=True, slots=True)
class Joining:
    """Asks for a name until it has it. ``look_every``: seconds between two looks at a name that is held."""

    register: Register
    events: EventSink
    look_every: Seconds

    async def newcomer(self) -> Node:
        """The node, once the name is free. Raises :class:`UsageError` when its holder is seen to live, within
        about a heartbeat of the holder's."""
        held = await self.register()
        if isinstance(held, NameHeld):
            self._tell(held)
        while isinstance(held, NameHeld):
            seen = held
            await asyncio.sleep(min(seen.frees_in, self.look_every))
            held = await self.register()
            if isinstance(held, NameHeld) and lives(seen, held):
                raise UsageError(refusal(held))
        return held

    async def returning(self) -> Node:
        """The node, once the name is free, however long that takes: what else the process does goes on."""
        held = await self.register()
        if isinstance(held, NameHeld):
            self._tell(held)
        while isinstance(held, NameHeld):
            await asyncio.sleep(self.look_every)
            held = await self.register()
        return held

    def _tell(self, held: NameHeld) -> None:
        self.events(NodeNameHeld(held.node, held.incarnation, held.frees_in))


def lives(before: NameHeld, after: NameHeld) -> bool:
    """Whether somebody lived under the name between two looks at it. Pure."""
    return (after.incarnation, after.beat_at) != (before.incarnation, before.beat_at)


def refusal(held: NameHeld) -> str:
    """One line: the rule, when the name is free, what to do. Pure."""
    doing = "draining" if held.draining else "alive"
    return (
        f"the name {held.node!r} belongs to another worker, which is {doing} "
        f"(incarnation {held.incarnation}): one name is one worker. It is free as soon as that worker has "
        f"left, or {NODE_FRESH_FOR:g} s after the last heartbeat of one that was killed. Give this worker a "
        "name of its own, or end the other first"
    )
