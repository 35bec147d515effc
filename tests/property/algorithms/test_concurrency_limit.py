"""The limit's table: complete, bounded, and never raised by a loss."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.concurrency_limit import (
    STEPS,
    Limit,
    LimitSettings,
    Mode,
    Round,
    Sign,
    dipped,
    pause_for,
    sign_of,
    step,
)
from tenantry.kernel.randomness import SeededRandomness

SETTINGS = LimitSettings()
limits = st.builds(
    Limit,
    st.floats(SETTINGS.least, SETTINGS.most),
    st.sampled_from(Mode),
    st.just(float("inf")) | st.floats(1.0, SETTINGS.most),
    st.integers(0, 30),
    st.integers(0, 200),
    st.floats(1.0, SETTINGS.most),
    st.floats(0.0, SETTINGS.most),
)
rounds = st.builds(
    Round,
    st.none() | st.floats(0.01, 1e4),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.integers(0, 100),
    st.booleans(),
)
draws = st.floats(0.0, 1.0)
PEACE = Round(1.0, 100, 0, 10**6, 0)
ALL_LOST = Round(None, 0, 10, 10**6, 0)


def test_the_table_has_a_row_for_every_mode_and_sign() -> None:
    assert set(STEPS) == {(mode, sign) for mode in Mode for sign in Sign}


@given(limits, rounds, draws)
def test_the_limit_stays_within_its_bounds(limit: Limit, seen: Round, draw: float) -> None:
    assert SETTINGS.least <= step(limit, seen, SETTINGS, draw=draw).level <= SETTINGS.most


@given(limits, rounds, draws)
def test_a_loss_never_raises_the_limit(limit: Limit, seen: Round, draw: float) -> None:
    lost = Round(seen.ratio, seen.succeeded, max(1, seen.lost), seen.most, seen.in_flight, seen.stuck)
    assert sign_of(limit, lost, SETTINGS) is Sign.LOST
    assert step(limit, lost, SETTINGS, draw=draw).level <= limit.level


@given(limits, rounds, draws)
def test_waiting_alone_never_takes_it_below_one_call(limit: Limit, seen: Round, draw: float) -> None:
    waited = Round(seen.ratio, seen.succeeded, 0, seen.most, seen.in_flight, seen.stuck)
    assert step(limit, waited, SETTINGS, draw=draw).level >= min(1.0, limit.level)


@given(limits, draws)
def test_s1_from_anywhere_nothing_but_loss_leads_to_the_minimum(limit: Limit, draw: float) -> None:
    for _ in range(20):
        limit = step(limit, ALL_LOST, SETTINGS, draw=draw)
    assert limit.level == SETTINGS.least


@given(limits, draws)
def test_from_anywhere_peace_leads_to_twice_the_limit(limit: Limit, draw: float) -> None:
    """No mode is a trap: within the longest rest and a few more rounds it has doubled or is at its bound."""
    start = max(1.0, limit.level)
    for _ in range(400):
        limit = step(limit, Round(1.0, 100, 0, limit.permits, 0), SETTINGS, draw=draw)
    assert limit.level >= min(SETTINGS.most, 2.0 * start)


@given(limits, rounds, draws)
def test_where_slots_are_scarce_the_limit_is_never_higher_for_it(
    limit: Limit, seen: Round, draw: float
) -> None:
    """And nothing is changed by it but how long it rests, and where a full level is remembered."""
    scarce, not_so = replace(seen, scarce=True), replace(seen, scarce=False)
    after, usual = (step(limit, each, SETTINGS, draw=draw) for each in (scarce, not_so))
    assert after.level <= usual.level
    if after != usual:
        assert (after == limit and limit.mode is Mode.RESTING) or after.ceiling == limit.level


@given(st.integers(0, 2**32))
def test_a_ceiling_is_tested_a_quarter_as_often_where_slots_are_scarce(seed: int) -> None:
    usual, scarce = (rests(seed, scarce=scarce) for scarce in (False, True))
    assert 3.4 * usual < scarce < 4.6 * usual


@given(servers=st.integers(2, 10), seed=st.integers(0, 2**32))
def test_where_slots_are_scarce_next_to_nothing_waits_at_a_target_that_stays_busy(
    servers: int, seed: int
) -> None:
    """Constant calls of so many servers: n in flight take n / servers, where that is more than one."""
    scarce, usual = ([limit.permits for limit in found(servers, seed, scarce=each)] for each in (True, False))
    assert sum(scarce) <= (servers + 0.15) * len(scarce) < sum(usual)
    assert sum(min(servers, level) for level in scarce) >= 0.99 * servers * len(scarce)


def found(servers: int, seed: int, *, scarce: bool) -> list[Limit]:
    """The limit of 500 rounds, less the first sixty."""
    chance, limit, seen = SeededRandomness(seed), Limit(), []
    for _ in range(500):
        calls = limit.permits
        told = Round(max(1.0, calls / servers), calls, 0, calls, calls, scarce=scarce)
        limit = step(limit, told, SETTINGS, draw=chance.uniform(0.0, 1.0))
        seen.append(limit)
    return seen[60:]


def rests(seed: int, *, scarce: bool) -> int:
    """Round trips of 300 rests of eight each."""
    chance, count = SeededRandomness(seed), 0
    for _ in range(300):
        limit = Limit(8.0, Mode.RESTING, ceiling=9.0, rounds=9)
        while limit.rounds > 1:
            seen = Round(1.0, 100, 0, limit.permits, 0, scarce=scarce)
            limit = step(limit, seen, SETTINGS, draw=chance.uniform(0.0, 1.0))
            count += 1
    return count


@given(st.floats(2.0, 1_000.0), draws)
def test_growth_is_a_part_of_the_limit_and_at_least_one_call(level: float, draw: float) -> None:
    grown = step(Limit(level), PEACE, SETTINGS, draw=draw).level
    assert grown == level + max(1.0, level * SETTINGS.growth)


@given(st.floats(2.0, 1_000.0))
def test_a_dip_ends_where_it_began(level: float) -> None:
    limit = dipped(Limit(level), SETTINGS)
    assert limit.level < level
    for _ in range(limit.rounds):
        limit = step(limit, PEACE, SETTINGS, draw=0.5)
    assert (limit.level, limit.mode) == (level, Mode.SEEKING)


@given(st.floats(SETTINGS.least, 1.0, exclude_max=True), st.floats(0.001, 900.0))
def test_below_one_the_pause_keeps_that_many_in_flight_on_average(level: float, latency: float) -> None:
    pause = pause_for(level, latency)
    assert 0.0 < pause <= 60.0
    if pause < 60.0:
        assert abs(latency / (latency + pause) - level) < 1e-9
    assert pause_for(1.0, latency) == 0.0
