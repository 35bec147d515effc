"""Wilson's interval holds the share, narrows with more trials and is honest at the ends."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.wilson import ONE_SIDED_95, TWO_SIDED_95, interval

trials = st.integers(1, 10_000)


@given(trials, st.data())
def test_the_interval_holds_the_share_and_lies_within_nothing_and_all(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = interval(hits, n)
    assert 0.0 <= low <= hits / n <= high <= 1.0


@given(trials, st.floats(0.0, 1.0))
def test_more_trials_of_the_same_share_make_it_narrower(n: int, share: float) -> None:
    few, many = interval(share * n, n), interval(share * n * 4, n * 4)
    assert many[1] - many[0] < few[1] - few[0]


@given(trials, st.data())
def test_hits_and_misses_mirror_each_other(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = interval(hits, n)
    mirrored = interval(n - hits, n)
    assert abs(mirrored[0] - (1 - high)) < 1e-9
    assert abs(mirrored[1] - (1 - low)) < 1e-9


def test_of_no_trials_nothing_is_known() -> None:
    assert interval(0, 0) == (0.0, 1.0)


def test_figures_are_those_of_the_published_formula() -> None:
    low, high = interval(81, 263, TWO_SIDED_95)  # Newcombe 1998, table I, method 3: 0.2553 to 0.3662
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert interval(30, 30, ONE_SIDED_95)[0] > 0.9
