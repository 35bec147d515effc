"""Reads the facts about row policies off a database: a few set-based statements in one snapshot."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import asyncpg

from tenantry.postgres.acl import grants
from tenantry.postgres.catalogue_rows import (
    COMMANDS,
    KINDS,
    constraint,
    function,
    index,
    relation,
    trigger,
)
from tenantry.postgres.database import connect_once
from tenantry.postgres.errors import translated
from tenantry.postgres.statements import statement
from tenantry.rls.facts import (
    BuiltIn,
    Column,
    DefaultPrivileges,
    Facts,
    ForeignServer,
    Language,
    LargeObjects,
    Operator,
    Policy,
    Publication,
    RewriteRule,
    Schema,
    Server,
)
from tenantry.rls.roles import PUBLIC, Membership, Role, RoleSetting

_STATEMENTS = (
    "server", "roles", "memberships", "role_settings", "schemas", "relations", "columns", "policies",
    "constraints", "operator_classes", "indexes", "triggers", "rewrite_rules", "functions", "builtin",
    "operators", "types", "publications", "default_privileges", "foreign_servers", "languages",
    "large_objects",
)  # fmt: skip

_ATTEMPTS = 5

_Row = Any
"""A record of the driver: a mapping by column."""

_Rows = Mapping[str, list[_Row]]


@dataclass(frozen=True, slots=True)
class PostgresCatalogue:
    """The port :class:`tenantry.rls.ports.Catalogue` over one URL; a connection for each reading.

    ``lock_wait``: how long it waits for a table that somebody has locked against readers (a migration)."""

    url: str
    lock_wait: timedelta = timedelta(seconds=5)

    async def facts(self) -> Facts:
        """See the port. A login without any privilege beyond CONNECT will do."""
        connection = await connect_once(self.url)
        try:
            with translated("reading the catalogue"):
                return await _settled(connection, self.lock_wait)
        finally:
            await connection.close()


async def _settled(connection: "asyncpg.Connection[asyncpg.Record]", lock_wait: timedelta) -> Facts:
    """The server writes expressions from what there is at that moment, not at the snapshot's: where something
    has been dropped since, it may report an internal error. The next snapshot knows of the drop."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(asyncpg.InternalServerError):
            return await read_facts(connection, lock_wait)
    return await read_facts(connection, lock_wait)


async def read_facts(
    connection: "asyncpg.Connection[asyncpg.Record]", lock_wait: timedelta | None = None
) -> Facts:
    """The facts of the database that ``connection`` is on, in a transaction of its own. ``lock_wait``: as for
    :class:`PostgresCatalogue`; None for the connection's own."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        if lock_wait is not None:
            wait = f"{lock_wait / timedelta(milliseconds=1):.0f}ms"
            await connection.execute("SELECT set_config('lock_timeout', $1, true)", wait)
        rows = await _read_rows(connection)
    return facts_of(rows)


async def read_facts_inside(connection: "asyncpg.Connection[asyncpg.Record]") -> Facts:
    """The same within the caller's transaction: with what it has changed and not committed. The search path
    is the caller's again afterwards."""
    async with connection.transaction():
        path = await connection.fetchval("SELECT current_setting('search_path')")
        rows = await _read_rows(connection)
        await connection.execute("SELECT set_config('search_path', $1, true)", path)
    return facts_of(rows)


async def _read_rows(connection: "asyncpg.Connection[asyncpg.Record]") -> _Rows:
    # names are then written with their schema, whatever the login's own path
    await connection.execute("SET LOCAL search_path = pg_catalog")
    return {name: await connection.fetch(statement(f"rls/{name}")) for name in _STATEMENTS}


