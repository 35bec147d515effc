"""A sample has its size, its order, and no eye for patterns."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.algorithms.reservoir import sampled
from tenantry.algorithms.wilson import interval
from tenantry.kernel.randomness import SeededRandomness

MOST_MISSED = 15
"""Of 100 intervals at 95 %: five are expected to miss, and 16 come less than once in ten thousand times."""


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**32))
def test_a_sample_has_as_many_as_were_asked_for_or_all_and_keeps_their_order(
    count: int, size: int, seed: int
) -> None:
    found = sampled(iter(range(count)), size, SeededRandomness(seed).uniform)
    assert len(found) == min(size, count)
    assert found == sorted(set(found))
    assert set(found) <= set(range(count))


@settings(max_examples=20)
@given(st.integers(2, 12), st.integers(101, 1_500), st.integers(0, 2**32))
def test_what_stands_at_every_kth_place_is_estimated_within_wilsons_interval(
    period: int, count: int, seed: int
) -> None:
    uniform = SeededRandomness(seed).uniform
    truth = len(range(0, count, period)) / count
    missed = 0
    for _ in range(100):
        found = sampled(range(count), 100, uniform)
        low, high = interval(sum(each % period == 0 for each in found), len(found))
        missed += not low <= truth <= high
    assert missed <= MOST_MISSED


def test_every_item_is_as_likely_to_be_taken_as_any_other() -> None:
    uniform = SeededRandomness(7).uniform
    times = [0] * 20
    for _ in range(20_000):
        for each in sampled(range(20), 5, uniform):
            times[each] += 1
    assert all(4_700 <= each <= 5_300 for each in times)
