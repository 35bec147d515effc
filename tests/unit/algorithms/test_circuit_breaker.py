"""The breaker: when it trips, what it lets through, and that it never wedges."""

import pytest

from tenantry.algorithms.circuit_breaker import (
    FAILURE,
    NOTHING,
    SILENCE,
    SUCCESS,
    TRANSITIONS,
    Breaker,
    BreakerSettings,
    BreakerState,
    Failing,
    admitted,
    cooled,
    frees_at,
    given_back,
    heard,
    probing,
    tripped,
)

RULES = BreakerSettings(probes=5, cool_for=4.0)


def after(breaker: Breaker, *runs: object, rules: BreakerSettings = RULES, now: float = 0.0) -> Breaker:
    """Each ending heard by itself."""
    for run in runs:
        breaker = heard(breaker, run, rules, Failing(now, cost=60.0))  # type: ignore[arg-type]
    return breaker


def half_open(rules: BreakerSettings = RULES) -> Breaker:
    """A breaker that tripped at 0 and cooled at 4."""
    return cooled(
        tripped(Breaker(), rules, Failing(0.0, cost=60.0, draw=0.5)), in_flight=0, timeout_for=15.0, now=4.0
    )


def test_s10_twenty_silent_calls_in_a_row_open_it_on_the_twentieth() -> None:
    rules = BreakerSettings(consecutive=20, least=1_000)
    nineteen = after(Breaker(), *[SILENCE] * 19, rules=rules)
    assert nineteen.state is BreakerState.CLOSED
    assert after(nineteen, SILENCE, rules=rules).state is BreakerState.OPEN


@pytest.mark.parametrize("cut", range(21))
def test_s10_it_makes_no_difference_how_the_twenty_are_heard(cut: int) -> None:
    rules = BreakerSettings(consecutive=20, least=1_000)
    batches = [sum([SILENCE] * n, NOTHING) for n in (cut, 20 - cut)]
    assert after(Breaker(), *batches, rules=rules).state is BreakerState.OPEN
    assert after(Breaker(), batches[0], SUCCESS, batches[1], rules=rules).state is (
        BreakerState.OPEN if cut in {0, 20} else BreakerState.CLOSED
    )


def test_an_answer_ends_a_row_though_it_is_a_failure() -> None:
    rules = BreakerSettings(consecutive=3, least=1_000)
    assert after(Breaker(), SILENCE, SILENCE, FAILURE, SILENCE, rules=rules).state is BreakerState.CLOSED


def test_it_opens_on_half_of_ten_failed_and_not_on_nine_of_nine() -> None:
    nine = after(Breaker(), *[FAILURE] * 9)
    assert nine.state is BreakerState.CLOSED
    assert after(nine, SUCCESS).state is BreakerState.OPEN
    assert after(Breaker(), *[SUCCESS, SUCCESS, FAILURE] * 100).state is BreakerState.CLOSED


def test_failures_leave_the_window_when_they_are_old() -> None:
    nine = after(Breaker(), *[FAILURE] * 9, now=0.0)
    between = after(nine, SUCCESS, rules=BreakerSettings(least=1_000), now=6.0)
    assert after(between, FAILURE, now=12.0).state is BreakerState.CLOSED


def test_s6_of_100_callers_at_the_half_open_instant_exactly_the_configured_number_pass() -> None:
    breaker, passed = half_open(), 0
    for _ in range(100):
        if admitted(breaker, RULES, now=4.0):
            breaker = probing(breaker, 1, until=20.0, now=4.0)
            passed += 1
    assert passed == 5
    assert admitted(half_open(), RULES, now=4.0) == 5  # and to one caller with a hundred jobs


def test_it_closes_when_all_probes_succeeded_and_not_before() -> None:
    breaker = probing(half_open(), 5, until=20.0, now=4.0)
    four = after(breaker, *[SUCCESS] * 4, now=5.0)
    assert four.state is BreakerState.HALF_OPEN
    assert admitted(four, RULES, now=5.0) == 0  # a probe that succeeded is not asked again
    assert after(four, SUCCESS, now=5.0).state is BreakerState.CLOSED


def test_one_failed_probe_opens_it_again_for_twice_as_long() -> None:
    breaker = after(probing(half_open(), 5, until=20.0, now=4.0), SUCCESS, FAILURE, now=5.0)
    assert breaker.state is BreakerState.OPEN
    assert breaker.cooled_at == 5.0 + 8.0


def test_s5_a_probe_whose_worker_died_is_given_up_with_its_lease_and_another_is_let_through() -> None:
    breaker = probing(half_open(), 5, until=20.0, now=4.0)
    assert admitted(breaker, RULES, now=19.9) == 0
    assert frees_at(breaker, in_flight=5, timeout_for=15.0, now=19.9) == 20.0
    assert admitted(breaker, RULES, now=20.0) == 5


def test_s5_a_probe_that_says_nothing_of_the_target_gives_its_turn_back_at_once() -> None:
    breaker = probing(half_open(), 5, until=20.0, now=4.0)
    for _ in range(50):
        breaker = given_back(breaker, 5)
        assert breaker.state is BreakerState.HALF_OPEN
        assert admitted(breaker, RULES, now=5.0) == 5
        breaker = probing(breaker, 5, until=20.0, now=5.0)


def test_an_open_breaker_admits_nothing_and_what_was_sent_before_changes_nothing() -> None:
    breaker = tripped(Breaker(), RULES, Failing(0.0, cost=60.0, draw=0.5))
    assert admitted(breaker, RULES, now=1.0) == 0
    assert after(breaker, SUCCESS, FAILURE, SILENCE, now=1.0) == breaker


def test_no_probe_is_sent_while_calls_of_before_can_still_come_back() -> None:
    breaker = tripped(Breaker(), RULES, Failing(0.0, cost=60.0, draw=0.5))
    assert cooled(breaker, in_flight=3, timeout_for=15.0, now=14.9).state is BreakerState.OPEN
    assert cooled(breaker, in_flight=0, timeout_for=15.0, now=4.0).state is BreakerState.HALF_OPEN
    assert cooled(breaker, in_flight=3, timeout_for=15.0, now=15.0).state is BreakerState.HALF_OPEN


def test_the_cool_down_grows_to_its_longest_and_is_short_again_after_a_calm_minute() -> None:
    rules = BreakerSettings(cool_for=1.0, longest_for=60.0, calm_for=60.0)
    breaker, now, cooled_for = Breaker(), 0.0, []
    for _ in range(8):
        breaker = tripped(breaker, rules, Failing(now, cost=60.0, draw=0.5))
        cooled_for.append(breaker.cooled_at - now)
        now = breaker.cooled_at
        breaker = cooled(breaker, in_flight=0, timeout_for=15.0, now=now)
        breaker = after(breaker, SUCCESS, rules=rules, now=now)
    assert cooled_for == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    assert tripped(breaker, rules, Failing(now + 60.0, cost=60.0, draw=0.5)).cooled_at == now + 61.0


def test_the_cool_down_is_spread_by_a_quarter_either_way() -> None:
    ends = [tripped(Breaker(), RULES, Failing(0.0, cost=60.0, draw=draw)).cooled_at for draw in (0.0, 1.0)]
    assert ends == [3.0, 5.0]


def test_the_table_has_no_way_from_closed_to_closed_and_leaves_every_state() -> None:
    assert {state for state, _ in TRANSITIONS} == set(BreakerState)
    assert set(TRANSITIONS.values()) == set(BreakerState)
    assert all(state is not after for (state, _), after in TRANSITIONS.items())
