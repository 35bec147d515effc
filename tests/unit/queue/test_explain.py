"""Why a job waits: the most decisive reason first, with figures, and nobody else's name."""

from dataclasses import replace

import pytest

from tenantry.algorithms.circuit_breaker import Breaker, BreakerState
from tenantry.algorithms.concurrency_limit import Limit
from tenantry.algorithms.shedding import Level
from tenantry.config.registry import Registry, parse_registry
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import HTTP, Kind, Target
from tenantry.lanes.orders import Action, Order, OrderRecord, Scope
from tenantry.lanes.shaper import opened
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.explain import Facts, WaitsFor, explain, facts_of, headline, pool_of
from tenantry.queue.model import JobState

FACTS = Facts(
    state=JobState.WAITING,
    tenant=TenantId("acme"),
    target=Target("https://example.com/hook"),
    kind=HTTP,
    now=Timestamp(1_000.0),
    due_at=None,
    attempts=0,
    ahead_in_flow=0,
    flow_in_flight=0,
    ordered=False,
    lane_in_flight=0,
    lane_limit=None,
    tenant_in_flight=0,
    tenant_waiting=1,
    pool_slots=20,
    pool_in_flight=20,
    pool_slots_of_kind=20,
    tenants_waiting=3,
    planner_live=True,
    cap=0.2,
    share=0.25,
)


LANE = Scope(FACTS.tenant, FACTS.target)
PAUSE = OrderRecord(2, Order(Action.PAUSE, LANE, "target is being moved", "ada"), Timestamp(940.0))
CEILING = OrderRecord(1, Order(Action.CEILING, LANE, "small machine", "bob", 2), Timestamp(0.0))


def kinds(facts: Facts) -> list[WaitsFor]:
    return [reason.waits_for for reason in explain(facts)]


def test_a_tenant_at_its_cap_is_told_what_it_holds_and_of_what() -> None:
    facts = replace(FACTS, tenant_in_flight=4)
    reason = explain(facts)[0]
    assert reason.waits_for is WaitsFor.CAP
    assert reason.detail == "The tenant holds 4 of its 4 slots: 20 % of 20."
    assert WaitsFor.CAP not in kinds(replace(FACTS, tenant_in_flight=3))


def test_a_delayed_job_waits_for_its_time_alone() -> None:
    facts = replace(FACTS, state=JobState.DELAYED, due_at=Timestamp(1_090.0), orders=(PAUSE,))
    (reason,) = explain(facts)
    assert (reason.waits_for, reason.until) == (WaitsFor.DELAY, 1_090.0)
    assert reason.detail == "It waits for the delay it was submitted with, due in 1 min 30 s."


def test_a_job_between_attempts_says_how_many_there_were() -> None:
    facts = replace(FACTS, state=JobState.DELAYED, due_at=Timestamp(8_200.0), attempts=2)
    assert explain(facts)[0].detail == "It waits for its next attempt after 2 attempts, due in 2 h."


def test_reasons_come_most_decisive_first() -> None:
    everything = replace(
        FACTS,
        orders=(PAUSE, CEILING),
        planner_live=False,
        pool_slots_of_kind=0,
        ordered=True,
        flow_in_flight=1,
        lane_limit=2,
        lane_in_flight=2,
        tenant_in_flight=4,
        ahead_in_flow=7,
    )
    decisive = [WaitsFor.LANE_PAUSED, WaitsFor.PLANNER, WaitsFor.NO_SLOT, WaitsFor.ORDER]
    assert kinds(everything) == [
        *decisive,
        WaitsFor.CEILING,
        WaitsFor.LANE_LIMIT,
        WaitsFor.CAP,
        WaitsFor.SHARE,
    ]
    assert headline(everything) == explain(everything)[0].detail


def test_a_paused_lane_says_who_paused_it_when_and_why() -> None:
    facts = replace(FACTS, orders=(PAUSE,))
    assert explain(facts)[0].detail == (
        "Its lane is paused by ada since 1970-01-01 00:15:40Z: target is being moved. "
        "Nothing in it starts until a person resumes it."
    )


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (Scope(target=FACTS.target), "Every lane to its target is paused by ada"),
        (Scope(FACTS.tenant), "Every lane of its tenant is paused by ada"),
    ],
    ids=str,
)
def test_a_pause_says_how_much_it_stops(scope: Scope, words: str) -> None:
    pause = replace(PAUSE, order=replace(PAUSE.order, scope=scope))
    assert explain(replace(FACTS, orders=(pause,)))[0].detail.startswith(words)


