"""What the store promises the shapers of lanes: what workers say is told, and what was learned comes back."""

from dataclasses import replace

import pytest

from tenantry.algorithms.circuit_breaker import Breaker, BreakerState
from tenantry.kernel.errors import PlaceLost
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes import shaper_state
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.orders import Action, Scope
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.shaper import ShaperState, opened
from tenantry.lanes.summary import summary_of
from tenantry.lanes.table import LaneQuery, LaneSort, LaneState, state_of
from tenantry.queue.changes import FlowOpened, Heard, Left
from tenantry.queue.model import Ending, JobClass, Settlement
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

OK = Outcome("ok", 200, busy_for=0.02)
LATE = Outcome("timeout", busy_for=15.0)
STATE = shaper_state.encoded(opened(Timestamp(1_000.0)))


def heard_of(settled: Settlement, outcome: Outcome) -> Settlement:
    return replace(settled, outcome=outcome)


class ShapingConformance:
    """Summaries and states."""

    async def test_what_the_endings_say_of_a_target_is_told_once_in_order_after_they_left(
        self, world: World
    ) -> None:
        await world.submit(*batch(3))
        node = await world.node(slots=3)
        first, second, third = await world.claim(node, 3)
        ends = [
            heard_of(settlement(first, Ending.DELIVERED), OK),
            heard_of(settlement(second, Ending.RETRY, retry_for=60.0), LATE),
            settlement(third, Ending.RELEASED),
        ]
        await world.worker.settle(node, ends)
        told = await world.hand.listen()
        (heard,) = (change for change in told if isinstance(change, Heard))
        assert heard == Heard(first.flow, summary_of([OK, LATE]))
        assert told.index(heard) > max(told.index(each) for each in told if isinstance(each, Left))
        assert not [change for change in await world.hand.listen() if isinstance(change, Heard)]

    async def test_nothing_is_told_of_a_lane_that_has_no_shaper(self, world: World) -> None:
        await world.submit(job())
        node = await world.node()
        (claimed,) = await world.claim(node)
        await world.settle(node, [claimed], Ending.DELIVERED)
        assert not [change for change in await world.hand.listen() if isinstance(change, Heard)]

    async def test_what_nobody_holds_any_more_says_nothing(self, world: World) -> None:
        await world.submit(job())
        node = await world.node()
        (claimed,) = await world.claim(node)
        done = heard_of(settlement(claimed, Ending.DELIVERED), OK)
        assert await world.worker.settle(node, [done]) == 1
        await world.hand.listen()
        assert await world.worker.settle(node, [done]) == 0
        assert not [change for change in await world.hand.listen() if isinstance(change, Heard)]

    @pytest.mark.parametrize("endings", [(Ending.DELIVERED, Ending.RETRY), (Ending.RETRY, Ending.DELIVERED)])
    async def test_a_batch_with_an_old_token_says_nothing_of_a_target(
        self, world: World, endings: tuple[Ending, Ending]
    ) -> None:
        await world.submit(*batch(2))
        node = await world.node(slots=2)
        old, new = await world.claim(node, 2)
        assert await world.settle(node, [old], endings[0]) == 1
        await world.hand.listen()
        both = [
            heard_of(settlement(job, ending, retry_for=60.0), OK)
            for job, ending in zip((old, new), endings, strict=True)
        ]
        assert await world.worker.settle(node, both) == 1
        told = await world.hand.listen()
        assert [change for change in told if isinstance(change, Left)]
        assert not [change for change in told if isinstance(change, Heard)]

    async def test_a_state_that_was_kept_comes_back_when_all_is_read_afresh(self, world: World) -> None:
        await world.submit(job())
        await world.hand.begin()
        await self._keep(world, HOOK)
        (flow,) = (await world.hand.rebuild()).flows
        assert flow.opened.shaper == STATE

    async def test_a_flow_that_opens_later_brings_the_state_of_its_lane_along(self, world: World) -> None:
        await world.submit(job())
        await world.hand.begin()
        await self._keep(world, HOOK)
        await world.submit(replace(job(), job_class=JobClass.BACKGROUND), job(target=OTHER_HOOK))
        found = [change for change in await world.hand.listen() if isinstance(change, FlowOpened)]
        assert {flow.target: flow.shaper for flow in found} == {HOOK: STATE, OTHER_HOOK: None}

    async def test_a_later_state_replaces_the_one_before(self, world: World) -> None:
        await world.submit(job())
        await world.hand.begin()
        await self._keep(world, HOOK)
        newer = shaper_state.encoded(opened(Timestamp(1_001.0)))
        newer[-1] = 5_000.0
        assert world.hand.term is not None
        await world.planner.keep_shapers(world.hand.term, {Lane(ACME, HOOK): newer})
        (flow,) = (await world.hand.rebuild()).flows
        assert flow.opened.shaper == newer

    async def test_of_a_lane_that_is_not_there_nothing_is_kept(self, world: World) -> None:
        await world.submit(job())
        await world.hand.begin()
        assert world.hand.term is not None
        nowhere = Lane(TenantId("nobody"), Target("https://nowhere.example/"))
        await world.planner.keep_shapers(world.hand.term, {nowhere: STATE, Lane(ACME, HOOK): STATE})
        (flow,) = (await world.hand.rebuild()).flows
        assert flow.opened.shaper == STATE

    async def test_a_planner_that_lost_its_place_keeps_nothing(self, world: World) -> None:
        await world.submit(job())
        await world.hand.begin()
        stale = world.hand.term
        assert stale is not None
        await world.planner.leave_place(stale)
        with pytest.raises(PlaceLost):
            await world.planner.keep_shapers(stale, {Lane(ACME, HOOK): STATE})
        (flow,) = (await world.hand.begin()).flows
        assert flow.opened.shaper is None

    @pytest.mark.parametrize("scope", [Scope(ACME, HOOK), Scope(target=HOOK), Scope(ACME)], ids=str)
    async def test_what_a_reset_made_forgotten_does_not_come_back_when_all_is_read_afresh(
        self, world: World, scope: Scope
    ) -> None:
        await world.submit(job(), job(target=OTHER_HOOK))
        await world.submit(job(target=OTHER_HOOK), tenant=GLOBEX)
        await world.hand.begin()
        lanes = [Lane(ACME, HOOK), Lane(ACME, OTHER_HOOK), Lane(GLOBEX, OTHER_HOOK)]
        assert world.hand.term is not None
        await world.planner.keep_shapers(world.hand.term, dict.fromkeys(lanes, STATE))
        await world.order(Action.RESET, scope.tenant, scope.target)
        flows = (await world.hand.rebuild()).flows
        kept = {Lane(each.opened.tenant, each.opened.target) for each in flows if each.opened.shaper}
        assert kept == {lane for lane in lanes if not scope.covers(lane)}

    async def test_the_table_shows_what_the_shaper_learned_and_whether_it_holds(self, world: World) -> None:
        await world.submit(job())
        await world.submit(job(), tenant=GLOBEX)
        await world.hand.begin()
        await self._keep(world, HOOK, replace(opened(Timestamp(0.0)), breaker=Breaker(BreakerState.OPEN)))
        acme, globex = await world.operator.lanes(LaneQuery())
        assert acme.shaper is not None
        assert acme.shaper.breaker.state is BreakerState.OPEN
        assert globex.shaper is None
        (held,) = await world.operator.lanes(LaneQuery(state=LaneState.HELD))
        (free,) = await world.operator.lanes(LaneQuery(state=LaneState.OPEN, sort=LaneSort.BACKLOG))
        assert (held.lane.tenant, free.lane.tenant) == (ACME, GLOBEX)
        await world.pause()
        assert await world.operator.lanes(LaneQuery(state=LaneState.HELD)) == []

    @pytest.mark.parametrize("seconds", [60.0, -60.0])
    async def test_a_lane_is_held_as_long_as_its_target_asked_for_and_no_longer(
        self, world: World, seconds: float
    ) -> None:
        await world.submit(job())
        now = (await world.hand.begin()).now
        await self._keep(world, HOOK, replace(opened(now), held_until=Timestamp(now + seconds)))
        (lane,) = await world.operator.lanes(LaneQuery())
        found = await world.operator.lanes(LaneQuery(state=LaneState.HELD))
        assert [each.lane for each in found] == ([lane.lane] if seconds > 0 else [])
        assert state_of(lane) is (LaneState.HELD if seconds > 0 else LaneState.OPEN)

    async def test_what_waits_in_a_lane_is_told_what_its_shaper_knows(self, world: World) -> None:
        (id_,) = await world.submit(job())
        now = (await world.hand.begin()).now
        await self._keep(world, HOOK, replace(opened(now), held_until=Timestamp(now + 60.0)))
        facts = await world.intake.facts(ACME, id_, pool=POOL)
        assert facts is not None
        assert facts.shaper is not None
        assert facts.shaper.held_until == pytest.approx(now + 60.0)

    async def test_a_state_of_another_version_is_shown_as_unknown_and_holds_nothing(
        self, world: World
    ) -> None:
        await world.submit(job())
        await world.hand.begin()
        assert world.hand.term is not None
        await world.planner.keep_shapers(world.hand.term, {Lane(ACME, HOOK): [99, "what", "ever"]})
        (lane,) = await world.operator.lanes(LaneQuery(state=LaneState.OPEN))
        assert lane.shaper is None

    async def _keep(self, world: World, target: Target, state: ShaperState | None = None) -> None:
        assert world.hand.term is not None
        kept = STATE if state is None else shaper_state.encoded(state)
        await world.planner.keep_shapers(world.hand.term, {Lane(ACME, target): kept})
