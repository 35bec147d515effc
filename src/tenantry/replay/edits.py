"""Declarative changes of a message before it is sent again: set, remove, rename, move. Pure.

Each edit names a place: ``header:NAME``, or a JSON path into the payload. Edits are made one after the other,
each on what the one before has left. An edit that cannot be made as it was written refuses the whole message,
with the reason: a message that is half repaired must not be sent, so it is parked as ``broken`` (case R2).

    set       ``value`` (JSON text) stands there; the last name of a path is made where its object is there.
              A header's value is JSON text of a string.
    remove    what stands there goes.
    rename    the member of an object, or the header, is called ``value``; a name that is taken is refused.
    move      what stands there goes to the place ``value``, where nothing may stand; between headers and
              payload too, a header holding text only.

A place where nothing stands is refused. A path with a wildcard means every place that it finds, and at least
one; ``move`` needs a path that means one place. A payload that no edit speaks of is sent byte for byte.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

from tenantry.kernel.errors import InvalidValue
from tenantry.replay.json_path import JsonPath, Steps, json_path
from tenantry.replay.model import Edit, EditKind
from tenantry.replay.payload import NotJson, read, written

HEADER: Final = "header:"
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,255}", re.ASCII)
_HEADER_TEXT: Final = re.compile("[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")


@dataclass(frozen=True, slots=True)
class Edited:
    """What is to be sent instead."""

    payload: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unedited:
    """Why the edits cannot be made on this message: a sentence for people, without the payload's content."""

    reason: str


class _Refused(Exception):
    """One edit cannot be made; its text is the reason."""


@dataclass(slots=True)
class _Draft:
    """A message while it is edited. ``document``: the payload once it has been read."""

    payload: bytes
    headers: dict[str, str]
    document: object = None
    is_read: bool = False

    def root(self) -> object:
        if not self.is_read:
            try:
                self.document, self.is_read = read(self.payload), True
            except NotJson as error:
                raise _Refused(str(error)) from None
        return self.document


_Step = Callable[[_Draft], None]

MOST_GROWN: Final = 1_048_576
"""Bytes that one edit may write into a message, at all its places together."""
MOST_HEADERS: Final = 32 * 1024
"""Bytes of all names and values that a person may give a message at once."""


def checked_headers(headers: Mapping[str, str], *, path: str) -> dict[str, str]:
    """Headers that a person gives a message, their names in small letters. Pure. Raises
    :class:`~tenantry.kernel.errors.InvalidValue` for a name that is none, a value that is no text of one
    line, and for too many of them."""
    found = {name.lower(): value for name, value in headers.items()}
    for name, value in found.items():
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidValue(path, name[:80], "names of headers, such as x-region")
        if not _fits_header(value):
            raise InvalidValue(f"{path}.{name}", value[:80], "text of one line")
    size = sum(len(name) + len(value.encode()) for name, value in found.items())
    if size > MOST_HEADERS:
        raise InvalidValue(path, f"{size:,} bytes", f"at most {MOST_HEADERS:,} bytes in all")
    return found


class Editor:
    """Edits, compiled once; asked for every message. Immutable, safe from any thread.

    Raises :class:`~tenantry.kernel.errors.InvalidValue`, its path starting with ``path``, for a place that is
    none or a value that does not fit the edit."""

    def __init__(self, edits: Sequence[Edit], *, path: str = "edits") -> None:
        self._steps = [compiled(edit, path=f"{path}[{n}]") for n, edit in enumerate(edits)]

    def __bool__(self) -> bool:
        return bool(self._steps)

    def edit(self, payload: bytes, headers: Mapping[str, str]) -> Edited | Unedited:
        """The message as it is to be sent, or why that cannot be. O(payload) where a path is edited."""
        draft = _Draft(payload, dict(headers))
        try:
            for step in self._steps:
                step(draft)
            return Edited(written(draft.document) if draft.is_read else payload, draft.headers)
        except _Refused as refused:
            return Unedited(str(refused))
        except (NotJson, RecursionError) as error:
            return Unedited(str(error) if isinstance(error, NotJson) else "the payload is nested too deeply")


def compiled(edit: Edit, *, path: str) -> _Step:
    """One edit as a step. Raises :class:`~tenantry.kernel.errors.InvalidValue`."""
    at = _place(edit.at, path=f"{path}.at")
    match edit.kind:
        case EditKind.SET:
            return _setting(at, _json(edit.value, at, path=f"{path}.value"))
        case EditKind.REMOVE:
            if edit.value:
                raise InvalidValue(f"{path}.value", edit.value, "nothing: a removal has no value")
            return _removing(_no_root(at, path=f"{path}.at"))
        case EditKind.RENAME:
            return _renaming(_no_root(at, path=f"{path}.at"), _name(edit.value, at, path=f"{path}.value"))
        case EditKind.MOVE:
            to = _single(_place(edit.value, path=f"{path}.value"), path=f"{path}.value")
            return _moving(_no_root(_single(at, path=f"{path}.at"), path=f"{path}.at"), to)


# -- places: a header's name, or a path ---------------------------------------------------------------------

_Where = str | JsonPath


def _place(text: str, *, path: str) -> _Where:
    if not text.startswith(HEADER):
        if not text.startswith("$"):
            raise InvalidValue(path, text, "header:NAME or a JSON path such as $.order.id")
        return json_path(text, path=path)
    return _header(text.removeprefix(HEADER), path=path)


