"""Doors: tables beside the one with the policies, and privileges and exits that policies do not cover."""

from collections.abc import Iterator

from tenantry.rls.facts import Relation
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.roles import PUBLIC, Grant, Privilege
from tenantry.rls.rule import Rules
from tenantry.rls.rules.enforcement import data_users, subject
from tenantry.rls.rules.wording import enable
from tenantry.rls.scene import Scene

RULES = Rules(Family.DOORS)


def _children(scene: Scene, *, partitions: bool) -> Iterator[tuple[Relation, Relation]]:
    """(child, tenant table), also of children of children."""
    waiting = [(each, child) for each in scene.tenant_tables for child in scene.children_of.get(each.oid, ())]
    seen = set()
    while waiting:
        parent, child = waiting.pop(0)
        if child.oid in seen or child.kind == "foreign table":
            continue
        seen.add(child.oid)
        if child.is_partition == partitions:
            yield child, parent
        waiting += [(child, each) for each in scene.children_of.get(child.oid, ())]


def _unprotected(scene: Scene, *, partitions: bool) -> Iterator[Found]:
    for child, parent in _children(scene, partitions=partitions):
        users = data_users(scene, child)
        users = tuple(each for each in users if scene.in_scope(child.schema))
        if users and not child.rls_enabled and not scene.policies_of.get(child.oid):
            what = "partition" if partitions else "child"
            yield Found(
                subject(child),
                f"{child.title} is a {what} of {parent.title} without row security of its own, and "
                f"{users[0].name} may use it directly.",
                f"REVOKE ALL ON {child.title} FROM {quoted(users[0].name)};\n{enable(child)}",
                child.oid,
                users[0].name,
            )


@RULES.rule(
    "partition-unprotected",
    Severity.HIGH,
    summary="The application may use a partition of a tenant table directly, and it has no row security.",
    mechanism="The policies of a partitioned table hold what goes through it. A statement that names a "
    "partition is held by the partition's own policies only, and a new partition has none.",
    fix="Grant nothing on partitions: through the parent no privilege on them is needed. Or enable row "
    "security on each.",
)
def partition_unprotected(scene: Scene) -> Iterator[Found]:
    yield from _unprotected(scene, partitions=True)


@RULES.rule(
    "inheritance-child",
    Severity.HIGH,
    summary="The application may use a child of a tenant table directly, and it has no row security.",
    mechanism="Policies are not inherited. Through the parent its own are applied to the children's rows; a "
    "statement that names the child is held by nothing.",
    fix="Grant nothing on the children, or enable row security on each.",
)
def inheritance_child(scene: Scene) -> Iterator[Found]:
    yield from _unprotected(scene, partitions=False)


@RULES.rule(
    "inheritance-parent",
    Severity.HIGH,
    summary="A table without row security has a tenant table as a child, and shows its rows.",
    mechanism="A query of a parent returns the rows of its children under the parent's policies, not "
    "theirs. A parent without row security opens every child below it, in the columns that they share.",
    fix="Enable row security on the parent with the same policy, or end the inheritance.",
)
def inheritance_parent(scene: Scene) -> Iterator[Found]:
    for parent in scene.relations("table", "partitioned table"):
        if parent.rls_enabled or scene.is_tenant_table(parent.oid):
            continue
        children = [each for each in scene.children_of.get(parent.oid, ()) if scene.is_tenant_table(each.oid)]
        children = [each for each in children if each.rls_enabled]
        users = scene.users(parent, "SELECT") if children else ()
        if users:
            message = (
                f"{parent.title} shows the rows of {children[0].title} to {users[0].name}, under no policy."
            )
            yield Found(subject(parent), message, enable(parent), children[0].oid, users[0].name)


@RULES.rule(
    "foreign-table",
    Severity.HIGH,
    summary="The application may use a foreign table with a tenant column.",
    mechanism="Foreign tables cannot have row policies. The remote server sees the user of the mapping, the "
    "same for every tenant, and answers with all rows.",
    fix="Revoke it, and give the application a view with security_barrier that compares the tenant column "
    "to the setting; or have the remote server's policies hold a mapping for each tenant.",
)
def foreign_table(scene: Scene) -> Iterator[Found]:
    for table in scene.relations("foreign table"):
        named = [each.name for each in table.columns if each.name in scene.scope.columns]
        child = any(scene.is_tenant_table(each) for each in table.parents)
        users = data_users(scene, table) if named or child else ()
        if users:
            yield Found(
                subject(table),
                f"{table.title} (server {table.server}) has rows of every tenant, and {users[0].name} may "
                "use it.",
                f"REVOKE ALL ON {table.title} FROM {quoted(users[0].name)};",
                table.oid,
                users[0].name,
            )


@RULES.rule(
    "foreign-server",
    Severity.MEDIUM,
    summary="The application may use a foreign server.",
    mechanism="With USAGE on a server a role can make foreign tables of whatever the mapped user sees "
    "there, where it may create tables at all, and make its own user mapping. A server that leads back to "
    "this database is a way to any login.",
    fix="Revoke USAGE; let the owner make the foreign tables.",
)
def foreign_server(scene: Scene) -> Iterator[Found]:
    for server in sorted(scene.facts.foreign_servers.values(), key=lambda each: each.name):
        for role in scene.application:
            if scene.granted(role.name, server, "USAGE"):
                yield Found(
                    f"server {quoted(server.name)} for {role.name}",
                    f"{role.name} may use the foreign server {server.name} ({server.wrapper}).",
                    f"REVOKE USAGE ON FOREIGN SERVER {quoted(server.name)} FROM {quoted(role.name)};",
                    role=role.name,
                )