def test_each_pause_over_a_lane_is_named_since_each_must_be_ended() -> None:
    wide = replace(PAUSE, order=replace(PAUSE.order, scope=Scope(FACTS.tenant), by="eve"))
    (reason, *_) = explain(replace(FACTS, orders=(PAUSE, wide)))
    assert "by ada" in reason.detail
    assert "by eve" in reason.detail


def test_an_open_breaker_says_that_the_target_failed_and_when_it_is_tried_again() -> None:
    breaker = Breaker(BreakerState.OPEN, since=990.0, cooled_at=1_090.0)
    (reason, *_) = explain(replace(FACTS, shaper=replace(opened(FACTS.now), breaker=breaker)))
    assert (reason.waits_for, reason.until) == (WaitsFor.LANE_HELD, 1_090.0)
    assert reason.detail == (
        "Its lane is held for 1 min 30 s unless more is heard: the breaker is open: the target failed."
    )


def test_a_target_that_asked_to_be_left_alone_is_the_reason_until_its_time() -> None:
    shaper = replace(opened(FACTS.now), held_until=Timestamp(1_060.0))
    assert explain(replace(FACTS, shaper=shaper))[0].until == 1_060.0
    assert WaitsFor.LANE_HELD not in kinds(replace(FACTS, shaper=shaper, now=Timestamp(1_061.0)))


@pytest.mark.parametrize(
    ("in_flight", "document", "words"),
    [
        (2, None, None),
        (3, None, "Its lane has 3 in flight, and 3 is what its target is found to take."),
        (3, 9, "Its lane has 3 in flight, and 3 is what its target is found to take."),
        (2, 2, "Its lane has 2 of the 2 that its limit allows in flight."),
    ],
)
def test_a_lane_at_its_limit_says_whose_limit_it_is(
    in_flight: int, document: int | None, words: str | None
) -> None:
    shaper = replace(opened(FACTS.now), limit=Limit(level=3.7))
    facts = replace(FACTS, shaper=shaper, lane_in_flight=in_flight, lane_limit=document)
    found = [each.detail for each in explain(facts) if each.waits_for is WaitsFor.LANE_LIMIT]
    assert found == ([] if words is None else [words])


def test_what_a_lane_learned_is_no_reason_once_its_shaper_is_switched_off() -> None:
    text = '[tenants.acme]\ntier = "free"\ndefaults = { adaptive = false }\n'
    directory = MemoryDirectory(parse_registry(text, format="toml"))
    shaper = replace(opened(FACTS.now), held_until=Timestamp(1_060.0))
    assert WaitsFor.LANE_HELD not in kinds(facts_of(replace(FACTS, shaper=shaper), directory))


@pytest.mark.parametrize(("in_flight", "waits"), [(1, False), (2, True), (3, True)])
def test_a_ceiling_is_a_reason_once_the_lane_has_reached_it(in_flight: int, waits: bool) -> None:
    wide = replace(CEILING, order=replace(CEILING.order, scope=Scope(target=FACTS.target), ceiling=9))
    reasons = explain(replace(FACTS, orders=(wide, CEILING), lane_in_flight=in_flight))
    found = [each.detail for each in reasons if each.waits_for is WaitsFor.CEILING]
    assert bool(found) is waits
    if found:
        assert found[0].endswith("its ceiling is 2, set by bob since 1970-01-01 00:00:00Z: small machine.")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"pool_slots": 0, "pool_slots_of_kind": 0}, "The pool 'shared' has no live slots"),
        ({"pool_slots_of_kind": 0, "kind": Kind("handler:resize")}, "None of the 20 slots of pool 'shared'"),
        ({"ordered": True, "flow_in_flight": 1}, "and one is in flight"),
        ({"ordered": True, "ahead_in_flow": 2}, "and 2 jobs came before it"),
        ({"lane_limit": 3, "lane_in_flight": 3}, "3 of the 3 that its limit allows in flight"),
        ({"dispatch_rate": 0.5, "pool_in_flight": 3}, "at most 0.5 jobs a second; 1 job of it waits"),
        ({"ahead_in_flow": 1_200}, "1,200 jobs of the same target and class wait ahead of it"),
        ({}, "20 of the pool's 20 slots are in use and 3 tenants wait; this one's share is 25 %"),
    ],
)
def test_each_reason_is_a_sentence_with_its_figures(change: dict[str, object], sentence: str) -> None:
    details = [reason.detail for reason in explain(replace(FACTS, **change))]  # type: ignore[arg-type]
    assert any(sentence in detail for detail in details), details
    assert all(detail.endswith(".") for detail in details)


