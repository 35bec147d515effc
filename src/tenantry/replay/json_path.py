"""Where in a JSON document something stands: ``$.event.id``, ``$.items[*].sku``. Pure.

Paths are RFC 9535's, read by a library that keeps to it and compiled once. A tenant's path runs in processes
that serve everybody: so a path whose cost a tenant could blow up is refused. Allowed are names, indexes,
slices and wildcards, one in each pair of brackets, and one ``..``; the cost is O(size of the document times
its depth). Filter expressions (``?``) are refused: they hold regular expressions, and can ask for the whole
document at each node.
"""

from typing import Final

from tenantry.kernel.errors import InvalidValue, MissingExtra

try:
    from jsonpath import JSONPath, JSONPathEnvironment
    from jsonpath.exceptions import JSONPathError
    from jsonpath.segments import JSONPathRecursiveDescentSegment
    from jsonpath.selectors import IndexSelector, NameSelector, SliceSelector, WildcardSelector
except ModuleNotFoundError:
    raise MissingExtra("replay", "a JSON path") from None

Steps = tuple[str | int, ...]
"""Names (of an object's members) and indexes (of a list, negative from its end) from the root; () is the
root itself."""

LONGEST_PATH: Final = 255
_ACCEPTED: Final = "a JSON path (RFC 9535), such as $.order.id or $.items[*].sku"
_ONE_PLACE: Final = "a JSON path of names and indexes, such as $.event.id or $['event id'][0]"
_ENVIRONMENT: Final = JSONPathEnvironment(strict=True)
_SELECTORS: Final = (NameSelector, IndexSelector, SliceSelector, WildcardSelector)


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()
"""What stands where there is nothing: null is a value."""


def parse(text: str, *, path: str) -> Steps:
    """The steps of ``text``, which leads to one value at most. O(length).

    Raises :class:`InvalidValue`, naming ``path``, also for a path that could lead to many."""
    steps = json_path(text, path=path).singular
    if steps is None:
        raise InvalidValue(path, text, _ONE_PLACE, "A field of a message has one place.")
    return steps


def find(value: object, steps: Steps) -> object:
    """What stands at ``steps`` in a decoded JSON value, or :data:`MISSING`. O(steps)."""
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            inside = isinstance(value, list) and -len(value) <= step < len(value)
            value = value[step] if inside and isinstance(value, list) else MISSING
    return value


class JsonPath:
    """One compiled path. Immutable; made by :func:`json_path`. ``singular``: the one place that it can mean,
    where it is made of names and indexes alone (an index below 0 counts from the end); else None."""

    __slots__ = ("_compiled", "singular", "text")

    def __init__(self, text: str, compiled: JSONPath) -> None:
        self.text, self._compiled = text, compiled
        self.singular: Steps | None = _singular(compiled)

    def nodes(self, document: object) -> list[tuple[Steps, object]]:
        """Every place that the path means, with its value, each once, parents before their children.

        Raises :class:`RecursionError` for a document that is nested too deeply."""
        if isinstance(document, str):  # the library would read it as JSON once more
            return [] if self._compiled.segments else [((), document)]
        return [(tuple(match.parts), match.obj) for match in self._compiled.finditer(document)]  # type: ignore[arg-type]

    def values(self, document: object) -> list[object]:
        """What stands at these places. Raises as :meth:`nodes`."""
        return [value for _, value in self.nodes(document)]


def json_path(text: object, *, path: str) -> JsonPath:
    """``text`` as a path. Pure, O(length).

    Raises :class:`~tenantry.kernel.errors.InvalidValue`, naming ``path``, for text that is no path or one
    that could be made slow."""
    if not isinstance(text, str) or not text.startswith("$") or len(text) > LONGEST_PATH:
        raise InvalidValue(
            path, text, _ACCEPTED, f"It starts with $ and has at most {LONGEST_PATH} characters."
        )
    try:
        compiled = _ENVIRONMENT.compile(text)
    except (JSONPathError, RecursionError) as error:
        raise InvalidValue(path, text, _ACCEPTED, _sentence(error)) from None
    assert isinstance(compiled, JSONPath)
    _refuse_costly(compiled, text, path)
    return JsonPath(text, compiled)


def _refuse_costly(compiled: JSONPath, text: str, path: str) -> None:
    segments = compiled.segments
    simple = all(len(s.selectors) == 1 and isinstance(s.selectors[0], _SELECTORS) for s in segments)
    if not simple:
        hint = "Use names, indexes, slices and *, one in each pair of brackets; filters (?) are not read."
        raise InvalidValue(path, text, _ACCEPTED, hint)
    if sum(isinstance(segment, JSONPathRecursiveDescentSegment) for segment in segments) > 1:
        raise InvalidValue(path, text, _ACCEPTED, "One .. is the most.")


def _singular(compiled: JSONPath) -> Steps | None:
    if not compiled.singular_query():
        return None
    return tuple(_step(segment.selectors[0]) for segment in compiled.segments)


def _step(selector: object) -> str | int:
    return selector.index if isinstance(selector, IndexSelector) else str(getattr(selector, "name"))  # noqa: B009


def _sentence(error: Exception) -> str:
    said = str(error.args[0]) if error.args else "it cannot be read"
    return said[:1].upper() + said[1:] + ("" if said.endswith(".") else ".")
