"""The server's own writing of trees is read as it was meant."""

import pytest

from tenantry.kernel.errors import InvariantBroken
from tenantry.rls.nodes import abridged, parse


def test_fields_lists_and_nothing() -> None:
    assert parse("{A :one 1 :none <> :many (1 {B :x y}) :set (b 8 9)}") == {
        "": "A",
        "one": "1",
        "none": None,
        "many": ["1", {"": "B", "x": "y"}],
        "set": ["b", "8", "9"],
    }


def test_a_datum_takes_the_place_of_its_length() -> None:
    assert parse("{CONST :constvalue 5 [ 20 0 0 0 -61 ] :location 7}") == {
        "": "CONST",
        "constvalue": b"\x14\x00\x00\x00\xc3",
        "location": "7",
    }


def test_names_with_spaces_braces_colons_and_quotes() -> None:
    assert parse(r'{A :name my\ \{odd\}\ name :colnames ("a \"b\"" ":c") :next :field}') == {
        "": "A",
        "name": "my {odd} name",
        "colnames": ['a "b"', ":c"],
        "next": ":field",
    }


@pytest.mark.parametrize("text", ["", "{A :x 1", "{A}}", "{A} {B}"])
def test_what_no_server_writes_is_refused(text: str) -> None:
    with pytest.raises(InvariantBroken):
        parse(text)


def test_depth_is_no_matter() -> None:
    deep = "{A :x " * 5000 + "1" + "}" * 5000
    assert isinstance(parse(deep), dict)


def test_brackets_may_stand_in_names_and_a_datum_is_told_from_them() -> None:
    assert parse("{A :name a[1] :value 2 [ 1 -1 ] :last [x}") == {
        "": "A",
        "name": "a[1]",
        "value": b"\x01\xff",
        "last": "[x",
    }


def test_an_abridged_tree_lacks_what_is_zero_false_or_empty_and_nothing_else() -> None:
    text = (
        "{A :zero 0 :none <> :no false :yes true :ten 10 :inputcollid 100 :set (b)"
        " :args ({B :location -1 :x 1})}"
    )
    assert parse(abridged(text)) == {"": "A", "yes": "true", "ten": "10", "args": [{"": "B", "x": "1"}]}


def test_what_looks_like_a_default_inside_a_name_stays() -> None:
    text = r'{A :name odd\ :x\ 0 :listed ("b\ :y\ 0") :z 0}'
    assert parse(abridged(text)) == {"": "A", "name": "odd :x 0", "listed": ["b :y 0"]}
