"""The replays' store in memory keeps every promise of its ports."""

import pytest
from test_memory_store import MovedClock

from tenantry.kernel.randomness import SeededRandomness
from tenantry.memory.queue_store import MemoryQueueStore
from tenantry.memory.replay_books import ReplayBooks
from tenantry.memory.replay_desk import MemoryReplayDesk
from tenantry.memory.replay_store import MemoryReplayStore
from tenantry.testing.clock import ManualClock
from tenantry.testing.conformance.replay_store import OpenReplays, ReplayStoreConformance
from tenantry.testing.conformance.replay_world import ReplayWorld
from tenantry.testing.conformance.world import World


class TestMemoryReplays(ReplayStoreConformance):
    @pytest.fixture
    async def open_replays(self) -> OpenReplays:
        async def opened() -> ReplayWorld:
            clock = ManualClock()
            store = MemoryQueueStore(clock, SeededRandomness(1))
            queue = World(store, store, store, store, store, MovedClock(clock), store)
            books = ReplayBooks(store)
            return ReplayWorld(queue, MemoryReplayDesk(books), MemoryReplayStore(books))

        return opened
