"""Payloads are read and written without loss; edits do what they say or refuse; a spec is read as written."""

import json
from decimal import Decimal
from string import ascii_lowercase
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.replay.edits import Edited, Editor, Unedited
from tenantry.replay.filters import Filter
from tenantry.replay.json_path import find, json_path
from tenantry.replay.model import (
    Budget,
    Edit,
    EditKind,
    Filters,
    Message,
    OnUnknown,
    ReplaySpec,
    SourceAddress,
)
from tenantry.replay.payload import NotJson, equal, read, written
from tenantry.replay.specs import KINDS, decode_spec, encode_spec, spec_from_json

names = st.text("abc", min_size=1, max_size=2)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
numbers = st.integers() | st.decimals(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | texts
documents = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner))
paths = st.lists(st.sampled_from([".a", ".b", ".c", "[0]", "[-1]", "[*]", ".*"]), max_size=3).map(
    lambda steps: "$" + "".join(steps)
)
edits = st.one_of(
    st.builds(lambda at, value: Edit(EditKind.SET, at, written(value).decode()), paths, documents),
    st.builds(lambda at: Edit(EditKind.REMOVE, at + ".a"), paths),
    st.builds(lambda at, name: Edit(EditKind.RENAME, at + ".b", name), paths, names),
    st.builds(
        lambda at, to: Edit(EditKind.MOVE, at, to),
        st.sampled_from(["$.a", "$.b.c", "$[0]", "$.a[-1]", "header:x"]),
        st.sampled_from(["$.z", "$.a.z", "$[1]", "header:x"]),
    ),
)


@given(documents)
def test_what_is_written_is_read_back_and_written_alike(document: Any) -> None:
    once = written(document)
    assert equal(read(once), document)
    assert written(read(once)) == once


@given(documents, documents)
def test_equality_is_that_of_json(one: Any, other: Any) -> None:
    def plain(value: Any) -> Any:  # numbers by value, booleans apart from them
        match value:
            case bool() | None:
                return str(value), "word"
            case int() | Decimal():
                return Decimal(value)
            case list():
                return [plain(each) for each in value]
            case dict():
                return {key: plain(each) for key, each in value.items()}
        return value

    assert equal(one, other) == (plain(one) == plain(other))
    assert equal(one, one)


@given(documents, paths)
def test_a_path_of_one_place_finds_what_its_steps_find(document: Any, text: str) -> None:
    path = json_path(text, path="p")
    values = path.values(document)
    if path.singular is not None:
        found = find(document, path.singular)
        assert values == ([found] if values else [])
        assert len(values) <= 1


@given(documents, st.lists(edits, max_size=4))
def test_edits_give_a_sound_payload_or_refuse_and_never_raise(document: Any, some: list[Edit]) -> None:
    found = Editor(some).edit(written(document), {})
    if isinstance(found, Edited):
        read(found.payload)
    else:
        assert found.reason


@given(st.binary(max_size=40), st.lists(edits, min_size=1, max_size=3))
def test_edits_of_any_bytes_refuse_or_change_and_never_raise(payload: bytes, some: list[Edit]) -> None:
    found = Editor(some).edit(payload, {})
    try:
        read(payload)
    except NotJson:
        assert isinstance(found, Unedited)


@given(documents, paths, documents)
def test_after_a_set_the_value_stands_at_every_place_of_the_path(
    document: Any, text: str, value: Any
) -> None:
    found = Editor([Edit(EditKind.SET, text, written(value).decode())]).edit(written(document), {})
    if isinstance(found, Edited):
        # Set at a wildcard can change what the path finds; each of the places found before has the value.
        singular = json_path(text, path="p").singular
        if singular is not None:
            assert equal(find(read(found.payload), singular), value)


@given(documents, paths)
def test_a_filter_means_a_message_just_when_a_value_at_its_path_is_the_one(document: Any, text: str) -> None:
    message = Message(id="1", payload=written(document))
    for value in json_path(text, path="p").values(document):
        assert Filter(Filters(json=((text, written(value).decode()),))).matches(message)
    wanted = Filter(Filters(json=((text, '"a value that is nowhere"'),)))
    assert not wanted.matches(message)


targets = st.sampled_from(["https://a.example/x", "handler:work", "billing"]).map(Target)
times = st.floats(0, 2e11).map(Timestamp)
small_texts = st.text(ascii_lowercase, min_size=1, max_size=8)


def ranges(one: Any) -> Any:
    return st.tuples(st.none() | one, st.none() | one).filter(lambda pair: None in pair or pair[0] < pair[1])


@st.composite
def specs(draw: st.DrawFn) -> ReplaySpec:
    failed, tried = draw(ranges(times)), draw(ranges(st.integers(0, 1_000)))
    conditions = draw(st.lists(st.tuples(paths, documents.map(lambda d: written(d).decode())), max_size=3))
    return ReplaySpec(
        tenant=TenantId("acme"),
        source=SourceAddress(
            draw(st.sampled_from(KINDS)), draw(texts), "default", draw(st.dictionaries(texts, texts))
        ),
        target=draw(st.none() | targets),
        filters=Filters(
            error_classes=draw(st.frozensets(small_texts)),
            targets=draw(st.frozensets(targets)),
            failed_from=failed[0],
            failed_before=failed[1],
            headers=draw(st.dictionaries(small_texts, texts)),
            json=tuple(conditions),
            attempts_from=tried[0],
            attempts_to=tried[1],
        ),
        edits=tuple(draw(st.lists(edits, max_size=3))),
        on_unknown=draw(st.sampled_from(OnUnknown)),
        again=draw(st.booleans()),
        park_after=draw(st.integers(1, 100)),
        class_after=draw(st.integers(1, 10_000)),
        budget=Budget(
            messages=draw(st.none() | st.integers(1, 10**12)),
            running_for=draw(st.none() | st.floats(1, 1e6)),
            until=draw(st.none() | times),
        ),
        sample=draw(st.none() | st.floats(0, 1, exclude_min=True)),
        dry_run=draw(st.booleans()),
        note=draw(texts),
    )


@settings(max_examples=40)
@given(specs())
def test_a_spec_is_read_as_it_was_written(spec: ReplaySpec) -> None:
    assert decode_spec(spec.tenant, encode_spec(spec)) == spec
    assert spec_from_json(spec.tenant, json.dumps(encode_spec(spec))) == spec
