"""Covert channels: what is learnt of rows that are never shown."""

from collections.abc import Iterator

from tenantry.rls.facts import Column, Constraint, Index, Relation
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.roles import Role
from tenantry.rls.rule import Rules
from tenantry.rls.rules.keys import wider_key, wider_reference
from tenantry.rls.scene import Scene

RULES = Rules(Family.COVERT)

_UNGUESSABLE = ("uuid",)
"""Types of keys that nobody can try out."""


def _is_blind(scene: Scene, table: Relation) -> bool:
    return table.rls_enabled and bool(scene.tenant_column(table.oid))


def _without_tenant(scene: Scene, unique: bool) -> Iterator[tuple[Relation, Index]]:
    """Unique, or exclusion, indexes of tenant tables over all tenants, whose key a caller can choose."""
    for table in scene.tenant_tables:
        if not _is_blind(scene, table):
            continue
        tenant = scene.tenant_column(table.oid)
        for index in scene.indexes_of.get(table.oid, ()):
            if not index.valid or (index.unique if unique else index.exclusion) is False:
                continue
            names = [key.column for key in index.keys]
            by_text = any(key.column is None and _names(key.expression, tenant) for key in index.keys)
            if tenant not in names and not by_text and not _only_one_tenant(index, tenant):
                yield table, index


def _names(expression: str, column: str) -> bool:
    return quoted(column) in expression


def _only_one_tenant(index: Index, tenant: str) -> bool:
    """Whether its predicate picks rows by the tenant: then it is not over all of them."""
    return bool(index.predicate) and _names(index.predicate, tenant)


def _chosen(table: Relation, index: Index) -> bool:
    """Whether some caller can try values out: not where every key is computed by the server, or cannot be
    guessed. GENERATED ALWAYS AS IDENTITY keeps nobody from it: whoever may INSERT into the column may say
    OVERRIDING SYSTEM VALUE."""
    for key in index.keys:
        column = table.column(key.column) if key.column else None
        if column is None:
            return True
        if not column.generated and column.type not in _UNGUESSABLE:
            return True
    return False


def _gives(scene: Scene, table: Relation, index: Index, role: Role) -> bool:
    """Whether ``role`` can INSERT values of the key that another row has: it takes none that the server
    draws."""
    drawn = (each for each in _columns(table, index) if each.is_drawn)
    return all(scene.can_set(role.name, table, each, "INSERT") for each in drawn)


def _changes(scene: Scene, table: Relation, index: Index, role: Role) -> bool:
    """The same by UPDATE, which GENERATED ALWAYS does forbid."""
    return all(
        each.identity != "always" and scene.can_set(role.name, table, each, "UPDATE")
        for each in _columns(table, index)
    )


def _columns(table: Relation, index: Index) -> list[Column]:
    return [column for key in index.keys if key.column and (column := table.column(key.column))]


def _prober(scene: Scene, table: Relation, index: Index) -> Role | None:
    """The first role of the application that can try values of the key out."""
    if not _chosen(table, index):
        return None
    able = scene.users(table, "INSERT")
    ways = (_gives, _changes)
    return next((role for role in able if any(way(scene, table, index, role) for way in ways)), None)


def _able(scene: Scene, table: Relation) -> Role | None:
    """The first role of the application that may INSERT into the table."""
    return next(iter(scene.users(table, "INSERT")), None)


def _upserts(scene: Scene, table: Relation, index: Index, role: Role) -> bool:
    """Whether ON CONFLICT DO UPDATE is open to it: an index that the statement can name, the privilege, and a
    policy that lets something pass."""
    if not index.immediate or role not in scene.users(table, "UPDATE"):
        return False
    if not _gives(scene, table, index, role):
        return False
    return any(
        each.permissive and each.command in {"ALL", "UPDATE"} and scene.applies(each, role.name)
        for each in scene.policies_of.get(table.oid, ())
    )


