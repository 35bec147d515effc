"""A bucket kept as the instant at which it is full decides as the bucket of tokens does, here and in the
limiter."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.token_bucket import (
    SLACK,
    Bucket,
    Rate,
    carried,
    charged,
    full,
    rescaled,
    take,
    tokens_at,
    until_passes,
)
from tenantry.kernel.instant import Instant
from tenantry.limiter.buckets import Refilled
from tenantry.limiter.model import Limit

LIMITS = st.builds(Limit, st.floats(0.001, 1e5), st.floats(0.0, 1e4))
CALLS = st.lists(st.tuples(st.floats(0.0, 20.0), st.sampled_from([0.5, 1.0, 1.0, 3.0])), max_size=60)


@given(limit=LIMITS, start=st.floats(0.0, 1e6), calls=CALLS)
def test_it_decides_as_the_bucket_of_tokens_does(
    limit: Limit, start: float, calls: list[tuple[float, float]]
) -> None:
    rate, now = limit.rate, start
    bucket: Bucket = full(rate, Instant(now))
    full_at, local = Instant(now), Refilled(limit)
    for gap, cost in calls:
        now += gap
        taken = take(bucket, rate, cost, Instant(now))
        waits = until_passes(full_at, rate, cost, Instant(now))
        local_waits = local.wait_for(cost, Instant(now))
        told = taken.wait_for if taken.wait_for is not None else float("inf")
        # Two ways to round: they may part within the slack, and nowhere else.
        near = abs(waits - SLACK) < SLACK / 2
        assert near or (waits <= SLACK) == taken.passed
        assert near or (local_waits == 0) == taken.passed
        if taken.passed and local_waits == 0:
            full_at = charged(full_at, rate, cost, Instant(now))
            local.spend(cost, Instant(now))
            bucket = taken.bucket
        elif told != float("inf"):
            assert abs(local_waits - told) < 1e-5 + 1e-6 * told
        assert local.full_at == full_at or local_waits > 0


@given(old=LIMITS, new=LIMITS, lacking=st.floats(0.0, 1.0))
def test_another_rate_neither_fills_it_nor_makes_it_owe(old: Limit, new: Limit, lacking: float) -> None:
    now = Instant(50.0)
    full_at = Instant(now + lacking * old.window)
    was = old.capacity - tokens_at(full_at, old.rate, now)
    then = new.capacity - tokens_at(rescaled(full_at, old.rate, new.rate, now), new.rate, now)
    assert -1e-6 * new.capacity <= then <= min(was, new.capacity) * (1 + 1e-6) + 1e-3


@given(old=LIMITS, new=LIMITS, lacking=st.floats(0.0, 1.0))
def test_a_part_that_grows_or_shrinks_gains_no_token(old: Limit, new: Limit, lacking: float) -> None:
    now = Instant(50.0)
    full_at = Instant(now + lacking * old.window)
    was = tokens_at(full_at, old.rate, now)
    then = tokens_at(carried(full_at, old.rate, new.rate, now), new.rate, now)
    assert then <= was * (1 + 1e-6) + 1e-3


@given(limit=LIMITS, back=st.floats(0.0, 1e5))
def test_a_clock_that_steps_back_costs_at_most_the_bucket(limit: Limit, back: float) -> None:
    bucket = Refilled(limit)
    bucket.spend(1.0, Instant(1e6))
    waits = bucket.wait_for(1.0, Instant(1e6 - back))
    assert waits <= limit.interval * (1 + 1e-6) + 1e-5


def test_rates_are_the_documents() -> None:
    assert Rate(100, 900).capacity == 1_000
