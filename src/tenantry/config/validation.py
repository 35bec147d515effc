"""How a document is read: key by key, noting every fault with its place instead of stopping at the first.

Three pieces. :class:`Problems` collects faults; :class:`Table` is one table of a document with the keys that
may stand in it; :class:`RegistryErrors` is what comes out when there was a fault. What a single value may be
is a *rule*, see :mod:`tenantry.config.rules`.

No fault shows a secret: tables and lists are never printed, and text that looks like a signing secret is not.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from tenantry.kernel.errors import InvalidValue, UnknownKey, UsageError

T = TypeVar("T")
Rule = Callable[[str, object], T]
"""``(path, value) -> accepted value``; raises :class:`InvalidValue` naming ``path``. Pure."""

MOST_ERRORS = 20
"""So many faults are kept and listed; the rest are counted. A screen holds no more."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_LONGEST_KEY = 80
_USER = re.compile(r"(://)[^/?#]*@")
_QUERY = re.compile(r"\?.*", re.DOTALL)


class RegistryErrors(UsageError):
    """What is wrong with a document, all at once.

    ``errors``: the first :data:`MOST_ERRORS` faults, in the document's order; at least one. ``total``: how
    many there were. The text lists them, one a line.
    """

    def __init__(self, errors: tuple[InvalidValue, ...], total: int | None = None) -> None:
        self.errors = errors
        self.total = len(errors) if total is None else total
        super().__init__(errors, self.total)

    def __str__(self) -> str:
        if self.total == 1:
            return str(self.errors[0])
        lines = [f"{self.total:,} errors:", *(f"  {error}" for error in self.errors)]
        if self.total > len(self.errors):
            lines.append(f"  and {self.total - len(self.errors):,} more")
        return "\n".join(lines)


class Described:
    """Stands for a value that must not, or cannot, be printed: its ``repr`` is a description."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


MISSING = Described("a missing value")
SECRET = Described("a secret (not shown)")


class Problems:
    """The faults found so far. Not for use from two threads; one reading owns one."""

    def __init__(self) -> None:
        self._kept: list[InvalidValue] = []
        self._total = 0

    def note(self, error: InvalidValue) -> None:
        """Adds one fault."""
        self._total += 1
        if len(self._kept) < MOST_ERRORS:
            self._kept.append(error)

    def attempt(self, rule: Rule[T], path: str, value: object, instead: T) -> T:
        """``value`` by ``rule``; where it refuses, the fault is noted and ``instead`` stands in."""
        try:
            return rule(path, value)
        except InvalidValue as error:
            self.note(error)
            return instead

    def raise_any(self) -> None:
        """Raises :class:`RegistryErrors` if anything was noted."""
        if self._kept:
            raise RegistryErrors(tuple(self._kept), self._total)


class Table:
    """One table of a document: its keys are taken one at a time, and a key that nobody takes is a fault, told
    with ``hint``."""

    def __init__(
        self, path: str, value: object, known: tuple[str, ...], problems: Problems, *, hint: str = ""
    ) -> None:
        self.path, self.problems = path, problems
        self._is_table = isinstance(value, dict)
        self._values = table(path, value, problems)
        for key in self._values:
            if key not in known:
                problems.note(UnknownKey(path, str(shown(key)), known, hint))

    def take(self, key: str, rule: Rule[T], default: T) -> T:
        """The key's value by ``rule``; ``default`` when it is absent or (then a fault is noted) refused."""
        if key not in self._values:
            return default
        return self.problems.attempt(rule, at(self.path, key), self._values[key], default)

    def need(self, key: str, rule: Rule[T], instead: T) -> T:
        """As :meth:`take`, but an absent key is a fault too; ``instead`` stands in."""
        if not self._is_table:  # one fault is enough
            return instead
        return self.problems.attempt(rule, at(self.path, key), self._values.get(key, MISSING), instead)

    def raw(self, key: str, default: object = MISSING) -> object:
        """The key's value as it came, or ``default``."""
        return self._values.get(key, default)


def table(path: str, value: object, problems: Problems) -> Mapping[str, object]:
    """``value`` as a table with text keys; a fault and an empty table when it is something else."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return value
    problems.note(refused(path or "document", value, "a table"))
    return {}


def refused(path: str, value: object, accepted: str, hint: str = "") -> InvalidValue:
    """The error for ``value`` at ``path``, showing no secret and no more of the value than a line."""
    return InvalidValue(path, shown(value), accepted, hint)


def shown(value: object) -> object:
    """``value``, or a description where printing it would leak a secret or fill the screen."""
    if isinstance(value, dict):
        return Described("a table")
    if isinstance(value, (list, tuple)):
        return Described("a list")
    if isinstance(value, (str, bytes)):
        return _shown_text(value)
    if isinstance(value, int) and abs(value) > 10**18:
        return Described("a very large whole number")  # its decimal text may exceed what Python will print
    return value


def at(path: str, key: str) -> str:
    """The path of ``key`` inside ``path``: ``tiers.gold``, ``tenants["a.b"]``."""
    if _BARE_KEY.fullmatch(key) and len(key) <= _LONGEST_KEY and shown(key) == key:
        return f"{path}.{key}" if path else key
    text = str(shown(key))
    short = text if len(text) <= _LONGEST_KEY else text[: _LONGEST_KEY - 1] + "…"
    return f"{path}[{json.dumps(short, ensure_ascii=not short.isprintable())}]"


def _shown_text(value: str | bytes) -> object:
    text = value if isinstance(value, str) else value.decode("latin-1")
    if "whsec_" in text.lower():
        return SECRET
    return without_credentials(value) if isinstance(value, str) else value


def without_credentials(text: str) -> str:
    """``text``; where it is a URL, less the parts that may hold a password: before ``@``, and the query."""
    if "://" not in text:
        return text
    return _QUERY.sub("?…", _USER.sub(r"\1…@", text))
