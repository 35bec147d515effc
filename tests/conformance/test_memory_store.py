"""The store in memory keeps every promise of the queue's ports."""

import pytest

from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import SeededRandomness
from tenantry.memory.queue_store import MemoryQueueStore
from tenantry.testing.clock import ManualClock
from tenantry.testing.conformance.queue_store import OpenWorld, QueueStoreConformance
from tenantry.testing.conformance.world import World


class MovedClock:
    """Time passes because the clock is moved."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def pass_time(self, seconds: Seconds) -> None:
        self._clock.advance(seconds)


class TestMemoryStore(QueueStoreConformance):
    @pytest.fixture
    async def open_world(self) -> OpenWorld:
        async def opened() -> World:
            clock = ManualClock()
            store = MemoryQueueStore(clock, SeededRandomness(1))
            return World(store, store, store, store, store, MovedClock(clock), store)

        return opened
