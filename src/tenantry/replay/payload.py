"""A payload as JSON: read, written and compared without loss. Pure.

Numbers are kept as they are written: ``1.10`` stays ``1.10``, and a long number loses no digit. What would be
changed by reading and writing it, such as a key that an object has twice, is refused.
"""

import json
from decimal import Decimal
from typing import Final

import msgspec

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


class NotJson(ValueError):
    """A payload cannot be read as JSON, or not without losing something of it; the text says why."""


def read(payload: bytes) -> object:
    """The document. Raises :class:`NotJson` for what is no JSON (RFC 8259), gives a key twice in one object,
    or is nested too deeply. O(length)."""
    try:
        return json.loads(
            payload.decode(),
            parse_float=_exactly,
            parse_constant=_no_constant,
            object_pairs_hook=_each_key_once,
        )
    except RecursionError:
        raise NotJson("the payload is nested too deeply") from None
    except UnicodeDecodeError:
        raise NotJson("the payload is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"the payload is no JSON: {error.msg} at character {error.pos}") from None
    except NotJson:
        raise
    except ValueError:  # a number of more digits than Python reads
        raise NotJson("the payload holds a number that is too long to be read") from None


def written(document: object) -> bytes:
    """The document as compact JSON; ``read(written(x)) == x``. Raises :class:`NotJson` for one nested too
    deeply, or with text that has no UTF-8. O(size)."""
    try:
        return _ENCODER.encode(document)
    except RecursionError:
        raise NotJson("the payload is nested too deeply") from None
    except UnicodeEncodeError:
        raise NotJson("the payload holds half of a surrogate pair, which is no text") from None


def equal(one: object, other: object) -> bool:
    """Whether two documents are the same value: numbers by their value, true is not 1, the order of an
    object's names is no matter. Raises :class:`RecursionError` as deep documents do. O(size)."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJson("the payload gives a key twice in one object")
    return found


def _exactly(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite():
        raise NotJson("the payload holds a number that is too large to be read")
    return number


def _no_constant(text: str) -> object:
    raise NotJson(f"the payload is no JSON: {text} is no number of JSON's")
