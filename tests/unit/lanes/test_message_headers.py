"""A target gets what describes a message, and nothing that speaks for the connection or for its sender."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.lanes.headers import MOST_BYTES, MOST_HEADERS, forwarded, is_forwarded

TEXTS = st.text(max_size=30)


@pytest.mark.parametrize("name", ["traceparent", "X-Request-Id", "ce-type", "Date", "Idempotency-Key"])
def test_headers_that_describe_a_message_are_forwarded(name: str) -> None:
    assert forwarded({name: "v"}) == {name: "v"}


@pytest.mark.parametrize(
    "name",
    [
        "Host", "connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
        "Content-Length", "content-type", "Content-Encoding", "Authorization", "Proxy-Authorization",
        "Proxy-Connection", "Cookie", "Set-Cookie", "Forwarded", "Via", "X-Forwarded-For", "x-real-ip",
        "X-HTTP-Method-Override", "webhook-id", "Webhook-Signature", "tenantry-job", "X-Tenantry-Tenant",
        "User-Agent", "Accept-Encoding", "Sec-WebSocket-Key",
    ],
)  # fmt: skip
@pytest.mark.parametrize("spelled", [str, str.upper, str.lower], ids=["as is", "upper", "lower"])
def test_headers_of_the_connection_the_sender_and_ours_never_are(name: str, spelled: type[str]) -> None:
    assert forwarded({spelled(name): "v"}) == {}


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nhost", "ä", "a\x00", "x" * 129, "(x)"])
def test_a_name_that_is_no_token_is_left_out(name: str) -> None:
    assert forwarded({name: "v", "x-good": "v"}) == {"x-good": "v"}


@pytest.mark.parametrize("value", ["a\r\nHost: evil", "a\nb", "a\x00", "zwölf", "\x7f"])
def test_a_value_that_is_not_printable_ascii_is_left_out(value: str) -> None:
    assert forwarded({"x-bad": value, "x-good": "v"}) == {"x-good": "v"}


def test_of_two_names_that_differ_in_case_only_the_first_is_sent() -> None:
    assert forwarded({"X-Trace": "1", "x-trace": "2"}) == {"X-Trace": "1"}


def test_no_more_headers_and_bytes_than_a_common_server_takes_are_sent() -> None:
    assert len(forwarded({f"x-{number}": "" for number in range(500)})) == MOST_HEADERS
    large = forwarded({f"x-{number}": "v" * 3_000 for number in range(10)})
    assert sum(len(name) + len(value) for name, value in large.items()) <= MOST_BYTES
    assert len(large) == 2


@given(st.dictionaries(TEXTS, TEXTS, max_size=20))
def test_whatever_a_message_brings_what_is_sent_is_a_part_of_it_that_may_be_sent(
    brought: dict[str, str],
) -> None:
    for name, value in forwarded(brought).items():
        assert brought[name].strip() == value
        assert is_forwarded(name, value)
