"""That the planner's memory says what the store says (law K3), whoever listens and whoever rebuilds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.queue.lifecycle import START_LEASE
from tenantry.queue.model import Ending, JobState
from tenantry.testing.conformance.dispatch import A, B, C, Dispatch, Open, few, jobs, registry, tier
from tenantry.testing.conformance.world import HOOK, LIVE_ENDINGS, OTHER_HOOK


class AccountingConformance:
    """In flight is what live claims hold."""

    @given(data=st.data())
    @few
    async def test_k3_in_flight_is_what_live_claims_hold_and_a_rebuild_changes_no_account(
        self, opened: Open, data: st.DataObject
    ) -> None:
        """Whatever ends how, the memory of one who listens and of one who rebuilds says the same, and it
        is what the nodes hold and the store counts."""
        queue = await opened(registry({A: tier("a", 3.0), B: tier("b", cap=0.5), C: tier("c", pool="gold")}))
        await queue.node("one", slots=3)
        await queue.node("two", slots=2, pool="gold")
        endings = data.draw(st.lists(st.sampled_from(LIVE_ENDINGS), min_size=5, max_size=5))
        queue.ending = lambda job: endings[(job.seq + job.attempt) % 5] if job.attempt < 4 else Ending.DEAD
        for _ in range(10):
            step = data.draw(st.sampled_from(["submit", "later", "keyed", "end", "rebuild", "cancel"]))
            await _tell(queue, step, data)
            await queue.round()
            await _check_accounts(queue)
        await queue.rebuild()
        await queue.round()
        await _check_accounts(queue)

    async def test_k3_slots_of_workers_killed_between_claim_and_start_return_and_a_fourth_job_runs(
        self, opened: Open
    ) -> None:
        """Case Q9: three times, at cap 3."""
        queue = await opened(registry({A: tier("capped", cap=0.3)}))
        await queue.submit(A, jobs(4))
        for life in range(3):
            await queue.node(f"life {life}", slots=10)
            assert await queue.round_for_nobody() == 3
            assert await queue.round_for_nobody() == 0, "the cap is held by what was never started"
            await queue.world.pass_time(START_LEASE + 1.0)
            assert (await queue.world.worker.reclaim(limit=10)).jobs == 3
        await queue.node("fourth", slots=10)
        assert [job.attempt for job in await queue.round()] == [1, 1, 1]
        await queue.run_dry()
        assert (await queue.world.operator.counts())[JobState.DELIVERED] == 4

    async def test_k3_a_rebuild_in_mid_run_keeps_the_shares(self, opened: Open) -> None:
        queue = await opened(registry({A: tier("a", 1.0), B: tier("b", 3.0)}))
        queue.length = lambda job: 3.0 if job.tenant == A else 1.0
        await queue.node(slots=8)
        for each in (A, B):
            await queue.submit(each, jobs(400))
        await queue.run(30.0)
        await queue.rebuild()
        await queue.run(30.0)
        assert queue.share(B) == pytest.approx(0.75, abs=0.03)


async def _tell(queue: Dispatch, step: str, data: st.DataObject) -> None:
    tenant = data.draw(st.sampled_from([A, B, C]))
    count = data.draw(st.integers(1, 6))
    match step:
        case "end" if queue.held():
            await queue.next_end()
        case "rebuild":
            await queue.rebuild()
        case "cancel":
            for view in await queue.world.intake.jobs(tenant, state=JobState.WAITING, limit=count):
                await queue.world.intake.cancel(tenant, view.id)
        case "later":
            await queue.world.submit(*jobs(count, delay_for=600.0), tenant=tenant)
        case "keyed":
            await queue.submit(tenant, jobs(count, ordering_key="k"))
        case _:
            await queue.submit(tenant, jobs(count, target=data.draw(st.sampled_from([HOOK, OTHER_HOOK]))))


async def _check_accounts(queue: Dispatch) -> None:
    assert queue.memory.in_flight() == {(job.flow, job.seq) for job in queue.held()}
    counts = await queue.world.operator.counts()
    backlogs = queue.memory.backlogs(queue.at)
    told = {
        JobState.WAITING: sum(backlog.waiting for backlog in backlogs),
        JobState.DELAYED: sum(backlog.delayed for backlog in backlogs),
        JobState.RUNNING: sum(backlog.running for backlog in backlogs),
    }
    assert told == {state: counts[state] for state in told}
    assert list(await queue.world.operator.audit()) == []
