"""Reading the trees in which PostgreSQL keeps expressions (``pg_node_tree``), as plain dictionaries.

The tree and not the text, because in it every name is resolved: it says by OID which ``=`` is meant and which
function, whatever search path the text would be read under. Field names differ a little between versions;
what reads them (:mod:`tenantry.rls.expression`) knows both. Pure; linear in the length of the text.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tenantry.kernel.errors import InvariantBroken

Node = dict[str, Any]
"""``{"": "OPEXPR", "opno": "96", "args": [...]}``: the node's name under "", atoms as text, lists as
lists."""

_TOKEN = re.compile(
    r"""\[ (?:-?\d+ )*+\]|[^\s{}()\\"]++(?!\\)|[{}()]|"(?:[^"\\]|\\.)*"|(?:[^\s{}()\\"]|\\.)+""", re.DOTALL
)
"""A datum as one word; a plain word, as nearly every one is; then what is rarer. Brackets may stand in
names."""

_ASIDE = re.compile(
    r" :(?:\w++ (?:<>|false|0|-1|\(b\))"
    r"|(?:location|\w*collid|\w*typmod|varnosyn|varattnosyn|opresulttype) -?\d++)(?= :|\})"
)
"""Fields that are as they mostly are, or that nobody asks for: more than half of the text. Spaces inside
names are escaped, so that nothing of the kind can stand in one."""

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse(text: str) -> Node | list[Any] | str:
    """The tree that ``text`` writes. Raises :class:`InvariantBroken` for what no server writes."""
    root: list[Any] = []
    _Reader(iter(_TOKEN.findall(text))).fill(root)
    if len(root) != 1:
        raise InvariantBroken(f"not one tree but {len(root)}: {text[:80]!r}")
    found: Node | list[Any] | str = root[0]
    return found


def abridged(text: str) -> str:
    """``text`` without fields that are zero, false, -1 or empty, which read as not there, and without places
    and collations: what is left is read in half the time."""
    return _ASIDE.sub("", text)


class _Reader:
    """A stack, not recursion: how deep a tree may be is the server's business. Its loop is what an audit of
    many policies spends its time in, hence no call for what is most frequent: fields and plain atoms."""

    def __init__(self, words: Iterator[str]) -> None:
        self._words = words
        self._outer: list[Any] = []

    def fill(self, root: list[Any]) -> None:
        into: Any = root
        field: str | None = ""  # of a node, None where a name comes next; "" in a list
        for word in self._words:
            if field is None and word[0] == ":":
                field = word[1:]
            elif word in _OPENING:
                self._outer.append(into)
                fresh: Any = {"": next(self._words, "")} if word == "{" else []
                _put(into, field, fresh)
                into, field = fresh, None if word == "{" else ""
            elif word in _CLOSING:
                into = self._left()
                field = None if isinstance(into, dict) else ""
            elif word[:2] == "[ ":
                _replace(into, _datum(word))
            elif field:
                into[field] = _atom(word) if word[0] in _SPECIAL or "\\" in word else word
                field = None
            else:
                into.append(_atom(word))
        if self._outer:
            raise InvariantBroken("a tree that ends in its middle")

    def _left(self) -> Any:
        if not self._outer:
            raise InvariantBroken("a tree that ends before it began")
        return self._outer.pop()


@lru_cache(maxsize=1024)
def _datum(word: str) -> bytes:
    """Signed numbers, a byte each. Cached: a setting's name stands in every policy."""
    return bytes(int(each) & 0xFF for each in word[1:-1].split())


_OPENING, _CLOSING = frozenset("{("), frozenset("})")
_SPECIAL = frozenset('"<')


def _put(into: Any, field: str | None, value: Any) -> None:
    if field:
        into[field] = value
    else:
        into.append(value)


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
