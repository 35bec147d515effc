"""A token bucket lets through its rate, no more and no less, whatever the clock does."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.token_bucket import SLACK, Bucket, Rate, full, give_back, is_full, refilled, take
from tenantry.kernel.instant import Instant

BASES = st.floats(0.0001, 1e6)
RATES = st.builds(Rate, BASES, st.floats(0.0, 1e4))
STARTS = st.floats(0.0, 1e9)
GAPS = st.lists(st.floats(0.0, 50.0), min_size=1, max_size=60)


@given(rate=RATES, start=STARTS, gaps=GAPS, cost=st.integers(1, 5))
def test_no_stretch_of_time_lets_more_through_than_capacity_and_rate(
    rate: Rate, start: float, gaps: list[float], cost: int
) -> None:
    bucket, now, passed = full(rate, Instant(start)), start, 0.0
    for gap in gaps:
        now += gap
        taken = take(bucket, rate, cost, Instant(now))
        bucket, passed = taken.bucket, passed + cost * taken.passed
        allowed = rate.capacity + rate.base * (now - start + SLACK)
        assert passed <= allowed * (1 + 1e-9)


@given(rate=RATES, start=STARTS, spent=st.lists(st.integers(1, 9), max_size=20), cost=st.integers(1, 9))
def test_sleeping_exactly_as_told_is_enough(rate: Rate, start: float, spent: list[int], cost: int) -> None:
    bucket = full(rate, Instant(start))
    for each in spent:
        bucket = take(bucket, rate, each, Instant(start)).bucket
    told = take(bucket, rate, cost, Instant(start)).wait_for
    if told is None:
        assert cost > rate.capacity
        return
    assert told >= 0
    assert take(bucket, rate, cost, Instant(start + told)).passed


@given(rate=RATES, start=STARTS, back=st.floats(0.0, 1e5), cost=st.integers(1, 3))
def test_a_clock_that_steps_back_gives_nothing_and_takes_nothing(
    rate: Rate, start: float, back: float, cost: int
) -> None:
    before = take(full(rate, Instant(start)), rate, cost, Instant(start)).bucket
    after = refilled(before, rate, Instant(start - back))
    assert after.tokens == before.tokens
    told = take(after, rate, 1, Instant(start - back)).wait_for
    assert told is not None
    assert told <= 1 / rate.base + cost / rate.base  # it goes on from there; the hour is not waited for


@given(rate=RATES, idle=st.floats(3e8, 1e12))
def test_ten_idle_years_fill_it_and_no_more(rate: Rate, idle: float) -> None:
    emptied = Bucket(0.0, Instant(5.0))
    assert refilled(emptied, rate, Instant(idle)).tokens <= rate.capacity
    assert is_full(emptied, rate, Instant(5.0 + rate.capacity / rate.base * (1 + 1e-9) + 1e-6))


@given(rate=RATES, start=STARTS, cost=st.integers(1, 5))
def test_what_is_refused_is_not_charged_and_what_is_given_back_is_there(
    rate: Rate, start: float, cost: int
) -> None:
    now = Instant(start)
    empty = Bucket(0.0, now)
    refused = take(empty, rate, cost, now)
    assert refused.passed or refused.bucket == empty  # at a million a second one token is within the slack
    taken = take(full(rate, now), rate, cost, now)
    if taken.passed:
        assert give_back(taken.bucket, rate, cost, now).tokens >= rate.capacity * (1 - 1e-9)


def test_200_ms_into_a_bucket_of_one_a_second_says_800_ms() -> None:
    rate = Rate(1.0)
    emptied = take(full(rate, Instant(0.0)), rate, 1, Instant(0.0)).bucket
    wait_for = take(emptied, rate, 1, Instant(0.2)).wait_for
    assert wait_for is not None
    assert abs(wait_for - 0.8) < 1e-9


def test_an_hour_at_twice_the_limit_lets_the_limit_through() -> None:
    """Refused calls are not charged, and the limit is reached to within 1 %."""
    rate = Rate(7.0)
    bucket, passed = full(rate, Instant(0.0)), 0
    for call in range(3_600 * 14):
        taken = take(bucket, rate, 1, Instant(call / 14))
        bucket, passed = taken.bucket, passed + taken.passed
    assert abs(passed - 3_600 * 7) <= 0.01 * 3_600 * 7


def test_a_rate_below_one_a_second_still_lets_one_through() -> None:
    rate = Rate(0.01)
    taken = take(full(rate, Instant(0.0)), rate, 1, Instant(0.0))
    assert taken.passed
    assert take(taken.bucket, rate, 1, Instant(0.0)).wait_for == 100.0
