"""What may start now, and in which order: the laws F3, F4, F7 and F8, ordering keys and pools."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.lanes.model import HTTP, Kind, Lane, Target
from tenantry.queue.model import ClaimedJob, Ending, JobClass, JobState
from tenantry.testing.conformance.dispatch import A, B, C, Open, equals, few, jobs, registry, tier
from tenantry.testing.conformance.world import HOOK, LIVE_ENDINGS, OTHER_HOOK

MAIL = Kind("handler:mail")
WEIGHTS, CAPS = st.floats(0.1, 100.0), st.sampled_from([0.2, 0.5, 1.0])


class StartingConformance:
    """Starts, by the round."""

    # -- F3: work-conserving ----------------------------------------------------------------------------

    @given(data=st.data())
    @few
    async def test_f3_after_a_round_no_free_slot_stands_beside_an_eligible_job(
        self, opened: Open, data: st.DataObject
    ) -> None:
        """Over kinds, pools, caps, lane limits and paused lanes, by a reckoning of the suite's own."""
        tiers = {each: tier(each, data.draw(WEIGHTS), cap=data.draw(CAPS)) for each in (A, B, C)}
        queue = await opened(registry(tiers, lane_limit=data.draw(st.sampled_from([None, 1, 3]))))
        lengths = data.draw(st.lists(st.floats(0.1, 5.0), min_size=3, max_size=3))
        queue.length = lambda job: lengths[job.seq % 3]
        for number in range(data.draw(st.integers(1, 3))):
            kinds = data.draw(st.sampled_from([(HTTP,), (MAIL,), (HTTP, MAIL)]))
            await queue.node(f"n{number}", slots=data.draw(st.integers(1, 4)), kinds=kinds)
        paused = Lane(A, HOOK)
        await queue.world.pause(A)
        for each in data.draw(st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=6)):
            target = data.draw(st.sampled_from([HOOK, OTHER_HOOK, Target(MAIL)]))
            await queue.submit(each, jobs(data.draw(st.integers(1, 8)), target=target))
        for _ in range(12):
            await queue.round()
            assert queue.unserved(paused=[paused]) == []
            if not queue.held():
                break
            await queue.next_end()
        assert all(Lane(job.tenant, job.target) != paused for job in queue.started)

    async def test_f3_one_kind_at_its_limit_does_not_hold_up_the_others(self, opened: Open) -> None:
        queue = await opened(equals(A, B))
        await queue.node("mail", slots=1, kinds=(MAIL,))
        await queue.node("web", slots=3)
        await queue.submit(A, jobs(50, target=Target(MAIL)))
        await queue.submit(B, jobs(50))
        await queue.round()
        assert (queue.running(A), queue.running(B)) == (1, 3)

    async def test_f3_rate_limited_work_is_skipped_and_not_waited_for(self, opened: Open) -> None:
        """Case Q2: 1,000 jobs at 30 a minute, 50 slots; then one job of another tenant."""
        queue = await opened(registry({A: tier("slow", dispatch_rate=0.5), B: tier("free")}))
        await queue.node(slots=50)
        await queue.submit(A, jobs(1_000))
        await queue.run(2.0)
        (other,) = await queue.submit(B, jobs(1))
        assert other in {job.id for job in await queue.round()}
        assert 1 <= sum(job.tenant == A for job in queue.started) <= 2

    # -- F4: cap ----------------------------------------------------------------------------------------

    async def test_f4_twenty_jobs_each_in_one_statement_never_run_more_than_three_of_one(
        self, opened: Open
    ) -> None:
        """Case Q1: cap 3 of 10 slots, equal submit times; each tenant's jobs start in submit order."""
        queue = await opened(registry(dict.fromkeys((A, B), tier("capped", cap=0.3))))
        await queue.node(slots=10)
        order = {each: await queue.submit(each, jobs(20)) for each in (A, B)}
        while queue.waiting(A) or queue.waiting(B):
            await queue.round()
            assert max(queue.running(A), queue.running(B)) <= 3
            await queue.next_end()
        for each, ids in order.items():
            assert tuple(job.id for job in queue.started if job.tenant == each) == ids

    async def test_f4_a_lowered_cap_revokes_nothing_and_a_raised_one_acts_at_once(self, opened: Open) -> None:
        queue = await opened(registry({A: tier("a"), B: tier("b")}))
        queue.length = lambda job: 1.0 + job.seq % 10 / 10.0
        await queue.node(slots=10)
        await queue.submit(A, jobs(200))
        await queue.round()
        assert queue.running(A) == 10
        queue.directory.replace(registry({A: tier("a", cap=0.2), B: tier("b")}))
        assert await queue.round() == []
        assert queue.running(A) == 10, "what runs goes on"
        await queue.next_end()
        while queue.running(A) > 2:
            assert await queue.round() == []
            await queue.next_end()
        await queue.round()
        assert queue.running(A) == 2
        queue.directory.replace(registry({A: tier("a"), B: tier("b")}))
        await queue.round()
        assert queue.running(A) == 10

    async def test_f4_the_cap_follows_the_pools_live_slots(self, opened: Open) -> None:
        queue = await opened(registry({A: tier("capped", cap=0.5)}))
        await queue.node("one", slots=4)
        await queue.submit(A, jobs(50))
        await queue.round()
        assert queue.running(A) == 2
        await queue.node("two", slots=6)
        await queue.round()
        assert queue.running(A) == 5

    # -- F7: blocked work -------------------------------------------------------------------------------

    async def test_f7_a_blocked_backlog_delays_nobody_and_takes_its_turn_when_it_is_unblocked(
        self, opened: Open
    ) -> None:
        queue = await opened(equals(A, B))
        await queue.node(slots=4)
        await queue.world.pause(A)
        await queue.submit(A, jobs(500))
        await queue.submit(B, jobs(200))
        await queue.run(10.0)
        assert (queue.used(A), queue.used(B)) == (0.0, 40.0)
        await queue.world.resume(A)
        resumed = queue.at
        await queue.run(20.0)
        assert queue.used(A, since=resumed) == pytest.approx(40.0, abs=4.5), "no credit for the time blocked"

    # -- F8: classes ------------------------------------------------------------------------------------

    async def test_f8_live_goes_first_and_each_lower_class_keeps_one_in_ten(self, opened: Open) -> None:
        queue = await opened(equals(A))
        await queue.node(slots=2)
        for job_class in JobClass:
            await queue.submit(A, jobs(200, job_class=job_class))
        await queue.run(100.0)
        picks = Counter(job.job_class for job in queue.started[:200])
        assert picks[JobClass.LIVE] >= 140
        for start in range(0, 190, 10):
            window = {job.job_class for job in queue.started[start : start + 10]}
            assert window == set(JobClass), f"starts {start} to {start + 9}"

    async def test_f8_a_class_alone_has_everything(self, opened: Open) -> None:
        queue = await opened(equals(A))
        await queue.node(slots=3)
        await queue.submit(A, jobs(30, job_class=JobClass.REPLAY))
        await queue.run(10.0)
        assert queue.used(A) == pytest.approx(30.0)

    # -- order ------------------------------------------------------------------------------------------

    @given(data=st.data())
    @few
    async def test_one_key_is_in_flight_once_and_in_submit_order_through_retries(
        self, opened: Open, data: st.DataObject
    ) -> None:
        queue = await opened(equals(A, B))
        await queue.node(slots=6)
        keys = data.draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=20))
        endings = data.draw(
            st.lists(st.sampled_from([Ending.DELIVERED, *LIVE_ENDINGS]), min_size=7, max_size=7)
        )
        tries: Counter[str] = Counter()

        def ending(job: ClaimedJob) -> Ending:
            tries[job.id] += 1
            return endings[(job.seq + tries[job.id]) % 7] if tries[job.id] < 4 else Ending.DELIVERED

        queue.ending = ending
        order: dict[str, list[str]] = defaultdict(list)
        for key in keys:
            order[key] += await queue.submit(A, jobs(1, ordering_key=key))
        await queue.submit(B, jobs(10))
        key_of = {id_: key for key, ids in order.items() for id_ in ids}
        seen: dict[str, list[str]] = defaultdict(list)
        while started := await queue.round() or queue.held():
            del started
            running = Counter(key_of[job.id] for job in queue.held() if job.tenant == A)
            assert max(running.values(), default=0) <= 1
            await queue.next_end()
        for job in queue.started:
            if job.tenant == A and (not seen[key_of[job.id]] or seen[key_of[job.id]][-1] != job.id):
                seen[key_of[job.id]].append(job.id)
        assert seen == order

    # -- pools ------------------------------------------------------------------------------------------

    async def test_a_dedicated_pool_serves_its_tier_and_no_other(self, opened: Open) -> None:
        queue = await opened(registry({A: tier("gold", pool="gold"), B: tier("shared")}))
        await queue.node("ours", slots=2, pool="gold")
        await queue.node("theirs", slots=3)
        for each in (A, B):
            await queue.submit(each, jobs(20))
        await queue.round()
        assert (queue.running(A), queue.running(B)) == (2, 3)
        await queue.run_dry()
        gold = {job.claim for job in queue.started if job.tenant == A}
        assert gold.isdisjoint({job.claim for job in queue.started if job.tenant == B})

    async def test_a_tenant_that_moves_to_another_pool_is_served_there(self, opened: Open) -> None:
        queue = await opened(registry({A: tier("shared"), B: tier("gold", pool="gold")}))
        await queue.node("ours", slots=2, pool="gold")
        await queue.node("theirs", slots=3)
        await queue.submit(A, jobs(20))
        await queue.round()
        queue.directory.replace(registry({A: tier("gold", pool="gold"), B: tier("gold", pool="gold")}))
        assert await queue.round() == []
        assert queue.running(A) == 3, "what runs in the old pool goes on there, and counts towards the cap"
        await queue.next_end()
        assert {job.claim for job in await queue.round()}
        assert queue.running(A) == 2
        await queue.run_dry()
        assert queue.waiting(A) == 0

    async def test_what_a_removed_tenant_left_behind_still_ends(self, opened: Open) -> None:
        """Law K1: the registry no longer names it, and its work was accepted."""
        queue = await opened(equals(A, B))
        await queue.node(slots=2)
        await queue.submit(A, jobs(10))
        queue.directory.replace(equals(B))
        await queue.rebuild()
        await queue.run_dry()
        assert (await queue.world.operator.counts())[JobState.DELIVERED] == 10
