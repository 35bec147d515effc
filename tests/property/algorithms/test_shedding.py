"""Shedding keeps its order, moves a step at a time, and never touches what is in flight or protected."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.shedding import (
    Level,
    Pressure,
    Shedding,
    SheddingSettings,
    Standing,
    Work,
    falls_in,
    retry_after,
    sheds,
    step,
)

SETTINGS = SheddingSettings()
PRESSED, CALM, BETWEEN = Pressure(60.0, 1.0), Pressure(0.0, 0.2), Pressure(4.0, 0.99)
pressures = st.builds(Pressure, st.floats(0.0, 600.0), st.floats(0.0, 1.0))
stories = st.lists(st.tuples(st.floats(0.0, 20.0), pressures), max_size=80)


def after(shedding: Shedding, pressure: Pressure, seconds: float, now: float) -> Shedding:
    """The same pressure for so long, looked at each second."""
    for second in range(int(seconds) + 1):
        shedding = step(shedding, pressure, SETTINGS, now=now + second)
    return shedding


@given(stories)
def test_the_level_moves_one_step_at_a_time_and_no_two_within_the_time_that_each_must_last(
    story: list[tuple[float, Pressure]],
) -> None:
    shedding, now, rose, fell = Shedding(), 0.0, float("-inf"), float("-inf")
    for passed, pressure in story:
        now += passed
        found = step(shedding, pressure, SETTINGS, now=now)
        assert abs(found.level - shedding.level) <= 1
        if found.level > shedding.level:
            assert now - rose >= SETTINGS.rise_after
            rose = now
        if found.level < shedding.level:
            assert now - fell >= SETTINGS.fall_after
            assert now - rose >= SETTINGS.fall_after
            fell = now
        shedding = found


@given(st.sampled_from(Level), st.sampled_from(Work), st.sampled_from(Standing))
def test_a_higher_level_sheds_all_that_a_lower_one_does(level: Level, work: Work, standing: Standing) -> None:
    if sheds(level, work, standing):
        assert all(sheds(higher, work, standing) for higher in Level if higher >= level)


@given(st.sampled_from(Level), st.sampled_from(Work))
def test_what_is_in_flight_or_protected_is_never_shed(level: Level, work: Work) -> None:
    assert not sheds(level, work, Standing.PROTECTED)
    assert not any(sheds(level, Work.IN_FLIGHT, standing) for standing in Standing)


def test_the_order_is_free_background_then_retries_then_new_standard_work() -> None:
    first = {
        (work, standing): min((level for level in Level if sheds(level, work, standing)), default=None)
        for work in Work
        for standing in (Standing.LOWEST, Standing.STANDARD)
    }
    assert first[Work.BACKGROUND, Standing.LOWEST] == Level.BACKGROUND
    assert first[Work.RETRY, Standing.LOWEST] == first[Work.RETRY, Standing.STANDARD] == Level.RETRIES
    assert first[Work.NEW, Standing.STANDARD] == Level.STANDARD
    assert first[Work.BACKGROUND, Standing.STANDARD] == Level.STANDARD
    assert not any(sheds(Level.NONE, work, standing) for work, standing in first)


def test_pressure_raises_it_to_the_top_and_calm_brings_it_down_to_nothing() -> None:
    top = after(Shedding(), PRESSED, 30.0, now=0.0)
    assert top.level is Level.STANDARD
    assert after(top, CALM, 20.0, now=31.0).level is Level.RETRIES
    assert after(top, CALM, 60.0, now=31.0).level is Level.NONE


def test_what_is_neither_pressure_nor_calm_changes_nothing_for_ever() -> None:
    some = after(Shedding(), PRESSED, 6.0, now=0.0)
    assert some.level is Level.BACKGROUND
    assert after(some, BETWEEN, 3600.0, now=10.0).level is Level.BACKGROUND


def test_old_work_beside_idle_slots_is_no_pressure() -> None:
    assert after(Shedding(), Pressure(3600.0, 0.5), 600.0, now=0.0).level is Level.NONE


def test_pressure_that_comes_and_goes_faster_than_it_must_last_raises_nothing() -> None:
    shedding = Shedding()
    for second in range(600):
        pressure = PRESSED if second % 5 else CALM
        shedding = step(shedding, pressure, SETTINGS, now=float(second))
    assert shedding.level is Level.NONE


@given(st.sampled_from(Level), st.floats(0.0, 1.0))
def test_a_refusal_names_a_time_in_which_the_level_can_have_fallen(level: Level, draw: float) -> None:
    named = retry_after(falls_in(Shedding(level), SETTINGS), draw)
    least = max(1.0, SETTINGS.fall_after * level)
    assert least <= named <= 2 * least
