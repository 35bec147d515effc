"""What a worker's side promises: leases by the store's clock, fenced settles, attempts that add up."""

from dataclasses import replace

from tenantry.lanes.model import HTTP
from tenantry.lanes.outcome import Outcome
from tenantry.queue.changes import ClaimPlan
from tenantry.queue.lifecycle import LOST_EXCERPT, MOST_ATTEMPTS, NODE_FRESH_FOR, START_LEASE, WORKER_LOST
from tenantry.queue.model import (
    Burial,
    ClaimedJob,
    ClaimId,
    Ending,
    JobId,
    JobState,
    JobView,
    NameHeld,
    NodeId,
    Presence,
    Reclaimed,
    Seq,
    Settlement,
)
from tenantry.testing.conformance.world import ACME, POOL, World, batch, job, settlement


class WorkerConformance:
    """Taking, renewing, settling, reclaiming."""

    # -- leases ----------------------------------------------------------------------------------------

    async def test_a_claim_is_taken_once_and_by_its_node_alone(self, world: World) -> None:
        await world.submit(*batch(3))
        node, other = await world.node("one"), await world.node("other")
        await world.hand.claim(node, 3)
        assert await world.worker.take(other, 10.0) == []
        assert len(await world.worker.take(node, 10.0)) == 3
        assert await world.worker.take(node, 10.0) == []

    async def test_a_restarted_worker_is_not_given_what_its_past_was(self, world: World) -> None:
        await world.submit(job())
        before = await world.node()
        await world.hand.claim(before, 1)
        after = await world.restarted(before)
        assert await world.worker.take(after, 10.0) == []

    async def test_claims_that_are_never_started_come_back_without_counting(self, world: World) -> None:
        """A worker killed between claim and start, three times: the slots return and the fourth runs (Q9)."""
        (id_,) = await world.submit(job())
        for life in range(3):
            assert await world.hand.claim(await world.node(f"life {life}"), 1) == 1
            assert (await world.worker.reclaim(limit=10)).jobs == 0
            await world.pass_time(START_LEASE + 1.0)
            assert (await world.worker.reclaim(limit=10)).jobs == 1
        (claimed,) = await world.claim(await world.node("fourth"))
        assert (claimed.id, claimed.attempt) == (id_, 1)
        assert (await _view(world, id_)).history == ()

    async def test_a_claim_whose_start_lease_ran_out_cannot_be_started(self, world: World) -> None:
        await world.submit(job())
        node = await world.node()
        await world.hand.claim(node, 1)
        await world.pass_time(START_LEASE + 1.0)
        assert await world.worker.take(node, 10.0) == []

    async def test_a_lease_that_is_renewed_is_never_taken_back(self, world: World) -> None:
        """Lease 2 s, job 10 s, renewed at a third: one attempt (Q12)."""
        await world.submit(job())
        node = await world.node()
        (claimed,) = await world.claim(node, lease_for=6.0)
        for _ in range(5):
            await world.pass_time(2.0)
            assert await world.worker.renew(node, {claimed.claim}, 6.0) == {claimed.claim}
            assert (await world.worker.reclaim(limit=10)).jobs == 0
        assert await world.settle(node, [claimed], Ending.DELIVERED) == 1

    async def test_only_the_owning_incarnation_renews(self, world: World) -> None:
        await world.submit(job())
        node = await world.node()
        (claimed,) = await world.claim(node)
        other, restarted = await world.node("other"), await world.restarted(node)
        unknown = ClaimId(claimed.claim + 1_000)
        assert await world.worker.renew(other, {claimed.claim}, 10.0) == set()
        assert await world.worker.renew(restarted, {claimed.claim}, 10.0) == set()
        assert await world.worker.renew(node, {claimed.claim, unknown}, 10.0) == {claimed.claim}

    async def test_a_lease_that_was_taken_back_cannot_be_renewed(self, world: World) -> None:
        await world.submit(job())
        node = await world.node()
        (claimed,) = await world.claim(node, lease_for=6.0)
        await world.pass_time(7.0)
        await world.worker.reclaim(limit=10)
        assert await world.worker.renew(node, {claimed.claim}, 6.0) == set()

    async def test_a_lease_that_has_run_out_cannot_be_renewed_though_nobody_took_it_back(
        self, world: World
    ) -> None:
        """Its holder has stopped the job by then, and a reclaimer may be on its way."""
        await world.submit(*batch(2))
        node = await world.node()
        (over,) = await world.claim(node, 1, lease_for=6.0)
        (live,) = await world.claim(node, 1, lease_for=60.0)
        await world.pass_time(7.0)
        assert await world.worker.renew(node, {over.claim, live.claim}, 6.0) == {live.claim}
        assert (await world.worker.reclaim(limit=10)).jobs == 1

    async def test_a_claim_that_was_not_taken_cannot_be_renewed(self, world: World) -> None:
        await world.submit(job())
        node = await world.node()
        await world.hand.claim(node, 1)
        (held,) = (await world.hand.rebuild()).held
        assert held.node == node.id
        (claimed,) = await world.worker.take(node, 6.0)
        await world.settle(node, [claimed], Ending.RELEASED)
        await world.hand.claim(node, 1)
        assert await world.worker.renew(node, {ClaimId(claimed.claim + n) for n in range(9)}, 6.0) == set()

    async def test_jobs_of_a_killed_worker_come_back_by_their_own_lease(self, world: World) -> None:
        """It restarts under the same name at once: its jobs are judged by their lease all the same (Q11)."""
        (id_,) = await world.submit(job())
        node = await world.node()
        await world.claim(node, lease_for=6.0)
        restarted = await world.restarted(node)
        assert (await world.worker.reclaim(limit=10)).jobs == 0
        assert await world.claim(restarted) == []
        await world.pass_time(7.0)
        assert (await world.worker.reclaim(limit=10)).jobs == 1
        (again,) = await world.claim(restarted)
        assert (again.id, again.attempt, again.last) == (id_, 2, Outcome(WORKER_LOST, excerpt=LOST_EXCERPT))
        (lost,) = (await _view(world, id_)).history
        assert (lost.number, lost.error_class) == (1, WORKER_LOST)

    async def test_a_reclaimer_moves_on_past_what_is_not_expired_and_keeps_to_its_limit(
        self, world: World
    ) -> None:
        await world.submit(*batch(40))
        node = await world.node()
        for _ in range(20):
            await world.claim(node, 1, lease_for=600.0)
        for _ in range(20):
            await world.claim(node, 1, lease_for=6.0)
        await world.pass_time(7.0)
        assert (await world.worker.reclaim(limit=5)).jobs == 5
        assert (await world.worker.reclaim(limit=100)).jobs == 15
        assert (await world.worker.reclaim(limit=100)).jobs == 0

    async def test_a_job_that_lost_its_last_possible_worker_is_dead_and_keeps_its_history(
        self, world: World
    ) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.RETRY)
        await world.hand.rebuild()
        (flow,) = world.hand.lines
        assert world.hand.term is not None
        plan = ClaimPlan(node.id, node.incarnation, (flow,), (Seq(1),), (MOST_ATTEMPTS - 1,), (0,))
        await world.planner.round(world.hand.term, [plan], {flow: 2})
        (claimed,) = await world.worker.take(node, 6.0)
        assert claimed.attempt == MOST_ATTEMPTS
        await world.pass_time(7.0)
        reclaimed = await world.worker.reclaim(limit=10)
        view = await _view(world, id_)
        assert (view.state, view.attempts) == (JobState.DEAD, MOST_ATTEMPTS)
        assert view.reason.startswith(f"{WORKER_LOST} after {MOST_ATTEMPTS} attempts")
        assert [(each.number, each.error_class) for each in view.history] == [
            (1, "http_503"),
            (MOST_ATTEMPTS, WORKER_LOST),
        ]
        assert reclaimed == Reclaimed(1, (Burial(id_, ACME, view.reason),))

    async def test_a_job_that_is_dead_before_it_was_tried_once_more_counts_what_was_tried(
        self, world: World
    ) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        await world.claim(node, lease_for=6.0)
        await world.pass_time(7.0)
        await world.worker.reclaim(limit=10)
        (claimed,) = await world.claim(node)
        assert claimed.attempt == 2
        end = Settlement(claimed, Ending.DEAD, 0.0, reason="worker_lost after 1 attempt")
        assert await world.worker.settle(node, [end]) == 1
        view = await _view(world, id_)
        assert (view.state, view.attempts, view.reason) == (JobState.DEAD, 1, end.reason)
        assert [(each.number, each.error_class) for each in view.history] == [(1, WORKER_LOST)]

    # -- presence --------------------------------------------------------------------------------------

    async def test_a_node_hears_whether_the_store_knows_it(self, world: World) -> None:
        node = await world.node()
        assert await world.worker.heartbeat(node, draining=False) is Presence.PRESENT
        restarted = await world.restarted(node)
        assert await world.worker.heartbeat(node, draining=False) is Presence.SUPERSEDED
        assert await world.worker.heartbeat(restarted, draining=True) is Presence.PRESENT
        never_seen = replace(node, id=NodeId("ghost"))
        assert await world.worker.heartbeat(never_seen, draining=False) is Presence.FORGOTTEN
        of_a_lost_future = replace(node, incarnation=restarted.incarnation + 1)
        assert await world.worker.heartbeat(of_a_lost_future, draining=False) is Presence.FORGOTTEN

    async def test_a_name_is_one_workers_for_as_long_as_its_heartbeat_is_fresh(self, world: World) -> None:
        node = await world.node()
        await world.pass_time(NODE_FRESH_FOR - 2.0)
        held = await world.worker.register(node.id, POOL, 1, {HTTP})
        assert isinstance(held, NameHeld)
        assert (held.node, held.incarnation, held.draining) == (node.id, 1, False)
        assert 0.0 < held.frees_in <= 2.0
        assert await world.worker.heartbeat(node, draining=False) is Presence.PRESENT
        again = await world.worker.register(node.id, POOL, 1, {HTTP})
        assert isinstance(again, NameHeld)
        assert again.frees_in > 2.0, "the heartbeat has made it fresh again"
        await world.pass_time(NODE_FRESH_FOR)
        second = await world.node()
        assert second.incarnation == 2
        assert (await world.restarted(second)).incarnation == 3, "free at once where its worker has left"

    # -- waiting ---------------------------------------------------------------------------------------

    async def test_the_wait_of_a_job_is_from_its_submit_to_its_claim_by_the_stores_clock(
        self, world: World
    ) -> None:
        await world.submit(job())
        node = await world.node()
        await world.pass_time(50.0)
        assert await world.hand.claim(node, 1) == 1
        (claimed,) = await world.worker.take(node, 30.0)
        assert 50.0 <= claimed.waited_for < 60.0

    async def test_the_wait_of_a_job_that_was_delayed_or_is_tried_again_begins_when_it_is_due(
        self, world: World
    ) -> None:
        await world.submit(replace(job(), delay_for=100.0))
        node = await world.node()
        await world.pass_time(150.0)
        (first,) = await world.claim(node)
        assert 50.0 <= first.waited_for < 60.0
        await world.worker.settle(node, [settlement(first, Ending.RETRY, retry_for=100.0)])
        await world.pass_time(120.0)
        (second,) = await world.claim(node)
        assert 20.0 <= second.waited_for < 30.0

    # -- fencing ---------------------------------------------------------------------------------------

    async def test_a_job_is_settled_once(self, world: World) -> None:
        await world.submit(*batch(2))
        node = await world.node()
        first, second = await world.claim(node)
        done = settlement(first, Ending.DELIVERED)
        assert await world.worker.settle(node, [done, done]) == 1
        assert await world.worker.settle(node, [done, settlement(second, Ending.DELIVERED)]) == 1
        assert (await world.operator.counts())[JobState.DELIVERED] == 2

    async def test_a_settle_that_names_another_claim_token_job_or_owner_changes_nothing(
        self, world: World
    ) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        (held,) = await world.claim(node)
        other, restarted = await world.node("other"), await world.restarted(node)
        wrong = [
            (node, replace(held, token=held.token + 1)),
            (node, replace(held, token=held.token - 1)),
            (node, replace(held, claim=ClaimId(held.claim + 1_000))),
            (node, replace(held, seq=Seq(held.seq + 1))),
            (other, held),
            (restarted, held),
        ]
        for owner, named in wrong:
            assert await world.settle(owner, [named], Ending.DELIVERED) == 0
        assert (await _view(world, id_)).state is JobState.RUNNING
        assert await world.settle(node, [held], Ending.DELIVERED) == 1

    async def test_a_settle_that_comes_after_the_reclaim_changes_nothing(self, world: World) -> None:
        """A job completes between a reclaimer's read and its write: one of the two wins (Q13)."""
        (id_,) = await world.submit(job())
        late, node = await world.node("late"), await world.node()
        (before,) = await world.claim(late, lease_for=6.0)
        await world.pass_time(7.0)
        assert (await world.worker.reclaim(limit=10)).jobs == 1
        (now,) = await world.claim(node)
        assert now.token > before.token
        assert await world.settle(late, [before], Ending.DELIVERED) == 0
        assert (await _view(world, id_)).state is JobState.RUNNING
        assert await world.settle(node, [now], Ending.DELIVERED) == 1

    async def test_a_settle_of_a_part_keeps_the_rest_claimed(self, world: World) -> None:
        await world.submit(*batch(3))
        node = await world.node()
        held = await world.claim(node)
        assert await world.settle(node, held[:1], Ending.DELIVERED) == 1
        assert await world.worker.renew(node, {held[1].claim}, 10.0) == {held[1].claim}
        assert await world.settle(node, held, Ending.DELIVERED) == 2
        assert await world.worker.renew(node, {held[1].claim}, 10.0) == set()

    async def test_one_settle_may_hold_every_ending(self, world: World) -> None:
        ids = await world.submit(*batch(4))
        node = await world.node()
        held = await world.claim(node)
        endings = [Ending.DELIVERED, Ending.DEAD, Ending.RETRY, Ending.RELEASED]
        settlements = [settlement(*pair, retry_for=600.0) for pair in zip(held, endings, strict=True)]
        assert await world.worker.settle(node, settlements) == 4
        states = [(await _view(world, id_)).state for id_ in ids]
        assert states == [JobState.DELIVERED, JobState.DEAD, JobState.DELAYED, JobState.WAITING]

    # -- attempts --------------------------------------------------------------------------------------

    async def test_a_retry_waits_its_time_and_counts(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        (held,) = await world.claim(node)
        await world.worker.settle(node, [settlement(held, Ending.RETRY, retry_for=60.0)])
        view = await _view(world, id_)
        assert (view.state, view.attempts) == (JobState.DELAYED, 1)
        assert await world.claim(node) == []
        await world.pass_time(61.0)
        (again,) = await world.claim(node)
        assert (again.id, again.attempt) == (id_, 2)
        assert again.token > held.token

    async def test_a_retry_goes_behind_what_waits_already(self, world: World) -> None:
        ids = await world.submit(*batch(3))
        node = await world.node()
        await world.settle(node, await world.claim(node, 1), Ending.RETRY)
        assert [each.id for each in await world.claim(node)] == [ids[1], ids[2], ids[0]]

    async def test_a_job_given_back_is_due_now_first_in_line_and_does_not_count(self, world: World) -> None:
        ids = await world.submit(*batch(3))
        node = await world.node()
        await world.settle(node, await world.claim(node, 1), Ending.RELEASED)
        again = await world.claim(node)
        assert [(each.id, each.attempt) for each in again] == [(id_, 1) for id_ in ids]
        assert (await _view(world, ids[0])).history == ()

    async def test_three_attempts_are_three_and_then_a_dead_letter_with_its_history(
        self, world: World
    ) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        for ending in (Ending.RETRY, Ending.RETRY, Ending.DEAD):
            assert await world.settle(node, await world.claim(node), ending) == 1
        assert await world.claim(node) == []
        view = await _view(world, id_)
        assert (view.state, view.attempts, view.status) == (JobState.DEAD, 3, 503)
        assert view.reason == "http_503 after 3 attempts"
        assert [(each.number, each.status, each.error_class, each.excerpt) for each in view.history] == [
            (number, 503, "http_503", "overloaded") for number in (1, 2, 3)
        ]

    async def test_the_history_of_a_job_is_seen_while_it_is_tried_again(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.RETRY)
        assert [each.number for each in (await _view(world, id_)).history] == [1]
        (again,) = await world.claim(node)
        assert again.last == Outcome("http_503", 503, excerpt="overloaded"), (
            "so it may be told if it is the last"
        )
        await world.settle(node, [again], Ending.DELIVERED)
        view = await _view(world, id_)
        assert (view.state, view.attempts, view.history) == (JobState.DELIVERED, 2, ())

    # -- the books -------------------------------------------------------------------------------------

    async def test_what_is_in_flight_is_what_live_claims_hold(self, world: World) -> None:
        ids = await world.submit(*batch(10))
        node = await world.node()
        held = await world.claim(node, 6)
        assert await _in_flight(world, ids[-1]) == 6
        await world.settle(node, held[:2], Ending.DELIVERED)
        await world.settle(node, held[:3], Ending.DELIVERED)
        assert await _in_flight(world, ids[-1]) == 3
        assert {each.seq for each in (await world.hand.rebuild()).held} == {4, 5, 6}

    async def test_a_claim_of_a_hundred_and_a_hundred_claims_of_one_hold_the_same(self, world: World) -> None:
        await world.submit(*batch(200))
        node = await world.node(slots=200)
        one = await world.claim(node, 100)
        many = [held for _ in range(100) for held in await world.claim(node, 1)]
        assert [each.seq for each in one + many] == list(range(1, 201))
        assert await world.settle(node, [*one, *many], Ending.DELIVERED) == 200
        assert (await world.hand.rebuild()).held == ()

    async def test_no_job_is_ever_in_two_hands(self, world: World) -> None:
        await world.submit(*batch(30))
        nodes = [await world.node(f"node {number}") for number in range(3)]
        hands: list[ClaimedJob] = []
        for node in nodes * 5:
            hands += await world.claim(node, 3)
        assert len({each.id for each in hands}) == len(hands) == 30


async def _view(world: World, id_: JobId) -> JobView:
    view = await world.intake.job(ACME, id_)
    assert view is not None
    return view


async def _in_flight(world: World, id_: JobId) -> int:
    facts = await world.intake.facts(ACME, id_, pool=POOL)
    assert facts is not None
    return facts.tenant_in_flight
