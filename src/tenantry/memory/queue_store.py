"""The queue's store in memory: for library use without a database, and the oracle in tests.

Authority: the clock it is given. Durability: none, everything ends with the process. Transactions: each call
runs without an await, so calls from many tasks of one event loop never interleave. All promises of
:mod:`tenantry.queue.ports` hold besides durability, and the conformance suite checks them.

It is strict where a database need not be: a planner that claims a place twice, or one that was never given,
gets :class:`~tenantry.kernel.errors.InvariantBroken`, and nothing of its round is written.
"""

from typing import overload

from tenantry.kernel.clock import Clock
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.memory.books import Books
from tenantry.memory.queue_intake import IntakeSide
from tenantry.memory.queue_operator import FeederSide, OperatorSide
from tenantry.memory.queue_planner import PlannerSide
from tenantry.memory.queue_replays import ReplaySide
from tenantry.memory.queue_worker import WorkerSide
from tenantry.queue.model import Node


class MemoryQueueStore(IntakeSide, OperatorSide, PlannerSide, WorkerSide, FeederSide, ReplaySide):
    """Implements every port of the queue. One event loop.

    ``clock``: its ``now()`` decides leases and due times. ``randomness``: makes ids. Memory: what has not
    ended, a day of idempotency keys, what the last ``tidy`` (a feeder calls it) has left of what ended, and a
    small record for each flow that ever was.
    """

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._books = Books(clock, randomness)

    @overload
    async def wait(self, at_most: Seconds) -> None: ...
    @overload
    async def wait(self, node: Node, at_most: Seconds) -> None: ...
    async def wait(  # type: ignore[misc]  # the ports differ in what stands first, and both are met
        self, node: Node | Seconds | None = None, at_most: Seconds | None = None
    ) -> None:
        """``wait(at_most)`` is the planner's, ``wait(node, at_most)`` a worker's: two ports, one store."""
        if isinstance(node, Node):
            await self._books.claims_signal(node.id).wait(at_most or 0.0)
        else:
            await self._books.changed.wait(node or at_most or 0.0)
