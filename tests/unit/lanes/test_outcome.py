"""Whose fault an attempt's end was, and what of an answer is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.kernel.errors import InvariantBroken
from tenantry.lanes.outcome import CAUSES, EXCERPT_LIMIT, Fault, Outcome, class_of_status, excerpt_of


@pytest.mark.parametrize(
    ("error_class", "fault"),
    [
        ("ok", Fault.NONE),
        ("timeout", Fault.TARGET),
        ("connect_timeout", Fault.TARGET),
        ("refused", Fault.TARGET),
        ("reset", Fault.TARGET),
        ("dns", Fault.TARGET),
        ("tls", Fault.TARGET),
        ("http_429", Fault.TARGET),
        ("http_503", Fault.TARGET),
        ("retry_later", Fault.TARGET),
        ("http_3xx", Fault.MESSAGE),
        ("http_403", Fault.MESSAGE),
        ("http_410", Fault.MESSAGE),
        ("address_not_allowed", Fault.MESSAGE),
        ("handler_error", Fault.MESSAGE),
        ("rejected", Fault.MESSAGE),
        ("unknown_handler", Fault.OURS),
        ("exhausted", Fault.OURS),
        ("internal", Fault.OURS),
    ],
)
def test_each_class_blames_one_side(error_class: str, fault: Fault) -> None:
    assert Outcome(error_class).fault is fault


def test_a_class_outside_the_table_is_our_bug() -> None:
    with pytest.raises(InvariantBroken, match="teapot"):
        Outcome("teapot")


@pytest.mark.parametrize(
    ("status", "error_class"),
    [
        *((200, "ok"), (204, "ok"), (299, "ok"), (301, "http_3xx"), (304, "http_3xx"), (403, "http_403")),
        *(
            (418, "http_4xx"),
            (429, "http_429"),
            (500, "http_500"),
            (599, "http_5xx"),
            (101, "protocol"),
            (600, "protocol"),
        ),
    ],
)
def test_a_status_has_one_class(status: int, error_class: str) -> None:
    assert class_of_status(status) == error_class


@given(st.integers(100, 599))
def test_every_status_is_in_the_table_and_its_hundred_decides_the_fault(status: int) -> None:
    outcome = Outcome(class_of_status(status), status)
    if status == 429 or status >= 500 or status < 200:
        assert outcome.fault is Fault.TARGET
    elif status >= 300:
        assert outcome.fault is Fault.MESSAGE
    else:
        assert outcome.succeeded


def test_the_classes_are_few_enough_to_label_a_metric() -> None:
    assert len(CAUSES) <= 48
    assert {class_of_status(status) for status in range(1000)} <= CAUSES.keys()


@given(st.one_of(st.binary(max_size=4_000), st.text(max_size=4_000)))
def test_an_excerpt_is_printable_and_bounded_whatever_came_back(answer: bytes | str) -> None:
    excerpt = excerpt_of(answer)
    assert excerpt.isprintable()
    assert len(excerpt) <= EXCERPT_LIMIT
    excerpt.encode()  # storable: no lone surrogate
    assert excerpt == excerpt_of(excerpt)


def test_an_excerpt_keeps_the_words_and_drops_what_could_move_a_terminal() -> None:
    assert excerpt_of(b"no\x00 such\x1b[2J\r\n\r\nuser \xff\xc3\xa9") == "no such [2J user \ufffdé"
    assert excerpt_of("x" * 1_000) == "x" * 500


def test_time_taken_is_never_negative() -> None:
    assert Outcome("ok").lasting(-0.1).busy_for == 0.0
    assert Outcome("http_503", 503, 7.0, "busy").lasting(1.5) == Outcome("http_503", 503, 7.0, "busy", 1.5)
