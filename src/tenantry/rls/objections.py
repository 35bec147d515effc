"""Why a declaration cannot be carried out on a database as it is: each sentence ends in what to do. Pure."""

from collections.abc import Iterator

from tenantry.kernel.errors import nearest
from tenantry.rls.declaration import TableName, TenantTable
from tenantry.rls.facts import Relation
from tenantry.rls.ground import Ground
from tenantry.rls.names import quoted
from tenantry.rls.render import COLUMN_TYPES, ISOLATION, SERVICE
from tenantry.rls.views import read_besides, views_to_change

OLDEST = 15
"""The oldest major version whose views can be read as who asks."""


def objections(ground: Ground) -> Iterator[str]:
    """All of them, in the declaration's order."""
    server = ground.facts.server
    if server.major < OLDEST:
        yield f"the server is PostgreSQL {server.version_text}: security_invoker views need {OLDEST} or newer"
    for table in ground.declaration.tables:
        yield from _about_table(ground, table)
    yield from _about_types(ground)
    for name in ground.declaration.shared:
        relation = ground.relation(name)
        if relation is None:
            yield _missing(ground, name)
        elif not relation.is_table:
            yield f"{name} is a {relation.kind}: only a table can be shared"
    for role in ground.declaration.roles:
        yield from _about_role(ground, role)
    yield from _about_views(ground)


def _about_table(ground: Ground, table: TenantTable) -> Iterator[str]:
    relation = ground.relation(table.name)
    if relation is None:
        yield _missing(ground, table.name)
    elif not relation.is_table:
        hint = "declare what it reads" if "view" in relation.kind else "its own server must protect it"
        yield f"{table.name} is a {relation.kind}, which takes no row policies: {hint}"
    elif relation.extension:
        yield f"{table.name} belongs to the extension {relation.extension}: leave it out"
    else:
        yield from _about_column(relation, table)
        yield from _about_policies(ground, relation, table)
        for child in ground.below(relation):
            yield from _about_policies(ground, child, table)
            if child.kind == "foreign table":
                yield (
                    f"{child.title}, a part of {table.name}, is a foreign table, which takes no row "
                    "policies: detach it, and keep application roles from it"
                )


def _about_column(relation: Relation, table: TenantTable) -> Iterator[str]:
    column = relation.column(table.column)
    if column is None:
        near = nearest(table.column, tuple(each.name for each in relation.columns))
        hint = f"did you mean {near!r}?" if near else "name its tenant column with `column`"
        yield f"{table.name} has no column {table.column!r}: {hint}"
        return
    bare = column.type.partition("(")[0]
    if bare not in COLUMN_TYPES[table.type]:
        fitting = [each for each, types in COLUMN_TYPES.items() if bare in types]
        hint = f'declare type = "{fitting[0]}"' if fitting else f"make it one of {', '.join(COLUMN_TYPES)}"
        where = f"{table.name}.{quoted(table.column)}"
        yield f"{where} is of type {column.type}, declared as {table.type}: {hint}"


def _about_types(ground: Ground) -> Iterator[str]:
    """No text reads as a number and as a UUID: whoever is bound for the one fails at the other."""
    declared = ground.declaration
    numbers = [each for each in declared.tables if each.type in {"int", "bigint"}]
    uuids = [each for each in declared.tables if each.type == "uuid"]
    if numbers and uuids:
        yield (
            f"{declared.setting} cannot name a tenant for {numbers[0].name}, of type {numbers[0].type}, and "
            f"for {uuids[0].name}, of type uuid: each query of the one fails while a tenant of the other is "
            "bound. Give their tenant columns one type, or declare the one kind in a file of its own, with a "
            "setting of its own"
        )


def _about_policies(ground: Ground, relation: Relation, table: TenantTable) -> Iterator[str]:
    """Permissive policies add up: one besides ours lets through what ours would not."""
    known = (ISOLATION, SERVICE, *table.replaces, *table.keeps)
    for each in ground.policies(relation):
        for_application = any(ground.scene.applies(each, role) for role in ground.declaration.roles)
        if each.permissive and for_application and each.name not in known:
            way_out = f"say of {table.name} that it replaces or keeps it: replaces = [{_toml(each.name)}]"
            yield (
                f"the policy {quoted(each.name)} on {relation.title} allows application roles rows besides "
                f"the tenant's: {way_out}"
            )


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _about_role(ground: Ground, role: str) -> Iterator[str]:
    roles, reach = ground.facts.roles, ground.scene.reach
    for other in sorted((reach.acts_as(role) | reach.takes(role)) & roles.keys()):
        known = roles[other]
        if known.superuser or known.bypasses_rls:
            kind = "a superuser" if known.superuser else "BYPASSRLS"
            what = f"policies do not hold {quoted(other)}, which is {kind}"
        elif other in ground.declaration.services:
            what = f"{quoted(other)} serves all tenants: an application role must not reach it"
        else:
            continue
        yield f"{what}{_way_out(ground, role, other)}"


def _way_out(ground: Ground, role: str, other: str) -> str:
    if other == role:
        alter = f"ALTER ROLE {quoted(role)} NOSUPERUSER NOBYPASSRLS"
        return f". Let tenants' requests log in as a role of their own, or {alter}"
    reach = ground.scene.reach
    can = reach.way(role, other) if other in reach.acts_as(role) else f"{role} can make itself its member"
    return f", and {can}. REVOKE {quoted(other)} FROM {quoted(role)}"


def _about_views(ground: Ground) -> Iterator[str]:
    """A view that is read as who asks fails where who asks may not read all that it reads."""
    shared = {found.oid for name in ground.declaration.shared if (found := ground.relation(name))}

    def reads(role: str, relation: Relation) -> bool:
        return ground.enters(role, relation.schema) and not ground.lacks(role, ("select",), relation)

    for view in views_to_change(ground):
        users = ground.readers(view)
        for relation in read_besides(ground, view):
            lacking = [] if relation.oid in shared else [each for each in users if not reads(each, relation)]
            if lacking:
                who = ", ".join(map(quoted, lacking))
                way_out = f"GRANT it SELECT, and USAGE of the schema, or take the view from {who}"
                yield (
                    f"the view {view.title} would fail once it is read as who asks: it reads "
                    f"{relation.title}, which {who} may not. Declare that, or {way_out}"
                )


def _missing(ground: Ground, name: TableName) -> str:
    near = ground.nearest_to(name)
    hint = f"did you mean {near}?" if near else "create it first, or take it out of the declaration"
    return f"there is no table {name}: {hint}"
