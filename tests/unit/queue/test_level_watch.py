"""What a node knows of levels: from memory, and no longer than the store said."""

import asyncio
from collections.abc import Sequence

import pytest

from tenantry.algorithms.shedding import Level
from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.events import Event
from tenantry.queue.events import StoreFailed
from tenantry.queue.level_watch import LevelWatch
from tenantry.queue.model import PoolLevel, StandingLevel
from tenantry.testing.clock import ManualClock

LEVEL = PoolLevel("shared", Level.BACKGROUND, 9.0, 1.0, 15.0)


class Source:
    """A store that answers as the story says, ``takes`` seconds after it was asked."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.takes, self.away = clock, 0.0, False
        self.asked, self.looked = 0, asyncio.Event()
        self.levels_there = [StandingLevel(LEVEL, 3.0, 8.0)]

    async def levels(self) -> Sequence[StandingLevel]:
        self.asked += 1
        self.looked.set()
        self.clock.advance(self.takes)
        if self.away:
            raise StoreUnavailable("away")
        return self.levels_there

    async def looks(self, count: int) -> None:
        """Until it was asked ``count`` times more."""
        wanted = self.asked + count
        while self.asked < wanted:
            self.looked.clear()
            await self.looked.wait()


class Watched:
    def __init__(self) -> None:
        self.clock, self.told = ManualClock(), list[Event]()
        self.source = Source(self.clock)
        self.watch = LevelWatch(self.source, clock=self.clock, events=self.told.append, every=0.001)


async def test_it_answers_from_memory_and_only_of_pools_that_shed() -> None:
    world = Watched()
    assert world.watch.level_of("shared") is None
    await world.watch.refresh()
    assert world.watch.level_of("shared") == LEVEL
    assert world.watch.level_of("gold") is None
    assert world.source.asked == 1


async def test_a_level_is_trusted_from_before_it_was_asked_for_and_not_longer_than_it_is_fresh() -> None:
    world = Watched()
    world.source.takes = 5.0
    await world.watch.refresh()
    world.clock.advance(2.9)
    assert world.watch.level_of("shared") == LEVEL
    world.clock.advance(0.2)
    assert world.watch.level_of("shared") is None


async def test_what_no_longer_sheds_is_forgotten_at_the_next_look() -> None:
    world = Watched()
    await world.watch.refresh()
    world.source.levels_there = []
    await world.watch.refresh()
    assert world.watch.level_of("shared") is None


async def test_a_store_that_is_away_leaves_what_is_known_until_it_runs_out() -> None:
    world = Watched()
    await world.watch.refresh()
    world.source.away = True
    with pytest.raises(StoreUnavailable):
        await world.watch.refresh()
    assert world.watch.level_of("shared") == LEVEL
    world.clock.advance(8.0)
    assert world.watch.level_of("shared") is None


async def test_it_looks_again_and_again_and_tells_when_it_could_not() -> None:
    world = Watched()
    world.source.away = True
    looking = asyncio.create_task(world.watch.run())
    await world.source.looks(3)
    assert world.told[0] == StoreFailed("levels", "StoreUnavailable", 0.001)
    world.source.away = False
    await world.source.looks(2)
    assert world.watch.level_of("shared") == LEVEL
    looking.cancel()
