"""The mutation kit of row policies: for each rule of the audit a schema that breaks it, and its right twin.

A case is a file ``cases/FAMILY/RULE.sql`` (or ``RULE--VARIANT.sql``) over the small shop of ``base.sql``,
which by itself is clean. Sections begin with a line ``-- @name``::

    -- What is wrong here, in a sentence.
    -- @declared {"service_roles": {"shop_engine": "settles for all tenants"}}
    -- @common
    CREATE TABLE …              -- in both
    -- @broken
    ALTER TABLE …               -- RULE, and nothing else, is found
    -- @right
    ALTER TABLE …               -- looks alike, and nothing is found

A case runs in a transaction that is rolled back, so it may make roles, and may do nothing that refuses to be
in a transaction. ``@also`` names further rules that cannot but be found with it; ``@server`` the oldest major
version that it runs on; ``@version`` what the server is to be taken for where it is broken, as it counts
them.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from tenantry.kernel.errors import InvalidValue
from tenantry.rls.model import Declared

_PACKAGE = "tenantry.testing.row_policies"
_SECTION = re.compile(r"^-- @(\w+) ?(.*)$", re.MULTILINE)
_SECTIONS = ("declared", "also", "server", "version", "common", "broken", "right")


@dataclass(frozen=True, slots=True)
class Case:
    """``name``: ``RULE`` or ``RULE--VARIANT``. ``broken`` and ``right`` are whole scripts, the base
    included."""

    name: str
    family: str
    about: str
    broken: str
    right: str
    declared: Declared = field(default_factory=Declared)
    also: frozenset[str] = frozenset()
    server: int = 0
    version: int = 0

    @property
    def rule(self) -> str:
        return self.name.partition("--")[0]


@cache
def base() -> str:
    """The shop: tenants' tables as they should be, with an owner and an application's role."""
    return files(_PACKAGE).joinpath("base.sql").read_text(encoding="utf-8")


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by family and name. Raises :class:`InvalidValue` for a file that cannot be read as one."""
    root = files(_PACKAGE).joinpath("cases")
    found = [case for family in root.iterdir() if family.is_dir() for case in _family(family)]
    return tuple(sorted(found, key=lambda each: (each.family, each.name)))


def _family(directory: Traversable) -> Iterator[Case]:
    for file in directory.iterdir():
        if file.name.endswith(".sql"):
            yield parsed(file.name.removesuffix(".sql"), directory.name, file.read_text(encoding="utf-8"))


def parsed(name: str, family: str, text: str) -> Case:
    """The case that ``text`` writes. Raises :class:`InvalidValue` for what has no such sections."""
    head, *rest = _SECTION.split(text)
    given: dict[str, Any] = {}
    for section, line, body in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if section not in _SECTIONS or section in given:
            raise InvalidValue(f"{name}.sql", f"@{section}", "each once of @" + ", @".join(_SECTIONS))
        given[section] = line.strip() or body
    if "broken" not in given or "right" not in given:
        raise InvalidValue(f"{name}.sql", sorted(given), "both @broken and @right")
    before = given.get("common", "")
    return Case(
        name,
        family,
        about=" ".join(line.removeprefix("-- ") for line in head.strip().splitlines()),
        broken=before + given["broken"],
        right=before + given["right"],
        declared=Declared(**_declared(given.get("declared", "{}"))),
        also=frozenset(given.get("also", "").split()),
        server=int(given.get("server", 0)),
        version=int(given.get("version", 0)),
    )


def _declared(text: str) -> dict[str, Any]:
    read = json.loads(text)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in read.items()}
