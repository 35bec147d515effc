"""Verdicts and errors as problems; credentials as pure rules."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.kernel.errors import InvalidValue, UnknownKey
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.web.credentials import Missing, Shown, Unusable, credential_of, query_holds_credential
from tenantry.web.problems import api_path, of_invalid, of_refusal, retry_headers


@given(st.floats(0, 1e9))
def test_sleeping_the_header_is_never_too_short_and_less_than_a_second_too_long(retry_after: float) -> None:
    header = int(retry_headers(retry_after)["retry-after"])
    assert 0 <= header - retry_after <= 1
    assert header == ceil(retry_after)


def test_a_negative_time_is_now() -> None:
    assert retry_headers(-1.0) == {"retry-after": "0"}


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_of_the_queue_has_a_problem_that_names_it(rule: Rule) -> None:
    problem = of_refusal(Refusal(rule, "why", 1.5))
    assert problem.members["rule"] == rule.value
    assert problem.members["retry_after"] == 1.5
    assert problem.headers == {"retry-after": "2"}


def test_only_a_batch_that_can_never_fit_is_sent_away_for_good() -> None:
    fits_later = of_refusal(Refusal(Rule.BOUND, "why", 1.0), bulk_url="/v1/bulk")
    fits_never = of_refusal(Refusal(Rule.BOUND, "why", None), bulk_url="/v1/bulk")
    assert (fits_later.kind.status, fits_never.kind.status) == (429, 413)
    assert fits_never.headers == {}
    assert fits_later.members["bulk_url"] == fits_never.members["bulk_url"] == "/v1/bulk"


def test_paths_are_those_of_the_body() -> None:
    assert api_path("jobs[3].job_class") == "jobs[3].class"
    error = InvalidValue("jobs[0].cost", -1, "more", "Do.")
    problem = of_invalid(error, within="jobs[0].")
    assert problem.members["errors"] == [{"path": "cost", "accepted": "more", "hint": "Do."}]
    assert problem.detail == "cost: -1 is not accepted; expected more. Do."
    unknown = of_invalid(UnknownKey("jobs[2]", "kost", ("cost",)), line=7)
    assert unknown.members["errors"][0]["path"] == "jobs[2].kost"  # type: ignore[index]
    assert unknown.members["errors"][0]["line"] == 7  # type: ignore[index]


@given(
    st.lists(st.tuples(st.sampled_from([b"authorization", b"x-api-key"]), st.binary(max_size=20)), min_size=2)
)
def test_two_credentials_are_never_resolved(headers: list[tuple[bytes, bytes]]) -> None:
    assert credential_of(headers) == Unusable(
        "ambiguous", "Send one credential: one Authorization or one X-API-Key header."
    )


@given(st.sampled_from([b"authorization", b"x-api-key"]), st.binary(max_size=40))
def test_a_credential_is_visible_ascii_or_none(name: bytes, value: bytes) -> None:
    found = credential_of([(name, value)])
    assert not isinstance(found, Missing)
    if isinstance(found, Shown):
        assert found.text.isascii()
        assert found.text.isprintable()
        assert " " not in found.text


def test_a_shown_credential_is_never_printed() -> None:
    assert "tk_verysecret" not in repr(Shown("tk_verysecret"))


@pytest.mark.parametrize("query", [b"", b"limit=5&state=waiting", b"monkey=1", b"keys=2", b"tokens=%zz"])
def test_other_queries_hold_no_credential(query: bytes) -> None:
    assert not query_holds_credential(query)
