"""What is missing: a declaration compared with a database's facts, as ordered steps. Pure.

The order, and why. Roles come first, since everything names them. Indexes come before policies, so that no
policy makes a table slow. A table's policies, ENABLE, FORCE and grants are one step: there is no moment at
which a role that is new to the table sees more than its tenant. Views follow: once they are read as who
asks, who asks needs the grants. Schemas are opened last, when nothing in them is open any more. The way
back is the same steps, backwards.

A second plan, after the first was carried out, is empty.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tenantry.rls.declaration import Declaration, TableName, TenantTable
from tenantry.rls.facts import Facts, Policy, Relation
from tenantry.rls.ground import Ground, named
from tenantry.rls.names import quoted
from tenantry.rls.objections import objections
from tenantry.rls.remarks import remarks
from tenantry.rls.render import (
    ISOLATION,
    SERVICE,
    Step,
    build_index,
    create_role,
    grant,
    invoke,
    join_indexes,
    kept_predicates,
    protect,
    revoke,
    unprotect,
)
from tenantry.rls.roles import PUBLIC
from tenantry.rls.views import views_to_change

BYPASSING = ("truncate", "references", "trigger")
"""Privileges on a table that row policies do not hold to a tenant: taken from application roles."""

WRITING = ("insert", "update", "delete", *BYPASSING)
"""What application roles may not do to shared tables."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do, in order; nothing when the database is as declared.

    ``objections``: why nothing may be done as things stand, each with its way out; then ``steps`` is empty.
    ``remarks``: what a plan leaves to people.
    """

    steps: tuple[Step, ...] = ()
    objections: tuple[str, ...] = ()
    remarks: tuple[str, ...] = field(default=())

    @property
    def back(self) -> tuple[Step, ...]:
        """The steps that take it back, in order; those that leave nothing to take back are left out."""
        return tuple(
            Step(f"take back: {each.title}", each.down, each.up, each.apart, each.relations)
            for each in reversed(self.steps)
            if each.down
        )


def plan(declaration: Declaration, facts: Facts) -> Plan:
    """What brings the database of ``facts`` to ``declaration``. Linear in the size of both."""
    ground = Ground(declaration, facts)
    found = tuple(objections(ground))
    if found:
        return Plan(objections=found)
    return Plan(tuple(_steps(ground)), (), tuple(remarks(ground)))


def _steps(ground: Ground) -> Iterator[Step]:
    declared = ground.declaration
    for role in (*declared.roles, *declared.services):
        if role not in ground.facts.roles:
            yield create_role(role)
    planned: set[TableName] = set()
    for oid, table in ground.tenant_tables.items():
        yield from _indexes(ground, ground.facts.relations[oid], table, planned)
    for oid, table in ground.tenant_tables.items():
        yield from _protection(ground, ground.facts.relations[oid], table)
    for name in declared.shared:
        yield from _sharing(ground, name)
    for view in views_to_change(ground):
        yield invoke(named(view), view.options.get("security_invoker"))
    yield from _schemas(ground)


def _schemas(ground: Ground) -> Iterator[Step]:
    """USAGE of the schemas, so that the roles reach their tables."""
    for name in ground.schemas:
        schema = ground.facts.schemas[name]
        pairs = [
            grant(("usage",), f"SCHEMA {quoted(name)}", role)
            for role in ground.declaration.roles
            if not ground.scene.can(role, schema, "USAGE")
        ]
        if pairs:
            yield _granting(f"let the application into {quoted(name)}", pairs)


def _indexes(
    ground: Ground, relation: Relation, table: TenantTable, planned: set[TableName]
) -> Iterator[Step]:
    parent_does = relation.is_partition and any(each in ground.tenant_tables for each in relation.parents)
    if parent_does or ground.is_led(relation, table.column):
        return
    partitioned = relation.kind == "partitioned table"
    tables = [each for each in ground.below(relation) if each.kind == "table"] if partitioned else [relation]
    for each in tables:
        if not ground.has_plain(each, table.column):
            name = ground.index_name(each, table.column, planned)
            yield build_index(name, named(each), table.column)
    if partitioned:  # an index of the whole takes in those of its parts that are like it
        name = ground.index_name(relation, table.column, planned)
        yield join_indexes(name, table.name, table.column, tuple(map(named, tables)))


def _protection(ground: Ground, relation: Relation, table: TenantTable) -> Iterator[Step]:
    pairs = list(_grants(ground, relation, table))
    if _is_protected(ground, relation, table):
        if pairs:
            yield _granting(f"settle who may use {table.name}", pairs)
        return
    mine = (ISOLATION, SERVICE, *table.replaces)
    before = tuple(each for each in ground.policies(relation) if each.name in mine)
    down = unprotect(table.name, enabled=relation.rls_enabled, forced=relation.rls_forced, policies=before)
    step = protect(table, ground.declaration.setting, tuple(ground.declaration.services), down)
    up, back = [up for up, _ in pairs], [down for _, down in reversed(pairs)]
    yield replace(step, up=(*step.up, *up), down=(*back, *step.down))


def _is_protected(ground: Ground, relation: Relation, table: TenantTable) -> bool:
    policies = {each.name: each for each in ground.policies(relation)}
    services = tuple(sorted(ground.declaration.services))
    isolation, service = policies.get(ISOLATION), policies.get(SERVICE)
    return (
        relation.rls_enabled
        and relation.rls_forced
        and not any(each in policies for each in table.replaces)
        and isolation is not None
        and _isolates(isolation, table, ground.declaration.setting)
        and (_serves(service, services) if services else service is None)
    )


def _isolates(policy: Policy, table: TenantTable, setting: str) -> bool:
    kept = kept_predicates(table.column, table.type, setting)
    whole = policy.permissive and policy.command == "ALL" and policy.roles == (PUBLIC,)
    return whole and policy.using in kept and policy.check in kept


def _serves(policy: Policy | None, services: tuple[str, ...]) -> bool:
    if policy is None or not policy.permissive or policy.command != "ALL":
        return False
    return tuple(sorted(policy.roles)) == services and policy.using == policy.check == "true"


def _grants(ground: Ground, relation: Relation, table: TenantTable) -> Iterator[tuple[str, str]]:
    """What application roles lack, and what they must not have: on the table and its sequences."""
    for role in ground.declaration.roles:
        lacking = ground.lacks(role, table.grants, relation)
        if lacking:
            yield grant(lacking, f"TABLE {table.name}", role)
        unwanted = [each for each in WRITING if each not in table.grants]
        is_part = table.name not in ground.declared
        excess = ground.holds(role, BYPASSING if is_part else unwanted, relation)
        if excess:
            yield revoke(excess, f"TABLE {table.name}", role)
        if "insert" in table.grants:
            for sequence in ground.sequences(relation):
                if ground.lacks(role, ("usage",), sequence):
                    yield grant(("usage",), f"SEQUENCE {named(sequence)}", role)


def _sharing(ground: Ground, name: TableName) -> Iterator[Step]:
    relation = ground.relation(name)
    assert relation is not None, "an objection was raised"
    pairs = []
    for role in ground.declaration.roles:
        if ground.lacks(role, ("select",), relation):
            pairs.append(grant(("select",), f"TABLE {name}", role))
        excess = ground.holds(role, WRITING, relation)
        if excess:
            pairs.append(revoke(excess, f"TABLE {name}", role))
    if pairs:
        yield _granting(f"share {name}, to be read only", pairs)


def _granting(title: str, pairs: list[tuple[str, str]]) -> Step:
    return Step(title, tuple(up for up, _ in pairs), tuple(down for _, down in reversed(pairs)))
