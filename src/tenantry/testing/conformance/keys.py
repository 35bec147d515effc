"""Idempotency keys: one key and one body are one job, for a day beyond its end."""

import asyncio
from dataclasses import replace

import pytest

from tenantry.kernel.verdict import Rule
from tenantry.queue.lifecycle import KEYS_KEPT_FOR
from tenantry.queue.model import Accepted, Ending, JobClass, JobState, NewJob
from tenantry.testing.conformance.world import ACME, GLOBEX, OTHER_HOOK, World, job, keyed

OTHER_BODIES = {
    "payload": replace(keyed("k"), payload=b"other"),
    "target": replace(keyed("k"), target=OTHER_HOOK),
    "class": replace(keyed("k"), job_class=JobClass.BACKGROUND),
    "content type": replace(keyed("k"), content_type="text/plain"),
}


class KeyConformance:
    """What a second submit under the same key is answered."""

    async def test_the_same_key_and_body_is_answered_with_the_first_job(self, world: World) -> None:
        (first,) = await world.submit(keyed("k"))
        again = await world.intake.submit(ACME, [keyed("k")], bound=None)
        assert again == Accepted((first,), frozenset({0}))
        assert (await world.operator.counts())[JobState.WAITING] == 1

    async def test_a_known_key_is_answered_even_where_the_bound_is_full(self, world: World) -> None:
        (first,) = await world.submit(keyed("k"), bound=1)
        assert await world.submit(keyed("k"), bound=1) == (first,)

    async def test_known_keys_take_no_room_from_the_new_jobs_beside_them(self, world: World) -> None:
        (first,) = await world.submit(keyed("k"), bound=2)
        ids = await world.submit(keyed("k"), job(1), bound=2)
        assert ids[0] == first
        assert (await world.operator.counts())[JobState.WAITING] == 2

    @pytest.mark.parametrize("other", OTHER_BODIES.values(), ids=OTHER_BODIES.keys())
    async def test_the_same_key_with_another_body_is_refused_naming_the_row(
        self, world: World, other: NewJob
    ) -> None:
        await world.submit(keyed("k"))
        refusal = await world.refused(job(1), other, job(2))
        assert (refusal.rule, refusal.retry_after) == (Rule.KEY_REUSED, None)
        assert "1" in refusal.detail
        assert (await world.operator.counts())[JobState.WAITING] == 1

    async def test_delay_and_cost_are_not_part_of_the_body(self, world: World) -> None:
        (first,) = await world.submit(keyed("k"))
        assert await world.submit(replace(keyed("k"), delay_for=5.0, cost=2.0)) == (first,)

    async def test_two_equal_keys_in_one_batch_are_one_job(self, world: World) -> None:
        answer = await world.intake.submit(ACME, [keyed("k"), job(1), keyed("k")], bound=2)
        assert isinstance(answer, Accepted)
        assert answer.ids[0] == answer.ids[2] != answer.ids[1]
        assert answer.existing == frozenset({2})
        assert (await world.operator.counts())[JobState.WAITING] == 2

    async def test_two_equal_keys_with_two_bodies_in_one_batch_are_refused_naming_the_second(
        self, world: World
    ) -> None:
        refusal = await world.refused(keyed("k", 1), keyed("other"), keyed("k", 2))
        assert refusal.rule is Rule.KEY_REUSED
        assert "2" in refusal.detail
        assert (await world.operator.counts())[JobState.WAITING] == 0
        await world.submit(keyed("k", 2))  # a refused batch leaves no key behind

    async def test_a_batch_refused_by_its_bound_leaves_no_key_behind(self, world: World) -> None:
        await world.submit(job())
        await world.refused(keyed("k", 1), bound=1)
        await world.submit(keyed("k", 2), bound=2)

    async def test_concurrent_submits_under_one_key_are_one_job(self, world: World) -> None:
        answers = await asyncio.gather(*(world.submit(keyed("k")) for _ in range(10)))
        assert len(set(answers)) == 1
        assert (await world.operator.counts())[JobState.WAITING] == 1

    async def test_two_tenants_may_use_the_same_key(self, world: World) -> None:
        ours, theirs = await world.submit(keyed("k")), await world.submit(keyed("k", 1), tenant=GLOBEX)
        assert ours != theirs

    async def test_a_key_answers_as_long_as_its_job_lives(self, world: World) -> None:
        (first,) = await world.submit(keyed("k"))
        await world.pass_time(KEYS_KEPT_FOR * 2)
        assert await world.submit(keyed("k")) == (first,)

    @pytest.mark.parametrize("ending", [Ending.DELIVERED, Ending.DEAD])
    async def test_a_key_answers_for_a_day_after_the_end_and_is_free_then(
        self, world: World, ending: Ending
    ) -> None:
        (first,) = await world.submit(keyed("k"))
        node = await world.node()
        await world.settle(node, await world.claim(node), ending)
        await world.pass_time(KEYS_KEPT_FOR - 60.0)
        assert await world.submit(keyed("k")) == (first,)
        await world.pass_time(120.0)
        (second,) = await world.submit(keyed("k", 1))
        assert second != first
        assert await world.submit(keyed("k", 1)) == (second,)

    async def test_a_cancelled_jobs_key_answers_for_a_day_too(self, world: World) -> None:
        (first,) = await world.submit(keyed("k"))
        await world.intake.cancel(ACME, first)
        assert await world.submit(keyed("k")) == (first,)
        await world.pass_time(KEYS_KEPT_FOR + 60.0)
        assert await world.submit(keyed("k")) != (first,)
