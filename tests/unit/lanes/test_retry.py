"""What becomes of a job after an attempt, and when it comes back."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.config.model import TargetSettings
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.randomness import SeededRandomness
from tenantry.lanes.outcome import CAUSES, Outcome
from tenantry.lanes.retry import (
    LONGEST_HINT,
    Decision,
    Step,
    parse_http_date,
    parse_retry_after,
    retry_delay,
    settle_rule,
)

NOW = Timestamp(1_767_225_600.0)  # 2026-01-01T00:00:00Z, a Thursday
DRAWS = st.floats(0, 1)
FAILURES = sorted(name for name in CAUSES if name != "ok")
RETRIED = sorted(name for name in FAILURES if not CAUSES[name].final)


def test_a_target_that_always_answers_403_with_three_attempts_gets_exactly_three() -> None:  # case Q16
    settings = TargetSettings(max_attempts=3)
    decisions = [settle_rule(attempt, Outcome("http_403", 403), settings, 0.5) for attempt in (1, 2, 3)]
    assert [decision.step for decision in decisions] == [Step.RETRY, Step.RETRY, Step.DEAD]
    assert decisions[-1].reason == "http_403 after 3 attempts: the target answered 403 Forbidden"


def test_success_ends_a_job_at_whatever_attempt() -> None:
    assert settle_rule(100, Outcome("ok", 204), TargetSettings(max_attempts=1), 0.0) == Decision(
        Step.DELIVERED
    )


@pytest.mark.parametrize("error_class", ["http_410", "rejected", "address_not_allowed", "invalid_url"])
def test_what_another_attempt_cannot_repair_dies_at_once(error_class: str) -> None:
    decision = settle_rule(1, Outcome(error_class), TargetSettings(max_attempts=8), 0.5)
    assert decision.step is Step.DEAD
    assert decision.reason.startswith(f"{error_class} after 1 attempt: ")


@given(st.sampled_from(FAILURES), st.integers(1, 100), st.integers(1, 100), DRAWS)
def test_a_failing_job_ends_at_its_last_attempt_and_says_why(
    error_class: str, attempt: int, most: int, draw: float
) -> None:
    decision = settle_rule(attempt, Outcome(error_class), TargetSettings(max_attempts=most), draw)
    ended = attempt >= most or CAUSES[error_class].final
    assert decision.step is (Step.DEAD if ended else Step.RETRY)
    assert bool(decision.reason) == ended
    assert error_class in decision.reason or not ended


SETTINGS = st.builds(
    TargetSettings,
    max_attempts=st.just(100),
    backoff_base=st.floats(0.001, 60),
    backoff_cap=st.floats(0.001, 3_600),
)


@given(st.sampled_from(RETRIED), st.integers(1, 99), DRAWS, SETTINGS)
def test_without_a_hint_the_delay_stays_below_the_exponential_ceiling(
    error_class: str, attempt: int, draw: float, settings: TargetSettings
) -> None:
    delay = settle_rule(attempt, Outcome(error_class), settings, draw).retry_for
    assert 0 <= delay <= min(settings.backoff_cap, settings.backoff_base * 2.0 ** (attempt - 1)) * (1 + 1e-9)


@given(st.floats(0, 10 * LONGEST_HINT), st.integers(1, 99), DRAWS)
def test_a_hint_up_to_a_day_is_never_undercut_and_spread_over_a_tenth(
    hint: float, attempt: int, draw: float
) -> None:
    settings = TargetSettings(backoff_base=2.0, backoff_cap=600.0)
    delay = retry_delay(attempt, hint, settings, draw)
    assert delay >= min(hint, LONGEST_HINT)
    assert delay <= max(600.0, min(hint, LONGEST_HINT) * 1.1 + 1e-6)


def test_twenty_jobs_told_600_seconds_come_back_spread_and_none_early() -> None:  # case S8
    randomness = SeededRandomness(7)
    settings = TargetSettings(backoff_cap=600.0)
    delays = sorted(retry_delay(1, 600.0, settings, randomness.uniform(0, 1)) for _ in range(20))
    assert delays[0] >= 600.0
    assert delays[-1] - delays[0] > 30.0
    assert len({round(delay) for delay in delays}) > 10


def test_a_hint_of_zero_does_not_make_a_hot_loop() -> None:
    assert retry_delay(3, 0.0, TargetSettings(backoff_base=2.0), 1.0) == 8.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        (" 7 ", 7.0),
        ("0.5", 0.5),
        ("Thu, 01 Jan 2026 00:02:00 GMT", 120.0),
        ("Thursday, 01-Jan-26 00:02:00 GMT", 120.0),
        ("Thu Jan  1 00:02:00 2026", 120.0),
        ("Wed, 31 Dec 2025 23:59:00 GMT", 0.0),
        ("-5", None),
        ("1e3", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("9" * 400, 86_400.0),
        ("\u0663", None),
        ("Thu, 99 Jan 2026 00:00:00 GMT", None),
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
        (None, None),
    ],
)
def test_retry_after_has_two_forms_and_everything_else_is_no_hint(
    text: str | None, seconds: float | None
) -> None:
    assert parse_retry_after(text, now=NOW) == seconds


@given(st.text(max_size=80))
def test_no_retry_after_breaks_us_or_comes_out_negative(text: str) -> None:
    seconds = parse_retry_after(text, now=NOW)
    assert seconds is None or 0 <= seconds < 1e13


@given(st.integers(0, 4_102_444_800))
def test_an_http_date_is_read_to_the_second(at: int) -> None:
    assert parse_http_date(formatdate(at, usegmt=True)) == at
