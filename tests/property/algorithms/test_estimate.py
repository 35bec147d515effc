"""The estimate keeps its promises whatever is observed: order, signs, units, and what it does not count."""

from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.algorithms.estimate import (
    CELLS,
    DEFAULTS,
    Estimate,
    EstimateSettings,
    Phase,
    Seen,
    estimate,
    observed,
    opened,
)

counts = st.lists(st.integers(0, 200), min_size=1, max_size=200)
Story = list[tuple[float, int, float]]
"""(seconds since the last observation, ended, seconds of them held)."""

stories = st.lists(
    st.tuples(st.floats(0.0, 20.0), st.integers(0, 500), st.floats(0.0, 20.0)), min_size=1, max_size=120
)
exact = st.lists(
    st.tuples(st.integers(0, 160).map(lambda eighths: eighths / 8.0), st.integers(0, 500), st.just(0.0)),
    min_size=1,
    max_size=120,
)
"""Of durations that add up without rounding."""


def after(story: Story, *, start: float = 0.0, unit: float = 1.0, cell: float = 1.0) -> Seen:
    seen, now = opened(start, EstimateSettings(cell=cell)), start
    for lasted, ended, held in story:
        now += lasted * unit
        seen = observed(seen, ended, held_for=min(lasted, held) * unit, now=now)
    return seen


def steadily(rate: int, seconds: int) -> Seen:
    return after([(1.0, rate, 0.0)] * seconds)


