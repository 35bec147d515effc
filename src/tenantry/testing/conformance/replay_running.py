"""A replay's life: plans, people's orders, leases, the coordinator's moves, places, and its end."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tenantry.kernel.errors import InvalidValue, InvariantBroken
from tenantry.queue.model import Ending
from tenantry.replay.lifecycle import LIVE, PLAN_KEPT_FOR
from tenantry.replay.model import (
    Budget,
    Edit,
    EditKind,
    Filters,
    Hold,
    HoldRule,
    Known,
    Lease,
    Membership,
    OnUnknown,
    Quotas,
    ReplayId,
    ReplayState,
    ReplayView,
)
from tenantry.replay.repairs import AS_IT_IS
from tenantry.testing.conformance.replay_world import (
    LEASE_FOR,
    REPORT,
    ReplayWorld,
    several,
    spec_of,
    staged,
    where,
    window_of,
)
from tenantry.testing.conformance.world import ACME, GLOBEX, HOOK

S = ReplayState
ONE = Quotas(replays=1)
NOWHERE = ReplayId("nowhere")


class RunConformance:
    """Plans, orders, leases, moves, places, ends."""

    # -- plans -----------------------------------------------------------------------------------------

    async def test_a_plan_is_kept_as_it_was_given(self, replays: ReplayWorld) -> None:
        spec = spec_of(
            target=HOOK,
            filters=Filters(error_classes=frozenset({"timeout"}), headers={"region": "eu"}, attempts_to=3),
            edits=(Edit(EditKind.SET, "$.a", "1"),),
            on_unknown=OnUnknown.HOLD,
            budget=Budget(messages=5),
            sample=0.01,
            note="zwölf",
        )
        plan = await replays.desk.plan(spec, Membership("end", None, False), REPORT)
        assert plan == await replays.desk.replay(ACME, plan.id)
        assert (plan.spec, plan.state, plan.membership) == (spec, S.PLANNED, Membership("end", None, False))
        assert (plan.plan, plan.progress, plan.counts.taken, plan.token) == (REPORT, "", 0, 0)
        assert await replays.store.take("one", LEASE_FOR, limit=10) == []

    async def test_a_plan_is_started_once_and_within_a_day(self, replays: ReplayWorld) -> None:
        plan, old = await replays.planned(), await replays.planned()
        started = await asyncio.gather(*(replays.desk.start(ACME, plan.id, Quotas()) for _ in range(2)))
        assert sum(each is not None for each in started) == 1
        await replays.queue.pass_time(PLAN_KEPT_FOR)
        assert await replays.desk.start(ACME, old.id, Quotas()) is None
        view = await replays.desk.replay(ACME, old.id)
        assert view is not None
        assert view.state is S.PLANNED

    async def test_a_plan_is_cancelled_at_once(self, replays: ReplayWorld) -> None:
        plan = await replays.planned()
        view = await replays.desk.cancel(ACME, plan.id)
        assert view is not None
        assert view.state is S.CANCELLED
        assert view.ended_at is not None
        assert await replays.desk.start(ACME, plan.id, Quotas()) is None

    async def test_replays_are_listed_newest_first_by_tenant_and_state(self, replays: ReplayWorld) -> None:
        plans = [await replays.planned() for _ in range(3)]
        theirs = await replays.started(tenant=GLOBEX)
        mine = await replays.desk.replays(ACME, states=None, limit=2)
        assert [each.id for each in mine] == [plans[2].id, plans[1].id]
        everyone = await replays.desk.replays(None, states=None, limit=10)
        assert [each.id for each in everyone] == [theirs.id, *(plan.id for plan in reversed(plans))]
        running = await replays.desk.replays(None, states={S.RUNNING}, limit=10)
        assert [each.id for each in running] == [theirs.id]
        with pytest.raises(InvalidValue):
            await replays.desk.replays(ACME, states=None, limit=1_001)

    async def test_a_replay_of_another_tenant_is_not_there(self, replays: ReplayWorld) -> None:
        lease, desk = await replays.running(), replays.desk
        await replays.offer(lease, staged("a", broken="bad"))
        (aside,) = await desk.parked(ACME, None, limit=1)
        for tenant, replay in ((GLOBEX, lease.replay), (ACME, NOWHERE)):
            assert await desk.replay(tenant, replay) is None
            assert await desk.pause(tenant, replay) is None
            assert await desk.resume(tenant, replay) is None
            assert await desk.proceed(tenant, replay) is None
            assert await desk.cancel(tenant, replay) is None
            assert await desk.start(tenant, replay, Quotas()) is None
            assert await desk.rebudget(tenant, replay, spec_of()) is None
        assert await desk.parked(GLOBEX, lease.replay, limit=10) == []
        assert not await desk.send_back(GLOBEX, aside.job, AS_IT_IS)
        assert not await desk.drop(GLOBEX, aside.job)
        assert await desk.known(GLOBEX, [staged("a").key]) == {}
        assert (await replays.view(lease)).state is S.RUNNING

    # -- orders ----------------------------------------------------------------------------------------

    async def test_a_plan_is_started_by_start_alone(self, replays: ReplayWorld) -> None:
        plan = await replays.planned()
        for order in (replays.desk.pause, replays.desk.resume, replays.desk.proceed):
            assert await order(ACME, plan.id) is None
        found = await replays.desk.replay(ACME, plan.id)
        assert found is not None
        assert found.state is S.PLANNED

    async def test_a_paused_replay_starts_nothing_until_it_is_resumed(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(3))
        paused = await replays.desk.pause(ACME, lease.replay)
        assert paused is not None
        assert paused.state is S.PAUSED
        assert await replays.claim() == []
        assert await replays.desk.pause(ACME, lease.replay) is None
        resumed = await replays.desk.resume(ACME, lease.replay)
        assert resumed is not None
        assert resumed.state is S.RUNNING
        assert len(await replays.claim()) == 3
        assert await replays.desk.resume(ACME, lease.replay) is None

    async def test_a_replay_that_is_paused_before_it_has_fed_anything_starts_nothing(
        self, replays: ReplayWorld
    ) -> None:
        view = await replays.started()
        await replays.desk.pause(ACME, view.id)
        assert await replays.desk.resume(ACME, view.id) is not None
        lease = await replays.leased(view)
        await replays.offer(lease, staged("a"))
        assert len(await replays.claim()) == 1

    async def test_a_persons_continue_ends_the_hold_and_is_remembered_for_a_sample(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running(sample=0.01)
        assert await replays.desk.proceed(ACME, lease.replay) is None
        for rule, sampled in ((HoldRule.POISON, False), (HoldRule.SAMPLE, True)):
            held = await replays.move(lease, S.HELD, hold=Hold(rule, "said"))
            assert held is not None
            assert held.hold == Hold(rule, "said")
            view = await replays.desk.proceed(ACME, lease.replay)
            assert view is not None
            assert (view.state, view.hold, view.sampled) == (S.RUNNING, None, sampled)

    async def test_a_persons_continue_counts_failures_alike_anew(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(3))
        await replays.run(Ending.DEAD, 1)
        await replays.move(lease, S.HELD, hold=Hold(HoldRule.POISON, "nearly all fail"))
        await replays.run(Ending.DEAD, 1)
        await replays.desk.proceed(ACME, lease.replay)
        assert await replays.store.failures(lease.replay, limit=5) == []
        await replays.run(Ending.DEAD, 1)
        await replays.fold(lease)
        (found,) = await replays.store.failures(lease.replay, limit=5)
        assert found.failures == 1
        assert (await replays.counts(lease)).dead == 3

    async def test_only_the_budget_of_a_replay_can_be_changed(self, replays: ReplayWorld) -> None:
        lease = await replays.running(note="first")
        larger = spec_of(note="first", budget=Budget(messages=9))
        view = await replays.desk.rebudget(ACME, lease.replay, larger)
        assert view is not None
        assert view.spec == larger
        with pytest.raises(InvalidValue):
            await replays.desk.rebudget(ACME, lease.replay, spec_of(note="second"))
        await replays.finish(lease)
        assert await replays.desk.rebudget(ACME, lease.replay, larger) is None

    # -- leases ----------------------------------------------------------------------------------------

    async def test_one_coordinator_has_a_replay_at_a_time_and_tokens_rise(self, replays: ReplayWorld) -> None:
        view, store = await replays.started(), replays.store
        taken = await asyncio.gather(*(store.take(f"n{n}", LEASE_FOR, limit=5) for n in range(3)))
        (mine,) = [each for one in taken for each in one]
        assert (mine.id, mine.token) == (view.id, 1)
        assert mine.holder in {"n0", "n1", "n2"}
        await replays.queue.pass_time(LEASE_FOR)
        (later,) = await store.take("later", LEASE_FOR, limit=5)
        assert (later.token, later.holder) == (2, "later")

    async def test_a_lease_that_was_lost_changes_nothing(self, replays: ReplayWorld) -> None:
        old, store = await replays.running(), replays.store
        await replays.offer(old, staged("a"))
        await replays.queue.pass_time(LEASE_FOR)
        assert await store.keep("one", {old.replay: old.token}, LEASE_FOR) == {}
        new = await replays.leased(await replays.view(old), "two")
        before = await replays.view(new)
        await store.release("one", {old.replay: old.token})
        assert await store.fold(old) is None
        assert await store.feed(old, window_of(staged("b"))) is None
        assert await replays.move(old, S.DRAINING) is None
        assert await store.return_waiting(old, limit=5) is None
        assert await store.admit(old, Quotas()) is None
        assert await store.fold(Lease(new.replay, new.token + 1)) is None
        assert await replays.view(new) == before

    async def test_a_lease_that_is_kept_lasts_and_shows_peoples_orders(self, replays: ReplayWorld) -> None:
        lease, store = await replays.running(), replays.store
        await replays.queue.pass_time(LEASE_FOR - 10.0)
        kept = await store.keep("one", {lease.replay: lease.token, NOWHERE: 1}, LEASE_FOR)
        assert {id_: view.state for id_, view in kept.items()} == {lease.replay: S.RUNNING}
        await replays.desk.pause(ACME, lease.replay)
        await replays.queue.pass_time(LEASE_FOR - 10.0)
        kept = await store.keep("one", {lease.replay: lease.token}, LEASE_FOR)
        assert kept[lease.replay].state is S.PAUSED
        assert await store.keep("two", {lease.replay: lease.token}, LEASE_FOR) == {}

    async def test_a_lease_that_is_released_can_be_taken_at_once(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.store.release("one", {lease.replay: lease.token})
        assert (await replays.view(lease)).holder == ""
        assert (await replays.leased(await replays.view(lease), "two")).token == 2

    async def test_the_longest_alone_is_taken_first_and_no_more_than_asked_for(
        self, replays: ReplayWorld
    ) -> None:
        for _ in range(3):
            await replays.started()
        assert len(await replays.store.take("one", LEASE_FOR, limit=2)) == 2
        assert len(await replays.store.take("two", LEASE_FOR, limit=2)) == 1

    # -- moves -----------------------------------------------------------------------------------------

    async def test_the_coordinators_record_is_kept_where_the_state_stays(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        view = await replays.store.move(lease, S.RUNNING, running_for=2.5, progress='{"n": 1}')
        assert view is not None
        assert (view.state, view.running_for, view.progress) == (S.RUNNING, 2.5, '{"n": 1}')
        assert (await replays.view(lease)).progress == '{"n": 1}'

    async def test_a_persons_order_that_came_first_stands(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.desk.pause(ACME, lease.replay)
        assert await replays.move(lease, S.DRAINING) is None
        assert await replays.move(lease, S.HELD, hold=Hold(HoldRule.BUDGET, "used up")) is None
        assert await replays.move(lease, S.RUNNING) is None
        assert await replays.move(lease, S.PAUSED) is not None
        await replays.desk.cancel(ACME, lease.replay)
        assert await replays.move(lease, S.PAUSED) is None

    async def test_held_has_a_hold_and_nothing_else_has_one(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        with pytest.raises(InvalidValue):
            await replays.move(lease, S.HELD)
        with pytest.raises(InvalidValue):
            await replays.move(lease, S.RUNNING, hold=Hold(HoldRule.BUDGET, "used up"))

    async def test_a_replay_ends_only_when_nothing_is_under_way(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(2), exhausted=True)
        await replays.move(lease, S.DRAINING)
        with pytest.raises(InvariantBroken):
            await replays.move(lease, S.FINISHED)
        await replays.run(Ending.DELIVERED)
        view = await replays.move(lease, S.FINISHED)
        assert view is not None
        assert (view.state, view.holder, where(view.counts)) == (S.FINISHED, "", {"delivered": 2})
        assert view.ended_at is not None
        assert await replays.desk.known(ACME, [staged("m0").key]) == {staged("m0").key: Known.DELIVERED}
        assert await replays.store.fold(lease) is None

    # -- places ----------------------------------------------------------------------------------------

    async def test_replays_over_the_tenants_most_wait_and_start_in_order(self, replays: ReplayWorld) -> None:
        first, second, third = [await replays.started(ONE) for _ in range(3)]
        theirs = await replays.started(ONE, tenant=GLOBEX)
        assert [each.state for each in (first, second, third, theirs)] == [
            S.RUNNING,
            S.HELD,
            S.HELD,
            S.RUNNING,
        ]
        assert second.hold is not None
        assert second.hold.rule is HoldRule.CONCURRENCY
        assert (await replays.desk.used(ACME)).replays == 1
        leases = {
            each.id: Lease(each.id, each.token)
            for each in await replays.store.take("one", LEASE_FOR, limit=9)
        }
        assert await replays.move(leases[second.id], S.RUNNING) is None
        assert await replays.desk.proceed(ACME, second.id) is None
        await replays.finish(leases[first.id])
        states = [(await replays.view(leases[each.id])).state for each in (second, third)]
        assert states == [S.RUNNING, S.HELD]
        await replays.finish(leases[second.id])
        assert (await replays.view(leases[third.id])).state is S.RUNNING

    async def test_a_larger_quota_admits_those_that_wait(self, replays: ReplayWorld) -> None:
        await replays.started(ONE)
        second = await replays.started(ONE)
        lease = await replays.leased(second)
        still = await replays.store.admit(lease, ONE)
        assert still is not None
        assert still.state is S.HELD
        admitted = await replays.store.admit(lease, Quotas(replays=2))
        assert admitted is not None
        assert (admitted.state, admitted.hold) == (S.RUNNING, None)

    async def test_a_replay_that_waits_for_a_place_waits_on_after_a_pause(self, replays: ReplayWorld) -> None:
        first, second = await replays.started(ONE), await replays.started(ONE)
        await replays.desk.pause(ACME, second.id)
        resumed = await replays.desk.resume(ACME, second.id)
        assert resumed is not None
        assert resumed.state is S.HELD
        await replays.desk.pause(ACME, second.id)
        await replays.finish(await replays.leased(first))
        resumed = await replays.desk.resume(ACME, second.id)
        assert resumed is not None
        assert resumed.state is S.RUNNING

    async def test_a_hold_that_stops_is_as_a_pause_until_it_frees_or_a_person_continues(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(3))
        held = await replays.move(lease, S.HELD, hold=Hold(HoldRule.SOURCE, "no answer"))
        assert held is not None
        assert held.hold == Hold(HoldRule.SOURCE, "no answer")
        assert len(await replays.run(Ending.DELIVERED, 1)) == 1
        await replays.move(lease, S.RUNNING)
        stopped = Hold(HoldRule.POISON, "nearly all fail", stops=True)
        for _ in range(2):  # its record is written again meanwhile
            held = await replays.move(lease, S.HELD, hold=stopped)
            assert held is not None
            assert held.hold == stopped
            assert await replays.claim() == []
        await replays.desk.proceed(ACME, lease.replay)
        assert len(await replays.run(Ending.DELIVERED, 1)) == 1
        await replays.move(lease, S.HELD, hold=stopped)
        assert await replays.claim() == []
        await replays.move(lease, S.RUNNING)
        assert len(await replays.run(Ending.DELIVERED)) == 1

    async def test_a_move_from_a_state_that_is_no_more_undoes_no_order(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        held = Hold(HoldRule.POISON, "nearly all fail", stops=True)
        assert await replays.move(lease, S.HELD, seen=S.RUNNING, hold=held)
        assert await replays.move(lease, S.HELD, seen=S.HELD, hold=held)
        assert await replays.desk.proceed(ACME, lease.replay)
        assert await replays.move(lease, S.HELD, seen=S.HELD, hold=held) is None
        assert (await replays.view(lease)).state is S.RUNNING

    async def test_every_live_state_is_given_a_coordinator(self, replays: ReplayWorld) -> None:
        seen: set[ReplayState] = set()
        lease = await replays.running(sample=0.5)
        orders: tuple[Callable[[], Awaitable[ReplayView | None]], ...] = (
            lambda: replays.move(lease, S.RUNNING),
            lambda: replays.move(lease, S.HELD, hold=Hold(HoldRule.SOURCE, "not there")),
            lambda: replays.desk.pause(ACME, lease.replay),
            lambda: replays.desk.resume(ACME, lease.replay),
            lambda: replays.move(lease, S.DRAINING),
            lambda: replays.desk.cancel(ACME, lease.replay),
        )
        for order in orders:
            view = await order()
            assert view is not None
            await replays.store.release("one", {lease.replay: lease.token})
            lease = await replays.leased(view)
            seen.add(view.state)
        assert seen == LIVE
