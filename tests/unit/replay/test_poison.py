"""Poison is told from a slow target, a class from the rest, and a bad backlog from a bad cluster."""

import random  # noqa: TID251 - a seeded world, not the product

import pytest

from tenantry.lanes.model import Target
from tenantry.replay.model import ClassFailure, Counts, HoldRule, Message
from tenantry.replay.poison import (
    NO_EVIDENCE,
    REMEMBERED,
    Evidence,
    heard,
    held_classes,
    nearly_all,
    origin_of,
)

HOOK = Target("https://a.example/hook?token=secret")


def after(bads: list[bool]) -> int | None:
    """How many messages had ended when the replay held itself; None: it never did."""
    evidence, counts = NO_EVIDENCE, Counts()
    for ended, bad in enumerate(bads, 1):
        later = Counts(
            delivered=counts.delivered + (not bad), parked=counts.parked + bad, dead=ended, failures=ended * 3
        )
        evidence, counts = heard(evidence, counts, later), later
        if nearly_all(evidence):
            return ended
    return None


def test_r9_a_backlog_that_is_all_poison_is_held_after_thirty_messages_with_the_figures() -> None:
    assert after([True] * 1_000) == 30
    hold = nearly_all(Evidence(delivered=1, parked=59))
    assert hold is not None
    assert hold.rule is HoldRule.POISON
    assert hold.stops
    assert hold.frees_at is None
    assert hold.reason.startswith("59 of the last 60 messages that ended were parked, by their own fault")


@pytest.mark.parametrize(("share", "most"), [(0.98, 200), (0.95, 1_500)])
def test_a_backlog_that_is_nearly_all_poison_is_held_early(share: float, most: int) -> None:
    draw = random.Random(7)
    for _ in range(20):
        ended = after([draw.random() < share for _ in range(5_000)])
        assert ended is not None
        assert ended <= most


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.7])
def test_a_backlog_that_is_partly_poison_goes_on(share: float) -> None:
    draw = random.Random(11)
    for _ in range(20):
        assert after([draw.random() < share for _ in range(3_000)]) is None


def test_a_cluster_of_fifty_bad_messages_in_a_good_backlog_goes_on() -> None:
    assert after([False] * 500 + [True] * 50 + [False] * 500) is None


def test_a_backlog_that_turns_bad_after_a_good_beginning_is_noticed() -> None:
    ended = after([False] * 100_000 + [True] * 10_000)
    assert ended is not None
    assert ended <= 100_000 + 4 * REMEMBERED


def test_a_target_that_is_down_is_no_poison() -> None:
    evidence = heard(NO_EVIDENCE, Counts(), Counts(dead=5_000, failures=40_000))
    assert nearly_all(evidence) is None


def test_after_a_continue_the_count_begins_anew() -> None:
    counts = Counts(parked=500)
    assert nearly_all(heard(NO_EVIDENCE, counts, Counts(parked=510, delivered=10))) is None


def test_a_parked_message_that_is_sent_back_is_no_evidence() -> None:
    assert heard(NO_EVIDENCE, Counts(parked=10), Counts(parked=9)) == NO_EVIDENCE


def failed(origin: str, failures: int, delivered: int) -> ClassFailure:
    return ClassFailure(origin, "f", failures, delivered)


def test_a_class_that_fails_alike_with_nearly_no_delivery_is_held_and_the_rest_is_not() -> None:
    held = held_classes(
        [failed("bad", 20, 0), failed("new", 19, 0), failed("mixed", 60, 40), failed("nearly", 99, 4)], 20
    )
    assert held == {
        "bad": "20 attempts of its class failed alike and 0 of it were delivered",
        "nearly": "99 attempts of its class failed alike and 4 of it were delivered",
    }


def test_messages_that_failed_alike_are_one_class() -> None:
    one = Message(id="1", payload=b"", error_class="http_422", failure="order 4711 not found")
    other = Message(id="2", payload=b"x", error_class="http_422", failure="order 4712 not found")
    third = Message(id="3", payload=b"x", error_class="http_422", failure="customer unknown")
    assert origin_of(one, HOOK) == origin_of(other, HOOK) != origin_of(third, HOOK)


def test_without_a_recorded_failure_the_target_is_the_class_and_no_secret_of_it_is_told() -> None:
    silent = Message(id="1", payload=b"")
    assert origin_of(silent, HOOK) == origin_of(Message(id="2", payload=b"x"), HOOK)
    assert origin_of(silent, HOOK) != origin_of(silent, Target("https://b.example/"))
    assert "secret" not in origin_of(silent, HOOK)
    assert len(origin_of(silent, HOOK)) <= 64
