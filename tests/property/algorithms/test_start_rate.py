"""The rate of starts against targets that refuse: it finds their rate, and waits for nobody for long."""

from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.start_rate import (
    FIRST,
    SLOWEST,
    StartRate,
    may_start,
    next_start_at,
    rate_at,
    refused,
    relaxed,
    started,
    succeeded,
)

STEP = 0.05


@given(first=st.integers(1, 12))
def test_a_target_that_refused_the_first_calls_and_is_well_again_is_asked_soon(first: int) -> None:
    """Twice as long after each refusal, and a minute at most; from the first success on twice as fast every
    second."""
    rate, now, waits = StartRate(), 0.0, []
    for _ in range(first):
        rate = refused(rate, now)
        waits.append(next_start_at(rate, now) - now)
        now += waits[-1]
        assert may_start(rate, now) == 1
        rate = started(rate, 1, now)
    assert all(abs(wait - min(2.0**n / FIRST, 1.0 / SLOWEST)) < 1e-6 for n, wait in enumerate(waits))
    seconds = 0
    while (allowed := rate_at(rate, now)) < 100.0:
        rate, now, seconds = succeeded(rate, max(1, int(allowed)), now), now + 1.0, seconds + 1
    assert seconds <= 8


@given(limit=st.floats(0.5, 200.0), burst=st.integers(3, 20), eager=st.integers(1, 50))
def test_a_target_with_a_limit_of_its_own_is_used_well_and_seldom_refuses(
    limit: float, burst: int, eager: int
) -> None:
    """At least half of it, over five minutes less the first. What is saved up beyond ``burst`` between two
    looks is lost."""
    rate, saved, done, asked, now = StartRate(), float(burst), 0, 0, 0.0
    while now < 300.0:
        saved = min(max(1.0, burst), saved + STEP * limit)
        count = eager if (allowed := may_start(rate, now)) is None else min(eager, allowed)
        rate = started(rate, count, now)
        passed = min(count, int(saved))
        saved -= passed
        if passed:
            rate = succeeded(rate, passed, now)
        if count > passed:
            rate = refused(rate, now)
        if now >= 60.0:
            done, asked = done + passed, asked + count
        rate = relaxed(rate, now)
        now += STEP
    served = min(limit, eager / STEP, burst / STEP) * 240.0
    assert done >= 0.5 * served
    assert asked - done <= 0.1 * asked


@given(st.floats(0.0, 1e6), st.integers(1, 100), st.integers(1, 100))
def test_a_refusal_never_raises_the_rate(now: float, before: int, more: int) -> None:
    rate = refused(
        succeeded(succeeded(StartRate(counting_from=now), before, now + 0.5), more, now + 1.0), now + 1.2
    )
    again = refused(rate, now + 1.3)
    assert SLOWEST <= rate_at(again, now + 1.3) <= rate_at(rate, now + 1.3)
