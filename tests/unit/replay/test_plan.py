"""A plan says what a replay would meet, how sure it is, and nothing that nobody knows."""

from dataclasses import replace

import msgspec
import pytest

from tenantry.kernel.instant import Timestamp
from tenantry.lanes.model import Target
from tenantry.replay.model import Known, LanePace, Membership, Quotas
from tenantry.replay.plan import PlanFacts, Report, Seen, refused_target, report, targets_of

NOW = Timestamp(1_800_000_000.0)
A, B = Target("https://a.example/"), Target("https://b.example/")
OK = Seen(meant=True, target=A, error_class="timeout", failed_at=Timestamp(NOW - 60))
COUNTED = Membership("42", 10_000)


def made(*seen: Seen, members: Membership = COUNTED, asked: int = 100, **facts: object) -> Report:
    return report(members, seen, PlanFacts(NOW, **facts), asked=asked)  # type: ignore[arg-type]


def test_what_the_source_counts_is_exact_and_parts_are_the_samples_with_their_error() -> None:
    found = made(*[OK] * 75, *[replace(OK, meant=False)] * 25)
    assert (found.count, found.counted_exactly, found.frozen, found.whole) == (10_000, True, True, False)
    assert found.meant.count == 7_500
    assert found.meant.low is not None
    assert found.meant.high is not None
    assert 6_500 < found.meant.low < 7_500 < found.meant.high < 8_300
    assert 0.09 < found.error < 0.10


def test_a_sample_that_was_all_there_is_has_no_error() -> None:
    for members, asked in ((Membership("x", 40), 40), (Membership(), 100)):
        found = made(*[OK] * 30, *[replace(OK, meant=False)] * 10, members=members, asked=asked)
        assert found.whole
        assert found.error == 0.0
        assert (found.meant.low, found.meant.count, found.meant.high) == (30, 30, 30)


def test_a_sample_that_came_back_shorter_than_asked_is_not_the_whole_of_what_is_known_to_be_more() -> None:
    for members in (Membership("x", 504), Membership("x", 504, counted_exactly=False)):
        found = made(*[OK] * 126, *[replace(OK, meant=False)] * 126, members=members, asked=400)
        assert not found.whole
        assert found.error > 0.05
        assert found.meant.low is not None
        assert found.meant.high is not None
        assert found.meant.low < 252 < found.meant.high
        assert found.counted_exactly is members.counted_exactly


def test_a_rough_count_never_says_that_a_full_sample_was_the_whole() -> None:
    for count in (90, 100):
        found = made(*[OK] * 100, members=Membership("x", count, counted_exactly=False), asked=100)
        assert (found.whole, found.count, found.counted_exactly) == (False, 100, False)
    found = made(*[OK] * 99, members=Membership("x", 90, counted_exactly=False), asked=100)
    assert (found.whole, found.count, found.counted_exactly) == (True, 99, True)


def test_a_source_that_cannot_count_gives_shares_and_no_numbers() -> None:
    found = made(*[OK] * 100, members=Membership())
    assert found.count is None
    assert (found.meant.part, found.meant.count) == (1.0, None)
    assert found.duration.low is None
    assert found.duration.why == "the source cannot count its messages"


def test_messages_are_grouped_by_class_target_and_age() -> None:
    found = made(
        *[OK] * 50,
        *[replace(OK, target=B, error_class="http_422", failed_at=Timestamp(NOW - 7_200))] * 30,
        *[replace(OK, error_class="", failed_at=None)] * 20,
    )
    assert [(group.name, group.share.seen) for group in found.by_class] == [
        ("timeout", 50),
        ("http_422", 30),
        ("unknown", 20),
    ]
    assert [(group.name, group.share.seen) for group in found.by_target] == [(A, 70), (B, 30)]
    assert [(group.name, group.share.seen) for group in found.by_age] == [
        ("under 1 h", 50),
        ("1 h to 24 h", 30),
        ("unknown", 20),
    ]


def test_many_groups_end_in_one_called_other() -> None:
    found = made(*(replace(OK, error_class=f"e{n}") for n in range(50)))
    assert len(found.by_class) == 21
    assert (found.by_class[-1].name, found.by_class[-1].share.seen) == ("other", 30)


def test_what_was_delivered_before_and_what_is_broken_is_told_apart() -> None:
    found = made(
        *[OK] * 60,
        *[replace(OK, known=Known.DELIVERED)] * 20,
        *[replace(OK, known=Known.STAGED)] * 10,
        *[replace(OK, broken="$.id is not there")] * 10,
    )
    assert (found.delivered.seen, found.elsewhere.seen, found.broken.seen) == (20, 10, 10)
    assert [group.name for group in found.reasons] == ["$.id is not there"]


def test_a_quota_that_would_be_reached_says_by_how_much() -> None:
    quotas, used = Quotas(replayed_a_day=9_000, dedup_keys=50_000), Quotas(replayed_a_day=1_000, dedup_keys=0)
    found = made(*[OK] * 100, quotas=quotas, used=used)
    (over,) = found.over
    assert (over.quota, over.limit, over.left) == ("replayed_a_day", 9_000, 8_000)
    assert 1_600 < over.over_low <= over.over_high == 2_000
    assert made(*[OK] * 100, quotas=Quotas(replayed_a_day=20_000)).over == ()


def test_the_duration_lies_between_all_targets_at_once_and_one_after_the_other() -> None:
    paces = {A: LanePace(10, 0.1), B: LanePace(1, 0.1)}  # 100 and 10 a second
    found = made(*[OK] * 80, *[replace(OK, target=B)] * 20, members=Membership("x", 100), paces=paces)
    assert (found.duration.low, found.duration.high) == (2.0, 2.8)


def test_a_lane_that_nobody_has_used_has_no_pace_and_no_duration_is_said() -> None:
    found = made(*[OK] * 10, replace(OK, target=B), paces={A: LanePace(10, 0.1), B: LanePace(1)})
    assert found.duration.low is None
    assert found.duration.why == "1 of 2 targets have no pace yet: nobody has used them"


def test_an_empty_source_is_a_report_too() -> None:
    found = made(members=Membership("x", 0))
    assert (found.count, found.meant.count, found.by_class) == (0, 0, ())
    assert (found.duration.low, found.duration.high) == (0.0, 0.0)


def test_a_report_is_json() -> None:
    found = made(*[OK] * 3)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Report) == found


@pytest.mark.parametrize("target", ["ftp://x", "https://u:p@a.example/", "https://", "mailto:me"])
def test_a_target_that_no_job_can_be_delivered_to_is_said_to_be_none(target: str) -> None:
    assert refused_target(Target(target), None).startswith("invalid_url: ")
    assert refused_target(Target(target), "https://a.example/") == ""
    assert refused_target(A, target) != ""


@pytest.mark.parametrize("target", [A, "orders", "handler:mail", "kafka:log/topic"])
def test_a_target_that_may_be_one_is_not_refused_by_a_plan(target: str) -> None:
    assert refused_target(Target(target), None) == ""


def test_only_the_lanes_of_messages_that_are_meant_are_asked_about() -> None:
    assert targets_of([OK, replace(OK, target=B, meant=False), replace(OK, target=None)]) == {A}