def likely(found: Estimate) -> float:
    assert found.remaining is not None
    return found.remaining.likely


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(stories, st.integers(0, 10**7), st.booleans())
def test_it_is_never_negative_and_a_range_holds_its_likeliest_and_is_half_of_it_at_most(
    story: Story, left: int, held: bool
) -> None:
    found = estimate(after(story), left, held=held)
    assert found.rate >= 0.0
    assert found.trend >= -1.0
    assert (found.remaining is not None) == (found.phase is Phase.STEADY)
    if found.remaining is not None:
        assert 0.0 <= found.remaining.low <= found.remaining.likely <= found.remaining.high
        assert found.remaining.high - found.remaining.low <= DEFAULTS.widest * found.remaining.likely + 1e-9


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(st.integers(1, 1_000), st.integers(60, 400), st.integers(1, 200))
def test_more_done_at_the_same_rate_leaves_less(rate: int, seconds: int, more: int) -> None:
    total = rate * (seconds + more + 60)
    before = estimate(steadily(rate, seconds), total - rate * seconds)
    later = estimate(steadily(rate, seconds + more), total - rate * (seconds + more))
    if before.remaining is not None and later.remaining is not None:
        assert isclose(before.remaining.likely - later.remaining.likely, more, rel_tol=1e-6)
        assert later.remaining.high < before.remaining.high


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(stories, st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_left_never_takes_less_time_whatever_the_rate_did(story: Story, left: int, more: int) -> None:
    seen = after(story)
    one, other = estimate(seen, left), estimate(seen, left + more)
    if one.rate:
        assert left / one.rate <= (left + more) / other.rate * (1.0 + 1e-9)


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(st.integers(1, 500))
def test_of_a_constant_rate_the_answer_is_exact_and_the_range_becomes_narrow(rate: int) -> None:
    widths = []
    for seconds in (120, 1_200, 12_000):
        found = estimate(after([(10.0, 10 * rate, 0.0)] * (seconds // 10)), 60 * rate).remaining
        assert found is not None
        assert isclose(found.likely, 60.0, rel_tol=1e-6)
        widths.append((found.high - found.low) / found.likely)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.2


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(exact, st.lists(st.integers(0, 5_000), min_size=120, max_size=120), st.integers(1, 10**6))
def test_time_that_was_held_changes_nothing(story: Story, pauses: list[int], left: int) -> None:
    pairs = zip(story, pauses, strict=False)
    held = [(lasted + pause, ended, float(pause)) for (lasted, ended, _), pause in pairs]
    plain = [(lasted, ended, 0.0) for lasted, ended, _ in story]
    assert estimate(after(held), left) == estimate(after(plain), left)


def test_an_hour_held_in_mid_replay_leaves_the_answer_as_it_was() -> None:
    seen = steadily(50, 300)
    later = observed(seen, 0, held_for=3_600.0, now=3_900.0)
    assert estimate(later, 5_000) == estimate(seen, 5_000)
    assert estimate(later, 5_000, held=True).remaining is None
    assert estimate(later, 5_000, held=True).phase is Phase.HELD


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(stories, st.integers(1, 10**6), st.sampled_from([2, 4, 64, 1_024]))
def test_it_knows_no_unit_of_time(story: Story, left: int, unit: int) -> None:
    scaled = EstimateSettings(cell=float(unit), least_for=DEFAULTS.least_for * unit)
    one = estimate(after(story), left)
    other = estimate(after(story, unit=float(unit), cell=float(unit)), left, settings=scaled)
    assert one.phase == other.phase
    assert isclose(one.rate, other.rate * unit, rel_tol=1e-9)
    if one.remaining is not None and other.remaining is not None:
        assert isclose(one.remaining.high * unit, other.remaining.high, rel_tol=1e-9)


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(stories, st.integers(1, 10**6), st.sampled_from([2, 8, 256]))
def test_it_knows_no_unit_of_messages(story: Story, left: int, times: int) -> None:
    more = [(lasted, ended * times, held) for lasted, ended, held in story]
    scaled = EstimateSettings(least_ends=DEFAULTS.least_ends * times)
    one, other = estimate(after(story), left), estimate(after(more), left * times, settings=scaled)
    assert one.phase == other.phase
    assert isclose(one.rate * times, other.rate, rel_tol=1e-9)
    if one.remaining is not None and other.remaining is not None:
        assert isclose(one.remaining.low, other.remaining.low, rel_tol=1e-9)


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(stories)
def test_nothing_that_ended_is_lost_and_memory_is_bounded(story: Story) -> None:
    seen = after(story)
    assert isclose(sum(seen.cells) + seen.ended, sum(ended for _, ended, _ in story), rel_tol=1e-9)
    running = sum(lasted - min(lasted, held) for lasted, _, held in story)
    assert isclose(len(seen.cells) * seen.length + seen.lasted, running, rel_tol=1e-6, abs_tol=1e-6)
    assert len(seen.cells) < CELLS
    assert 0.0 <= seen.lasted < seen.length


@given(st.integers(20, 200), st.floats(1.02, 1.2))
@settings(max_examples=30, deadline=None)
def test_while_a_ramp_grows_it_is_discovering(rate: int, growth: float) -> None:
    seen, at = opened(0.0), 1.0
    for second in range(60):
        at *= growth
        seen = observed(seen, round(min(1e6, rate * at)), now=second + 1.0)
    left = round(20.0 * rate * at)
    found = estimate(seen, left)
    assert found.trend > 0.0
    if found.remaining is not None:  # what is shown is of the rate that was reached, not of the whole ramp
        assert found.remaining.low < left / (rate * at) * 1.5


def test_a_rate_that_halves_is_being_discovered_again_and_then_known() -> None:
    seen = steadily(100, 300)
    assert estimate(seen, 30_000).phase is Phase.STEADY
    phases = []
    for second in range(600):
        seen = observed(seen, 50, now=301.0 + second)
        found = estimate(seen, 30_000)
        phases.append(found.phase)
        if found.remaining is not None and second > 30:
            assert found.remaining.low <= 600.0 <= found.remaining.high
    assert Phase.DISCOVERING in phases[10:40]
    assert phases[-1] is Phase.STEADY
    assert isclose(likely(found), 600.0, rel_tol=0.05)


def test_a_burst_before_the_rate_is_known_and_less_than_thirty_ends_show_nothing() -> None:
    assert estimate(after([(0.1, 10_000, 0.0)]), 5).phase is Phase.DISCOVERING
    assert estimate(after([(60.0, 29, 0.0)]), 5).phase is Phase.DISCOVERING
    assert estimate(opened(0.0), 5) == Estimate(Phase.DISCOVERING, 0.0, 0.0, None)


def test_when_nothing_is_left_nothing_remains_and_a_clock_that_goes_back_changes_nothing() -> None:
    found = estimate(opened(0.0), 0).remaining
    assert found is not None
    assert (found.low, found.high) == (0.0, 0.0)
    seen = steadily(10, 60)
    assert observed(seen, 0, now=1.0) == seen


def test_numbers_below_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="ended and held_for must be >= 0"):
        observed(opened(0.0), -1, now=1.0)
    with pytest.raises(ValueError, match="ended and held_for must be >= 0"):
        observed(opened(0.0), 1, held_for=-0.1, now=1.0)
    with pytest.raises(ValueError, match="left must be >= 0"):
        estimate(opened(0.0), -1)