@RULES.rule(
    "unique-across-tenants",
    Severity.MEDIUM,
    summary="A unique key over all tenants.",
    mechanism="Uniqueness is checked past the policies: an INSERT that fails with `duplicate key` tells that "
    "some tenant has that value. It also lets one tenant take a value away from all others.",
    fix="Lead the key with the tenant column; or use keys that cannot be guessed (uuid); or grant INSERT on "
    "the other columns only. (GENERATED ALWAYS AS IDENTITY does not help: OVERRIDING SYSTEM VALUE is open to "
    "whoever may INSERT into the column.)",
)
def unique_across_tenants(scene: Scene) -> Iterator[Found]:
    for table, index in _without_tenant(scene, unique=True):
        role = _prober(scene, table, index)
        if role is None or _upserts(scene, table, index, role):
            continue
        yield Found(
            f"index {quoted(index.name)} on {table.title}",
            f"{role.name} can try which values other tenants have in {quoted(index.name)}.",
            wider_key(scene, table, index),
            table=table.oid,
            role=role.name,
        )


@RULES.rule(
    "on-conflict",
    Severity.HIGH,
    summary="A unique key over all tenants on a table that may be upserted.",
    mechanism="INSERT … ON CONFLICT (key) DO UPDATE … WHERE is evaluated on the row that is in the way "
    "before its policies are: a condition that fails with the value in its message (a cast) shows another "
    "tenant's columns.",
    fix="Lead the key with the tenant column.",
)
def on_conflict(scene: Scene) -> Iterator[Found]:
    for table, index in _without_tenant(scene, unique=True):
        role = _prober(scene, table, index)
        if role is None or not _upserts(scene, table, index, role):
            continue
        yield Found(
            f"index {quoted(index.name)} on {table.title}",
            f"{quoted(index.name)} is unique over all tenants and {role.name} may INSERT and UPDATE: ON "
            "CONFLICT DO UPDATE … WHERE reads the other tenant's row.",
            wider_key(scene, table, index),
            table=table.oid,
            role=role.name,
        )


@RULES.rule(
    "exclusion-across-tenants",
    Severity.MEDIUM,
    summary="An exclusion constraint over all tenants.",
    mechanism="Exclusion is checked past the policies: an INSERT that conflicts tells what another tenant "
    "has (a booked room, a range of time), and its message shows the other row's key.",
    fix="Add `tenant_id WITH =` to the constraint.",
)
def exclusion_across_tenants(scene: Scene) -> Iterator[Found]:
    for table, index in _without_tenant(scene, unique=False):
        role = _able(scene, table)
        if role is not None:
            yield Found(
                f"constraint {quoted(index.name)} on {table.title}",
                f"{quoted(index.name)} excludes over all tenants: {role.name} learns of other tenants' rows.",
                table=table.oid,
                role=role.name,
            )


_ACTIONS = frozenset({"cascade", "set null", "set default"})


def _across(scene: Scene) -> Iterator[tuple[Relation, Relation, Constraint]]:
    """Foreign keys between tenant tables that do not tie the tenant of the one to that of the other."""
    for table in scene.tenant_tables:
        for key in scene.constraints_of.get(table.oid, ()):
            parent = scene.facts.relations.get(key.references)
            if key.kind != "foreign key" or parent is None or not scene.is_tenant_table(parent.oid):
                continue
            own, others = scene.tenant_column(table.oid), scene.tenant_column(parent.oid)
            tied = (own, others) in zip(key.columns, key.referenced_columns, strict=True)
            if own and others and not tied and not key.inherited and parent.rls_enabled:
                yield table, parent, key


@RULES.rule(
    "foreign-key-oracle",
    Severity.MEDIUM,
    summary="A foreign key between tenant tables that leaves the tenant out.",
    mechanism="Referential checks run past the policies: a row that refers to another tenant's id is "
    "accepted, one that refers to nothing is refused. So ids can be probed, and rows of two tenants be tied "
    "together.",
    fix="Make the key (tenant_id, id), referring to a unique (tenant_id, id).",
)
def foreign_key_oracle(scene: Scene) -> Iterator[Found]:
    for table, parent, key in _across(scene):
        if _acting(scene, parent, key) or not _refers(scene, table):
            continue
        yield _foreign(scene, (table, parent), key, "tells which ids other tenants have")


