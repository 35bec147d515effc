"""A path leads to one value or to none; what could lead to many is refused."""

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.replay.json_path import MISSING, find, parse

VALUE = {"event": {"id": 7, "a b": [1, {"it's": None}]}, "größe": "x"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$", VALUE),
        ("$.event.id", 7),
        ("$['event'][\"id\"]", 7),
        ("$.event['a b'][0]", 1),
        ("$.event['a b'][-1]['it\\'s']", None),
        ("$.größe", "x"),
        ("$.event['a b'][2]", MISSING),
        ("$.event['a b'][-3]", MISSING),
        ("$.event.id.deeper", MISSING),
        ("$.event[0]", MISSING),
        ("$.absent", MISSING),
    ],
)
def test_a_path_leads_to_its_value_or_to_nothing(text: str, found: object) -> None:
    assert find(VALUE, parse(text, path="p")) == found


@pytest.mark.parametrize(
    "text",
    ["", "event.id", "$.", "$..id", "$.*", "$[*]", "$[0:2]", "$[?@.x]", "$['x", "$[01]", "$.a b", "$.1"],
)
def test_what_is_no_single_place_is_refused_with_where_and_why(text: str) -> None:
    with pytest.raises(
        InvalidValue, match=r"source\.options\.id_field: .* is not accepted; expected a JSON path"
    ):
        parse(text, path="source.options.id_field")
