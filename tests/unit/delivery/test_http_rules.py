"""The pure halves of an HTTP attempt: what is sent, and what an answer means."""

import pytest

from tenantry.config.model import TargetSettings
from tenantry.delivery.failures import class_of_exception
from tenantry.delivery.http import DeliverySettings, Unsendable, prepare, read_answer
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.queue.model import ClaimedJob
from tenantry.testing.jobs import claimed_job

JOB = claimed_job()
AT = Timestamp(1_767_225_600.9)


def prepared(job: ClaimedJob = JOB, settings: TargetSettings | None = None) -> dict[str, str]:
    return dict(prepare(job, settings or TargetSettings(), at=AT, user_agent="Tenantry/x").headers)


def test_an_unsigned_delivery_still_carries_its_id_and_time() -> None:
    headers = prepared()
    assert headers["webhook-id"] == JOB.id
    assert headers["webhook-timestamp"] == "1767225600"
    assert headers["Content-Type"] == "application/json"
    assert "webhook-signature" not in headers


def test_every_attempt_has_the_same_id() -> None:
    assert prepared(claimed_job(attempt=7))["webhook-id"] == prepared()["webhook-id"]


@pytest.mark.parametrize(
    ("job", "settings", "error_class"),
    [
        (claimed_job("crm"), TargetSettings(), "unknown_target"),
        (claimed_job("ftp://example.com"), TargetSettings(), "invalid_url"),
        (claimed_job("http://0x7f.1/"), TargetSettings(), "invalid_url"),
        (claimed_job(content_type="text/plain\r\nX-Evil: 1"), TargetSettings(), "invalid_content_type"),
        (claimed_job(content_type=""), TargetSettings(), "invalid_content_type"),
        (JOB, TargetSettings(secret="hunter2"), "invalid_secret"),
        (JOB, TargetSettings(url="hunter2"), "invalid_url"),
    ],
)
def test_what_cannot_be_sent_is_an_outcome_before_a_byte_is_sent(
    job: ClaimedJob, settings: TargetSettings, error_class: str
) -> None:
    with pytest.raises(Unsendable) as refusal:
        prepare(job, settings, at=AT, user_agent="x")
    assert refusal.value.outcome.error_class == error_class
    assert "hunter2" not in repr(refusal.value.outcome)


def test_a_set_url_replaces_the_targets_text_and_is_sent_as_written() -> None:
    settings = TargetSettings(url="http://example.com/%7Ea/../b?q=%2F+x")
    request = prepare(claimed_job("crm"), settings, at=AT, user_agent="x")
    assert str(request.url) == "http://example.com/%7Ea/../b?q=%2F+x"


def test_a_prepared_request_shows_neither_signature_nor_body() -> None:
    request = prepare(JOB, TargetSettings(secret="whsec_aHVudGVyMg=="), at=AT, user_agent="x")
    assert "v1," not in repr(request)
    assert "hello" not in repr(request)


def test_a_date_hint_is_counted_on_the_targets_own_clock() -> None:
    headers = {"Date": "Thu, 01 Jan 2026 05:00:00 GMT", "Retry-After": "Thu, 01 Jan 2026 05:00:30 GMT"}
    assert read_answer(503, headers, b"", now=AT).retry_after == 30.0


def test_a_success_keeps_nothing_of_the_answer() -> None:
    outcome = read_answer(202, {"Retry-After": "5"}, b"thanks", now=AT)
    assert (outcome.error_class, outcome.retry_after, outcome.excerpt) == ("ok", None, "")


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "refused"),
        (ConnectionResetError(104, "Connection reset by peer"), "reset"),
        (OSError(24, "Too many open files"), "exhausted"),
        (TimeoutError(), "timeout"),
        (OSError("strange"), "reset"),
    ],
)
def test_a_foreign_exception_has_one_class(error: Exception, error_class: str) -> None:
    assert class_of_exception(error).error_class == error_class


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"connections": 0}, "delivery.connections"),
        ({"connect_share": 0.0}, "delivery.connect_share"),
        ({"connect_share": 1.1}, "delivery.connect_share"),
        ({"keepalive_for": -1.0}, "delivery.keepalive_for"),
    ],
)
def test_bad_settings_are_refused_by_name(values: dict[str, float], path: str) -> None:
    with pytest.raises(InvalidValue, match=path):
        DeliverySettings(**values)  # type: ignore[arg-type]
