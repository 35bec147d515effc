"""What the operator's side promises: lanes that pause, counts that are exact, books that add up."""

from dataclasses import replace

from tenantry.kernel.verdict import Rule
from tenantry.queue.model import Ending, JobState
from tenantry.testing.conformance.world import ACME, GLOBEX, HOOK, World, batch, job


class OperatorConformance:
    """Across tenants."""

    async def test_a_paused_lane_accepts_up_to_the_bound(self, world: World) -> None:
        await world.operator.set_paused(ACME, HOOK, paused=True)
        await world.submit(*batch(3), bound=3)
        assert (await world.refused(job(), bound=3)).rule is Rule.BOUND

    async def test_a_lane_paused_before_its_first_job_is_known_to_be_paused(self, world: World) -> None:
        await world.operator.set_paused(ACME, HOOK, paused=True)
        await world.submit(job())
        await world.submit(job(), tenant=GLOBEX)
        paused = {flow.opened.tenant: flow.opened.lane_paused for flow in (await world.hand.begin()).flows}
        assert paused == {ACME: True, GLOBEX: False}

    async def test_counts_are_exact_in_every_state(self, world: World) -> None:
        ids = await world.submit(*batch(7), replace(job(), delay_for=600.0))
        await world.submit(job(), tenant=GLOBEX)
        node = await world.node()
        held = await world.claim(node, 4)
        await world.settle(node, held[:1], Ending.DELIVERED)
        await world.settle(node, held[1:2], Ending.DEAD)
        await world.intake.cancel(ACME, ids[6])
        assert dict(await world.operator.counts()) == {
            JobState.WAITING: 3,
            JobState.DELAYED: 1,
            JobState.RUNNING: 2,
            JobState.DELIVERED: 1,
            JobState.DEAD: 1,
            JobState.CANCELLED: 1,
        }

    async def test_a_job_that_falls_due_is_counted_as_waiting(self, world: World) -> None:
        await world.submit(replace(job(), delay_for=60.0))
        await world.pass_time(61.0)
        counts = await world.operator.counts()
        assert (counts[JobState.WAITING], counts[JobState.DELAYED]) == (1, 0)

    async def test_the_counts_of_an_empty_store_are_zeros(self, world: World) -> None:
        counts = await world.operator.counts()
        assert {state: counts[state] for state in JobState} == dict.fromkeys(JobState, 0)
        assert list(await world.operator.audit()) == []
