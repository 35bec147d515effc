"""Edits change what they name, and a message on which one cannot be made is refused as a whole (case R2)."""

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.replay.edits import Edited, Editor, Unedited
from tenantry.replay.model import Edit, EditKind

SET, REMOVE, RENAME, MOVE = EditKind.SET, EditKind.REMOVE, EditKind.RENAME, EditKind.MOVE
ORDER = b'{"id":7,"price":1.10,"lines":[{"sku":"a","n":1},{"sku":"b","n":2}],"kind":"gift"}'
HEADERS = {"region": "eu", "version": "2"}


def edited(*edits: Edit, payload: bytes = ORDER) -> Edited:
    found = Editor(edits).edit(payload, HEADERS)
    assert isinstance(found, Edited), found
    return found


def refused(*edits: Edit, payload: bytes = ORDER) -> str:
    found = Editor(edits).edit(payload, HEADERS)
    assert isinstance(found, Unedited), found
    return found.reason


def test_without_an_edit_of_the_payload_it_is_sent_byte_for_byte() -> None:
    spaced = b'{ "id" : 7 }'
    assert edited(payload=spaced) == Edited(spaced, HEADERS)
    assert edited(Edit(SET, "header:region", '"us"'), payload=b"\xff no JSON").payload == b"\xff no JSON"


def test_numbers_keep_every_digit() -> None:
    payload = b'{"a":1.10,"b":123456789012345678901234567890,"c":1}'
    assert edited(Edit(SET, "$.c", "0.30"), payload=payload).payload == payload[:-2] + b"0.30}"


def test_set_writes_where_the_path_leads_and_makes_its_last_name() -> None:
    found = edited(
        Edit(SET, "$.kind", '"card"'), Edit(SET, "$.new", '{"x":[1]}'), Edit(SET, "$.new.y", "null")
    )
    assert found.payload == ORDER[:-7] + b'"card","new":{"x":[1],"y":null}}'


def test_set_by_a_wildcard_gives_each_place_a_value_of_its_own() -> None:
    found = edited(Edit(SET, "$.lines[*].sku", '{"v":0}'), Edit(SET, "$.lines[0].sku.v", "1"))
    assert b'[{"sku":{"v":1},"n":1},{"sku":{"v":0},"n":2}]' in found.payload


def test_set_of_the_root_replaces_the_payload() -> None:
    assert edited(Edit(SET, "$", "[]")).payload == b"[]"


def test_remove_takes_out_every_place_that_the_path_finds() -> None:
    found = edited(Edit(REMOVE, "$.lines[*]"), Edit(REMOVE, "$.price"), Edit(REMOVE, "header:region"))
    assert found == Edited(b'{"id":7,"lines":[],"kind":"gift"}', {"version": "2"})
    nested = edited(Edit(REMOVE, "$..a"), payload=b'{"a":{"a":1},"b":[{"a":2},3]}')
    assert nested.payload == b'{"b":[{},3]}'


def test_rename_keeps_value_and_order() -> None:
    found = edited(Edit(RENAME, "$.lines[*].n", "count"), Edit(RENAME, "header:version", "schema"))
    assert b'[{"sku":"a","count":1},{"sku":"b","count":2}]' in found.payload
    assert found.headers == {"region": "eu", "schema": "2"}


