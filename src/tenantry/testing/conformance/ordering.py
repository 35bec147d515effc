"""Ordering keys: one at a time, in submit order, in a flow of their own."""

from dataclasses import replace

from tenantry.queue.model import Ending, JobClass, NewJob
from tenantry.testing.conformance.world import OTHER_HOOK, World, job, settlement


def ordered(number: int, key: str = "k") -> NewJob:
    return replace(job(number), ordering_key=key)


class OrderingConformance:
    """What an ordering key makes of a flow."""

    async def test_jobs_of_one_key_run_one_at_a_time_in_submit_order(self, world: World) -> None:
        ids = await world.submit(*(ordered(number) for number in range(3)))
        node = await world.node()
        seen = []
        for _ in ids:
            (claimed,) = await world.claim(node)
            assert claimed.ordered
            assert await world.claim(node) == []
            seen.append(claimed.id)
            await world.settle(node, [claimed], Ending.DELIVERED)
        assert tuple(seen) == ids

    async def test_a_retry_of_an_ordered_job_comes_before_those_behind_it(self, world: World) -> None:
        ids = await world.submit(ordered(1), ordered(2))
        node = await world.node()
        (claimed,) = await world.claim(node)
        await world.worker.settle(node, [settlement(claimed, Ending.RETRY)])
        (again,) = await world.claim(node)
        assert (again.id, again.attempt) == (ids[0], 2)

    async def test_a_key_means_the_same_flow_at_every_submit(self, world: World) -> None:
        await world.submit(ordered(1))
        node = await world.node()
        (first,) = await world.claim(node)
        await world.settle(node, [first], Ending.DELIVERED)
        await world.submit(ordered(2))
        (second,) = await world.claim(node)
        assert (first.flow, first.seq, second.seq) == (second.flow, 1, 2)

    async def test_keys_spread_over_flows_and_never_mix_lanes_or_classes(self, world: World) -> None:
        jobs = [ordered(number, f"key {number}") for number in range(40)]
        jobs += [replace(each, target=OTHER_HOOK) for each in jobs[:1]]
        jobs += [replace(each, job_class=JobClass.BACKGROUND) for each in jobs[:1]]
        await world.submit(*jobs, job())
        claimed = await world.claim(await world.node())
        flows = {each.flow for each in claimed}
        assert len(flows) == len(claimed)  # one in flight in each
        assert 20 <= len(flows) <= 43
        assert [each.ordered for each in claimed].count(False) == 1
