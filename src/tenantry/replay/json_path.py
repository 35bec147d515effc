"""Where in a JSON value something stands: ``$.event.id``, ``$['a b'][0]``. Pure.

Of RFC 9535 the *singular queries* are read: names and indices, which lead to one value at most. Wildcards,
slices, descendants and filters are refused: a field of a message has one place.
"""

import re
from typing import Final

from tenantry.kernel.errors import InvalidValue

Steps = tuple[str | int, ...]
"""A name (a member of an object) or an index (of an array, negative from its end) each; () is the whole."""


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()
"""What stands where there is nothing: null is a value."""

_ACCEPTED = "a JSON path of names and indices, like $.event.id or $['event id'][0]"
_STEP = re.compile(
    r"\.(?P<name>[^\W\d]\w*)"
    r"|\[(?P<index>0|-?[1-9][0-9]{0,8})\]"
    r"|\['(?P<single>(?:[^'\\\x00-\x1f]|\\['\\])*)'\]"
    r'|\["(?P<double>(?:[^"\\\x00-\x1f]|\\["\\])*)"\]'
)
_ESCAPED = re.compile(r"\\(.)")


def parse(text: str, *, path: str) -> Steps:
    """The steps of ``text``. Raises :class:`InvalidValue`, naming ``path``. O(length)."""
    if not text.startswith("$"):
        raise InvalidValue(path, text, _ACCEPTED, "It starts with $, the whole value.")
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            raise InvalidValue(path, text, _ACCEPTED, f"What stands from character {at + 1} on is neither.")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def find(value: object, steps: Steps) -> object:
    """What stands at ``steps`` in a decoded JSON value, or :data:`MISSING`. O(steps)."""
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            inside = isinstance(value, list) and -len(value) <= step < len(value)
            value = value[step] if inside and isinstance(value, list) else MISSING
    return value


def _step(match: re.Match[str]) -> str | int:
    if match["index"] is not None:
        return int(match["index"])
    if match["name"] is not None:
        return match["name"]
    quoted = match["single"] if match["single"] is not None else match["double"]
    return _ESCAPED.sub(r"\1", quoted)
