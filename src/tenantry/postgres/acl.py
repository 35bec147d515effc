"""ACLs as PostgreSQL writes them: ``app=arw*/owner`` grants SELECT, INSERT and, to pass on, UPDATE. Pure."""

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from tenantry.rls.roles import PUBLIC, Grant, Privilege

_LETTERS: dict[str, Privilege] = {
    "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES",
    "t": "TRIGGER", "m": "MAINTAIN", "X": "EXECUTE", "U": "USAGE", "C": "CREATE", "c": "CONNECT",
    "T": "TEMPORARY", "s": "SET", "A": "ALTER SYSTEM",
}  # fmt: skip
"""Source: PostgreSQL's documentation, table "ACL Privilege Abbreviations"."""


def grants(acl: Iterable[str] | None) -> tuple[Grant, ...]:
    """The grants of an ACL's items."""
    return _grants(tuple(acl or ()))


@lru_cache(maxsize=4096)
def _grants(acl: tuple[str, ...]) -> tuple[Grant, ...]:
    return tuple(map(_grant, acl))


def _grant(item: str) -> Grant:
    grantee, rest = _name(item)
    letters = rest[1:].partition("/")[0]
    given = {_LETTERS[each] for each in letters if each in _LETTERS}
    passed_on = {_LETTERS[a] for a, b in pairwise(letters) if b == "*" and a in _LETTERS}
    return Grant(grantee or PUBLIC, frozenset(given), frozenset(passed_on))


def _name(item: str) -> tuple[str, str]:
    """The grantee, and what stands behind it, from ``=`` on. A name is quoted where it must be."""
    if not item.startswith('"'):
        name, _, rest = item.partition("=")
        return name, "=" + rest
    at, name = 1, ""
    while True:
        end = item.index('"', at)
        name += item[at:end]
        if item[end + 1 : end + 2] != '"':
            return name, item[end + 1 :]
        name, at = name + '"', end + 2
