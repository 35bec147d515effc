"""What may enter the queue: each bad value is refused by name, place and what is accepted."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, nan
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.kernel.verdict import Rule
from tenantry.lanes.model import Target
from tenantry.queue.admission import (
    DEFAULT_LIMITS,
    LEAST_RETRY,
    MOST_RETRY,
    Limits,
    body_digest,
    check_batch,
    check_bulk,
    check_job,
    jittered,
    key_digest,
    over_bound,
    over_stored,
    room_in,
    target_of,
)
from tenantry.queue.model import JobClass, NewJob

DOCUMENT = TenantDocument(
    TenantId("acme"), TierName("free"), targets=MappingProxyType({"billing": TargetSettings()})
)
GOOD = NewJob(Target("https://example.com/hook"), b"{}")
TARGETS = target_of(DOCUMENT)

BAD: Mapping[str, tuple[str, Any]] = {
    "negative cost": ("cost", -1.0),
    "no cost": ("cost", 0.0),
    "NaN cost": ("cost", nan),
    "infinite cost": ("cost", inf),
    "cost over a day": ("cost", 86_400.5),
    "cost as text": ("cost", "1"),
    "true as cost": ("cost", True),
    "negative delay": ("delay_for", -0.001),
    "NaN delay": ("delay_for", nan),
    "delay to the year 9999": ("delay_for", 2.5e11),
    "delay over 366 days": ("delay_for", 366 * 86_400 + 1.0),
    "empty target": ("target", ""),
    "NUL in a target": ("target", "https://example.com/\x00"),
    "lone surrogate in a target": ("target", "https://example.com/\ud800"),
    "over-long target": ("target", "https://example.com/" + "a" * 2_048),
    "undeclared target": ("target", "biling"),
    "a target that is a number": ("target", 7),
    "a scheme that is not HTTP": ("target", "ftp://example.com/"),
    "a handler without a name": ("target", "handler:"),
    "a handler with a space": ("target", "handler:a b"),
    "text as payload": ("payload", "{}"),
    "payload over the limit": ("payload", b"x" * 1_048_577),
    "a class by number": ("job_class", 0),
    "empty ordering key": ("ordering_key", ""),
    "over-long ordering key": ("ordering_key", "k" * 256),
    "over-long key in bytes": ("idempotency_key", "ä" * 128),
    "NUL in a key": ("idempotency_key", "a\x00b"),
    "lone surrogate in a key": ("ordering_key", "\udfff"),
    "CR and LF in a content type": ("content_type", "text/plain\r\nX-Evil: 1"),
    "empty content type": ("content_type", ""),
    "content type beyond ASCII": ("content_type", "text/plän"),
}


def check(job: NewJob, position: int = 0) -> None:
    check_job(job, position=position, limits=DEFAULT_LIMITS, check_target=TARGETS)


@pytest.mark.parametrize(("field", "value"), BAD.values(), ids=BAD.keys())
def test_a_bad_value_is_refused_with_its_row_and_field(field: str, value: object) -> None:
    bad = replace(GOOD, **{field: value})
    with pytest.raises(InvalidValue) as caught:
        check_batch([GOOD, GOOD, GOOD, bad], DEFAULT_LIMITS, TARGETS)
    assert caught.value.path == f"jobs[3].{field}"
    assert caught.value.accepted
    assert len(str(caught.value)) < 500


GOOD_ONES: Mapping[str, NewJob] = {
    "a declared name": replace(GOOD, target=Target("billing")),
    "a handler": replace(GOOD, target=Target("handler:resize")),
    "the longest delay": replace(GOOD, delay_for=366 * 86_400.0),
    "the highest cost": replace(GOOD, cost=86_400.0),
    "a whole number as cost": replace(GOOD, cost=1),
    "the largest payload": replace(GOOD, payload=b"x" * 1_048_576),
    "an empty payload": replace(GOOD, payload=b""),
    "a key of 255 bytes": replace(GOOD, idempotency_key="k" * 255, ordering_key="o" * 255),
    "a content type with a parameter": replace(GOOD, content_type="text/plain; charset=utf-8"),
}


@pytest.mark.parametrize("job", GOOD_ONES.values(), ids=GOOD_ONES.keys())
def test_what_is_within_the_limits_is_accepted(job: NewJob) -> None:
    check(job)


def test_an_undeclared_target_is_answered_with_the_nearest_declared_one() -> None:
    with pytest.raises(InvalidValue, match="Did you mean 'billing'"):
        check(replace(GOOD, target=Target("biling")))


def test_a_refused_target_is_not_echoed_whole() -> None:
    with pytest.raises(InvalidValue) as caught:
        check(replace(GOOD, target=Target("https://example.com/" + "secret" * 400)))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("count", [0, 1_001])
def test_a_batch_has_one_to_a_thousand_jobs(count: int) -> None:
    with pytest.raises(InvalidValue, match="1 to 1,000 jobs"):
        check_batch([GOOD] * count, DEFAULT_LIMITS, TARGETS)
    check_batch([GOOD] * 1_000, DEFAULT_LIMITS, TARGETS)


def test_a_bulk_set_takes_more_than_a_batch_but_no_keys() -> None:
    check_bulk([GOOD] * 1_001, DEFAULT_LIMITS, TARGETS)
    with pytest.raises(InvalidValue, match="1 to 5 jobs"):
        check_bulk([GOOD] * 6, Limits(bulk=5), TARGETS)
    with pytest.raises(InvalidValue) as caught:
        check_bulk([GOOD, replace(GOOD, idempotency_key="k")], DEFAULT_LIMITS, TARGETS)
    assert caught.value.path == "jobs[1].idempotency_key"


def test_a_bounds_estimate_is_what_has_to_drain_over_how_fast_it_drains() -> None:
    refusal = over_bound(bound=100, unended=95, wanted=25, drain_rate=2.0)
    assert (refusal.rule, refusal.retry_after) == (Rule.BOUND, 10.0)
    assert "the bound is 100" in refusal.detail


def test_a_batch_that_can_never_fit_is_told_so() -> None:
    assert over_bound(bound=10, unended=0, wanted=11, drain_rate=5.0).retry_after is None


@given(jobs=st.integers(1, 10**9), rate=st.floats(min_value=0, allow_infinity=False), draw=st.floats(0, 1))
def test_an_estimate_is_finite_and_jitter_never_makes_it_earlier(jobs: int, rate: float, draw: float) -> None:
    estimate = room_in(jobs, rate)
    assert LEAST_RETRY <= estimate <= MOST_RETRY
    assert estimate <= jittered(estimate, draw) <= 1.5 * estimate


def test_jitter_spreads_a_crowd() -> None:
    spread = {jittered(10.0, draw / 100) for draw in range(101)}
    assert (min(spread), max(spread), len(spread)) == (10.0, 15.0, 101)


def test_digests_tell_apart_what_differs_and_only_that() -> None:
    bodies = [GOOD, replace(GOOD, payload=b"[]"), replace(GOOD, job_class=JobClass.REPLAY)]
    bodies += [replace(GOOD, content_type="text/plain"), replace(GOOD, target=Target("billing"))]
    assert len({body_digest(body) for body in bodies}) == len(bodies)
    assert body_digest(replace(GOOD, delay_for=5.0, cost=1.0, ordering_key="k")) == body_digest(GOOD)
    assert key_digest(TenantId("ab"), "c") != key_digest(TenantId("a"), "bc")


def test_a_batch_and_a_set_are_bounded_in_bytes_too() -> None:
    limits = Limits(payload=100, batch_bytes=250, bulk_bytes=350)
    jobs = [replace(GOOD, payload=bytes(100))] * 4
    check_batch(jobs[:2], limits, TARGETS)
    check_bulk(jobs[:3], limits, TARGETS)
    with pytest.raises(InvalidValue, match="payloads of 300 bytes") as raised:
        check_batch(jobs[:3], limits, TARGETS)
    assert raised.value.path == "jobs"
    with pytest.raises(InvalidValue, match="Send several sets"):
        check_bulk(jobs, limits, TARGETS)


def test_a_set_beyond_what_may_be_stored_is_told_whether_waiting_helps() -> None:
    assert over_stored(most=10, stored=8, wanted=3).retry_after is not None
    assert over_stored(most=10, stored=0, wanted=11).retry_after is None
    assert over_stored(most=10, stored=8, wanted=3).rule is Rule.BOUND