def _header(name: str, *, path: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidValue(path, name, "a header's name in lower case: letters, digits and !#$%&'*+.^_`|~-")
    return name


def _single(at: _Where, *, path: str) -> _Where:
    if isinstance(at, JsonPath) and at.singular is None:
        raise InvalidValue(path, at.text, "a path of names and indexes, which means one place")
    return at


def _no_root(at: _Where, *, path: str) -> _Where:
    if isinstance(at, JsonPath) and at.singular == ():
        raise InvalidValue(
            path, at.text, "a place inside the payload", "Only set can speak of the whole of it."
        )
    return at


def _json(text: str, at: _Where, *, path: str) -> bytes:
    """``text``, which is JSON; for a header JSON of a string that a header can hold."""
    try:
        value = read(text.encode())
        written(value)
    except (NotJson, UnicodeEncodeError) as error:
        raise InvalidValue(
            path, text, 'JSON text, such as 3, true or "text"', f"It is not: {error}."
        ) from None
    if isinstance(at, str) and not _fits_header(value):
        raise InvalidValue(path, text, "JSON text of a string of one line: a header holds text")
    return text.encode()


def _name(text: str, at: _Where, *, path: str) -> str:
    if isinstance(at, str):
        return _header(text, path=path)
    if not text:
        raise InvalidValue(path, text, "the new name")
    return text


def _fits_header(value: object) -> bool:
    return isinstance(value, str) and _HEADER_TEXT.fullmatch(value) is not None


# -- steps --------------------------------------------------------------------------------------------------


def _setting(at: _Where, value: bytes) -> _Step:
    if isinstance(at, str):
        text = cast(str, read(value))
        return lambda draft: draft.headers.__setitem__(at, text)

    def step(draft: _Draft) -> None:
        root = draft.root()
        found = [place for place, _ in at.nodes(root)]
        if not found:
            return _put_new(root, at, read(value), taken="")
        if len(found) * len(value) > MOST_GROWN:
            raise _Refused(
                f"{at.text} means {len(found):,} places, too many to set all of them to this value"
            )
        for place in reversed(found):  # children before their parents
            if not place:
                draft.document = read(value)
            else:
                _container(root, place)[place[-1]] = read(value)  # a document of its own at each place
        return None

    return step


def _removing(at: _Where) -> _Step:
    if isinstance(at, JsonPath):
        return lambda draft: _take_out(draft.root(), at)

    def step(draft: _Draft) -> None:
        if draft.headers.pop(at, None) is None:
            _absent(at)

    return step


def _take_out(root: object, at: JsonPath) -> None:
    # The later of two places first: what is removed from a list moves those behind it.
    for place in sorted(_found(root, at), reverse=True):
        del _container(root, place)[place[-1]]


def _renaming(at: _Where, name: str) -> _Step:
    if isinstance(at, str):
        return lambda draft: _rename(draft.headers, at, name)

    def step(draft: _Draft) -> None:
        root = draft.root()
        for place in sorted(_found(root, at), reverse=True):
            container = _container(root, place)
            if not isinstance(container, dict):
                raise _Refused(f"{at.text} is an entry of a list, which has no name")
            _rename(container, cast(str, place[-1]), name)

    return step


def _rename(names: dict[str, Any], old: str, new: str) -> None:
    """In its place: the order of an object's names is kept, for people who compare."""
    if old not in names:
        _absent(old)
    if new in names and new != old:
        raise _Refused(f"something is called {new!r} there already")
    renamed = [(new if key == old else key, value) for key, value in names.items()]
    names.clear()
    names.update(renamed)


def _moving(at: _Where, to: _Where) -> _Step:
    def step(draft: _Draft) -> None:
        value = _taken(draft, at)
        if isinstance(to, JsonPath):
            return _put_new(draft.root(), to, value, taken="something stands there already")
        if to in draft.headers:
            raise _Refused(f"there is a header {to!r} already")
        if not _fits_header(value):
            raise _Refused(f"what is to become the header {to!r} is no text of one line")
        draft.headers[to] = cast(str, value)
        return None

    return step


def _taken(draft: _Draft, at: _Where) -> object:
    if isinstance(at, str):
        return draft.headers.pop(at) if at in draft.headers else _absent(at)
    nodes = at.nodes(draft.root())
    if not nodes:
        _absent(at)
    ((place, value),) = nodes
    del _container(draft.root(), place)[place[-1]]
    return value


def _found(root: object, at: JsonPath) -> list[Steps]:
    places = [place for place, _ in at.nodes(root)]
    return places or _absent(at)


def _put_new(root: object, at: JsonPath, value: object, *, taken: str) -> None:
    """Under a new name of an object that is there. ``taken``: what to say where something stands."""
    place = at.singular
    if taken and at.nodes(root):
        raise _Refused(f"{at.text}: {taken}")
    parent = _at(root, place[:-1]) if place else None
    if not place or not isinstance(parent, dict) or not isinstance(place[-1], str):
        raise _Refused(f"{at.text} is not there, and nothing that could hold it")
    parent[place[-1]] = value


def _container(root: object, place: Steps) -> Any:
    """What holds the value at ``place``: an object, or a list, which is written to alike."""
    return _at(root, place[:-1])


def _at(root: Any, place: Steps) -> object:
    for step in place:
        try:
            root = root[step]
        except (LookupError, TypeError):
            return None
    return cast(object, root)


def _absent(at: _Where) -> NoReturn:
    raise _Refused(f"header {at!r} is not there" if isinstance(at, str) else f"{at.text} is not there")