def test_move_goes_between_payload_and_headers() -> None:
    found = edited(Edit(MOVE, "$.kind", "header:kind"), Edit(MOVE, "header:region", "$.region"))
    assert found.headers == {"version": "2", "kind": "gift"}
    assert found.payload == ORDER.replace(b'"kind":"gift"', b'"region":"eu"')


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Edit(REMOVE, "$.absent"), "$.absent is not there"),
        (Edit(REMOVE, "header:absent"), "header 'absent' is not there"),
        (Edit(SET, "$.absent.deeper", "1"), "$.absent.deeper is not there, and nothing that could hold it"),
        (Edit(SET, "$.lines[2]", "1"), "$.lines[2] is not there, and nothing that could hold it"),
        (Edit(SET, "$.absent[*]", "1"), "$.absent[*] is not there, and nothing that could hold it"),
        (Edit(RENAME, "$.absent", "x"), "$.absent is not there"),
        (Edit(RENAME, "$.id", "kind"), "something is called 'kind' there already"),
        (Edit(RENAME, "$.lines[0]", "x"), "$.lines[0] is an entry of a list, which has no name"),
        (Edit(RENAME, "header:region", "version"), "something is called 'version' there already"),
        (Edit(MOVE, "$.absent", "$.x"), "$.absent is not there"),
        (Edit(MOVE, "$.id", "$.kind"), "$.kind: something stands there already"),
        (Edit(MOVE, "$.lines", "$.lines.x"), "$.lines.x is not there, and nothing that could hold it"),
        (Edit(MOVE, "$.id", "header:id"), "what is to become the header 'id' is no text of one line"),
        (Edit(MOVE, "$.kind", "header:region"), "there is a header 'region' already"),
    ],
)
def test_r2_an_edit_that_cannot_be_made_says_why(edit: Edit, reason: str) -> None:
    assert refused(edit) == reason


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"<xml/>", "the payload is no JSON: Expecting value at character 0"),
        (b"\xff", "the payload is not UTF-8 text"),
        (b'{"a":1,"a":2}', "the payload gives a key twice in one object"),
        (b'{"a":NaN}', "the payload is no JSON: NaN is no number of JSON's"),
        (b"[" * 9_000 + b"]" * 9_000, "the payload is nested too deeply"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "the payload is nested too deeply"),
        (b'{"b":"\\ud800","a":1}', "the payload holds half of a surrogate pair, which is no text"),
        (b'{"a":1e99999999999999999999}', "the payload holds a number that is too large to be read"),
        (b'{"a":' + b"1" * 5_000 + b"}", "the payload holds a number that is too long to be read"),
    ],
)
def test_r2_a_payload_that_cannot_be_edited_without_loss_is_refused(payload: bytes, reason: str) -> None:
    assert refused(Edit(SET, "$..a", "1"), payload=payload).startswith(reason)


def test_one_edit_that_cannot_be_made_refuses_the_whole_message() -> None:
    assert refused(Edit(SET, "$.id", "8"), Edit(REMOVE, "$.absent")) == "$.absent is not there"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit(SET, "id", "1"), r"edits\[0\]\.at: 'id' .*header:NAME or a JSON path"),
        (Edit(SET, "$.id", "gift"), r"edits\[0\]\.value: 'gift' .*JSON text"),
        (Edit(SET, "header:x", "3"), r"edits\[0\]\.value: '3' .*a header holds text"),
        (Edit(SET, "header:x", '"a\\nb"'), r"edits\[0\]\.value: .*of one line"),
        (Edit(SET, "header:X", '"a"'), r"edits\[0\]\.at: 'X' .*lower case"),
        (Edit(REMOVE, "$"), r"edits\[0\]\.at: '\$' .*a place inside the payload"),
        (Edit(REMOVE, "$.a", "1"), r"edits\[0\]\.value: '1' .*a removal has no value"),
        (Edit(RENAME, "$.a", ""), r"edits\[0\]\.value: '' .*the new name"),
        (Edit(RENAME, "header:a", "b c"), r"edits\[0\]\.value: 'b c'"),
        (Edit(MOVE, "$.a[*]", "$.b"), r"edits\[0\]\.at: .*means one place"),
        (Edit(MOVE, "$.a", "$..b"), r"edits\[0\]\.value: .*means one place"),
    ],
)
def test_an_edit_that_can_never_be_made_is_refused_at_once(edit: Edit, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        Editor([edit])


def test_a_value_for_very_many_places_is_not_written_into_all_of_them() -> None:
    payload = b"[" + b"0," * 2_000 + b"0]"
    editor = Editor([Edit(EditKind.SET, "$[*]", '"' + "x" * 1_000 + '"')])
    made = editor.edit(payload, {})
    assert isinstance(made, Unedited)
    assert made.reason == "$[*] means 2,001 places, too many to set all of them to this value"
