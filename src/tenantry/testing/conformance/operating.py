"""What the operator's side promises: orders that stand and are logged, a table of lanes, exact counts."""

from dataclasses import replace

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Rule
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.orders import Action, Order, Scope
from tenantry.lanes.table import LaneQuery, LaneSort, LaneState
from tenantry.queue.model import Ending, JobState
from tenantry.testing.conformance.world import (
    ACME,
    GLOBEX,
    HOOK,
    OTHER_HOOK,
    POOL,
    World,
    batch,
    job,
    settlement,
)


class OperatorConformance:
    """Across tenants."""

    @pytest.mark.parametrize("scope", [Scope(ACME, HOOK), Scope(target=HOOK), Scope(ACME)], ids=str)
    async def test_what_is_paused_accepts_up_to_the_bound(self, world: World, scope: Scope) -> None:
        await world.pause(scope.tenant, scope.target)
        await world.submit(*batch(3), bound=3)
        assert (await world.refused(job(), bound=3)).rule is Rule.BOUND

    async def test_an_order_is_recorded_with_who_when_and_why(self, world: World) -> None:
        given = await world.pause()
        assert given.order == Order(Action.PAUSE, Scope(ACME, HOOK), "maintenance", "ada")
        assert await world.operator.orders(limit=10) == [given]
        assert await world.operator.order_log(limit=10) == [given]

    async def test_the_log_keeps_what_no_longer_stands(self, world: World) -> None:
        first = await world.pause()
        again = await world.pause()
        resumed = await world.resume()
        ceiling = await world.order(Action.CEILING, None, HOOK, 5)
        assert await world.operator.orders(limit=10) == [ceiling]
        assert await world.operator.order_log(limit=10) == [ceiling, resumed, again, first]

    async def test_the_log_is_read_in_pages(self, world: World) -> None:
        given = [await world.order(Action.CEILING, ACME, None, n) for n in range(1, 6)]
        page = await world.operator.order_log(limit=2)
        assert page == [given[4], given[3]]
        assert await world.operator.order_log(limit=2, before=page[-1].number) == [given[2], given[1]]
        assert await world.operator.order_log(limit=9, before=given[0].number) == []

    @pytest.mark.parametrize("limit", [0, 1_001])
    async def test_a_page_is_of_1_to_1_000(self, world: World, limit: int) -> None:
        for ask in (world.operator.orders, world.operator.order_log):
            with pytest.raises(InvalidValue, match="from 1 to 1,000"):
                await ask(limit=limit)

    async def test_resuming_a_lane_leaves_the_pause_of_its_target(self, world: World) -> None:
        await world.pause(None, HOOK)
        await world.pause(ACME, HOOK)
        await world.resume(ACME, HOOK)
        (lane,) = await world.operator.lanes(LaneQuery(tenant=ACME))
        assert [each.order.scope for each in lane.orders] == [Scope(target=HOOK)]

    async def test_what_waits_in_a_paused_lane_is_told_who_paused_it_when_and_why(self, world: World) -> None:
        (id_,) = await world.submit(job())
        given = await world.pause(None, HOOK)
        await world.pause(GLOBEX, HOOK)
        await world.pause(ACME, OTHER_HOOK)
        facts = await world.intake.facts(ACME, id_, pool=POOL)
        assert facts is not None
        assert facts.orders == (given,)

    async def test_orders_over_a_lane_come_pauses_first_and_then_the_narrowest(self, world: World) -> None:
        actions = ((Action.CEILING, 2), (Action.PAUSE, None))
        scopes = (Scope(ACME), Scope(target=HOOK), Scope(ACME, HOOK))
        for action, ceiling in actions:
            for scope in scopes:
                await world.order(action, scope.tenant, scope.target, ceiling)
        (lane,) = await world.operator.lanes(LaneQuery(target=HOOK))
        found = [(each.order.action, each.order.scope) for each in lane.orders]
        assert found == [(action, scope) for action, _ in reversed(actions) for scope in reversed(scopes)]

    async def test_the_table_counts_what_waits_is_delayed_and_runs_in_each_lane(self, world: World) -> None:
        ids = await world.submit(*batch(7), replace(job(), delay_for=600.0))
        await world.submit(*batch(2, target=OTHER_HOOK), tenant=GLOBEX)
        node = await world.node()
        held = await world.claim(node, 4, target=HOOK)
        await world.settle(node, held[:1], Ending.DELIVERED)
        await world.worker.settle(node, [settlement(held[1], Ending.RETRY, retry_for=600.0)])
        await world.intake.cancel(ACME, ids[6])
        lanes = await world.operator.lanes(LaneQuery())
        assert [(each.lane, each.waiting, each.delayed, each.in_flight) for each in lanes] == [
            (Lane(ACME, HOOK), 2, 2, 2),
            (Lane(GLOBEX, OTHER_HOOK), 2, 0, 0),
        ]

    async def test_a_delayed_job_that_falls_due_waits_in_the_table_too(self, world: World) -> None:
        await world.submit(job(), replace(job(), delay_for=60.0))
        node = await world.node()
        (held,) = await world.claim(node, 1)
        await world.worker.settle(node, [settlement(held, Ending.RETRY, retry_for=60.0)])
        await world.pass_time(61.0)
        (lane,) = await world.operator.lanes(LaneQuery())
        assert (lane.waiting, lane.delayed, lane.in_flight) == (2, 0, 0)

    async def test_the_busiest_lanes_come_first_if_asked(self, world: World) -> None:
        node = await world.node()
        for number, target in ((1, HOOK), (3, OTHER_HOOK)):
            await world.submit(*batch(number, target=target))
        await world.submit(*batch(2), tenant=GLOBEX)
        await world.claim(node, 2, target=OTHER_HOOK)
        await world.submit(replace(job(), delay_for=60.0))
        busiest = await world.operator.lanes(LaneQuery(sort=LaneSort.IN_FLIGHT, limit=1))
        longest = await world.operator.lanes(LaneQuery(sort=LaneSort.BACKLOG))
        assert [each.lane for each in busiest] == [Lane(ACME, OTHER_HOOK)]
        assert [(each.lane.tenant, each.lane.target, each.waiting + each.delayed) for each in longest] == [
            (ACME, HOOK, 2),
            (GLOBEX, HOOK, 2),
            (ACME, OTHER_HOOK, 1),
        ]

    @pytest.mark.parametrize("sort", LaneSort)
    async def test_the_table_is_narrowed_by_tenant_target_and_state(
        self, world: World, sort: LaneSort
    ) -> None:
        for tenant in (ACME, GLOBEX):
            await world.submit(*batch(1, target=HOOK), *batch(1, target=OTHER_HOOK), tenant=tenant)
        await world.pause(None, OTHER_HOOK)

        async def found(query: LaneQuery) -> list[Lane]:
            return [each.lane for each in await world.operator.lanes(replace(query, sort=sort))]

        paused = [Lane(ACME, OTHER_HOOK), Lane(GLOBEX, OTHER_HOOK)]
        assert await found(LaneQuery(target=OTHER_HOOK)) == paused
        assert await found(LaneQuery(state=LaneState.PAUSED)) == paused
        assert await found(LaneQuery(tenant=ACME)) == [Lane(ACME, HOOK), Lane(ACME, OTHER_HOOK)]
        assert await found(LaneQuery(tenant=ACME, state=LaneState.OPEN)) == [Lane(ACME, HOOK)]
        assert await found(LaneQuery(tenant=ACME, target=HOOK, state=LaneState.PAUSED)) == []

    @pytest.mark.parametrize("scope", [Scope(ACME), Scope(target=HOOK), None], ids=str)
    async def test_the_table_is_read_in_pages_and_each_lane_once(
        self, world: World, scope: Scope | None
    ) -> None:
        for number in range(3):
            await world.submit(job(target=Target(f"https://hooks.example.com/{number}")))
            await world.submit(job(), tenant=TenantId(("acme", "globex")[number % 2]))
        narrowed = LaneQuery(tenant=scope.tenant, target=scope.target) if scope else LaneQuery()
        whole = [each.lane for each in await world.operator.lanes(narrowed)]
        after, read = None, list[Lane]()
        while page := await world.operator.lanes(replace(narrowed, limit=1, after=after)):
            after = page[-1].lane
            read.append(after)
        assert read == whole
        assert len(set(read)) == len(read) > 1

    async def test_a_lane_that_was_ordered_about_before_its_first_job_is_in_the_table(
        self, world: World
    ) -> None:
        await world.pause()
        (lane,) = await world.operator.lanes(LaneQuery(state=LaneState.PAUSED))
        assert (lane.lane, lane.waiting) == (Lane(ACME, HOOK), 0)

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
            JobState.PARKED: 0,
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
