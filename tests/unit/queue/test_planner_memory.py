"""What the planner's memory does with what it is told, beyond the laws that the conformance suites show."""

from dataclasses import replace

import pytest

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId, TierName, Weight
from tenantry.lanes.model import HTTP, Kind, Target
from tenantry.lanes.orders import Scope
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.summary import summary_of
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.changes import (
    Change,
    Deferred,
    FlowOpened,
    FlowPaused,
    Heard,
    Left,
    LiveNode,
    Ordered,
    Standing,
    Submitted,
    Withdrawn,
)
from tenantry.queue.model import FlowId, JobClass, NodeId, Seq
from tenantry.queue.plan import PlannerMemory

ACME, OTHER = TenantId("acme"), TenantId("other")
HOOK = Target("https://hooks.example.com/a")
FLOW = FlowOpened(FlowId(1), ACME, HOOK, JobClass.LIVE, None, ordered=False)
NOW = Timestamp(1_000.0)
UNSHAPED = TargetSettings(adaptive=False)


def memory_of(*, tier: Tier | None = None, nodes: int = 1, slots: int = 4) -> PlannerMemory:
    tier = tier or Tier(TierName("open"))
    directory = MemoryDirectory(Registry(tiers=(tier,), tenants=(TenantDocument(ACME, tier.name, UNSHAPED),)))
    live = tuple(LiveNode(NodeId(f"n{n}"), 1, tier.pool, slots, frozenset({HTTP})) for n in range(nodes))
    return PlannerMemory(Standing(NOW, (), (), (), (), live), directory, draw=lambda: 0.5)


def started(memory: PlannerMemory, now: float) -> list[int]:
    return [seq for claim in memory.plan(Timestamp(now)).claims for seq in claim.seqs]


def told(memory: PlannerMemory, *changes: Change, at: float = NOW) -> PlannerMemory:
    memory.apply(changes, Timestamp(at))
    return memory


def test_cancelling_a_delayed_job_does_not_let_others_of_its_key_pass_one_between_attempts() -> None:
    flow = replace(FLOW, ordered=True)
    delayed = Deferred(flow.flow, Seq(2), Timestamp(2_000.0), 0)
    memory = told(memory_of(), flow, Submitted(flow.flow, Seq(1), 3), delayed)
    assert started(memory, NOW) == [1]
    memory.apply([_left(flow, 1, due_at=1_200.0)], NOW)
    told(memory, Withdrawn(flow.flow, Seq(2)))
    assert started(memory, NOW + 1) == []
    assert started(memory, 1_200.0) == [1]


def test_a_rate_that_frees_wakes_the_planner_though_no_slot_was_free_meanwhile() -> None:
    memory = told(
        memory_of(tier=Tier(TierName("slow"), dispatch_rate=1.0), slots=1),
        FLOW,
        Submitted(FLOW.flow, Seq(1), 5),
    )
    assert started(memory, NOW) == [1]
    assert memory.next_due() == NOW + 1.0
    assert started(memory, NOW + 1.5) == []
    due = memory.next_due()
    assert due is None or due > NOW + 1.5


def test_invented_kinds_of_work_stand_aside_as_one_until_a_node_can_run_them() -> None:
    memory = memory_of()
    for n in range(50):
        target = Target(f"handler:invented-{n}")
        told(memory, replace(FLOW, flow=FlowId(n + 1), target=target), Submitted(FlowId(n + 1), Seq(1), 1))
    assert started(memory, NOW) == []
    able = LiveNode(NodeId("n0"), 2, "shared", 4, frozenset({HTTP, Kind("handler:invented-7")}))
    assert not memory.set_nodes([able])
    assert memory.set_nodes([replace(able, kinds=frozenset({HTTP}))])


@pytest.mark.parametrize("nodes", [0, 1])
def test_the_age_to_scale_on_is_that_of_the_oldest_job_with_and_without_any_worker(nodes: int) -> None:
    memory = told(memory_of(nodes=nodes, slots=1), FLOW, Submitted(FLOW.flow, Seq(1), 2))
    (backlog,) = memory.backlogs(Timestamp(NOW + 60))
    assert backlog.oldest_in_quota_for == 60.0


@pytest.mark.parametrize("scope", [Scope(ACME, HOOK), Scope(target=HOOK), Scope(ACME)], ids=str)
def test_an_order_holds_for_lanes_that_come_later_and_ends_when_it_is_lifted(scope: Scope) -> None:
    memory = told(memory_of(), Ordered(scope, paused=True), FLOW, Submitted(FLOW.flow, Seq(1), 3))
    assert started(memory, NOW) == []
    told(memory, Ordered(scope, ceiling=2))
    assert started(memory, NOW) == [1, 2]
    told(memory, Ordered(scope))
    assert started(memory, NOW) == [3]


def test_the_narrower_and_the_wider_pause_must_both_end() -> None:
    memory = told(memory_of(), FLOW, Submitted(FLOW.flow, Seq(1), 1))
    told(memory, Ordered(Scope(ACME), paused=True), Ordered(Scope(ACME, HOOK), paused=True))
    told(memory, Ordered(Scope(ACME)))
    assert started(memory, NOW) == []
    told(memory, Ordered(Scope(ACME, HOOK)))
    assert started(memory, NOW) == [1]


