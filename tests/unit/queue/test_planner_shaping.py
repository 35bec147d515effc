"""The planner and the shapers of lanes: what may start follows what workers say, and never more than that."""

from collections.abc import Sequence
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.config.model import NO_SETTINGS, TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes import shaper_state
from tenantry.lanes.model import HTTP, Lane, Target
from tenantry.lanes.orders import Scope
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.shaper import Held
from tenantry.lanes.summary import summary_of
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.changes import FlowOpened, Heard, Left, LiveNode, Ordered, Standing, Submitted
from tenantry.queue.model import FlowId, JobClass, NodeId, Seq
from tenantry.queue.plan import PlannerMemory

ACME = TenantId("acme")
HOOK = Target("https://hooks.example.com/a")
LANE = Lane(ACME, HOOK)
FLOW = FlowOpened(FlowId(1), ACME, HOOK, JobClass.LIVE, None, ordered=False)
START = 1_000.0
TIMEOUT = 15.0

OK, LATE, LATER = "ok", "timeout", "http_503"


class Drive:
    """A planner's memory, one node of many slots, a long backlog, and a target that answers as it is told."""

    def __init__(
        self,
        *,
        slots: int = 200,
        target: TargetSettings = NO_SETTINGS,
        shaper: object = None,
        now: float = START,
    ) -> None:
        tier = Tier(TierName("open"))
        self.directory = MemoryDirectory(Registry((tier,), (TenantDocument(ACME, tier.name, target),)))
        node = LiveNode(NodeId("n"), 1, tier.pool, slots, frozenset({HTTP}))
        standing = Standing(Timestamp(now), (), (), (), (), (node,))
        self.memory = PlannerMemory(standing, self.directory, draw=lambda: 0.5)
        self.now = now
        flow = FlowOpened(FlowId(1), ACME, HOOK, JobClass.LIVE, None, ordered=False, shaper=shaper)
        self.memory.apply([flow, Submitted(FLOW.flow, Seq(1), 1_000_000)], Timestamp(now))

    def round(self, *, after: float = 0.0) -> list[Seq]:
        """One round: what starts."""
        self.now += after
        return [seq for claim in self.memory.plan(Timestamp(self.now)).claims for seq in claim.seqs]

    def end(self, seqs: Sequence[Seq], *outcomes: Outcome, heard: bool = True) -> None:
        """``seqs`` left their claims, with these endings; not ``heard``: with their workers."""
        changes = [Left(tuple((FLOW.flow, seq) for seq in seqs), reported=heard)]
        told = [Heard(FLOW.flow, summary_of(outcomes))] if heard else []
        self.memory.apply([*changes, *told], Timestamp(self.now))

    def fail_until_open(self) -> None:
        """Every call runs into its timeout until the breaker opens."""
        for _ in range(40):
            started = self.round()
            if not started and self.memory.held_lanes().get(Held.BREAKER):
                return
            self.now += TIMEOUT
            self.end(started, *(Outcome(LATE, busy_for=TIMEOUT) for _ in started))
        raise AssertionError("the breaker stays closed")

    def serve(self, capacity: float, latency: float, seconds: float) -> list[tuple[float, int]]:
        """A target of ``capacity`` calls a second that queues: (instant, in flight) after each round."""
        ends: list[tuple[float, Seq, float]] = []
        free_at, until, seen = self.now, self.now + seconds, []
        while self.now < until:
            for seq in self.round():
                free_at = max(free_at, self.now) + 1.0 / capacity
                heappush(ends, (free_at + latency, seq, self.now))
            seen.append((self.now, len(ends)))
            due = self.memory.next_due()
            at = ends[0][0] if ends else self.now + 0.05
            self.now = max(self.now + 1e-6, min(at, due if due is not None else at))
            while ends and ends[0][0] <= self.now:
                _, seq, began = heappop(ends)
                self.end([seq], Outcome(OK, 200, busy_for=self.now - began))
        return seen


def test_a_new_lane_starts_with_one_and_finds_out_what_its_target_can_take() -> None:
    drive = Drive()
    first = drive.round()
    assert len(first) == 1
    drive.end(first, Outcome(OK, 200, busy_for=0.05))
    seen = drive.serve(capacity=200.0, latency=0.05, seconds=30.0)
    settled = [in_flight for at, in_flight in seen if at > START + 10.0]
    assert 10 <= sum(settled) / len(settled) <= 25  # 200/s x 50 ms = 10 keep it busy


