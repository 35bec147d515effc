"""Whatever is handed in, a registry comes out or a usage error that can be printed: never a traceback."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registries import registries

from tenantry.config.api_keys import parse_api_key
from tenantry.config.documents import decode_document, decode_tier
from tenantry.config.registry import FORMATS, Format, Registry, encode_registry, parse_registry
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.kernel.tenant import TenantId, TierName

formats: st.SearchStrategy[Format] = st.sampled_from(FORMATS)  # type: ignore[arg-type]
_LETTERS = (
    "tenant tier tiers tenants floor gold free weight cap bound nan inf none null true false kind Component",
    "metadata name spec targets defaults secret whsec_ url https://x [ ] { } = : , \" ' # - --- & * ! ? | >",
    "0 1 -1 1.5 1e999 2020-01-01 !!int !!binary !!set !!omap << . é \x00 \ufeff \ud800",
)
words = st.sampled_from([*(word for line in _LETTERS for word in line.split(" ")), "\n", "\t", "\r", "\n  "])
almost = st.lists(words | st.just(" ") | st.just("\n"), max_size=40).map("".join)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.text(max_size=4) | st.sampled_from(
    [
        "tier",
        "weight",
        "cap",
        "bound",
        "targets",
        "defaults",
        "secret",
        "url",
        "timeout_for",
        "shedding",
        "pool",
    ]
)
objects = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def only_usage_errors(call: Callable[[], object]) -> None:
    try:
        call()
    except UsageError as error:
        assert str(error)
        str(error).encode("utf-8")  # no lone surrogate, so that any terminal and any log can show it


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(st.text() | st.binary() | almost, formats)
def test_any_text_gives_a_registry_or_a_usage_error(text: str | bytes, format: Format) -> None:
    only_usage_errors(lambda: parse_registry(text, format=format))


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(objects)
def test_any_json_value_gives_a_registry_or_a_usage_error(value: object) -> None:
    for text in (
        json.dumps(value),
        json.dumps({"tiers": value}),
        json.dumps({"tenants": value, "tiers": value}),
    ):
        only_usage_errors(lambda text=text: parse_registry(text, format="json"))  # type: ignore[misc]


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(objects)
def test_any_json_value_as_a_catalogue_gives_a_registry_or_a_usage_error(value: object) -> None:
    entity = {"kind": "Component", "metadata": value, "spec": value}
    for text in (json.dumps([value, entity]), json.dumps({"items": value})):
        only_usage_errors(lambda text=text: parse_registry(text, format="backstage"))  # type: ignore[misc]


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(objects)
def test_any_object_as_a_tier_or_a_document_gives_one_or_a_usage_error(value: object) -> None:
    only_usage_errors(lambda: decode_tier("t", value))
    only_usage_errors(lambda: decode_document(TenantId("t"), TierName("free"), value))
    only_usage_errors(lambda: decode_document(TenantId("t"), TierName("free"), {"targets": {"x": value}}))


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(registries(), st.data())
def test_a_valid_registry_cut_or_changed_anywhere_gives_a_registry_or_a_usage_error(
    registry: Registry, data: st.DataObject
) -> None:
    text = json.dumps(encode_registry(registry))
    cut = data.draw(st.integers(0, len(text)))
    put = data.draw(words)
    only_usage_errors(lambda: parse_registry(text[:cut] + put + text[cut:], format="json"))
    only_usage_errors(lambda: parse_registry(text[:cut], format="json"))


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(st.text() | st.binary())
def test_any_text_is_an_api_key_or_an_invalid_value_that_does_not_show_it(text: str | bytes) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_api_key(text)
    assert "a key (not shown)" in str(caught.value)