@RULES.rule(
    "foreign-key-cascade",
    Severity.HIGH,
    summary="A foreign key between tenant tables that acts across tenants.",
    mechanism="What a foreign key does on DELETE or UPDATE runs past the policies: where a row may refer to "
    "another tenant's, deleting that deletes or changes rows of a tenant who never asked.",
    fix="Make the key (tenant_id, id), referring to a unique (tenant_id, id).",
)
def foreign_key_cascade(scene: Scene) -> Iterator[Found]:
    for table, parent, key in _across(scene):
        action = _acting(scene, parent, key)
        if action:
            yield _foreign(scene, (table, parent), key, f"acts across tenants ({action})")


def _acting(scene: Scene, parent: Relation, key: Constraint) -> str:
    """What the key does when the application deletes or changes what it refers to; "" where it may not."""
    if key.on_delete in _ACTIONS and scene.users(parent, "DELETE"):
        return key.on_delete
    return key.on_update if key.on_update in _ACTIONS and scene.users(parent, "UPDATE") else ""


def _refers(scene: Scene, table: Relation) -> bool:
    return bool(scene.users(table, "INSERT") or scene.users(table, "UPDATE"))


def _foreign(scene: Scene, tables: tuple[Relation, Relation], key: Constraint, said: str) -> Found:
    table, parent = tables
    users = scene.users(table, "INSERT") or scene.users(table, "UPDATE")
    return Found(
        f"constraint {quoted(key.name)} on {table.title}",
        f"{quoted(key.name)} of {table.title} refers to {parent.title} without its tenant: it {said}.",
        wider_reference(scene, table, parent, key),
        table=parent.oid,
        role=users[0].name if users else "",
    )


@RULES.rule(
    "leakproof-function",
    Severity.HIGH,
    summary="A function that is declared LEAKPROOF.",
    mechanism="A LEAKPROOF function may be run on rows before their policies: one that raises an error, "
    "logs or writes what it is given shows every tenant's values.",
    fix="Take LEAKPROOF away, unless it can be shown that nothing of its arguments comes out.",
)
def leakproof_function(scene: Scene) -> Iterator[Found]:
    for function in scene.own_functions():
        if function.leakproof and function.language not in {"internal", "c"}:
            users = scene.users(function, "EXECUTE")
            if users:
                yield Found(
                    f"function {function.title}",
                    f"{function.title} is LEAKPROOF: {users[0].name} can have it run on rows before their "
                    "policies.",
                    f"ALTER FUNCTION {function.title} NOT LEAKPROOF;",
                    role=users[0].name,
                )


@RULES.rule(
    "sequence-readable",
    Severity.LOW,
    summary="A sequence of a tenant table that the application may read or set.",
    mechanism="One sequence counts for all tenants: SELECT last_value tells how much all of them do "
    "together, and UPDATE (setval) lets one tenant make the inserts of all others fail.",
    fix="Grant USAGE alone, or use GENERATED ALWAYS AS IDENTITY, which needs no grant.",
)
def sequence_readable(scene: Scene) -> Iterator[Found]:
    for sequence in scene.relations("sequence"):
        if sequence.owned_by is None or not scene.is_tenant_table(sequence.owned_by[0]):
            continue
        sets, reads = scene.users(sequence, "UPDATE"), scene.users(sequence, "SELECT")
        if sets or reads:
            role = (sets or reads)[0].name
            does = "set" if sets else "read"
            yield Found(
                f"sequence {sequence.title}",
                f"{role} may {does} {sequence.title}, which counts for all tenants.",
                f"REVOKE ALL ON SEQUENCE {sequence.title} FROM {quoted(role)};\n"
                f"GRANT USAGE ON SEQUENCE {sequence.title} TO {quoted(role)};",
                table=sequence.owned_by[0],
                role=role,
                severity=Severity.MEDIUM if sets else None,
            )