def test_lanes_whose_answers_change_at_the_same_instant_are_all_looked_at() -> None:
    drive = Drive()
    flows = [
        FlowOpened(FlowId(n), ACME, Target(f"{HOOK}/{n}"), JobClass.LIVE, None, ordered=False)
        for n in range(2, 30)
    ]
    work = [Submitted(flow.flow, Seq(1), 5) for flow in flows]
    drive.memory.apply([*flows, *work], Timestamp(drive.now))
    assert len(drive.round()) == 29
    assert drive.round(after=30.0) == []


def test_a_dead_target_gets_nothing_more_and_its_slots_are_free() -> None:
    drive = Drive(slots=50)
    drive.fail_until_open()
    assert drive.round() == []
    assert drive.memory.free() == 50
    assert [(each.lane, each.state.value) for each in drive.memory.breakers_moved()] == [(LANE, "open")]


def test_half_open_lets_exactly_one_probe_through_whatever_waits() -> None:
    drive = Drive()
    drive.fail_until_open()
    due = drive.memory.next_due()
    assert due is not None
    drive.now = due
    assert len(drive.round()) == 1
    assert drive.round(after=0.5) == []


def test_a_probe_whose_worker_is_lost_is_followed_by_another_in_time() -> None:
    drive = Drive()
    drive.fail_until_open()
    drive.now = drive.memory.next_due() or 0.0
    probe = drive.round()
    drive.end(probe, heard=False)  # the worker was killed, and its claim reclaimed
    started: list[Seq] = []
    until = drive.now + TIMEOUT + 6.0
    while not started and drive.now < until:
        drive.now = max(drive.now + 0.01, min(until, drive.memory.next_due() or until))
        started = drive.round()
    assert len(started) == 1


def test_a_probe_that_succeeds_closes_the_breaker_and_the_limit_starts_small() -> None:
    drive = Drive()
    drive.fail_until_open()
    drive.memory.breakers_moved()
    drive.now = drive.memory.next_due() or 0.0
    probe = drive.round()
    drive.now += 0.05
    drive.end(probe, Outcome(OK, 200, busy_for=0.05))
    started = drive.round()
    assert 1 <= len(started) <= 2
    assert [each.state.value for each in drive.memory.breakers_moved()][-1] == "closed"


def test_a_retry_after_is_obeyed_and_the_planner_knows_when_it_ends() -> None:
    drive = Drive()
    started = drive.round()
    drive.end(started, Outcome(LATER, 503, retry_after=600.0, busy_for=0.05))
    assert drive.round() == []
    assert drive.memory.held_lanes() == {Held.RETRY_AFTER: 1}
    due = drive.memory.next_due()
    assert due is not None
    assert drive.round(after=599.9) == []
    while drive.now < START + 700.0 and not (started := drive.round()):
        drive.now = max(drive.now + 0.01, drive.memory.next_due() or drive.now + 1.0)
    assert START + 600.0 <= drive.now <= START + 661.0  # never early, and spread over a tenth


def test_a_fault_of_the_message_moves_neither_limit_nor_breaker() -> None:
    drive = Drive()
    for _ in range(100):
        started = drive.round()
        assert len(started) == 1
        drive.now += 0.01
        drive.end(started, Outcome("http_422", 422, busy_for=0.01))
    assert drive.memory.held_lanes() == {}


def test_what_was_kept_is_where_the_next_planner_starts() -> None:
    drive = Drive()
    drive.serve(capacity=400.0, latency=0.05, seconds=10.0)
    kept = drive.memory.shapers_to_keep(Timestamp(drive.now + 2.0)).get(LANE)
    assert kept is not None
    level = len(Drive(shaper=kept, now=drive.now + 5.0).round())
    assert level >= 10


def test_an_open_breaker_is_kept_at_once_and_holds_under_the_next_planner() -> None:
    drive = Drive()
    drive.memory.shapers_to_keep(Timestamp(drive.now))
    drive.fail_until_open()
    kept = drive.memory.shapers_to_keep(Timestamp(drive.now))[LANE]
    assert Drive(shaper=kept, now=drive.now + 0.5).round() == []


