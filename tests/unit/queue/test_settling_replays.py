"""From an outcome to the settlement of a replay's job."""

from dataclasses import replace

from tenantry.config.model import TargetSettings
from tenantry.kernel.instant import Timestamp
from tenantry.lanes.fingerprint import fingerprint_of
from tenantry.lanes.outcome import Outcome
from tenantry.queue.model import ClaimedJob, Ending, ParkReason, ReplayTerms, Settlement
from tenantry.queue.settling import error_class_of, settlement_of, spent_before
from tenantry.testing.jobs import claimed_job

SETTINGS = TargetSettings(max_attempts=4)
REFUSED = Outcome("http_422", 422, excerpt="order 4711 has no total", busy_for=0.2)


def replayed(**changes: object) -> ClaimedJob:
    return replace(claimed_job(replay=ReplayTerms("r1", park_after=2), prior=5), **changes)


def settled(job: ClaimedJob, outcome: Outcome) -> Settlement:
    return settlement_of(job, SETTINGS, outcome, ended_at=Timestamp(0.0), draw=0.5)


def test_poison_is_parked_with_its_reason_and_the_fingerprint_of_its_failure() -> None:
    found = settled(replayed(attempt=2, faults=1), REFUSED)
    assert (found.ending, found.park_reason) == (Ending.PARKED, ParkReason.POISON)
    assert found.reason.startswith("http_422 after 7 attempts")
    assert found.fingerprint == fingerprint_of("http_422", 422, "order 4712 has no total")
    assert error_class_of(found) == "http_422"


def test_attempts_are_numbered_through_all_replays_and_counted_in_this_one() -> None:
    found = settled(replayed(attempt=3), Outcome("timeout"))
    assert found.failure is not None
    assert (found.ending, found.failure.number) == (Ending.RETRY, 8)
    assert settled(replayed(attempt=4), Outcome("timeout")).ending is Ending.DEAD


def test_a_job_of_no_replay_has_no_fingerprint_and_is_not_parked() -> None:
    found = settled(claimed_job(attempt=4), REFUSED)
    assert (found.ending, found.park_reason, found.fingerprint) == (Ending.DEAD, None, "")


def test_a_delivery_has_nothing_to_compare() -> None:
    found = settled(replayed(), Outcome("ok", 200))
    assert (found.ending, found.fingerprint, found.park_reason) == (Ending.DELIVERED, "", None)


def test_a_replays_job_whose_workers_were_lost_too_often_says_after_how_many_attempts_in_all() -> None:
    found = spent_before(replayed(attempt=5), SETTINGS)
    assert found is not None
    assert (found.ending, found.reason.split(":")[0]) == (Ending.DEAD, "worker_lost after 9 attempts")
    assert found.fingerprint == fingerprint_of("worker_lost", None, "")
    assert error_class_of(found) == "worker_lost"


def test_a_replays_job_that_is_allowed_fewer_attempts_now_ends_as_its_last_one_did() -> None:
    found = spent_before(replayed(attempt=5, last=REFUSED), SETTINGS)
    assert found is not None
    assert (found.ending, found.park_reason, found.failure) == (Ending.PARKED, ParkReason.POISON, None)
    assert found.reason.startswith("http_422 after 9 attempts: the target answered 422")
    assert (found.status, found.fingerprint) == (422, fingerprint_of("http_422", 422, REFUSED.excerpt))
    assert error_class_of(found) == "http_422"
    found = spent_before(replayed(attempt=5, last=Outcome("http_503", 503)), SETTINGS)
    assert found is not None
    assert (found.ending, found.reason.split(":")[0]) == (Ending.DEAD, "http_503 after 9 attempts")


def test_a_job_that_is_allowed_fewer_attempts_now_dies_of_its_last_one() -> None:
    found = spent_before(claimed_job(attempt=5, last=Outcome("http_400", 400)), SETTINGS)
    assert found is not None
    assert (found.ending, found.status) == (Ending.DEAD, 400)
    assert found.reason == "http_400 after 4 attempts: the target answered 400 Bad Request"
    assert error_class_of(found) == "http_400"
