"""What a tenant's side of the store promises: all or none, exact bounds, order, nothing of other tenants."""

import asyncio
from dataclasses import replace

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.queue.model import Accepted, BulkSet, Ending, JobClass, JobId, JobState, NewJob
from tenantry.testing.conformance.world import ACME, GLOBEX, HOOK, OTHER_HOOK, POOL, World, batch, job

DAY = 86_400.0
NOWHERE = JobId("01890000-0000-7000-8000-000000000000")


class IntakeConformance:
    """Submitting, asking and cancelling."""

    async def test_a_batch_starts_in_the_order_in_which_it_was_given(self, world: World) -> None:
        ids = await world.submit(*batch(20))
        claimed = await world.claim(await world.node())
        assert tuple(each.id for each in claimed) == ids
        assert [each.seq for each in claimed] == list(range(1, 21))

    async def test_concurrent_submits_take_seqs_without_gaps_whatever_is_refused_among_them(
        self, world: World
    ) -> None:
        answers = await asyncio.gather(
            *(world.intake.submit(ACME, batch(4), bound=30) for _ in range(10)),
        )
        accepted = [answer.ids for answer in answers if isinstance(answer, Accepted)]
        claimed = await world.claim(await world.node())
        assert [each.seq for each in claimed] == list(range(1, 4 * len(accepted) + 1))
        order = [each.id for each in claimed]
        for ids in accepted:  # a batch is not interleaved, and keeps its order
            assert tuple(order[order.index(ids[0]) :][:4]) == ids

    async def test_a_payload_and_its_content_type_come_through_unchanged(self, world: World) -> None:
        payload = bytes(range(256))
        (id_,) = await world.submit(NewJob(HOOK, payload, content_type="application/octet-stream"))
        (claimed,) = await world.claim(await world.node())
        assert (claimed.id, claimed.payload, claimed.tenant) == (id_, payload, ACME)
        assert (claimed.content_type, claimed.target) == ("application/octet-stream", HOOK)

    # -- bounds ----------------------------------------------------------------------------------------

    async def test_a_bound_is_exact_under_concurrency(self, world: World) -> None:
        answers = await asyncio.gather(*(world.intake.submit(ACME, [job(n)], bound=10) for n in range(25)))
        assert sum(isinstance(answer, Accepted) for answer in answers) == 10
        refusals = [answer for answer in answers if isinstance(answer, Refusal)]
        assert {refusal.rule for refusal in refusals} == {Rule.BOUND}
        assert (await world.operator.counts())[JobState.WAITING] == 10

    async def test_a_batch_over_the_bound_is_refused_whole_and_told_when_to_come_back(
        self, world: World
    ) -> None:
        await world.submit(*batch(8), bound=10)
        refusal = await world.refused(*batch(3), bound=10)
        assert refusal.rule is Rule.BOUND
        assert refusal.retry_after is not None
        assert 0 < refusal.retry_after < 3_600
        assert (await world.operator.counts())[JobState.WAITING] == 8
        await world.submit(*batch(2), bound=10)

    async def test_a_batch_larger_than_the_bound_itself_is_told_that_waiting_does_not_help(
        self, world: World
    ) -> None:
        refusal = await world.refused(*batch(11), bound=10)
        assert (refusal.rule, refusal.retry_after) == (Rule.BOUND, None)

    async def test_a_bound_counts_what_is_delayed_and_what_runs(self, world: World) -> None:
        await world.submit(job(1), replace(job(2), delay_for=600.0), bound=2)
        assert len(await world.claim(await world.node())) == 1
        assert (await world.refused(job(3), bound=2)).rule is Rule.BOUND

    @pytest.mark.parametrize("ending", [Ending.DELIVERED, Ending.DEAD])
    async def test_a_job_that_ended_makes_room(self, world: World, ending: Ending) -> None:
        await world.submit(*batch(2), bound=2)
        node = await world.node()
        await world.settle(node, await world.claim(node, 1), ending)
        await world.room()
        await world.submit(job(3), bound=2)
        assert (await world.refused(job(4), bound=2)).rule is Rule.BOUND

    async def test_a_cancelled_job_makes_room(self, world: World) -> None:
        ids = await world.submit(*batch(2), bound=2)
        await world.intake.cancel(ACME, ids[0])
        await world.room()
        await world.submit(job(3), bound=2)

    @pytest.mark.parametrize("ending", [Ending.RETRY, Ending.RELEASED])
    async def test_a_job_that_comes_back_keeps_its_room(self, world: World, ending: Ending) -> None:
        await world.submit(*batch(2), bound=2)
        node = await world.node()
        await world.settle(node, await world.claim(node, 1), ending)
        await world.room()
        assert (await world.refused(job(3), bound=2)).rule is Rule.BOUND

    async def test_one_tenants_bound_is_not_anothers(self, world: World) -> None:
        await world.submit(*batch(5), bound=5)
        await world.submit(*batch(5), tenant=GLOBEX, bound=5)

    # -- delays ----------------------------------------------------------------------------------------

    async def test_a_delayed_job_starts_when_the_stores_clock_says_so_and_once(self, world: World) -> None:
        (id_,) = await world.submit(replace(job(), delay_for=600.0))
        node = await world.node()
        assert await world.claim(node) == []
        view = await world.intake.job(ACME, id_)
        assert view is not None
        assert view.state is JobState.DELAYED
        assert view.due_at is not None
        await world.pass_time(601.0)
        view = await world.intake.job(ACME, id_)
        assert view is not None
        assert view.state is JobState.WAITING
        (claimed,) = await world.claim(node)
        assert (claimed.id, claimed.attempt) == (id_, 1)
        assert await world.claim(node) == []

    async def test_a_delayed_job_does_not_hold_up_those_behind_it(self, world: World) -> None:
        ids = await world.submit(replace(job(1), delay_for=600.0), job(2), job(3))
        claimed = await world.claim(await world.node())
        assert tuple(each.id for each in claimed) == ids[1:]

    # -- asking ----------------------------------------------------------------------------------------

    async def test_a_job_can_be_asked_for_in_every_state(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        states = [await _state(world, id_)]
        claimed = await world.claim(node)
        states.append(await _state(world, id_))
        await world.settle(node, claimed, Ending.DELIVERED)
        states.append(await _state(world, id_))
        assert states == [JobState.WAITING, JobState.RUNNING, JobState.DELIVERED]
        view = await world.intake.job(ACME, id_)
        assert view is not None
        assert (view.attempts, view.status) == (1, 200)
        assert view.ended_at is not None

    async def test_an_ended_job_is_kept_for_its_days_and_dropped_then(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.DELIVERED)
        await world.pass_time(5 * DAY)
        await world.feeder.tidy(keep_days=7)
        assert await _state(world, id_) is JobState.DELIVERED
        await world.pass_time(4 * DAY)
        await world.feeder.tidy(keep_days=7)
        assert await world.intake.job(ACME, id_) is None

    async def test_a_waiting_job_is_kept_however_long_it_waits(self, world: World) -> None:
        (id_,) = await world.submit(job())
        await world.pass_time(30 * DAY)
        await world.feeder.tidy(keep_days=7)
        assert await _state(world, id_) is JobState.WAITING
        assert [each.id for each in await world.claim(await world.node())] == [id_]

    async def test_jobs_are_listed_newest_first_by_state_and_no_more_than_asked(self, world: World) -> None:
        ids = await world.submit(*batch(5))
        late = await world.submit(replace(job(), delay_for=600.0))
        listed = await world.intake.jobs(ACME, state=None, limit=3)
        assert [view.id for view in listed] == [*late, ids[4], ids[3]]
        delayed = await world.intake.jobs(ACME, state=JobState.DELAYED, limit=10)
        assert [view.id for view in delayed] == [*late]
        waiting = await world.intake.jobs(ACME, state=JobState.WAITING, limit=10)
        assert [view.id for view in waiting] == list(reversed(ids))

    @pytest.mark.parametrize("limit", [-1, 0, 1_001])
    async def test_no_more_than_a_thousand_jobs_are_listed_at_once(self, world: World, limit: int) -> None:
        with pytest.raises(InvalidValue, match="1,000"):
            await world.intake.jobs(ACME, state=None, limit=limit)

    async def test_many_jobs_are_asked_for_at_once_wherever_they_are(self, world: World) -> None:
        ids = await world.submit(*batch(3), replace(job(), delay_for=600.0))
        node = await world.node()
        (ended,) = await world.claim(node, 1)
        await world.settle(node, [ended], Ending.DELIVERED)
        await world.claim(node, 1)
        assert await world.intake.states(ACME, [*ids, ids[0], NOWHERE]) == {
            ids[0]: JobState.DELIVERED,
            ids[1]: JobState.RUNNING,
            ids[2]: JobState.WAITING,
            ids[3]: JobState.DELAYED,
        }

    @pytest.mark.parametrize("tenant", [GLOBEX, TenantId("nobody")])
    async def test_a_job_of_another_tenant_is_not_there(self, world: World, tenant: TenantId) -> None:
        (id_,) = await world.submit(job())
        stored = await world.intake.submit_bulk(ACME, batch(2), most=10)
        assert isinstance(stored, BulkSet)
        assert await world.intake.job(tenant, id_) is None
        assert await world.intake.cancel(tenant, id_) is None
        assert await world.intake.facts(tenant, id_, pool=POOL) is None
        assert await world.intake.bulk(tenant, stored.id) is None
        assert await world.intake.jobs(tenant, state=None, limit=10) == []
        assert await world.intake.states(tenant, [id_]) == {}
        assert await _state(world, id_) is JobState.WAITING

    async def test_facts_count_what_stands_around_a_waiting_job(self, world: World) -> None:
        ids = await world.submit(*batch(5))
        await world.submit(*batch(2, target=OTHER_HOOK))
        await world.submit(job(), tenant=GLOBEX)
        await world.submit(replace(job(), delay_for=600.0))  # not waiting: counted nowhere
        node = await world.node(slots=7)
        await world.claim(node, 2, target=HOOK)
        facts = await world.intake.facts(ACME, ids[4], pool=POOL)
        assert facts is not None
        assert (facts.state, facts.target, facts.planner_live) == (JobState.WAITING, HOOK, True)
        assert (facts.ahead_in_flow, facts.flow_in_flight, facts.lane_in_flight) == (2, 2, 2)
        assert (facts.tenant_in_flight, facts.tenant_waiting, facts.tenants_waiting) == (2, 5, 2)
        assert facts.waiting == {ACME, GLOBEX}
        assert (facts.pool_slots, facts.pool_slots_of_kind, facts.pool_in_flight) == (7, 7, 2)
        elsewhere = await world.intake.facts(ACME, ids[4], pool="other")
        assert elsewhere is not None
        assert (elsewhere.pool_slots, elsewhere.pool_in_flight) == (0, 0)

    # -- cancelling ------------------------------------------------------------------------------------

    async def test_a_waiting_job_is_cancelled_and_never_starts(self, world: World) -> None:
        ids = await world.submit(*batch(3))
        assert await world.intake.cancel(ACME, ids[1]) is JobState.CANCELLED
        assert await world.intake.cancel(ACME, ids[1]) is JobState.CANCELLED
        claimed = await world.claim(await world.node())
        assert [each.id for each in claimed] == [ids[0], ids[2]]
        assert await _state(world, ids[1]) is JobState.CANCELLED

    async def test_a_delayed_job_is_cancelled_and_never_starts(self, world: World) -> None:
        (id_,) = await world.submit(replace(job(), delay_for=60.0))
        assert await world.intake.cancel(ACME, id_) is JobState.CANCELLED
        await world.pass_time(61.0)
        assert await world.claim(await world.node()) == []

    async def test_a_job_between_two_attempts_is_cancelled_and_never_starts_again(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.RETRY)
        assert await world.intake.cancel(ACME, id_) is JobState.CANCELLED
        assert await world.claim(node) == []

    async def test_a_running_job_is_not_cancelled(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        claimed = await world.claim(node)
        assert await world.intake.cancel(ACME, id_) is JobState.RUNNING
        assert await world.settle(node, claimed, Ending.DELIVERED) == 1
        assert await world.intake.cancel(ACME, id_) is JobState.DELIVERED

    async def test_a_job_that_does_not_exist_cannot_be_cancelled(self, world: World) -> None:
        assert await world.intake.cancel(ACME, NOWHERE) is None

    async def test_classes_and_targets_are_flows_of_their_own(self, world: World) -> None:
        kinds = [job(), replace(job(), job_class=JobClass.BACKGROUND), job(target=OTHER_HOOK)]
        await world.submit(*kinds)
        await world.submit(*kinds)
        claimed = await world.claim(await world.node())
        flows = {(each.target, each.job_class): each.flow for each in claimed}
        assert len(set(flows.values())) == len(flows) == 3
        assert sorted(each.seq for each in claimed) == [1, 1, 1, 2, 2, 2]


async def _state(world: World, id_: JobId) -> JobState:
    view = await world.intake.job(ACME, id_)
    assert view is not None
    return view.state
