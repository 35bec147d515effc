"""Reading the trees in which PostgreSQL keeps expressions (``pg_node_tree``), as plain dictionaries.

The tree and not the text, because in it every name is resolved: it says by OID which ``=`` is meant and which
function, whatever search path the text would be read under. Field names differ a little between versions;
what reads them (:mod:`tenantry.rls.expression`) knows both. Pure; linear in the length of the text.
"""

import re
from collections.abc import Iterator
from typing import Any

from tenantry.kernel.errors import InvariantBroken

Node = dict[str, Any]
"""``{"": "OPEXPR", "opno": "96", "args": [...]}``: the node's name under "", atoms as text, lists as
lists."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}()\[\]]|(?:[^\s{}()\[\]\\"]|\\.)+', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse(text: str) -> Node | list[Any] | str:
    """The tree that ``text`` writes. Raises :class:`InvariantBroken` for what no server writes."""
    root: list[Any] = []
    _Reader(iter(_TOKEN.findall(text))).fill(root)
    if len(root) != 1:
        raise InvariantBroken(f"not one tree but {len(root)}: {text[:80]!r}")
    found: Node | list[Any] | str = root[0]
    return found


class _Reader:
    """A stack, not recursion: how deep a tree may be is the server's business."""

    def __init__(self, tokens: Iterator[str]) -> None:
        self._tokens = tokens
        self._outer: list[Any] = []

    def fill(self, root: list[Any]) -> None:
        into: Any = root
        field = ""
        for word in self._tokens:
            if word in {"{", "("}:
                self._outer.append(into)
                into = _put(into, field, {"": next(self._tokens, "")} if word == "{" else [])
                field = ""
            elif word in {"}", ")"}:
                into, field = self._left(), ""
            elif word == "[":
                _replace(into, self._datum())
            elif isinstance(into, dict) and not field:
                field = word[1:]
            else:
                _put(into, field, _atom(word))
                field = ""
        if self._outer:
            raise InvariantBroken("a tree that ends in its middle")

    def _left(self) -> Any:
        if not self._outer:
            raise InvariantBroken("a tree that ends before it began")
        return self._outer.pop()

    def _datum(self) -> bytes:
        found = bytearray()
        for word in self._tokens:
            if word == "]":
                break
            found.append(int(word) & 0xFF)
        return bytes(found)


def _put(into: Any, field: str, value: Any) -> Any:
    if isinstance(into, dict):
        into[field] = value
    else:
        into.append(value)
    return value


def _replace(into: Any, datum: bytes) -> None:
    """A datum stands behind its length, and takes the length's place: the last thing that was put."""
    last = next(reversed(into)) if isinstance(into, dict) else -1
    into[last] = datum


def _atom(word: str) -> str | None:
    if word == "<>":
        return None
    if word.startswith('"'):
        word = word[1:-1]
    return _ESCAPE.sub(r"\1", word) if "\\" in word else word
