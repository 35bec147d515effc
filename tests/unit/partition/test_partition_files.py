"""Layouts and traffic as people write them."""

import pytest

from tenantry.config.model import TenantDocument
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.partition import (
    History,
    Layout,
    Spread,
    encode_history,
    parse_history,
    parse_traffic,
    spreads_by_tier,
)

WHOLE = """
[[layouts]]
effective_from = 2023-11-14T22:13:20Z
partitions = 32
default_spread = 2
slots = "jump"
reserved = [30, 31]
spreads = { acme = 4, globex = { partitions = 3, slots = "modulo" } }
pins = { initech = [7] }
states = { 5 = "draining" }
"""


def test_a_file_says_all_that_a_layout_can_say() -> None:
    layout = parse_history(WHOLE).newest
    assert layout == Layout(
        32,
        {"acme": 4, "globex": Spread(3, "modulo")},
        1_700_000_000,
        2,
        "jump",
        (30, 31),
        {"initech": [7]},
        {5: "draining"},
    )


def test_a_history_is_read_as_it_was_written() -> None:
    import json

    history = parse_history(WHOLE)
    assert parse_history(json.dumps(encode_history(history)), format="json") == history


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[layouts]]\npartition = 3", "Did you mean 'partitions'"),
        ("[[layouts]]\nslots = 'jump'", "layouts\\[0\\].partitions"),
        ("[[layouts]]\npartitions = 4\nspreads = {a = 0}", "layouts\\[0\\].spreads.a"),
        ("[[layouts]]\npartitions = 4\nspreads = {a = {}}", "layouts\\[0\\].spreads.a.partitions"),
        ("[[layouts]]\npartitions = 4\nspreads = 3", "layouts\\[0\\].spreads"),
        ("[[layouts]]\npartitions = '4'", "a count, or a list"),
        ("[[layouts]]\npartitions = 4\neffective_from = 2026-01-01T00:00:00", "zone"),
        ("layouts = 3", "at least one layout"),
        ("[[layouts", "TOML"),
    ],
)
def test_a_slip_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        parse_history(text)


def test_a_tenants_tier_gives_its_spread_unless_the_layout_does() -> None:
    documents = [
        TenantDocument(TenantId(each), TierName(tier))
        for each, tier in [("a", "gold"), ("b", "gold"), ("c", "basic"), ("d", "gold")]
    ]
    layout = spreads_by_tier(Layout(16, {"b": 2}, pins={"d": [3]}), documents, {"gold": 8})
    assert dict(layout.spreads) == {"a": 8, "b": 2}


def test_traffic_is_read_from_csv_and_json_lines_alike() -> None:
    expected = {"a": 5.0, "b": 2.0}
    assert parse_traffic("tenant,rate\na,2\nb,2\na,3\n") == expected
    assert parse_traffic('{"tenant":"a","messages":5}\n\n{"tenant":"b","messages":2}\n') == expected
    assert parse_traffic("tenant\n" + "a\n" * 5 + "b\nb\n") == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("who,rate\na,2\n", "columns tenant"),
        ("tenant,rate\na,fast\n", "line 2: rate"),
        ("tenant,rate\na,-1\n", "line 2: rate"),
        ("tenant,rate\na,nan\n", "line 2: rate"),
        ("tenant,rate\n,3\n", "line 2: tenant"),
        ('{"tenant":"a"}\nnothing\n', "line 2"),
        ("tenant,rate\na,0\n", "some traffic"),
        ("", "empty"),
    ],
)
def test_traffic_that_cannot_be_read_is_told_by_its_line(text: str, told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        parse_traffic(text)


def test_a_history_given_as_one_layout_is_that_layout() -> None:
    assert History.of(Layout(4)).newest == Layout(4)


def test_what_is_missing_from_a_file_is_named_for_what_the_file_is() -> None:
    with pytest.raises(InvalidValue, match=r"empty document .* at least one \[\[layouts\]\]"):
        parse_history("")
    with pytest.raises(InvalidValue, match=r"empty document .* tenants and their rates"):
        parse_traffic("\n")
    with pytest.raises(InvalidValue, match=r"left out twice .* Only the first layout may"):
        parse_history("[[layouts]]\npartitions = 4\n[[layouts]]\npartitions = 8\n")


def test_a_time_in_json_is_text_and_means_what_it_means_in_toml() -> None:
    text = '{"layouts": [{"effective_from": "2023-11-14T22:13:20Z", "partitions": 32}]}'
    assert parse_history(text, format="json").newest.effective_from == 1_700_000_000


@pytest.mark.parametrize("moment", ["2023-11-14T22:13:20", "soon"])
def test_a_time_in_json_without_a_zone_or_that_is_none_is_refused(moment: str) -> None:
    text = f'{{"layouts": [{{"effective_from": "{moment}", "partitions": 32}}]}}'
    with pytest.raises(InvalidValue, match=r"layouts\[0\]\.effective_from.*a time with its zone"):
        parse_history(text, format="json")


def test_traffic_that_is_no_csv_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidValue, match=r"line 1.*field limit"):
        parse_traffic("tenant,rate\n" + "a" * 200_000 + ",1\n")


def test_rates_that_add_up_to_no_number_are_refused() -> None:
    with pytest.raises(InvalidValue, match="adds up to a number"):
        parse_traffic("tenant,rate\na,1e308\nb,1e308\n")
