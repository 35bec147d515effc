"""Sketches add up in any grouping, and their percentiles are true to their word."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.circuit_breaker import FAILURE, NOTHING, SILENCE, SUCCESS
from tenantry.algorithms.sample_window import (
    EMPTY,
    GROWTH,
    Window,
    is_due,
    merged,
    opened,
    overdue,
    percentile,
    size,
    sketch_of,
)

latencies = st.lists(st.floats(1e-4, 900.0), max_size=60)
endings = st.lists(st.sampled_from([SUCCESS, FAILURE, SILENCE]), max_size=40)


@given(latencies, latencies, latencies)
def test_sketches_add_up_in_any_grouping_and_order(
    one: list[float], two: list[float], three: list[float]
) -> None:
    a, b, c = sketch_of(one), sketch_of(two), sketch_of(three)
    assert merged(merged(a, b), c) == merged(a, merged(b, c)) == merged(c, merged(b, a))
    assert merged(a, EMPTY) == a
    assert merged(merged(a, b), c) == sketch_of([*one, *two, *three])


@given(st.lists(st.floats(1e-4, 900.0), min_size=1, max_size=200), st.floats(0.0, 1.0))
def test_a_percentile_is_within_a_bucket_of_the_true_one(values: list[float], part: float) -> None:
    ordered = sorted(values)
    found = percentile(sketch_of(values), part)
    true = ordered[int(part * (len(ordered) - 1))]
    assert found is not None
    assert true / GROWTH * 0.999 <= found <= true * GROWTH * 1.001


@given(st.lists(st.floats(1e-4, 10.0), min_size=1, max_size=50), st.integers(0, 100))
def test_calls_that_are_still_out_move_a_percentile_up_and_never_beyond_the_slowest(
    values: list[float], above: int
) -> None:
    sketch = sketch_of(values)
    plain, moved, top = (
        percentile(sketch, 0.5),
        percentile(sketch, 0.5, above=above),
        percentile(sketch, 1.0),
    )
    assert plain is not None
    assert moved is not None
    assert top is not None
    assert plain <= moved <= top * GROWTH


@given(endings, st.integers(0, 40))
def test_runs_come_to_the_same_however_they_are_cut(runs: list[object], cut: int) -> None:
    whole = sum(runs, NOTHING)  # type: ignore[call-overload]
    assert sum(runs[:cut], NOTHING) + sum(runs[cut:], NOTHING) == whole  # type: ignore[call-overload]
    assert whole.calls == len(runs)
    rows = "".join("s" if run is SILENCE else " " for run in runs).split(" ")
    assert whole.longest == max(map(len, rows))
    assert (whole.head, whole.tail) == (len(rows[0]), len(rows[-1]))


def test_a_window_is_read_after_a_round_trip_with_enough_in_it_or_after_four() -> None:
    window = Window(0.0, succeeded=5)
    assert not is_due(window, round_trip=0.1, enough=5, now=0.09)
    assert is_due(window, round_trip=0.1, enough=5, now=0.1)
    assert not is_due(window, round_trip=0.1, enough=6, now=0.39)
    assert is_due(window, round_trip=0.1, enough=6, now=0.4)


def test_s7_calls_are_counted_when_sent_so_that_a_hang_longer_than_the_window_is_seen() -> None:
    first = Window(0.0, sent=8)
    assert overdue(first, in_flight=8) == 0
    assert overdue(opened(10.0, 8), in_flight=8) == 8


def test_nothing_has_no_percentile() -> None:
    assert percentile(EMPTY, 0.5) is None
    assert size(EMPTY) == 0
