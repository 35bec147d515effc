"""A budget holds with its reason, a sample stops by itself, and neither ever takes more than it may."""

import pytest

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.replay.budget import reached, room, sample_run, sample_size
from tenantry.replay.model import Budget, Counts, Hold, HoldRule, Membership, ReplaySpec, SourceAddress

NOW = Timestamp(1_800_000_000.0)
COUNTS = Counts(delivered=60, parked=10, dead=5, waiting=20, in_flight=5)


def spec(sample: float | None = None, **budget: object) -> ReplaySpec:
    made = Budget(**budget)  # type: ignore[arg-type]
    return ReplaySpec(tenant=TenantId("acme"), source=SourceAddress("jsonl"), sample=sample, budget=made)


def hold(**budget: object) -> Hold | None:
    return reached(Budget(**budget), COUNTS, running_for=600.0, now=NOW)  # type: ignore[arg-type]


def test_without_a_budget_nothing_is_reached() -> None:
    assert hold() is None


@pytest.mark.parametrize(
    "budget",
    [
        {"messages": 101},
        {"failures": 16},
        {"running_for": 600.5},
        {"until": Timestamp(NOW + 0.5)},
    ],
)
def test_a_budget_that_is_not_used_up_holds_nothing(budget: dict[str, object]) -> None:
    assert hold(**budget) is None


@pytest.mark.parametrize(
    ("budget", "reason", "stops"),
    [
        ({"messages": 100}, "its budget of 100 messages is taken; a larger budget lets it go on", False),
        (
            {"failures": 15},
            "15 messages are dead or parked, and its budget is 15; a larger budget lets it go on",
            True,
        ),
        ({"running_for": 600.0}, "its 600 s of running are used up; a larger budget lets it go on", True),
        (
            {"until": NOW},
            "its deadline, 2027-01-15 08:00:00 UTC, is over; a larger budget lets it go on",
            True,
        ),
    ],
)
def test_a_budget_that_is_used_up_holds_with_its_reason(
    budget: dict[str, object], reason: str, stops: bool
) -> None:
    assert hold(**budget) == Hold(HoldRule.BUDGET, reason, stops=stops)


def test_the_part_that_stops_what_waits_goes_before_the_one_that_does_not() -> None:
    found = hold(messages=100, failures=15)
    assert found is not None
    assert found.stops


def test_a_sample_is_the_share_of_what_the_source_counts_and_one_at_least() -> None:
    assert sample_size(spec(), Membership(count=1_000)) is None
    assert sample_size(spec(0.01), Membership(count=1_000)) == 10
    assert sample_size(spec(0.01), Membership(count=3)) == 1
    assert sample_size(spec(0.01), Membership()) == 100


def test_room_is_what_budget_and_sample_leave() -> None:
    members = Membership(count=10_000)
    assert room(spec(), members, COUNTS, sampled=False) is None
    assert room(spec(messages=150), members, COUNTS, sampled=False) == 50
    assert room(spec(0.011, messages=150), members, COUNTS, sampled=False) == 10
    assert room(spec(0.001, messages=150), members, COUNTS, sampled=False) == 0
    assert room(spec(0.001, messages=150), members, COUNTS, sampled=True) == 50


def test_a_sample_holds_once_all_of_it_has_ended_and_says_what_became_of_it() -> None:
    members = Membership(count=1_000)
    assert sample_run(spec(0.1), members, COUNTS, sampled=False) is None
    ended = Counts(delivered=85, parked=10, duplicate=5)
    reason = (
        "the sample of 100 messages was run: 85 delivered, 10 parked, 0 dead, 5 were delivered before; "
        "continue goes on"
    )
    assert sample_run(spec(0.1), members, ended, sampled=False) == Hold(HoldRule.SAMPLE, reason)
    assert sample_run(spec(0.1), members, ended, sampled=True) is None