def test_the_lowest_ceiling_over_a_lane_holds() -> None:
    memory = told(memory_of(slots=9), FLOW, Submitted(FLOW.flow, Seq(1), 9))
    told(memory, Ordered(Scope(target=HOOK), ceiling=5), Ordered(Scope(ACME, HOOK), ceiling=3))
    assert started(memory, NOW) == [1, 2, 3]
    told(memory, Ordered(Scope(ACME, HOOK), ceiling=7))
    assert started(memory, NOW) == [4, 5]


def test_a_ceiling_of_a_target_bounds_each_lane_to_it_and_no_other() -> None:
    other = replace(FLOW, flow=FlowId(2), tenant=TenantId("globex"))
    elsewhere = replace(FLOW, flow=FlowId(3), target=Target("https://hooks.example.com/b"))
    memory = told(memory_of(slots=9), Ordered(Scope(target=HOOK), ceiling=1))
    for flow in (FLOW, other, elsewhere):
        told(memory, flow, Submitted(flow.flow, Seq(1), 2))
    claims = memory.plan(NOW).claims
    assert sorted(flow for claim in claims for flow in claim.flows) == [1, 2, 3, 3]


def test_a_paused_lane_is_no_reason_to_scale() -> None:
    memory = told(
        memory_of(nodes=0), FLOW, Ordered(Scope(ACME, HOOK), paused=True), Submitted(FLOW.flow, Seq(1), 2)
    )
    (backlog,) = memory.backlogs(Timestamp(NOW + 60))
    assert backlog.oldest_in_quota_for == 0.0


def _left(flow: FlowOpened, seq: int, *, due_at: float) -> Change:
    place = (flow.flow, Seq(seq))
    return Left((place,), (Deferred(*place, Timestamp(due_at), 1),))


def test_a_submit_that_is_told_out_of_turn_is_not_guessed_at() -> None:
    memory = told(memory_of(), FLOW, Submitted(FLOW.flow, Seq(1), 1))
    with pytest.raises(InvariantBroken, match="place 4 told after 1"):
        told(memory, Submitted(FLOW.flow, Seq(4), 1))


def test_what_an_old_token_says_of_a_flow_that_was_emptied_long_ago_changes_nothing() -> None:
    memory = told(memory_of(), Heard(FlowId(9), summary_of([Outcome("timeout", busy_for=1.0)])))
    told(memory, FLOW, Submitted(FLOW.flow, Seq(1), 1))
    assert started(memory, NOW) == [1]


REPLAY = replace(FLOW, flow=FlowId(2), job_class=JobClass.REPLAY, replay="r1")


def test_what_a_replay_waits_for_is_no_pressure_on_its_pool() -> None:
    """Its backlog may wait for hours by design: that must not refuse anybody's submits."""
    tiers = (Tier(TierName("half")), Tier(TierName("most"), Weight(2.0)))
    documents = (
        TenantDocument(ACME, TierName("most"), UNSHAPED),
        TenantDocument(OTHER, TierName("half"), UNSHAPED),
    )
    live = (LiveNode(NodeId("n"), 1, "shared", 2, frozenset({HTTP})),)
    memory = PlannerMemory(
        Standing(NOW, (), (), (), (), live), MemoryDirectory(Registry(tiers, documents)), draw=lambda: 0.5
    )
    others = replace(FLOW, flow=FlowId(9), tenant=OTHER)
    told(memory, others, Submitted(others.flow, Seq(1), 2))
    assert started(memory, NOW) == [1, 2], "the other tenant has both slots, and keeps them"
    told(memory, REPLAY, Submitted(REPLAY.flow, Seq(1), 10))
    later = Timestamp(NOW + 60.0)
    assert memory.pressures(later)["shared"].age == 0.0
    assert sum(backlog.oldest_in_quota_for for backlog in memory.backlogs(later)) == 0.0
    told(memory, FLOW, Submitted(FLOW.flow, Seq(1), 1), at=later)
    last = Timestamp(later + 60.0)
    assert memory.pressures(last)["shared"].age == 60.0, "as live work does"
    assert sum(backlog.oldest_in_quota_for for backlog in memory.backlogs(last)) == 60.0


def test_a_paused_flow_starts_nothing_and_goes_on_where_it_was() -> None:
    memory = told(memory_of(), REPLAY, Submitted(REPLAY.flow, Seq(1), 2), FlowPaused(REPLAY.flow, True))
    assert started(memory, NOW) == []
    told(memory, FlowPaused(REPLAY.flow, False))
    assert started(memory, NOW) == [1, 2]


def test_a_flow_that_opens_paused_starts_nothing() -> None:
    memory = told(memory_of(), replace(REPLAY, paused=True), Submitted(REPLAY.flow, Seq(1), 2))
    assert started(memory, NOW) == []


def test_a_pause_of_a_flow_that_nobody_has_heard_of_is_passed_over() -> None:
    assert started(told(memory_of(), FlowPaused(FlowId(99), True)), NOW) == []
