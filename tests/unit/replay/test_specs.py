"""A spec that a person writes is read as it is meant, or refused with every fault and its place."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tenantry.config.validation import RegistryErrors
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.replay.model import Budget, Edit, EditKind, Filters, OnUnknown, ReplaySpec, SourceAddress
from tenantry.replay.specs import check_spec, decode_spec, spec_from_json, spec_from_toml

ACME = TenantId("acme")
WRITTEN = """
target = "https://example.com/hook"
on_unknown = "hold"
sample = 0.01
note = "after the outage"
[source]
kind = "rabbitmq"
place = "orders.dlq"
options = { id_field = "$.event.id" }
[filters]
error_classes = ["timeout", "http_503"]
failed_from = 2026-11-30T08:00:00Z
failed_before = "2026-11-30T09:00:00+00:00"
headers = { Region = "eu" }
json = [{ path = "$.order.kind", equals = "gift" }, { path = "$.n", equals_json = "1.10" }]
[[edits]]
kind = "set"
at = "$.order.version"
value = 2
[[edits]]
kind = "remove"
at = "header:x-old"
[budget]
messages = 10_000
until = 1_800_000_000
"""


def test_a_spec_is_read_as_a_person_writes_it() -> None:
    eight = datetime(2026, 11, 30, 8, tzinfo=UTC).timestamp()
    assert spec_from_toml(ACME, WRITTEN) == ReplaySpec(
        tenant=ACME,
        source=SourceAddress("rabbitmq", "orders.dlq", "default", {"id_field": "$.event.id"}),
        target=Target("https://example.com/hook"),
        filters=Filters(
            error_classes=frozenset({"timeout", "http_503"}),
            failed_from=eight,  # type: ignore[arg-type]
            failed_before=eight + 3_600,  # type: ignore[arg-type]
            headers={"region": "eu"},
            json=(("$.order.kind", '"gift"'), ("$.n", "1.10")),
        ),
        edits=(Edit(EditKind.SET, "$.order.version", "2"), Edit(EditKind.REMOVE, "header:x-old")),
        on_unknown=OnUnknown.HOLD,
        sample=0.01,
        budget=Budget(messages=10_000, until=1_800_000_000.0),  # type: ignore[arg-type]
        note="after the outage",
    )


def test_only_the_source_must_be_named() -> None:
    spec = spec_from_json(ACME, '{"source": {"kind": "dead_letters"}}')
    assert spec == ReplaySpec(tenant=ACME, source=SourceAddress("dead_letters"))


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ({}, r"source\.kind: a missing value is not accepted; expected one of dead_letters, jsonl"),
        ({"source": {"kind": "rabitmq"}}, r"source\.kind: 'rabitmq'.*Did you mean 'rabbitmq'"),
        ({"sampel": 0.1}, r"unknown key 'sampel'.*Did you mean 'sample'"),
        ({"tenant": "other"}, r"unknown key 'tenant'"),
        ({"source": {"kind": "jsonl", "path": "x"}}, r"source: unknown key 'path'.*"),
        ({"filters": {"error_class": ["x"]}}, r"filters: unknown key 'error_class'.*'error_classes'"),
        ({"filters": {"error_classes": "timeout"}}, r"filters\.error_classes: 'timeout'.*a list"),
        ({"filters": {"targets": ["http://a b"]}}, r"filters\.targets\[0\]"),
        ({"filters": {"failed_from": "yesterday"}}, r"filters\.failed_from: 'yesterday'.*2026-11-30T08"),
        ({"filters": {"failed_from": "2026-11-30T08:00:00"}}, r"filters\.failed_from.*with its zone"),
        ({"filters": {"attempts_from": 3, "attempts_to": 1}}, r"filters\.attempts_to.*at least"),
        ({"filters": {"json": [{"path": "a", "equals": 1}]}}, r"filters\.json\[0\]\.path: 'a'"),
        ({"filters": {"json": [{"path": "$.a"}]}}, r"filters\.json\[0\]\.equals: a missing value"),
        ({"filters": {"json": [{"path": "$.a", "equal": 1}]}}, r"unknown key 'equal'.*'equals'"),
        ({"filters": {"headers": {"a b": "x"}}}, r"filters\.headers\[\"a b\"\].*a header's name"),
        ({"filters": {"json": [{"path": "$.a", "equals": 1, "equals_json": "2"}]}}, r"equals_json.*not both"),
        ({"edits": [{"kind": "set", "at": "$.a", "value": 1, "value_json": "2"}]}, r"value_json.*not both"),
        ({"filters": {"headers": {f"h{n}": "x" for n in range(101)}}}, r"filters\.headers.*at most 100 keys"),
        ({"filters": {"headers": {"a": "\ud800"}}}, r"filters\.headers\.a.*surrogate"),
        ({"source": {"kind": "jsonl", "options": {"\ud800": "x"}}}, r"source\.options.*surrogate"),
        ({"note": "\ud800"}, r"note.*surrogate"),
        ({"budget": {"until": "2026-12-01T00:00:00Z\x00"}}, r"budget\.until.*without NUL"),
        ({"edits": [{"kind": "rename", "at": "$.a", "value": "\ud800"}]}, r"edits\[0\]\.value.*surrogate"),
        ({"edits": [{"kind": "sett", "at": "$.a"}]}, r"edits\[0\]\.kind: 'sett'.*Did you mean 'set'"),
        ({"edits": [{"kind": "set", "at": "$.a"}]}, r"edits\[0\]\.value: a missing value"),
        ({"edits": [{"kind": "move", "at": "$.a", "value": "b"}]}, r"edits\[0\]\.value: 'b'.*header:NAME"),
        ({"edits": [{"kind": "set", "at": "$.a", "value": float("nan")}]}, r"edits\[0\]\.value: nan"),
        ({"budget": {"messages": 0}}, r"budget\.messages: 0 .*from 1 to"),
        ({"sample": 0}, r"sample: 0 .*above 0, at most 1"),
        ({"park_after": 101}, r"park_after: 101 .*from 1 to 100"),
        ({"again": "yes"}, r"again: 'yes' .*true or false"),
        ({"note": "x" * 501}, r"note: .*at most 500 characters"),
    ],
)
def test_every_bad_value_is_a_clear_error_with_its_path(obj: dict[str, object], words: str) -> None:
    with pytest.raises(RegistryErrors, match=words):
        decode_spec(ACME, {"source": {"kind": "dead_letters"}} | obj if obj else obj)


def test_all_faults_of_a_document_are_told_at_once() -> None:
    with pytest.raises(RegistryErrors) as caught:
        decode_spec(ACME, {"sample": 2, "budget": {"messages": -1}, "edits": [{"kind": "set"}, 3]})
    assert [error.path for error in caught.value.errors] == [
        "source.kind",
        "edits[0].at",
        "edits[1]",
        "budget.messages",
        "sample",
    ]


def test_text_that_is_no_document_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidValue, match="line 1, column"):
        spec_from_json(ACME, "{sample}")
    with pytest.raises(InvalidValue, match="line 1"):
        spec_from_toml(ACME, "sample = 1 2")


def test_a_spec_made_by_hand_is_held_to_the_same_rules() -> None:
    check_spec(ReplaySpec(tenant=ACME, source=SourceAddress("dead_letters")))
    with pytest.raises(RegistryErrors, match="park_after"):
        check_spec(ReplaySpec(tenant=ACME, source=SourceAddress("dead_letters"), park_after=0))


@pytest.mark.parametrize(
    "text", ['{"note": "\\ud800"}', '{"\\uDFFF": 1}', '{"source": {"options": {"a": "\\ud83d x"}}}']
)
def test_half_a_surrogate_pair_in_json_is_refused_before_it_can_be_told_or_kept(text: str) -> None:
    with pytest.raises(InvalidValue, match="surrogate") as refused:
        spec_from_json(ACME, text)
    str(refused.value).encode()


def test_an_escaped_pair_is_one_character() -> None:
    spec = spec_from_json(ACME, '{"source": {"kind": "dead_letters"}, "note": "\\ud83d\\ude00 \\\\ud800"}')
    assert spec.note == "\U0001f600 \\ud800"


def test_a_spec_too_long_to_be_read_with_each_renewal_is_refused() -> None:
    edit = Edit(EditKind.SET, "$.a", '"' + "x" * 70_000 + '"')
    spec = ReplaySpec(tenant=ACME, source=SourceAddress("dead_letters"), edits=(edit,))
    with pytest.raises(InvalidValue, match=r"at most 65,536"):
        check_spec(spec)


def test_paths_that_walk_through_every_payload_are_few() -> None:
    edits = tuple(Edit(EditKind.REMOVE, f"$.list[*].n{n}") for n in range(11))
    spec = ReplaySpec(tenant=ACME, source=SourceAddress("dead_letters"), edits=edits)
    with pytest.raises(InvalidValue, match="11 paths that mean many places"):
        check_spec(spec)
    check_spec(replace(spec, edits=(*edits[:10], Edit(EditKind.REMOVE, "$.one"))))


@pytest.mark.parametrize("key", ["to", "name", "new_name"])
def test_an_unknown_key_of_an_edit_says_where_the_new_name_goes(key: str) -> None:
    text = f"[source]\nkind = 'dead_letters'\n[[edits]]\nkind = 'rename'\nat = '$.a'\n{key} = 'b'\n"
    with pytest.raises(RegistryErrors, match=f"unknown key '{key}'.*The new name of a rename.*as value"):
        spec_from_toml(TenantId("acme"), text)