@pytest.mark.parametrize("broken", [[99], "x", {"a": 1}, [1, 2, 3]])
def test_a_state_that_cannot_be_read_is_learned_again(broken: object) -> None:
    assert len(Drive(shaper=broken).round()) == 1


def test_the_ceiling_of_the_settings_is_never_passed() -> None:
    drive = Drive(target=TargetSettings(limit=3))
    seen = drive.serve(capacity=10_000.0, latency=0.05, seconds=10.0)
    assert max(in_flight for _, in_flight in seen) == 3


@pytest.mark.parametrize("scope", [Scope(ACME, HOOK), Scope(target=HOOK), Scope(ACME)], ids=str)
def test_a_persons_ceiling_is_kept_from_its_round_on_and_lifted_again(scope: Scope) -> None:
    drive = Drive()
    drive.memory.apply([Ordered(scope, ceiling=3)], Timestamp(drive.now))
    assert max(in_flight for _, in_flight in drive.serve(1_000.0, 0.02, 10.0)) == 3
    still = len(drive.memory.in_flight())  # their ends are not told any more
    drive.memory.apply([Ordered(scope)], Timestamp(drive.now))
    assert still + max(in_flight for _, in_flight in drive.serve(1_000.0, 0.02, 20.0)) > 3


def test_a_ceiling_over_the_limit_of_the_document_changes_nothing() -> None:
    drive = Drive(target=TargetSettings(limit=2))
    drive.memory.apply([Ordered(Scope(ACME, HOOK), ceiling=50)], Timestamp(START))
    assert max(in_flight for _, in_flight in drive.serve(1_000.0, 0.02, 10.0)) == 2


def test_a_ceiling_bounds_a_lane_that_is_not_shaped_too() -> None:
    drive = Drive(target=TargetSettings(adaptive=False))
    drive.memory.apply([Ordered(Scope(target=HOOK), ceiling=4)], Timestamp(START))
    assert len(drive.round()) == 4


def test_a_reset_lane_starts_at_one_again_and_what_it_forgot_is_kept_as_forgotten() -> None:
    drive = Drive()
    drive.serve(capacity=1_000.0, latency=0.02, seconds=20.0)
    drive.round(after=2.0)
    drive.memory.shapers_to_keep(Timestamp(drive.now))
    drive.memory.apply([Ordered(Scope(ACME, HOOK), reset=True)], Timestamp(drive.now))
    drive.round()
    kept = drive.memory.shapers_to_keep(Timestamp(drive.now))[LANE]
    state = shaper_state.decoded(kept, in_flight=0, now=Timestamp(drive.now))
    assert (state.limit.permits, state.reference.latency) == (1, None)


def test_a_reset_closes_an_open_breaker() -> None:
    drive = Drive()
    drive.fail_until_open()
    assert drive.round() == []
    drive.memory.apply([Ordered(Scope(target=HOOK), reset=True)], Timestamp(drive.now))
    assert len(drive.round()) == 1


def test_settings_that_say_so_end_the_shaping_at_once() -> None:
    drive = Drive(slots=50)
    drive.fail_until_open()
    tier = Tier(TierName("open"))
    document = TenantDocument(ACME, tier.name, TargetSettings(adaptive=False))
    drive.directory.replace(Registry((tier,), (document,)))
    assert drive.memory.refresh_tiers()
    assert len(drive.round()) == 50


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["ok", "timeout", "http_429", "http_503", "http_422", "lost"]),
                          st.floats(0.001, 20.0), st.integers(1, 50)), max_size=60))  # fmt: skip
def test_in_flight_and_free_slots_agree_whatever_comes_back(told: list[tuple[str, float, int]]) -> None:
    drive, held = Drive(slots=20), []
    for error_class, took, count in told:
        held += drive.round()
        drive.now += took
        ended, held = held[:count], held[count:]
        if ended:
            outcomes = [Outcome(error_class, busy_for=took) for _ in ended] if error_class != "lost" else []
            drive.end(ended, *outcomes, heard=error_class != "lost")
        assert drive.memory.free() == 20 - len(held)
        assert len(drive.memory.in_flight()) == len(held)
    for encoded in drive.memory.shapers_to_keep(Timestamp(drive.now + 2.0)).values():
        shaper_state.decoded(encoded, in_flight=len(held), now=Timestamp(drive.now))
