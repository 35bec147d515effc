"""Progress is honest: held is not slow, new failures are apart, and nothing is said that is not known."""

from dataclasses import replace

import pytest

from tenantry.algorithms.estimate import Estimate, Range
from tenantry.algorithms.estimate import Phase as Rate
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.replay.model import (
    Counts,
    Hold,
    HoldRule,
    Membership,
    Position,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    SourceAddress,
)
from tenantry.replay.progress import (
    MOST_HELD,
    DryRun,
    Phase,
    Progress,
    Standing,
    decoded,
    encoded,
    lines,
    progress,
    remaining,
    span,
    starting,
)

AT = Timestamp(1_800_000_000.0)
RUNNING = ReplayView(
    id=ReplayId("r1"),
    spec=ReplaySpec(tenant=TenantId("acme"), source=SourceAddress("jsonl")),
    state=ReplayState.RUNNING,
    membership=Membership("x", 1_000),
    counts=Counts(delivered=200, waiting=40, in_flight=10, duplicate=50, left=100),
    position=Position(""),
    created_at=AT,
    running_for=60.0,
)
STEADY = Estimate(Rate.STEADY, 5.0, 0.2, Range(100.0, 120.0, 150.0))
SEARCHING = Estimate(Rate.DISCOVERING, 2.0, 0.0, None)
HELD = replace(RUNNING, state=ReplayState.HELD, hold=Hold(HoldRule.SOURCE, "no answer", Timestamp(AT + 8)))


def record(view: ReplayView = RUNNING, estimate: Estimate = STEADY, **standing: object) -> Progress:
    return progress(view, Standing(AT, estimate, **standing))  # type: ignore[arg-type]


def test_counts_add_up_and_what_is_through_is_told_with_the_rest() -> None:
    found = record()
    assert (found.taken, found.done, found.total) == (300, 350, 1_000)
    assert remaining(RUNNING) == 650
    assert remaining(replace(RUNNING, exhausted=True)) == 50
    assert remaining(replace(RUNNING, membership=Membership())) is None
    assert remaining(replace(RUNNING, membership=Membership(count=300))) == 50


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (ReplayState.PLANNED, Phase.PLANNING),
        (ReplayState.RUNNING, Phase.STEADY),
        (ReplayState.PAUSED, Phase.PAUSED),
        (ReplayState.HELD, Phase.HELD),
        (ReplayState.DRAINING, Phase.DRAINING),
        (ReplayState.CANCELLING, Phase.DRAINING),
        (ReplayState.FINISHED, Phase.FINISHED),
        (ReplayState.CANCELLED, Phase.CANCELLED),
    ],
)
def test_every_state_has_its_phase(state: ReplayState, phase: Phase) -> None:
    assert record(replace(RUNNING, state=state)).phase is phase


def test_what_is_due_and_does_not_run_waits_for_its_share() -> None:
    before = replace(RUNNING, counts=Counts(waiting=50))
    assert record(before, SEARCHING, shares=(0.2, 0.0)).phase is Phase.WAITING
    stalled = replace(RUNNING, counts=Counts(delivered=9, waiting=50))
    assert record(stalled, quiet_for=1.0).phase is Phase.STEADY
    assert record(stalled, quiet_for=2.0).phase is Phase.WAITING
    assert (
        record(replace(RUNNING, counts=Counts(waiting=50, in_flight=1)), SEARCHING).phase is Phase.DISCOVERING
    )


def test_r7_while_its_rate_is_discovered_there_is_a_reason_and_no_time() -> None:
    found = record(estimate=SEARCHING)
    assert (found.phase, found.eta) == (Phase.DISCOVERING, None)
    assert found.eta_why == "its rate is still being discovered"


@pytest.mark.parametrize("state", [ReplayState.HELD, ReplayState.PAUSED])
def test_r7_held_is_not_slow_and_says_no_time(state: ReplayState) -> None:
    found = record(replace(HELD, state=state))
    assert found.eta is None
    assert found.eta_why == f"{state.value}: time stands still for it"


def test_where_the_source_cannot_count_no_time_is_said() -> None:
    found = record(replace(RUNNING, membership=Membership()))
    assert (found.eta, found.eta_why) == (None, "the source cannot count its messages")


def test_r8_new_failures_are_told_apart_and_are_no_part_of_the_total() -> None:
    found = record(new=17)
    assert (found.total, found.new_since_start) == (1_000, 17)
    assert "17 new since the plan, not part of this replay" in lines(found)


def test_a_tenant_that_replays_the_same_failures_again_is_told_to_go_in_circles() -> None:
    counts = Counts(delivered=40, seen_failing=30, parked=10)
    found = record(replace(RUNNING, counts=counts))
    assert (found.in_circles, found.circling) == (0.6, True)
    assert "in circles: 60% of it had failed in an earlier replay" in lines(found)
    few = record(replace(RUNNING, counts=Counts(delivered=9, seen_failing=9)))
    assert not few.circling


def test_people_read_the_most_important_first() -> None:
    assert lines(record(shares=(0.25, 0.2))) == [
        "steady · 350 of 1,000 done · 5.0 done/s, rising 20% · 1 min 40 s to 2 min 30 s left",
        "taken 300: 200 delivered, 40 waiting, 10 in flight, 50 duplicate; 100 passed over by filters",
        "the tenant has 20.0% of 25.0% due of its pool",
    ]
    assert lines(record(HELD))[0] == "held · 350 of 1,000 done"
    assert lines(record(HELD))[2] == ("held by source: no answer; frees in 8 s, at 2027-01-15 08:00:08 UTC")
    about = replace(RUNNING, membership=Membership(count=1_000, counted_exactly=False))
    assert "350 of about 1,000 done" in lines(record(about))[0]


def test_the_classes_that_are_held_are_named_and_said_in_one_line() -> None:
    one = record(held={"abc": "20 attempts of its class failed alike"})
    assert (one.classes_held, [each.origin for each in one.held_classes]) == (1, ["abc"])
    assert "a class of messages is parked unsent: 20 attempts of its class failed alike" in lines(one)
    many = record(held={f"o{n}": f"reason {n}" for n in range(100)})
    assert (many.classes_held, len(many.held_classes)) == (100, MOST_HELD)
    assert "100 classes of messages are parked unsent; of the first: reason 0" in lines(many)
    assert decoded(encoded(many)) == many


def test_a_dry_run_says_what_it_found() -> None:
    view = replace(RUNNING, counts=Counts())
    found = record(view, SEARCHING, dry=DryRun(matched=30, left=5, broken=2))
    assert found.done == 35
    assert "dry run: 30 match, 2 of them could not be sent" in lines(found)
    assert "taken 0; 5 passed over by filters" in lines(found)


def test_what_is_done_adds_up_for_who_reads_the_text() -> None:
    """4 delivered and 81 passed over are the 85 that are done."""
    counts = Counts(delivered=4, waiting=25, in_flight=1, left=81)
    view = replace(RUNNING, state=ReplayState.PAUSED, counts=counts, membership=Membership("x", 297))
    assert lines(record(view))[:2] == [
        "paused · 85 of 297 done",
        "taken 30: 4 delivered, 25 waiting, 1 in flight; 81 passed over by filters",
    ]


def test_the_record_is_json_and_is_read_back() -> None:
    for found in (record(), record(HELD, new=3, shares=(0.5, 0.1)), starting(RUNNING, AT)):
        assert decoded(encoded(found)) == found


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.6, "1 min 0 s"),
        (61, "1 min 1 s"),
        (3_661, "1 h 1 min"),
        (90_000, "1 d 1 h"),
        (-3, "0 s"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert span(seconds) == text
