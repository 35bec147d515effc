"""Which messages are meant: every condition must hold, and what is not known matches none."""

import json
from dataclasses import replace

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.lanes.model import Target
from tenantry.replay.filters import Filter, matches
from tenantry.replay.model import Filters, Message

HOOK = Target("https://a.example/hook")
MESSAGE = Message(
    id="1",
    payload=b'{"kind": "gift", "price": 1.0, "lines": [{"sku": "a"}, {"sku": "b"}], "paid": true}',
    target=HOOK,
    headers={"region": "eu", "version": "2"},
    failed_at=Timestamp(1_000.0),
    attempts=4,
    error_class="timeout",
)


def test_no_filter_means_every_message() -> None:
    assert matches(MESSAGE, Filters())
    assert not Filter(Filters())


@pytest.mark.parametrize(
    "filters",
    [
        Filters(error_classes=frozenset({"timeout", "refused"})),
        Filters(targets=frozenset({HOOK})),
        Filters(failed_from=Timestamp(1_000.0), failed_before=Timestamp(1_000.5)),
        Filters(headers={"region": "eu"}),
        Filters(attempts_from=4, attempts_to=4),
        Filters(json=(("$.kind", '"gift"'), ("$.paid", "true"))),
        Filters(json=(("$.price", "1"),)),
        Filters(json=(("$.lines[*].sku", '"b"'),)),
        Filters(json=(("$.lines[0]", '{"sku": "a"}'),)),
    ],
)
def test_a_message_that_meets_the_condition_is_meant(filters: Filters) -> None:
    assert matches(MESSAGE, filters)
    assert Filter(filters)


@pytest.mark.parametrize(
    "filters",
    [
        Filters(error_classes=frozenset({"refused"})),
        Filters(targets=frozenset({Target("https://b.example/")})),
        Filters(failed_from=Timestamp(1_000.5)),
        Filters(failed_before=Timestamp(1_000.0)),
        Filters(headers={"region": "eu", "version": "3"}),
        Filters(attempts_from=5),
        Filters(attempts_to=3),
        Filters(json=(("$.paid", "1"),)),
        Filters(json=(("$.kind", "null"),)),
        Filters(json=(("$.absent", "null"),)),
        Filters(error_classes=frozenset({"timeout"}), json=(("$.kind", '"card"'),)),
    ],
)
def test_a_message_that_misses_one_condition_is_not_meant(filters: Filters) -> None:
    assert not matches(MESSAGE, filters)


def test_what_a_message_does_not_say_matches_no_condition_about_it() -> None:
    silent = Message(id="1", payload=b"not JSON")
    assert not matches(silent, Filters(failed_from=Timestamp(0.0)))
    assert not matches(silent, Filters(error_classes=frozenset({"timeout"})))
    assert not matches(silent, Filters(targets=frozenset({HOOK})))
    assert not matches(silent, Filters(json=(("$", '"not JSON"'),)))
    assert matches(silent, Filters(attempts_to=0))


def test_a_payload_that_is_nested_too_deeply_has_no_values() -> None:
    deep = replace(MESSAGE, payload=b'{"a":' * 5_000 + b"1" + b"}" * 5_000)
    assert not matches(deep, Filters(json=(("$..b", "1"),)))
    less = replace(MESSAGE, payload=b'{"a":' * 500 + b"1" + b"}" * 500)
    assert not matches(less, Filters(json=(("$..b", "1"),)))


def test_a_payload_that_is_a_json_text_is_not_read_twice() -> None:
    text = replace(MESSAGE, payload=json.dumps('{"kind": "gift"}').encode())
    assert not matches(text, Filters(json=(("$.kind", '"gift"'),)))
    assert matches(text, Filters(json=(("$", json.dumps('{"kind": "gift"}')),)))


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (Filters(json=(("kind", "1"),)), r"filters\.json\[0\]\.path: 'kind'.*starts with \$"),
        (Filters(json=(("$.a", "1"), ("$.b", "gift"))), r"filters\.json\[1\]\.equals: 'gift'.*JSON text"),
        (Filters(json=(("$[?@.a]", "1"),)), r"filters \(\?\) are not read"),
        (Filters(json=(("$..a..b", "1"),)), r"One \.\. is the most"),
        (Filters(json=(("$[*,*]", "1"),)), r"one in each pair of brackets"),
        (Filters(failed_from=Timestamp(2.0), failed_before=Timestamp(2.0)), r"filters\.failed_before"),
        (Filters(attempts_from=2, attempts_to=1), r"filters\.attempts_to.*at least attempts_from"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_refused_with_its_place(filters: Filters, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        Filter(filters)