def facts_of(rows: _Rows) -> Facts:
    """The picture that the statements' rows draw. Pure."""
    roles = {row["name"]: Role(**row) for row in rows["roles"]}
    columns = _columns(rows["columns"])
    names = {oid: {each.number: each.name for each in found} for oid, found in columns.items()}
    classes = {row["oid"]: row for row in rows["operator_classes"]}
    return Facts(
        server=_server(*rows["server"]),
        roles=roles,
        memberships=tuple(Membership(**row) for row in rows["memberships"]),
        settings=tuple(RoleSetting(**row) for row in rows["role_settings"]),
        schemas={row["name"]: _with_grants(Schema, row) for row in rows["schemas"]},
        relations={row["oid"]: relation(row, columns.get(row["oid"], ())) for row in rows["relations"]},
        policies=_policies(rows["policies"], {each.oid: each.name for each in roles.values()}),
        constraints=tuple(constraint(row, names) for row in rows["constraints"]),
        indexes=tuple(index(row, names.get(row["relation"], {}), classes) for row in rows["indexes"]),
        triggers=tuple(map(trigger, rows["triggers"])),
        rewrite_rules=tuple(map(_rewrite_rule, rows["rewrite_rules"])),
        functions={row["oid"]: function(row) for row in rows["functions"]},
        builtin={row["oid"]: _builtin(row) for row in rows["builtin"]},
        operators={row["oid"]: Operator(**row) for row in rows["operators"]},
        types={row["oid"]: row["name"] for row in rows["types"]},
        publications=_publications(rows["publications"]),
        default_privileges=tuple(_with_grants(DefaultPrivileges, row) for row in rows["default_privileges"]),
        foreign_servers={row["name"]: _foreign_server(row) for row in rows["foreign_servers"]},
        languages={row["name"]: _with_grants(Language, row) for row in rows["languages"]},
        large_objects=tuple(_with_grants(LargeObjects, row) for row in rows["large_objects"]),
    )


def _with_grants(make: Callable[..., Any], row: _Row) -> Any:
    """The record of ``row``, whose column ``acl`` is its ``grants``."""
    parts = dict(row)
    return make(grants=grants(parts.pop("acl")), **parts)


def _server(row: _Row) -> Server:
    parts = dict(row)
    read = {name: json.loads(parts.pop(name)) for name in ("settings", "extensions")}
    return Server(grants=grants(parts.pop("acl")), **read, **parts)


def _columns(rows: Iterable[_Row]) -> dict[int, tuple[Column, ...]]:
    found: dict[int, list[Column]] = defaultdict(list)
    for row in rows:
        number, name, default = row["number"], row["name"], row["default"]
        column = Column(
            number,
            name,
            row["type"],
            row["type_oid"],
            not_null=row["not_null"],
            default=default,
            identity=KINDS[row["identity"]],
            generated=KINDS[row["generated"]],
            grants=grants(row["acl"]),
        )
        found[row["relation"]].append(column)
    return {oid: tuple(each) for oid, each in found.items()}


def _policies(rows: Iterable[_Row], roles: Mapping[int, str]) -> tuple[Policy, ...]:
    return tuple(
        Policy(
            row["oid"],
            row["relation"],
            row["name"],
            permissive=row["permissive"],
            command=COMMANDS[row["command"]],
            roles=tuple(sorted(PUBLIC if oid == 0 else roles.get(oid, f"oid {oid}") for oid in row["roles"])),
            using=row["using"],
            check=row["check"],
            using_tree=_tree(row["using_tree"]),
            check_tree=_tree(row["check_tree"]),
        )
        for row in rows
    )


_LOCATION = re.compile(r" :location \d+")


def _tree(text: str | None) -> str | None:
    """Without the places in the text that it was made from, which are kept before version 17: equal policies
    are then equal, and read once."""
    return None if text is None else _LOCATION.sub(" :location -1", text)


_EVENTS = {"1": "SELECT", "2": "UPDATE", "3": "INSERT", "4": "DELETE"}


def _rewrite_rule(row: _Row) -> RewriteRule:
    return RewriteRule(**{**row, "event": _EVENTS[row["event"]], "reads": tuple(row["reads"])})


_VOLATILITY = {"i": "immutable", "s": "stable", "v": "volatile"}


def _builtin(row: _Row) -> BuiltIn:
    volatility, acl = _VOLATILITY[row["volatility"]], row["acl"]
    known = BuiltIn(row["oid"], row["name"], volatility, row["leakproof"], row["strict"])
    return known if acl is None else replace(known, arguments=row["arguments"], grants=grants(acl))


def _publications(rows: Iterable[_Row]) -> tuple[Publication, ...]:
    by_name: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        by_name[row["name"]].append(row)
    return tuple(_publication(found) for found in by_name.values())


def _publication(rows: list[_Row]) -> Publication:
    first = rows[0]
    return Publication(
        first["name"],
        first["owner"],
        all_tables=first["all_tables"],
        via_root=first["via_root"],
        relations=tuple(row["relation"] for row in rows if row["relation"] is not None),
        filters={row["relation"]: row["filter"] for row in rows if row["filter"] is not None},
    )


def _foreign_server(row: _Row) -> ForeignServer:
    parts = {**row, "mapped": tuple(sorted(row["mapped"]))}
    return ForeignServer(grants=grants(parts.pop("acl")), **parts)