@pytest.mark.parametrize("state", [state for state in JobState if state.value not in {"waiting", "delayed"}])
def test_a_job_that_started_or_ended_waits_for_nothing_and_says_so(state: JobState) -> None:
    facts = replace(FACTS, state=state)
    assert explain(facts) == ()
    assert {"dead": "dead letter"}.get(state.value, state.value) in headline(facts)


@pytest.mark.parametrize(
    "change", [{}, {"tenant_in_flight": 4, "pool_in_flight": 4}, {"pool_slots_of_kind": 5}]
)
def test_a_rate_is_no_reason_where_there_is_no_slot_or_the_cap_is_reached(change: dict[str, int]) -> None:
    assert WaitsFor.RATE not in kinds(replace(FACTS, dispatch_rate=5.0, **change))  # type: ignore[arg-type]


REGISTRY = """
[tiers]
gold = {weight = 3, cap = 0.5, dispatch_rate = 7}
silver = {weight = 1}
apart = {weight = 1, pool = "apart"}
[tenants]
other = "silver"
elsewhere = "apart"
[tenants.acme]
tier = "gold"
targets."https://example.com/hook".limit = 4
"""


def test_the_directory_adds_limits_share_and_who_waits_in_the_same_pool() -> None:
    directory = MemoryDirectory(parse_registry(REGISTRY, format="toml", tiers=(), floor=0.0))
    waiting = frozenset(map(TenantId, ("acme", "other", "elsewhere", "removed")))
    facts = facts_of(replace(FACTS, waiting=waiting, tenants_waiting=4), directory)
    assert (facts.pool, facts.cap, facts.dispatch_rate, facts.lane_limit) == ("shared", 0.5, 7.0, 4)
    assert (facts.tenants_waiting, facts.share) == (2, 0.75)
    assert "elsewhere" not in repr(facts)
    assert pool_of(TenantId("elsewhere"), directory) == "apart"


def test_of_a_tenant_that_was_removed_the_store_alone_is_asked() -> None:
    directory = MemoryDirectory(Registry())
    assert facts_of(FACTS, directory) == FACTS
    assert pool_of(FACTS.tenant, directory) == "shared"


def test_a_job_that_nothing_holds_up_is_next() -> None:
    free = replace(FACTS, pool_in_flight=19)
    assert kinds(free) == []
    assert "next round" in headline(free)
    assert kinds(replace(free, pool_slots_of_kind=5)) == [
        WaitsFor.SHARE
    ]  # the free one may be of another kind


def test_a_retry_that_is_put_off_says_so_before_it_speaks_of_its_turn() -> None:
    registry = parse_registry('[tenants]\nacme = "standard"\nrich = "enterprise"', format="toml")
    directory = MemoryDirectory(registry)
    facts = replace(FACTS, attempts=2, due_at=Timestamp(990.0), ahead_in_flow=3, pool_level=Level.RETRIES)
    reasons = explain(facts_of(facts, directory))
    assert reasons[0].waits_for is WaitsFor.OVERLOAD
    assert "'shared' is overloaded" in reasons[0].detail
    assert WaitsFor.OVERLOAD not in kinds(facts_of(replace(facts, attempts=0), directory))
    assert WaitsFor.OVERLOAD not in kinds(facts_of(replace(facts, tenant=TenantId("rich")), directory))
    assert WaitsFor.OVERLOAD not in kinds(facts_of(replace(facts, pool_level=Level.BACKGROUND), directory))
