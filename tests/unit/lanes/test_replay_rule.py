"""What becomes of a replay's job: parked where the message is at fault, and otherwise as a live one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.config.model import TargetSettings
from tenantry.lanes.outcome import CAUSES, MESSAGE_FAULTS, Fault, Outcome
from tenantry.lanes.retry import Step, Tries, replay_rule, settle_rule

SETTINGS = TargetSettings(max_attempts=8)
RETRIED = [name for name in MESSAGE_FAULTS if not CAUSES[name].final]
OTHERS = [name for name, cause in CAUSES.items() if cause.fault in {Fault.TARGET, Fault.OURS}]


def test_a_message_that_is_refused_is_tried_three_times_and_then_parked() -> None:
    steps = [
        replay_rule(faults + 1, Outcome("http_422", 422), SETTINGS, 0.5, tries=Tries(0, faults, 3)).step
        for faults in range(3)
    ]
    assert steps == [Step.RETRY, Step.RETRY, Step.PARKED]


@pytest.mark.parametrize("error_class", [name for name in MESSAGE_FAULTS if CAUSES[name].final])
def test_a_message_that_no_attempt_can_repair_is_parked_at_once(error_class: str) -> None:
    decision = replay_rule(1, Outcome(error_class), SETTINGS, 0.5, tries=Tries(0, 0, 100))
    assert decision.step is Step.PARKED
    assert decision.reason.startswith(f"{error_class} after 1 attempt: ")


def test_failures_of_the_target_do_not_count_towards_parking_a_message() -> None:
    tries = Tries(prior=0, faults=0, park_after=2)
    assert replay_rule(7, Outcome("http_400", 400), SETTINGS, 0.5, tries=tries).step is Step.RETRY


@given(st.sampled_from(RETRIED), st.integers(1, 100), st.integers(0, 99), st.integers(1, 100))
def test_a_message_at_fault_is_never_dead_and_parked_at_the_latest_when_no_attempt_is_left(
    error_class: str, attempt: int, faults: int, park_after: int
) -> None:
    outcome = Outcome(error_class)
    decision = replay_rule(attempt, outcome, SETTINGS, 0.5, tries=Tries(3, faults, park_after))
    spent = faults + 1 >= park_after or attempt >= SETTINGS.max_attempts
    assert decision.step is (Step.PARKED if spent else Step.RETRY)
    assert bool(decision.reason) is spent


@given(st.sampled_from(OTHERS), st.integers(1, 10), st.floats(0, 1))
def test_faults_of_the_target_and_ours_go_on_as_for_live_jobs(
    error_class: str, attempt: int, draw: float
) -> None:
    live = settle_rule(attempt, Outcome(error_class), SETTINGS, draw)
    replayed = replay_rule(attempt, Outcome(error_class), SETTINGS, draw, tries=Tries(0, 99, 1))
    assert replayed == live


@pytest.mark.parametrize(("error_class", "step"), [("http_403", Step.PARKED), ("timeout", Step.DEAD)])
def test_a_reason_counts_the_attempts_of_all_replays(error_class: str, step: Step) -> None:
    decision = replay_rule(8, Outcome(error_class), SETTINGS, 0.5, tries=Tries(5, 0, 1))
    assert decision.step is step
    assert decision.reason.startswith(f"{error_class} after 13 attempts: ")


def test_success_ends_a_replays_job_at_whatever_attempt() -> None:
    assert replay_rule(100, Outcome("ok"), SETTINGS, 0.0, tries=Tries(9, 9, 1)).step is Step.DELIVERED
