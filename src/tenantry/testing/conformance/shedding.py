"""What the store promises about overload: what the planner says of a pool is read while it is fresh."""

from dataclasses import replace

import pytest

from tenantry.algorithms.shedding import Level
from tenantry.kernel.errors import PlaceLost
from tenantry.queue.model import Ending, PoolLevel
from tenantry.testing.conformance.world import ACME, POOL, World, job, settlement

FRESH_FOR = 20.0
PRESSED = PoolLevel(POOL, Level.BACKGROUND, age=9.5, used=1.0, falls_in=15.0)
WORSE = replace(PRESSED, level=Level.RETRIES, falls_in=30.0)
OVER = replace(PRESSED, level=Level.NONE, age=0.0, used=0.25, falls_in=0.0)


class SheddingConformance:
    """Levels, and how long they mean anything."""

    async def test_what_the_planner_says_of_a_pool_is_read_by_all(self, world: World) -> None:
        assert await world.operator.levels() == []
        other = replace(WORSE, pool="gold")
        await self._say(world, PRESSED, other)
        found = await world.operator.levels()
        assert [each.level for each in found] == [other, PRESSED]
        assert all(0.0 < each.fresh_for <= FRESH_FOR and each.stands_for >= 0.0 for each in found)

    async def test_a_pool_that_sheds_nothing_is_not_told_of(self, world: World) -> None:
        await self._say(world, PRESSED)
        await self._say(world, OVER)
        assert await world.operator.levels() == []

    async def test_a_level_whose_planner_is_gone_means_nothing_once_it_is_no_longer_fresh(
        self, world: World
    ) -> None:
        await self._say(world, WORSE)
        await world.pass_time(FRESH_FOR / 2)
        (found,) = await world.operator.levels()
        assert found.fresh_for <= FRESH_FOR / 2
        await world.pass_time(FRESH_FOR / 2 + 0.1)
        assert await world.operator.levels() == []

    async def test_said_again_it_is_fresh_again_and_counts_from_when_it_began(self, world: World) -> None:
        await self._say(world, PRESSED)
        await world.pass_time(FRESH_FOR * 0.75)
        await self._say(world, PRESSED)
        await world.pass_time(FRESH_FOR * 0.75)
        (found,) = await world.operator.levels()
        assert found.stands_for >= FRESH_FOR * 1.5

    async def test_another_level_and_one_after_a_gap_count_from_themselves(self, world: World) -> None:
        await self._say(world, PRESSED)
        await world.pass_time(FRESH_FOR / 2)
        await self._say(world, WORSE)
        (found,) = await world.operator.levels()
        assert found.stands_for < FRESH_FOR / 2
        await world.pass_time(FRESH_FOR + 1.0)
        await self._say(world, WORSE)
        (found,) = await world.operator.levels()
        assert found.stands_for < FRESH_FOR / 2

    async def test_the_next_planner_is_told_what_the_last_one_said(self, world: World) -> None:
        await self._say(world, WORSE)
        assert (await world.hand.rebuild()).levels == (WORSE,)

    async def test_one_that_lost_its_place_says_nothing(self, world: World) -> None:
        await world.hand.begin()
        stale = world.hand.term
        assert stale is not None
        await world.planner.leave_place(stale)
        with pytest.raises(PlaceLost):
            await world.planner.keep_levels(stale, [PRESSED], FRESH_FOR)
        assert await world.operator.levels() == []

    async def test_why_a_retry_waits_is_told_with_the_level_of_its_pool(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        (claimed,) = await world.claim(node)
        await world.worker.settle(node, [settlement(claimed, Ending.RETRY)])
        await self._say(world, WORSE, replace(WORSE, pool="gold", level=Level.STANDARD))
        facts = await world.intake.facts(ACME, id_, pool=POOL)
        assert facts is not None
        assert facts.pool_level is Level.RETRIES

    async def _say(self, world: World, *levels: PoolLevel) -> None:
        await world.hand.listen()
        assert world.hand.term is not None
        await world.planner.keep_levels(world.hand.term, levels, FRESH_FOR)
