"""Failures that are alike have one fingerprint, whatever ids, numbers and times they quote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.lanes.fingerprint import fingerprint_of, normalised
from tenantry.lanes.outcome import EXCERPT_LIMIT

UUIDS = st.uuids().map(str)
NUMBERS = st.integers(0, 10**15).map(str)
MOMENTS = st.datetimes().map(lambda moment: moment.isoformat())


@pytest.mark.parametrize(
    ("excerpt", "text"),
    [
        ("order 4711 not found", "order <n> not found"),
        ("order -47,11 not found", "order <n> not found"),
        ('no field "total_eur" in the body', "no field <quoted> in the body"),
        ("no field 'total' in `body`", "no field <quoted> in <quoted>"),
        ("user 0198f3c2-7a30-7c11-8b56-3f1f0c6a2d10 is gone", "user <uuid> is gone"),
        ("at 2026-01-02T03:04:05.678Z it failed", "at <time> it failed"),
        ("at 03:04:05 it failed", "at <time> it failed"),
        ("bad digest deadbeefcafe0001", "bad digest <hex>"),
        ("bad pointer 0x7F3a", "bad pointer <hex>"),
        ("cus_9s6XKzkNRiz8i3 does not exist", "<id> does not exist"),
        ("mail to jo.doe+x@example.co.uk bounced", "mail to <email> bounced"),
        ("see https://example.com/e/42?x=1 for more", "see <url> for more"),
        ("peer 10.1.2.3:8080 said no", "peer <ip> said no"),
        ("It can't be:   NOT\tthere", "it can't be: not there"),
        ("the cache decoded a beaded facade", "the cache decoded a beaded facade"),
    ],
)
def test_what_differs_from_message_to_message_becomes_a_mark(excerpt: str, text: str) -> None:
    assert normalised(excerpt) == text


@given(st.lists(st.tuples(UUIDS, NUMBERS, MOMENTS), min_size=2, max_size=2))
def test_messages_that_differ_in_ids_numbers_and_times_fail_alike(told: list[tuple[str, str, str]]) -> None:
    one, other = (
        fingerprint_of("http_422", 422, f"{at}: order {id_} has {number} lines, at most 100")
        for id_, number, at in told
    )
    assert one == other


def test_failures_of_another_class_status_or_text_are_not_alike() -> None:
    prints = {
        fingerprint_of("http_422", 422, "no total"),
        fingerprint_of("http_422", 422, "no currency"),
        fingerprint_of("http_400", 400, "no total"),
        fingerprint_of("http_4xx", 418, "no total"),
        fingerprint_of("http_4xx", 451, "no total"),
        fingerprint_of("http_4xx", None, "no total"),
    }
    assert len(prints) == 6


@given(st.text(max_size=2 * EXCERPT_LIMIT))
def test_whatever_a_target_says_has_a_fingerprint_of_16_hex_digits(excerpt: str) -> None:
    found = fingerprint_of("http_400", 400, excerpt)
    assert len(found) == 16
    assert int(found, 16) >= 0


def test_a_fingerprint_is_the_same_on_every_machine_and_in_every_version() -> None:
    assert fingerprint_of("http_422", 422, "order 4711 not found") == "3f03cd790e03c824"


@pytest.mark.parametrize("hostile", ["'" * 500, '"a' * 250, "a1-" * 166, "1." * 250, "a@" * 250, "f0" * 250])
def test_a_hostile_answer_is_read_in_linear_time(hostile: str) -> None:
    """A pattern that backtracks would not end; this one takes well under a millisecond each."""
    for _ in range(200):
        normalised(hostile)
