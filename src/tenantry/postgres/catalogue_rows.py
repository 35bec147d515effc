"""Rows of the catalogue into facts, for what needs more than a rename. Pure."""

from collections.abc import Mapping
from typing import Any

from tenantry.postgres.acl import grants
from tenantry.rls.facts import (
    Action,
    Column,
    Command,
    Constraint,
    ConstraintKind,
    Function,
    Index,
    IndexKey,
    Relation,
    RelationKind,
    Trigger,
    Volatility,
)

_Row = Any
"""A record of the driver: a mapping by column."""

KINDS = {"": "", "a": "always", "d": "by default", "s": "stored", "v": "virtual"}
"""Of identity and of generated columns; their letters are apart."""

COMMANDS: dict[str, Command] = {"*": "ALL", "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}

_RELATIONS: dict[str, RelationKind] = {
    "r": "table", "p": "partitioned table", "f": "foreign table", "v": "view", "m": "materialized view",
    "S": "sequence",
}  # fmt: skip

_CONSTRAINTS: dict[str, ConstraintKind] = {
    "p": "primary key", "u": "unique", "f": "foreign key", "x": "exclusion", "c": "check",
}  # fmt: skip

_ACTIONS: dict[str, Action] = {
    "a": "no action", "r": "restrict", "c": "cascade", "n": "set null", "d": "set default", " ": "no action",
}  # fmt: skip

_EVENTS = {4: "INSERT", 8: "DELETE", 16: "UPDATE", 32: "TRUNCATE"}
"""Bits of tgtype; 1 is FOR EACH ROW, 2 BEFORE, 64 INSTEAD OF. Source: ``catalog/pg_trigger.h``."""


def relation(row: _Row, columns: tuple[Column, ...]) -> Relation:
    owned = None if row["owner_table"] is None else (row["owner_table"], row["owner_column"])
    return Relation(
        row["oid"],
        row["schema"],
        row["name"],
        _RELATIONS[row["kind"]],
        row["owner"],
        grants=grants(row["acl"]),
        columns=columns,
        rls_enabled=row["rls_enabled"],
        rls_forced=row["rls_forced"],
        is_partition=row["is_partition"],
        parents=tuple(row["parents"]),
        options=_options(row["options"]),
        reads=tuple(row["reads"]),
        tree=row["tree"],
        server=row["server"],
        owned_by=owned,
        extension=row["extension"],
        temporary=row["temporary"],
        rows=row["rows"],
    )


def _options(given: list[str] | None) -> dict[str, str]:
    return dict(each.split("=", 1) for each in given) if given else {}


def constraint(row: _Row, names: Mapping[int, Mapping[int, str]]) -> Constraint:
    """``names``: columns by number, by table."""
    own, other = names.get(row["relation"], {}), names.get(row["references"], {})
    return Constraint(
        row["oid"],
        row["relation"],
        row["name"],
        _CONSTRAINTS[row["kind"]],
        # 0 stands for an expression of an exclusion constraint
        columns=tuple(own.get(each, "") for each in row["columns"]),
        references=row["references"],
        referenced_columns=tuple(other.get(each, "") for each in row["referenced_columns"]),
        on_delete=_ACTIONS[row["on_delete"]],
        on_update=_ACTIONS[row["on_update"]],
        index=row["index"],
        inherited=row["inherited"],
    )


def index(row: _Row, names: Mapping[int, str], classes: Mapping[int, _Row]) -> Index:
    count = row["key_count"]
    return Index(
        row["oid"],
        row["relation"],
        row["name"],
        row["method"],
        keys=tuple(_key(row, place, names, classes) for place in range(count)),
        unique=row["unique"],
        primary=row["primary"],
        exclusion=row["exclusion"],
        valid=row["valid"],
        immediate=row["immediate"],
        included=tuple(names.get(each, "") for each in row["columns"][count:]),
        predicate=row["predicate"] or "",
    )


def _key(row: _Row, place: int, names: Mapping[int, str], classes: Mapping[int, _Row]) -> IndexKey:
    number, kind = row["columns"][place], classes[row["classes"][place]]
    return IndexKey(
        names.get(number) if number else None,
        row["expressions"][place] if not number else "",
        kind["name"],
        leakproof=kind["leakproof"],
        equality_leakproof=kind["equality_leakproof"],
    )


def trigger(row: _Row) -> Trigger:
    kind = row["type"]
    return Trigger(
        row["oid"],
        row["relation"],
        row["name"],
        row["function"],
        timing="BEFORE" if kind & 2 else "INSTEAD OF" if kind & 64 else "AFTER",
        events=frozenset(word for bit, word in _EVENTS.items() if kind & bit),
        for_each_row=bool(kind & 1),
        enabled=row["enabled"],
    )


_VOLATILITY: dict[str, Volatility] = {"i": "immutable", "s": "stable", "v": "volatile"}


def function(row: _Row) -> Function:
    parts = dict(row)
    return Function(
        grants=grants(parts.pop("acl")),
        volatility=_VOLATILITY[parts.pop("volatility")],
        settings=tuple(parts.pop("settings")),
        reads=tuple(parts.pop("reads")),
        **parts,
    )
