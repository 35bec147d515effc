"""Enforcement, table by table: whether a tenant table has policies that hold whoever asks."""

from collections.abc import Iterator

from tenantry.rls.facts import Relation
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.roles import PUBLIC, Role
from tenantry.rls.rule import Rules
from tenantry.rls.rules.wording import enable, leave, protected
from tenantry.rls.scene import Scene

RULES = Rules(Family.ENFORCEMENT)


def subject(table: Relation) -> str:
    """A relation as findings name it."""
    return f"{table.kind} {table.title}"


def data_users(scene: Scene, table: Relation) -> tuple[Role, ...]:
    """The application's roles that may do anything at all with the rows of ``table``."""
    able = [
        scene.users(table, "SELECT"),
        scene.users(table, "INSERT"),
        scene.users(table, "UPDATE"),
        scene.users(table, "DELETE"),
    ]
    return next((each for each in able if each), ())


def is_child(scene: Scene, table: Relation) -> bool:
    """Whether it is a partition or an inheritance child of a tenant table: other rules look at those."""
    return any(scene.is_tenant_table(parent) for parent in table.parents)


@RULES.rule(
    "rls-off",
    Severity.CRITICAL,
    summary="A tenant table on which row security was never enabled.",
    mechanism="Without ENABLE ROW LEVEL SECURITY a table shows every row to whoever holds a privilege on "
    "it: one statement without its WHERE is a leak.",
    fix="Enable and force row security, with a policy on the tenant column. The SQL reads the setting that "
    "other policies read, or that a declaration names; else `app.tenant_id`: put yours in its place.",
)
def rls_off(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        users = data_users(scene, table)
        if table.rls_enabled or not users or scene.policies_of.get(table.oid) or is_child(scene, table):
            continue
        message = f"Row security is off on {table.title}, and {users[0].name} may use it."
        yield Found(subject(table), message, protected(scene, table), table.oid, users[0].name)


@RULES.rule(
    "dormant-policies",
    Severity.CRITICAL,
    summary="A table has policies, but row security is not enabled on it.",
    mechanism="CREATE POLICY does not enable row security. Until somebody does, the policies are kept, "
    "shown by \\d, and applied to nobody: the table looks protected and is open.",
    fix="Enable and force row security.",
)
def dormant_policies(scene: Scene) -> Iterator[Found]:
    for table in scene.relations("table", "partitioned table"):
        policies = scene.policies_of.get(table.oid, ())
        if table.rls_enabled or not policies:
            continue
        names = ", ".join(each.name for each in policies)
        message = f"{table.title} has policies ({names}), but row security is off: they hold nobody."
        users = data_users(scene, table)
        yield Found(subject(table), message, enable(table), table.oid, users[0].name if users else "")


@RULES.rule(
    "no-policy-applies",
    Severity.LOW,
    summary="The application may use a tenant table, and no permissive policy lets it see a row.",
    mechanism="With row security on, a row is shown only if a permissive policy for the role lets it pass. "
    "Without one (none at all, only restrictive ones, or only for other roles) every query finds nothing, "
    "without an error. Nothing leaks; but somebody will notice, and a hurried USING (true) is how it is "
    "often mended.",
    fix="Write the tenant's policy for the application's role, or revoke its privileges on the table.",
)
def no_policy_applies(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        users = data_users(scene, table) if table.rls_enabled else ()
        policies = [each for each in scene.policies_of.get(table.oid, ()) if each.permissive]
        for role in users:
            held = scene.reach.assumes(role.name)
            if any(scene.skips_policies(each, table) for each in held):
                continue
            if not any(scene.applies(policy, each) for policy in policies for each in held):
                message = f"No permissive policy of {table.title} is for {role.name}: it will find no rows."
                yield Found(f"{subject(table)} for {role.name}", message, "", table.oid, role.name)


@RULES.rule(
    "unforced-owner",
    Severity.MEDIUM,
    summary="Row security is not forced: the table's owner passes by it.",
    mechanism="Policies do not hold the owner of a table unless FORCE ROW LEVEL SECURITY says so. "
    "Migrations, scripts, views and SECURITY DEFINER functions that run as the owner see every tenant's "
    "rows. If the application logs in as the owner, the policies hold nobody that matters. (FORCE never "
    "holds a superuser.)",
    fix="Force row security; let the application log in as a role that owns nothing.",
)
def unforced_owner(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        if not table.rls_enabled or table.rls_forced or _inheriting(scene, table):
            continue
        owner = scene.facts.roles.get(table.owner)
        is_application = any(each.name == table.owner for each in scene.application)
        severity = Severity.CRITICAL if is_application else None
        if owner is not None and owner.superuser:
            severity = Severity.LOW
        who = "the application's own role" if is_application else "its owner"
        yield Found(
            subject(table),
            f"{table.title} does not force its policies on {table.owner}, {who}.",
            f"ALTER TABLE {table.title} FORCE ROW LEVEL SECURITY;",
            table.oid,
            table.owner,
            severity,
        )


def _inheriting(scene: Scene, table: Relation) -> list[Role]:
    """The application's roles that count as the owner without being it."""
    return [
        each
        for each in scene.application
        if each.name != table.owner and not each.superuser and table.owner in scene.reach.inherits(each.name)
    ]


@RULES.rule(
    "inherited-owner",
    Severity.CRITICAL,
    summary="The application inherits from the owner of a tenant table that does not force its policies.",
    mechanism="Whether policies hold a role is asked as for a privilege: a role that inherits the owner's "
    "rights counts as the owner, and without FORCE passes by every policy of the table.",
    fix="Revoke the membership, and force row security.",
)
def inherited_owner(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        if not table.rls_enabled or table.rls_forced:
            continue
        for role in _inheriting(scene, table):
            way = scene.reach.way(role.name, table.owner)
            yield Found(
                f"{subject(table)} for {role.name}",
                f"{way}, who owns {table.title} and is not forced: its policies do not hold {role.name}.",
                f"{leave(scene, role.name, table.owner)}\n"
                f"ALTER TABLE {table.title} FORCE ROW LEVEL SECURITY;",
                table.oid,
                role.name,
            )


@RULES.rule(
    "owner-reachable",
    Severity.HIGH,
    summary="The application can act as the owner of a tenant table, and so switch its policies off.",
    mechanism="An owner may ALTER TABLE … DISABLE ROW LEVEL SECURITY, drop a policy, or add one. FORCE does "
    "not change that. Whoever can run SQL as the application can then read everything, for everybody.",
    fix="Give the tables to a role that the application is no member of.",
)
def owner_reachable(scene: Scene) -> Iterator[Found]:
    owners: dict[tuple[str, str], list[Relation]] = {}
    for table in scene.tenant_tables:
        for role in scene.application:
            if not role.superuser and table.owner in scene.reach.acts_as(role.name):
                owners.setdefault((role.name, table.owner), []).append(table)
    for (role_name, owner), tables in owners.items():
        itself = role_name == owner
        way = f"{role_name} is the owner" if itself else scene.reach.way(role_name, owner) + ", the owner"
        yield Found(
            f"role {role_name} as {owner}",
            f"{way} of {_some(tables)}, and may disable the policies there.",
            "" if itself else leave(scene, role_name, owner),
            tables[0].oid,
            role_name,
        )


def _some(tables: list[Relation]) -> str:
    shown = ", ".join(each.title for each in tables[:3])
    return shown if len(tables) <= 3 else f"{shown} and {len(tables) - 3} more tables"


@RULES.rule(
    "public-grant",
    Severity.MEDIUM,
    summary="Everybody (PUBLIC) holds a privilege on a tenant table.",
    mechanism="A grant to PUBLIC is held by every role that exists and every one that will: roles for which "
    "no policy was written, or which policies do not hold.",
    fix="Revoke it from PUBLIC and grant it to the application's role.",
)
def public_grant(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        held = sorted({word for each in table.grants if each.grantee == PUBLIC for word in each.privileges})
        if held:
            privileges = ", ".join(held)
            message = f"PUBLIC holds {privileges} on {table.title}."
            yield Found(subject(table), message, f"REVOKE ALL ON {table.title} FROM PUBLIC;", table.oid)


@RULES.rule(
    "default-privileges",
    Severity.MEDIUM,
    summary="New tables are granted to the application before anybody has protected them.",
    mechanism="ALTER DEFAULT PRIVILEGES … GRANT gives rights on each table the moment it is made. A "
    "migration that forgets ENABLE ROW LEVEL SECURITY then leaves a table that is open to every tenant, and "
    "nothing fails.",
    fix="Take the default back, and grant on each table where its policies are written.",
)
def default_privileges(scene: Scene) -> Iterator[Found]:
    names = {each for role in scene.application for each in scene.reach.acts_as(role.name)} | {PUBLIC}
    for default in scene.facts.default_privileges:
        if default.kind != "r" or (default.schema is not None and not scene.in_scope(default.schema)):
            continue
        for grant in default.grants:
            if grant.grantee not in names or grant.grantee == default.owner or not grant.privileges:
                continue
            where = f" IN SCHEMA {quoted(default.schema)}" if default.schema else ""
            grantee = "PUBLIC" if grant.grantee == PUBLIC else quoted(grant.grantee)
            yield Found(
                f"default privileges of {default.owner}{where.lower()} for {grant.grantee}",
                f"Every table that {default.owner} makes is granted to {grant.grantee} "
                f"({', '.join(sorted(grant.privileges))}) at once.",
                f"ALTER DEFAULT PRIVILEGES FOR ROLE {quoted(default.owner)}{where} REVOKE ALL ON TABLES FROM "
                f"{grantee};",
                role="" if grant.grantee == PUBLIC else grant.grantee,
            )


@RULES.rule(
    "child-unprotected",
    Severity.HIGH,
    summary="A table without a tenant column refers to a tenant table and has no policies.",
    mechanism="Rows that belong to a tenant's row are the tenant's: the lines of an invoice, the files of a "
    "message. A table that names its parent by a key, and no tenant, shows all of them to everybody, though "
    "the parent is protected.",
    fix="Give it the tenant column (and the parent's composite key), or a policy that follows its key to "
    "the parent; or declare it shared, with the reason.",
)
def child_unprotected(scene: Scene) -> Iterator[Found]:
    for table in scene.relations("table", "partitioned table"):
        if table.rls_enabled or scene.is_tenant_table(table.oid) or table.oid in scene.scope.shared:
            continue
        users = scene.users(table, "SELECT")
        keys = [each for each in scene.constraints_of.get(table.oid, ()) if each.kind == "foreign key"]
        parents = [each.references for each in keys if scene.is_tenant_table(each.references)]
        if users and parents and not scene.policies_of.get(table.oid):
            parent = scene.facts.relations[parents[0]]
            message = (
                f"{table.title} refers to {parent.title}, a tenant table, and {users[0].name} sees every row."
            )
            yield Found(subject(table), message, protected(scene, table), table.oid, users[0].name)


@RULES.rule(
    "unclassified-table",
    Severity.MEDIUM,
    summary="The application may use a table that is declared neither a tenant's nor shared.",
    mechanism="What nobody has classified nobody has protected on purpose. Only asked where tables are "
    "declared.",
    fix="Declare it a tenant table, or shared with the reason; or revoke the application's privileges on it.",
)
def unclassified_table(scene: Scene) -> Iterator[Found]:
    if not scene.scope.declared:
        return
    known = {*scene.scope.tenant_tables, *scene.scope.shared}
    for table in scene.relations("table", "partitioned table"):
        users = data_users(scene, table)
        if (
            users
            and table.oid not in known
            and not is_child(scene, table)
            and not _is_child_table(scene, table)
        ):
            message = (
                f"{table.title} is declared neither a tenant table nor shared, and {users[0].name} uses it."
            )
            yield Found(subject(table), message, "", 0, users[0].name)


def _is_child_table(scene: Scene, table: Relation) -> bool:
    """What ``child-unprotected`` reports already."""
    keys = (each for each in scene.constraints_of.get(table.oid, ()) if each.kind == "foreign key")
    return not table.rls_enabled and any(scene.is_tenant_table(each.references) for each in keys)


@RULES.rule(
    "shared-table-writable",
    Severity.MEDIUM,
    summary="The application may write a table that all tenants share.",
    mechanism="One tenant's request can change what every other tenant reads: a price, a flag, a template. "
    "It is also a way to hand data over.",
    fix="Revoke INSERT, UPDATE, DELETE and TRUNCATE; let a service role write it.",
)
def shared_table_writable(scene: Scene) -> Iterator[Found]:
    for oid in scene.scope.shared:
        table = scene.facts.relations[oid]
        for role in scene.application:
            held = [
                each
                for each in ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
                if scene.could(role.name, table, each)
            ]
            held = [] if role.superuser or _writes_are_held(scene, table) else held
            if held:
                verbs = ", ".join(held)
                yield Found(
                    f"{subject(table)} for {role.name}",
                    f"{role.name} may {verbs} on {table.title}, which all tenants share.",
                    f"REVOKE {verbs} ON {table.title} FROM {quoted(role.name)};",
                    table.oid,
                    role.name,
                )


def _writes_are_held(scene: Scene, table: Relation) -> bool:
    """Whether row security denies the application's writes: on, and no permissive policy for them."""
    writing = [
        each for each in scene.policies_of.get(table.oid, ()) if each.permissive and each.command != "SELECT"
    ]
    return table.rls_enabled and not any(map(scene.for_application, writing))


@RULES.rule(
    "tenant-column-nullable",
    Severity.LOW,
    summary="The tenant column may be NULL.",
    mechanism="A row without a tenant passes no policy: nobody sees it, nobody can delete it, and a policy "
    "that is one day made to allow for it (tenant_id IS NULL OR …) shows it to everybody.",
    fix="Give such rows a tenant, then SET NOT NULL.",
)
def tenant_column_nullable(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        column = table.column(scene.tenant_column(table.oid))
        if column is not None and not column.not_null and not is_child(scene, table):
            sql = f"ALTER TABLE {table.title} ALTER COLUMN {quoted(column.name)} SET NOT NULL;"
            yield Found(subject(table), f"{table.title}.{column.name} may be NULL.", sql, table.oid)
