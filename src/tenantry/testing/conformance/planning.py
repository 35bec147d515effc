"""What the planner's side promises: one place, all or nothing, every change told once, nothing forgotten."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from tenantry.kernel.errors import PlaceLost
from tenantry.lanes.orders import Action, Scope
from tenantry.queue.changes import (
    ClaimPlan,
    Deferred,
    FlowOpened,
    Left,
    NodesChanged,
    Ordered,
    Submitted,
    Withdrawn,
)
from tenantry.queue.lifecycle import NODE_FRESH_FOR, START_LEASE
from tenantry.queue.model import Ending, JobState, NodeId, Seq
from tenantry.queue.ports import PlannerStore
from tenantry.testing.conformance.world import ACME, HOOK, LIVE_ENDINGS, World, batch, job, settlement

PlannerCall = Callable[[PlannerStore, int], Awaitable[object]]

CALLS: Mapping[str, PlannerCall] = {
    "keep_place": lambda store, term: store.keep_place(term, 10.0),
    "rebuild": lambda store, term: store.rebuild(term),
    "round": lambda store, term: store.round(term, (), {}),
    "nodes": lambda store, term: store.nodes(term),
}
each_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


class PlannerConformance:
    """The place, the rounds, and what is told."""

    # -- the place -------------------------------------------------------------------------------------

    async def test_only_one_holds_the_place_and_terms_rise(self, world: World) -> None:
        first = await world.planner.take_place("one", 10.0)
        assert first is not None
        assert await world.planner.take_place("two", 10.0) is None
        await world.pass_time(11.0)
        second = await world.planner.take_place("two", 10.0)
        assert second is not None
        assert second > first

    async def test_a_place_that_is_kept_does_not_run_out(self, world: World) -> None:
        term = await world.planner.take_place("one", 10.0)
        assert term is not None
        for _ in range(3):
            await world.pass_time(6.0)
            await world.planner.keep_place(term, 10.0)
        assert await world.planner.take_place("two", 10.0) is None

    async def test_a_place_that_was_left_is_free_at_once(self, world: World) -> None:
        term = await world.planner.take_place("one", 600.0)
        assert term is not None
        await world.planner.leave_place(term)
        assert await world.planner.take_place("two", 10.0) is not None

    @each_call
    async def test_a_term_that_another_has_taken_over_is_lost(self, world: World, call: PlannerCall) -> None:
        stale = await world.planner.take_place("one", 10.0)
        assert stale is not None
        await world.planner.leave_place(stale)
        current = await world.planner.take_place("two", 10.0)
        assert current is not None
        with pytest.raises(PlaceLost):
            await call(world.planner, stale)
        await call(world.planner, current)

    @each_call
    async def test_a_term_that_ran_out_is_lost_though_nobody_took_it(
        self, world: World, call: PlannerCall
    ) -> None:
        term = await world.planner.take_place("one", 10.0)
        assert term is not None
        await world.pass_time(11.0)
        with pytest.raises(PlaceLost):
            await call(world.planner, term)

    async def test_a_round_under_a_lost_term_writes_nothing(self, world: World) -> None:
        await world.submit(*batch(3))
        node = await world.node()
        await world.hand.begin()
        stale, flow = world.hand.term, next(iter(world.hand.lines))
        assert stale is not None
        await world.planner.leave_place(stale)
        plan = ClaimPlan(node.id, node.incarnation, (flow,), (Seq(1),), (0,))
        with pytest.raises(PlaceLost):
            await world.planner.round(stale, [plan], {flow: 2})
        assert await world.worker.take(node, 10.0) == []
        (standing,) = (await world.hand.begin()).flows
        assert (standing.opened.head, standing.tail) == (1, 3)

    # -- what is told ----------------------------------------------------------------------------------

    async def test_a_submit_tells_of_its_flow_first_and_then_how_many(self, world: World) -> None:
        await world.hand.begin()
        await world.submit(*batch(3))
        opened, submitted = await world.hand.listen()
        assert isinstance(opened, FlowOpened)
        assert (opened.tenant, opened.target, opened.ordered, opened.head) == (ACME, HOOK, False, 1)
        assert submitted == Submitted(opened.flow, Seq(1), 3, None)
        assert list(await world.hand.listen()) == []

    async def test_an_expected_cost_is_told(self, world: World) -> None:
        await world.hand.begin()
        await world.submit(replace(job(), cost=2.5))
        told = [change for change in await world.hand.listen() if isinstance(change, Submitted)]
        assert [(change.count, change.cost) for change in told] == [(1, 2.5)]

    async def test_a_delayed_job_is_told_after_its_submit(self, world: World) -> None:
        await world.hand.begin()
        await world.submit(job(1), replace(job(2), delay_for=600.0))
        changes = list(await world.hand.listen())
        (deferred,) = (change for change in changes if isinstance(change, Deferred))
        assert (deferred.seq, deferred.attempts) == (2, 0)
        assert deferred.due_at > world.hand.now + 500
        assert sum(change.count for change in changes if isinstance(change, Submitted)) == 2
        assert changes.index(deferred) == len(changes) - 1

    @pytest.mark.parametrize("ending", LIVE_ENDINGS)
    async def test_every_ending_is_told_as_leaving_its_claim(self, world: World, ending: Ending) -> None:
        await world.submit(job())
        node = await world.node()
        (claimed,) = await world.claim(node)
        await world.worker.settle(node, [settlement(claimed, ending, retry_for=60.0)])
        (left,) = (change for change in await world.hand.listen() if isinstance(change, Left))
        assert left.places == ((claimed.flow, claimed.seq),)
        assert left.reported
        attempts = {Ending.RETRY: [1], Ending.RELEASED: [0]}.get(ending, [])
        assert [deferred.attempts for deferred in left.deferred] == attempts

    async def test_a_cancelled_job_is_told(self, world: World) -> None:
        (id_,) = await world.submit(job())
        await world.hand.begin()
        await world.intake.cancel(ACME, id_)
        (change,) = await world.hand.listen()
        assert isinstance(change, Withdrawn)
        assert change.seq == 1

    @pytest.mark.parametrize("scope", [Scope(ACME, HOOK), Scope(target=HOOK), Scope(ACME)], ids=str)
    async def test_an_order_is_told_and_known_after_a_rebuild(self, world: World, scope: Scope) -> None:
        await world.submit(job())
        await world.hand.begin()
        await world.order(Action.PAUSE, scope.tenant, scope.target)
        await world.order(Action.CEILING, scope.tenant, scope.target, 3)
        told = [change for change in await world.hand.listen() if isinstance(change, Ordered)]
        assert told[-1] == Ordered(scope, paused=True, ceiling=3)
        assert (await world.hand.rebuild()).orders == (Ordered(scope, paused=True, ceiling=3),)
        await world.order(Action.RESUME, scope.tenant, scope.target)
        await world.order(Action.LIFT, scope.tenant, scope.target)
        assert Ordered(scope) in await world.hand.listen()
        assert (await world.hand.rebuild()).orders == ()

    async def test_a_reset_is_told_once_and_what_stands_with_it(self, world: World) -> None:
        await world.order(Action.CEILING, None, HOOK, 2)
        await world.hand.begin()
        await world.order(Action.RESET, None, HOOK)
        assert await world.hand.listen() == (Ordered(Scope(target=HOOK), ceiling=2, reset=True),)
        assert (await world.hand.rebuild()).orders == (Ordered(Scope(target=HOOK), ceiling=2),)

    async def test_nodes_that_join_drain_and_leave_are_told(self, world: World) -> None:
        await world.hand.begin()
        node = await world.node()
        assert NodesChanged() in await world.hand.listen()
        await world.worker.heartbeat(node, draining=True)
        assert NodesChanged() in await world.hand.listen()
        await world.worker.leave(node)
        assert NodesChanged() in await world.hand.listen()

    # -- remembering -----------------------------------------------------------------------------------

    async def test_a_rebuild_includes_what_was_not_heard_yet_and_tells_it_no_more(self, world: World) -> None:
        await world.hand.begin()
        ids = await world.submit(*batch(3))
        await world.intake.cancel(ACME, ids[1])
        standing = await world.hand.rebuild()
        assert (standing.flows[0].tail, [each.seq for each in standing.withdrawn]) == (3, [2])
        assert list(await world.hand.listen()) == []
        assert [each.id for each in await world.claim(await world.node())] == [ids[0], ids[2]]

    async def test_one_who_listens_and_one_who_rebuilds_know_the_same(self, world: World) -> None:
        node = await world.node()
        await world.hand.begin()
        ids = await world.submit(*batch(6), replace(job(), delay_for=600.0))
        held = await world.claim(node, 4)
        await world.worker.settle(node, [settlement(held[0], Ending.DELIVERED)])
        await world.worker.settle(node, [settlement(held[1], Ending.RETRY, retry_for=60.0)])
        await world.intake.cancel(ACME, ids[4])
        await world.hand.listen()
        heard = world.hand.known()
        await world.hand.rebuild()
        assert world.hand.known() == heard

    async def test_work_in_a_flow_that_was_idle_at_the_rebuild_is_heard_of(self, world: World) -> None:
        node = await world.node()
        await world.submit(*batch(2))
        await world.settle(node, await world.claim(node), Ending.DELIVERED)
        await world.hand.rebuild()
        (id_,) = await world.submit(job())
        (claimed,) = await world.claim(node)
        assert (claimed.id, claimed.seq) == (id_, 3)

    async def test_a_planner_that_takes_over_goes_on_where_the_last_one_stopped(self, world: World) -> None:
        node = await world.node()
        ids = await world.submit(*batch(5))
        first = await world.claim(node, 2)
        assert world.hand.term is not None
        await world.planner.leave_place(world.hand.term)
        standing = await world.hand.begin()
        assert {(each.flow, each.seq) for each in standing.held} == {(each.flow, each.seq) for each in first}
        assert tuple(each.id for each in first + await world.claim(node)) == ids

    # -- nodes -----------------------------------------------------------------------------------------

    async def test_a_node_is_live_while_its_heartbeat_is_fresh(self, world: World) -> None:
        node = await world.node(slots=7)
        assert await _slots(world) == {"node": 7}
        await world.pass_time(NODE_FRESH_FOR - 2.0)
        await world.worker.heartbeat(node, draining=False)
        await world.pass_time(NODE_FRESH_FOR - 2.0)
        assert await _slots(world) == {"node": 7}
        await world.pass_time(NODE_FRESH_FOR)
        assert await _slots(world) == {}

    async def test_a_draining_node_has_no_slots_and_one_that_left_is_gone(self, world: World) -> None:
        node = await world.node(slots=7)
        await world.worker.heartbeat(node, draining=True)
        assert await _slots(world) == {"node": 0}
        await world.worker.leave(node)
        assert await _slots(world) == {}

    async def test_a_node_that_comes_back_is_a_new_incarnation(self, world: World) -> None:
        first = await world.node(slots=3)
        second = await world.restarted(first, slots=5)
        assert second.incarnation > first.incarnation
        await world.worker.heartbeat(first, draining=True)  # a voice from the past
        assert await _slots(world) == {"node": 5}
        (live,) = (await world.hand.rebuild()).nodes
        assert live.incarnation == second.incarnation

    # -- claims that nobody can take -------------------------------------------------------------------

    async def test_a_claim_for_a_node_that_is_gone_is_written_and_comes_back(self, world: World) -> None:
        (id_,) = await world.submit(job())
        await world.hand.begin()
        (flow,) = world.hand.lines
        assert world.hand.term is not None
        plan = ClaimPlan(NodeId("gone"), 1, (flow,), (Seq(1),), (0,))
        await world.planner.round(world.hand.term, [plan], {flow: 2})
        await world.pass_time(START_LEASE + 1.0)
        assert (await world.worker.reclaim(limit=10)).jobs == 1
        await world.hand.rebuild()
        (claimed,) = await world.claim(await world.node())
        assert (claimed.id, claimed.attempt) == (id_, 1)

    async def test_a_claim_of_a_job_that_was_cancelled_meanwhile_runs_nothing(self, world: World) -> None:
        """The planner had decided before it could hear of the cancel: K1 and K3 hold all the same."""
        ids = await world.submit(*batch(2))
        node = await world.node()
        await world.hand.begin()
        (flow,) = world.hand.lines
        assert world.hand.term is not None
        assert await world.intake.cancel(ACME, ids[0]) is JobState.CANCELLED
        plan = ClaimPlan(node.id, node.incarnation, (flow, flow), (Seq(1), Seq(2)), (0, 0))
        told = list((await world.planner.round(world.hand.term, [plan], {flow: 3})).changes)
        (claimed,) = await world.worker.take(node, 10.0)
        assert claimed.id == ids[1]
        told += (await world.planner.round(world.hand.term, (), {})).changes
        assert [each for each in told if isinstance(each, Left)] == [Left(((flow, Seq(1)),))]
        await world.settle(node, [claimed], Ending.DELIVERED)
        standing = await world.hand.rebuild()
        assert (standing.held, standing.flows) == ((), ())

    async def test_a_wait_ends_by_itself(self, world: World) -> None:
        await world.planner.wait(0.01)
        await world.worker.wait(await world.node(), 0.01)


async def _slots(world: World) -> dict[str, int]:
    if world.hand.term is None:
        await world.hand.begin()
    await world.hand.listen()
    assert world.hand.term is not None
    return {str(node.id): node.slots for node in await world.planner.nodes(world.hand.term)}