def _privilege(scene: Scene, privilege: Privilege, why: str) -> Iterator[Found]:
    """Tenant tables on which somebody granted ``privilege`` to one of the application's roles."""
    for table in scene.tenant_tables:
        for role in scene.application:
            if scene.granted(role.name, table, privilege):
                yield Found(
                    f"{subject(table)} for {role.name}",
                    f"{role.name} may {privilege} {table.title}: {why}.",
                    f"REVOKE {privilege} ON {table.title} FROM {quoted(role.name)};",
                    table.oid,
                    role.name,
                )


@RULES.rule(
    "truncate",
    Severity.HIGH,
    summary="The application may TRUNCATE a tenant table.",
    mechanism="TRUNCATE is not subject to row security. One tenant's request can delete every tenant's "
    "rows, and with CASCADE those of other tables.",
    fix="Revoke TRUNCATE. (GRANT ALL gives it.)",
)
def truncate(scene: Scene) -> Iterator[Found]:
    yield from _privilege(scene, "TRUNCATE", "policies do not hold it, and every tenant's rows go")


@RULES.rule(
    "references",
    Severity.MEDIUM,
    summary="The application may make foreign keys to a tenant table.",
    mechanism="Foreign keys are checked past the policies. A table of one's own with a key to a tenant "
    "table says of any value whether a row with it exists, and keeps that row from being deleted.",
    fix="Revoke REFERENCES. (GRANT ALL gives it.)",
)
def references(scene: Scene) -> Iterator[Found]:
    yield from _privilege(scene, "REFERENCES", "a key of its own tells which rows exist, past the policies")


@RULES.rule(
    "trigger-privilege",
    Severity.HIGH,
    summary="The application may make triggers on a tenant table.",
    mechanism="A trigger's function runs as whoever changes the table: a migration, a service role, a "
    "superuser. With TRIGGER the application has code of its own run with their rights.",
    fix="Revoke TRIGGER. (GRANT ALL gives it.)",
)
def trigger_privilege(scene: Scene) -> Iterator[Found]:
    yield from _privilege(
        scene, "TRIGGER", "its function would run as whoever writes there, service roles too"
    )


@RULES.rule(
    "create-on-schema",
    Severity.MEDIUM,
    summary="The application may create objects in a schema.",
    mechanism="Its own tables have no policies, and its own functions and operators can stand before those "
    "that others mean by an unqualified name.",
    fix="Revoke CREATE from it, and from PUBLIC.",
)
def create_on_schema(scene: Scene) -> Iterator[Found]:
    for schema in sorted(scene.facts.schemas.values(), key=lambda each: each.name):
        made = [each for each in schema.grants if each.grantee != schema.owner]
        for role in scene.application if scene.in_scope(schema.name) else ():
            held = scene.reach.acts_as(role.name) | {PUBLIC}
            by = next(
                (each.grantee for each in made if each.grantee in held and "CREATE" in each.privileges), None
            )
            if by is None:
                continue
            grantee = "PUBLIC" if by == PUBLIC else quoted(by)
            yield Found(
                f"schema {quoted(schema.name)} for {role.name}",
                f"{role.name} may create objects in {schema.name}.",
                f"REVOKE CREATE ON SCHEMA {quoted(schema.name)} FROM {grantee};",
                role=role.name,
            )


@RULES.rule(
    "publication",
    Severity.LOW,
    summary="A publication sends every tenant's rows to its subscribers.",
    mechanism="Logical replication reads the log: the publisher's policies do not hold it, and on the "
    "subscriber the rows are as open as its own tables are. A row filter is fixed: it cannot ask for the "
    "session's tenant.",
    fix="Publish only what the subscriber is to have of every tenant; declare the publication's owner as a "
    "service role with the reason.",
)
def publication(scene: Scene) -> Iterator[Found]:
    for each in sorted(scene.facts.publications, key=lambda found: found.name):
        sent = [scene.facts.relations[oid] for oid in each.relations if scene.is_tenant_table(oid)]
        if sent:
            names = ", ".join(sorted(table.title for table in sent)[:3])
            more = f" and {len(sent) - 3} more tables" if len(sent) > 3 else ""
            yield Found(
                f"publication {quoted(each.name)}",
                f"{each.name} publishes {names}{more}.",
                "",
                sent[0].oid,
                excuse=scene.scope.service.get(each.owner, ""),
            )


@RULES.rule(
    "large-objects",
    Severity.MEDIUM,
    summary="Large objects that the application may read belong to no tenant.",
    mechanism="Large objects have an owner and an ACL and no row policies: what one tenant's request "
    "stored, every other can read by its number, and numbers can be guessed. With lo_compat_privileges not "
    "even the ACL holds.",
    fix="Keep such data in a bytea column of a tenant table.",
)
def large_objects(scene: Scene) -> Iterator[Found]:
    compatible = scene.facts.server.settings.get("lo_compat_privileges") == "on"
    for role in scene.application:
        held = scene.reach.acts_as(role.name)
        count = sum(
            each.count
            for each in scene.facts.large_objects
            if compatible or each.owner in held or _opens(each.grants, held)
        )
        if count:
            yield Found(
                f"large objects for {role.name}",
                f"{role.name} may read {count:,} large object{'' if count == 1 else 's'}, whichever tenant "
                "is bound.",
                "",
                role=role.name,
            )


def _opens(grants: tuple[Grant, ...], held: frozenset[str]) -> bool:
    return any("SELECT" in each.privileges and each.grantee in held | {PUBLIC} for each in grants)
