"""Bulk sets: stored once, fed in as room appears, and their counts add up at every moment."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.queue.model import BulkSet, Ending, JobState, NewJob
from tenantry.testing.conformance.world import ACME, GLOBEX, World, batch, job, keyed

DAY = 86_400.0


class FeederConformance:
    """From the store into the flows."""

    async def test_a_set_is_stored_whole_and_takes_no_room(self, world: World) -> None:
        stored = await stored_set(world, ACME, batch(50))
        assert (stored.tenant, stored.total, stored.stored, stored.queued) == (ACME, 50, 50, 0)
        assert await world.intake.bulk(ACME, stored.id) == stored
        assert (await world.operator.counts())[JobState.WAITING] == 0
        await world.submit(*batch(5), bound=5)

    async def test_a_set_is_fed_within_the_bound_as_room_appears(self, world: World) -> None:
        stored = await stored_set(world, ACME, batch(7))
        node = await world.node()
        moved = []
        for _ in range(3):
            moved.append(await feed(world, ACME, bound=3, limit=100))
            assert await feed(world, ACME, bound=3, limit=100) == 0
            await world.settle(node, await world.claim(node), Ending.DELIVERED)
            await world.room()
        assert moved == [3, 3, 1]
        assert (await _set(world, stored)).delivered == 7

    async def test_a_feed_moves_no_more_than_its_limit(self, world: World) -> None:
        await stored_set(world, ACME, batch(10))
        assert await feed(world, ACME, bound=None, limit=4) == 4
        assert await feed(world, ACME, bound=None, limit=100) == 6

    async def test_a_limit_is_each_tenants_own(self, world: World) -> None:
        await stored_set(world, ACME, batch(5))
        await stored_set(world, GLOBEX, batch(5))
        assert [await feed(world, tenant, bound=None, limit=3) for tenant in (ACME, GLOBEX)] == [3, 3]

    async def test_what_a_tenant_may_store_is_bounded_and_what_is_fed_makes_room(self, world: World) -> None:
        await stored_set(world, ACME, batch(3))
        refusal = await world.intake.submit_bulk(ACME, batch(3), most=5)
        assert isinstance(refusal, Refusal)
        assert refusal.rule is Rule.BOUND
        assert refusal.retry_after is not None
        assert isinstance(await world.intake.submit_bulk(GLOBEX, batch(3), most=5), BulkSet)
        await feed(world, ACME, bound=None, limit=1)
        assert isinstance(await world.intake.submit_bulk(ACME, batch(3), most=5), BulkSet)

    async def test_a_set_larger_than_what_may_be_stored_is_told_that_waiting_does_not_help(
        self, world: World
    ) -> None:
        refusal = await world.intake.submit_bulk(ACME, batch(6), most=5)
        assert isinstance(refusal, Refusal)
        assert (refusal.rule, refusal.retry_after) == (Rule.BOUND, None)
        assert await world.feeder.stored_tenants() == []

    async def test_sets_are_fed_in_the_order_in_which_they_came(self, world: World) -> None:
        await stored_set(world, ACME, [job(1), job(2)])
        await stored_set(world, ACME, [job(3)])
        await feed(world, ACME, bound=None, limit=100)
        claimed = await world.claim(await world.node())
        assert [each.payload for each in claimed] == [job(number).payload for number in (1, 2, 3)]

    async def test_only_the_named_tenants_are_fed(self, world: World) -> None:
        ours = await stored_set(world, ACME, batch(2))
        theirs = await stored_set(world, GLOBEX, batch(2))
        assert sorted(await world.feeder.stored_tenants()) == [ACME, GLOBEX]
        await feed(world, GLOBEX, bound=None, limit=100)
        assert list(await world.feeder.stored_tenants()) == [ACME]
        assert (await _set(world, ours)).stored == 2
        found = await world.intake.bulk(GLOBEX, theirs.id)
        assert found is not None
        assert (found.stored, found.queued) == (0, 2)

    async def test_the_counts_of_a_set_add_up_through_every_ending(self, world: World) -> None:
        stored = await stored_set(world, ACME, batch(6))
        node = await world.node()
        await feed(world, ACME, bound=4, limit=100)
        held = await world.claim(node, 3)
        await world.settle(node, held[:1], Ending.DELIVERED)
        await world.settle(node, held[1:2], Ending.DEAD)
        await world.settle(node, held[2:], Ending.RETRY)
        await world.intake.cancel(ACME, held[2].id)
        now = await _set(world, stored)
        assert (now.stored, now.queued, now.delivered, now.dead, now.cancelled) == (2, 1, 1, 1, 1)
        assert now.total == 6

    async def test_a_set_counts_its_ends_after_their_retention_and_is_dropped_when_all_are_past_it(
        self, world: World
    ) -> None:
        stored = await stored_set(world, ACME, batch(4))
        await feed(world, ACME, bound=None, limit=2)
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.DELIVERED)
        await world.pass_time(9 * DAY)
        await world.feeder.tidy(keep_days=7)
        await world.feeder.tidy(keep_days=7)  # counted once, however often it is tidied
        now = await _set(world, stored)
        assert (now.stored, now.queued, now.delivered) == (2, 0, 2)
        await feed(world, ACME, bound=None, limit=2)
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.DEAD)
        await world.feeder.tidy(keep_days=7)
        now = await _set(world, stored)
        assert (now.queued, now.delivered, now.dead) == (0, 2, 2)
        await world.pass_time(9 * DAY)
        await world.feeder.tidy(keep_days=7)
        assert await world.intake.bulk(ACME, stored.id) is None

    async def test_a_delay_in_a_set_counts_from_when_the_set_was_stored(self, world: World) -> None:
        await stored_set(world, ACME, [replace(job(), delay_for=60.0), replace(job(), delay_for=600.0)])
        await world.pass_time(120.0)
        await feed(world, ACME, bound=None, limit=100)
        counts = await world.operator.counts()
        assert (counts[JobState.WAITING], counts[JobState.DELAYED]) == (1, 1)

    async def test_a_set_takes_no_idempotency_keys(self, world: World) -> None:
        with pytest.raises(InvalidValue, match=r"jobs\[1\]\.idempotency_key"):
            await stored_set(world, ACME, [job(), keyed("k")])


async def stored_set(world: World, tenant: TenantId, jobs: Sequence[NewJob]) -> BulkSet:
    """A set that was accepted."""
    answer = await world.intake.submit_bulk(tenant, jobs, most=1_000)
    assert isinstance(answer, BulkSet), answer
    return answer


async def feed(world: World, tenant: TenantId, *, bound: int | None, limit: int) -> int:
    """How many jobs moved; none died."""
    fed = await world.feeder.feed(tenant, bound=bound, limit=limit)
    assert fed.died == ()
    return fed.moved


async def _set(world: World, stored: BulkSet) -> BulkSet:
    found = await world.intake.bulk(ACME, stored.id)
    assert found is not None
    parts = found.stored + found.queued + found.delivered + found.dead + found.cancelled
    assert parts == found.total
    return found
