"""What a worker says of a lane: complete, small, and the same however it is added up."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.kernel.errors import InvalidValue
from tenantry.lanes.outcome import CAUSES, Fault, Outcome
from tenantry.lanes.summary import EMPTY, Signal, decoded, encoded, signal_of, summary_of

outcomes = st.builds(
    Outcome,
    st.sampled_from(sorted(CAUSES)),
    retry_after=st.none() | st.floats(0.0, 1e6),
    busy_for=st.floats(0.0, 900.0),
)


@given(st.lists(outcomes, max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_it_comes_to_the_same_however_endings_are_grouped(found: list[Outcome], one: int, two: int) -> None:
    low, high = sorted((one, two))
    a, b, c = summary_of(found[:low]), summary_of(found[low:high]), summary_of(found[high:])
    assert (a + b) + c == a + (b + c) == summary_of(found)
    assert EMPTY + a == a + EMPTY == a


@given(st.lists(outcomes, max_size=30))
def test_it_survives_json(found: list[Outcome]) -> None:
    summary = summary_of(found)
    assert decoded(json.loads(json.dumps(encoded(summary)))) == summary


@given(st.lists(outcomes, max_size=30))
def test_every_ending_is_counted_once(found: list[Outcome]) -> None:
    summary = summary_of(found)
    assert summary.ended == len(found)
    assert summary.ignored == sum(each.fault in {Fault.MESSAGE, Fault.OURS} for each in found)
    assert summary.runs.failed == sum(each.fault is Fault.TARGET for each in found)


@pytest.mark.parametrize(
    ("error_class", "signal"),
    [
        ("ok", Signal.ANSWERED),
        ("timeout", Signal.LOST),
        ("refused", Signal.LOST),
        ("http_503", Signal.LOST),
        ("http_429", Signal.LIMITED),
        ("http_500", Signal.FAILED),
        ("tls", Signal.FAILED),
        ("http_404", Signal.NOTHING),
        ("worker_lost", Signal.NOTHING),
    ],
)
def test_each_class_says_one_thing(error_class: str, signal: Signal) -> None:
    assert signal_of(error_class) is signal


def test_the_longest_retry_after_is_kept() -> None:
    summary = summary_of([Outcome("http_429", retry_after=9.0), Outcome("http_503", retry_after=30.0)])
    assert summary.retry_after == 30.0


def test_a_messages_fault_says_nothing_though_it_names_a_retry_after() -> None:
    summary = summary_of([Outcome("http_404", retry_after=60.0, busy_for=3.0)])
    assert summary.retry_after is None
    assert summary.runs.calls == 0
    assert summary.latency == summary.lost == ()


GOOD = encoded(summary_of([Outcome("ok", busy_for=0.1), Outcome("timeout", busy_for=15.0)]))


@pytest.mark.parametrize(
    ("place", "value", "where"),
    [
        (0, 2, r"summary\[0\]"),
        (1, -1, r"summary\[1\]"),
        (1, True, r"summary\[1\]"),
        (2, {"nonsense": 1}, r"summary\[2\]"),
        (2, [], r"summary\[2\]"),
        (3, [1, 2, 0, 0, 0], r"summary\[3\]\[1\]"),
        (3, [5, 1, 0, 2, 1], r"summary\[3\]\[3\]"),
        (4, [5], r"summary\[4\]"),
        (4, [9, 1, 5, 1], r"summary\[4\]"),
        (4, [100_000, 1], r"summary\[4\]"),
        (4, [5, 0], r"summary\[4\]"),
        (7, float("nan"), r"summary\[7\]"),
        (7, 1e9, r"summary\[7\]"),
        (8, "long", r"summary\[8\]"),
        (8, 1 << 5000, r"summary\[8\]"),
    ],
)
def test_a_bad_value_is_refused_with_its_place(place: int, value: object, where: str) -> None:
    bad = [*GOOD[:place], value, *GOOD[place + 1 :]]
    with pytest.raises(InvalidValue, match=where):
        decoded(bad)


@pytest.mark.parametrize("value", [None, 3, "[]", [], GOOD[:-1], [*GOOD, 1], {"0": 1}])
def test_what_is_no_summary_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match="summary"):
        decoded(value)
