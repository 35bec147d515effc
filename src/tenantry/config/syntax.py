"""From bytes to plain objects: the faults that have a line and a column rather than a path. Pure.

The parsers are the standard library's; their complaints are translated, and what they let pass although it
loses data (a key given twice, NaN) is refused.
"""

import json
import re
import tomllib

from tenantry.config.validation import Described, at, refused
from tenantry.kernel.errors import InvalidValue

BOM = "\ufeff"
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")
_THIS = Described("this text")
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def unreadable(place: str, accepted: str, why: str) -> InvalidValue:
    """The error for text that is not in its format at all."""
    return InvalidValue(place, _THIS, accepted, why)


def decoded(
    text: str | bytes, *, may_have_bom: bool = False, wanted: str = "a registry of tiers or tenants"
) -> str:
    """The document's text, not empty and without NUL. A byte order mark is dropped where it may stand.

    Raises :class:`InvalidValue` naming the byte, or the line and column.
    """
    found = _from_utf8(text) if isinstance(text, bytes) else text
    if not isinstance(found, str):
        raise refused("document", found, "text or bytes")
    if found.startswith(BOM):
        if not may_have_bom:
            raise unreadable(
                "line 1, column 1", "UTF-8 text without a byte order mark", "Save it without one."
            )
        found = found[len(BOM) :]
    if "\x00" in found:
        raise unreadable(
            place_of(found, found.index("\x00")), "text without NUL characters", "Is this a binary file?"
        )
    if not found.strip():
        raise InvalidValue("document", Described("an empty document"), wanted)
    return found


def _from_utf8(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        wide = text[:2] in {b"\xff\xfe", b"\xfe\xff"}
        hint = "It looks like UTF-16: save it as UTF-8." if wide else "Save it as UTF-8."
        raise unreadable(f"byte {error.start}", "UTF-8 text", hint) from None


def place_of(text: str, index: int) -> str:
    """``line 3, column 5`` of the character at ``index``; both count from 1."""
    before = text[:index]
    return f"line {before.count(chr(10)) + 1}, column {index - before.rfind(chr(10))}"


def parse_toml(text: str) -> object:
    """A TOML 1.0 document. Raises :class:`InvalidValue` with line and column."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _too_deep("TOML") from None
    except ValueError as error:  # TOMLDecodeError, and numbers of more digits than Python reads
        found = _TOML_PLACE.search(str(error))
        place = f"line {found[1]}, column {found[2]}" if found and found[1] else "end of document"
        why = _TOML_PLACE.sub("", str(error)).replace("Cannot overwrite a value", "A key stands twice")
        raise unreadable(place if found else "document", "TOML", _sentence(why)) from None


def parse_json(text: str) -> object:
    """A JSON document (RFC 8259) with each key once, whose text can be stored: without halves of surrogate
    pairs. Raises :class:`InvalidValue`, with line and column where there are such."""
    try:
        found = json.loads(text, object_pairs_hook=_each_key_once, parse_constant=_no_constant)
    except RecursionError:
        raise _too_deep("JSON") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise unreadable(place, "JSON", _sentence(error.msg)) from None
    except ValueError as error:  # numbers of more digits than Python reads
        raise unreadable("document", "JSON", _sentence(str(error))) from None
    if _HALF_ESCAPED.search(text) and _holds_half(found):
        raise unreadable("document", "JSON of whole characters", "An escape is half of a surrogate pair.")
    return found


def _holds_half(document: object) -> bool:
    """Whether any key or text in it has half of a surrogate pair, which is no character. O(document)."""
    left = [document]
    while left:
        match left.pop():
            case str(text) if _HALF.search(text):
                return True
            case dict(table):
                left += [*table, *table.values()]
            case list(entries):
                left += entries
    return False


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: set[str] = set()
    twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    raise unreadable(
        at("", twice) or "document", "JSON with each key once in its table", "This key stands twice."
    )


def _no_constant(text: str) -> object:
    raise refused("document", Described(text), "JSON, whose numbers are finite")


def _too_deep(language: str) -> InvalidValue:
    return unreadable("document", language, "It is nested too deeply to be a registry.")


def _sentence(text: str) -> str:
    return text if text.endswith(".") else text + "."
