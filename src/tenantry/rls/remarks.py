"""What a plan sees and leaves to people: each sentence says why it matters and what would mend it. Pure."""

from collections.abc import Iterator

from tenantry.rls.declaration import TenantTable
from tenantry.rls.facts import Relation
from tenantry.rls.ground import Ground, named
from tenantry.rls.names import quoted
from tenantry.rls.render import ISOLATION, SERVICE
from tenantry.rls.roles import PUBLIC
from tenantry.rls.views import stored_views


def remarks(ground: Ground) -> Iterator[str]:
    """All of them, table by table."""
    for role in (*ground.declaration.roles, *ground.declaration.services):
        if role not in ground.facts.roles:
            yield f"{quoted(role)} is made without a password: give it one, or a line in pg_hba.conf"
    for oid, table in ground.tenant_tables.items():
        relation = ground.facts.relations[oid]
        yield from _about_policies(ground, relation, table)
        yield from _about_column(relation, table)
        yield from _about_rights(ground, relation)
    for view in stored_views(ground):
        yield (
            f"the materialized view {view.title} holds rows of all tenants, and no policy can hold on it: "
            "REVOKE SELECT from application roles, or make it a view"
        )
    yield from _alike(ground)


def _about_policies(ground: Ground, relation: Relation, table: TenantTable) -> Iterator[str]:
    for each in ground.policies(relation):
        if each.permissive and each.name not in (ISOLATION, SERVICE, *table.replaces):
            who = ", ".join(each.roles)
            yield f"the policy {quoted(each.name)} on {table.name} stays: {who} may do what it allows besides"


def _about_column(relation: Relation, table: TenantTable) -> Iterator[str]:
    column = relation.column(table.column)
    if column is not None and not column.not_null and not relation.is_partition:
        yield (
            f"{table.name}.{quoted(table.column)} may be NULL, and such a row is nobody's: "
            f"ALTER TABLE {table.name} ALTER COLUMN {quoted(table.column)} SET NOT NULL, when none is"
        )


def _about_rights(ground: Ground, relation: Relation) -> Iterator[str]:
    for role in ground.declaration.roles:
        if ground.scene.could_own(role, relation):
            yield (
                f"{quoted(role)} owns {relation.title}, or can act as its owner, and an owner may switch row "
                f"security off: ALTER TABLE {relation.title} OWNER TO a role that no request runs as"
            )
    held = {each for grant in relation.grants if grant.grantee == PUBLIC for each in grant.privileges}
    if "TRUNCATE" in held:
        yield (
            f"everybody may TRUNCATE {relation.title}, which no policy stops: "
            f"REVOKE TRUNCATE ON {relation.title} FROM PUBLIC"
        )


def _alike(ground: Ground) -> Iterator[str]:
    """Tables with the same tenant column in the same schemas that nobody declared."""
    declared = ground.declaration
    columns = {each.column for each in declared.tables}
    schemas = {each.name.schema for each in declared.tables}
    known = {
        *ground.tenant_tables,
        *(found.oid for name in declared.shared if (found := ground.relation(name))),
    }
    for each in sorted(ground.facts.relations.values(), key=lambda relation: relation.title):
        alike = next((column for column in each.columns if column.name in columns), None)
        if (
            alike
            and each.is_table
            and each.schema in schemas
            and each.oid not in known
            and not each.extension
        ):
            yield (
                f"{named(each)} has a column {quoted(alike.name)} and is not declared: "
                "its rows are not protected"
            )
