"""Enforcement, role by role: what the application can do that no policy holds, and who is excused."""

from collections.abc import Callable, Iterator

from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.reach import granted
from tenantry.rls.roles import Role
from tenantry.rls.rule import Rules
from tenantry.rls.rules.wording import leave
from tenantry.rls.scene import Scene

RULES = Rules(Family.ENFORCEMENT)


@RULES.rule(
    "superuser",
    Severity.CRITICAL,
    summary="The application is a superuser.",
    mechanism="Nothing holds a superuser: no policy, FORCE or not, and no privilege.",
    fix="Let it log in as a role without attributes that owns nothing.",
)
def superuser(scene: Scene) -> Iterator[Found]:
    for role in scene.application:
        if role.superuser:
            sql = f"ALTER ROLE {quoted(role.name)} NOSUPERUSER;"
            yield Found(
                f"role {role.name}", f"{role.name} is a superuser: no policy holds it.", sql, role=role.name
            )


@RULES.rule(
    "bypassrls",
    Severity.CRITICAL,
    summary="The application has BYPASSRLS.",
    mechanism="A role with this attribute passes by every policy of every table.",
    fix="Take the attribute away; where one job needs all tenants, give that job a role of its own and "
    "declare it.",
)
def bypassrls(scene: Scene) -> Iterator[Found]:
    for role in scene.application:
        if role.bypasses_rls and not role.superuser:
            sql = f"ALTER ROLE {quoted(role.name)} NOBYPASSRLS;"
            yield Found(
                f"role {role.name}", f"{role.name} has BYPASSRLS: no policy holds it.", sql, role=role.name
            )


@RULES.rule(
    "bypass-by-set-role",
    Severity.CRITICAL,
    summary="The application can SET ROLE to a superuser or a role with BYPASSRLS.",
    mechanism="Attributes are not inherited, but SET ROLE takes them on: one statement, and no policy holds "
    "the session. SQL injection is enough.",
    fix="Revoke the membership.",
)
def bypass_by_set_role(scene: Scene) -> Iterator[Found]:
    for role in scene.application:
        for name in sorted(scene.reach.assumes(role.name) - {role.name}):
            other = scene.facts.roles.get(name)
            if other is None or role.superuser or not (other.superuser or other.bypasses_rls):
                continue
            what = "a superuser" if other.superuser else "a role with BYPASSRLS"
            yield Found(
                f"role {role.name} as {name}",
                f"{role.name} can SET ROLE {name}, {what}.",
                leave(scene, role.name, name),
                role=role.name,
            )


@RULES.rule(
    "admin-option",
    Severity.HIGH,
    summary="The application can make itself a member of a role that policies do not hold.",
    mechanism="Whoever holds ADMIN OPTION on a role may grant it, to itself too; so a membership that may "
    "neither inherit nor be SET is one GRANT away from both.",
    fix="Revoke the ADMIN OPTION, or the membership.",
)
def admin_option(scene: Scene) -> Iterator[Found]:
    owners = {table.owner for table in scene.tenant_tables}
    for role in scene.application:
        if role.superuser:
            continue
        for name in sorted(scene.reach.takes(role.name) - scene.reach.acts_as(role.name)):
            other = scene.facts.roles.get(name)
            if other is None or not (name in owners or other.superuser or other.bypasses_rls):
                continue
            what = "owns tenant tables" if name in owners else "policies do not hold"
            yield Found(
                f"role {role.name} over {name}",
                f"{role.name} holds ADMIN OPTION by which it can grant itself {name}, which {what}.",
                f"REVOKE ADMIN OPTION FOR {quoted(name)} FROM {quoted(role.name)};",
                role=role.name,
            )


def _attribute(
    scene: Scene, has: Callable[[Role], bool], word: str, why: str, *, severity: Severity | None = None
) -> Iterator[Found]:
    """The application's roles that have an attribute, themselves or after SET ROLE."""
    for role in scene.application:
        for name in sorted(scene.reach.assumes(role.name)):
            other = scene.facts.roles.get(name)
            if other is None or role.superuser or other.superuser or not has(other):
                continue
            who = role.name if name == role.name else f"{role.name}, which can SET ROLE {name},"
            yield Found(
                f"role {role.name}" if name == role.name else f"role {role.name} as {name}",
                f"{who} has {word}: {why}.",
                f"ALTER ROLE {quoted(name)} NO{word};",
                role=role.name,
                severity=severity,
            )


@RULES.rule(
    "createrole",
    Severity.HIGH,
    summary="The application may create roles.",
    mechanism="Before PostgreSQL 16 a role with CREATEROLE may grant any role that is no superuser, to "
    "itself too: the tables' owner, a role with BYPASSRLS. Since 16 only those that it made or administers; "
    "it can still make logins that nobody knows of.",
    fix="Take the attribute away.",
)
def createrole(scene: Scene) -> Iterator[Found]:
    old = scene.facts.server.major < 16
    why = "it can grant itself any role that is no superuser" if old else "it can make logins of its own"
    severity = Severity.CRITICAL if old else Severity.MEDIUM
    yield from _attribute(scene, lambda role: role.creates_roles, "CREATEROLE", why, severity=severity)


@RULES.rule(
    "replication",
    Severity.HIGH,
    summary="The application has REPLICATION.",
    mechanism="A replication connection streams the write-ahead log, physical or decoded: every row of "
    "every tenant, under no policy. It can also take a copy of the whole cluster.",
    fix="Take the attribute away; give it to a role for replication alone.",
)
def replication(scene: Scene) -> Iterator[Found]:
    why = "it can stream every change, and copy the cluster"
    yield from _attribute(scene, lambda role: role.replicates, "REPLICATION", why)


_SERVER = {
    "pg_execute_server_program": "run programs as the server's account",
    "pg_read_server_files": "read any file that the server can, tables' own files too",
    "pg_write_server_files": "write any file that the server can, its configuration too",
}


@RULES.rule(
    "server-access",
    Severity.CRITICAL,
    summary="The application may read or write files of the server, or run programs on it.",
    mechanism="The predefined roles for it (COPY … FROM PROGRAM, pg_read_file and the like) reach below "
    "SQL, where there are no policies: the tables' files, the configuration, a shell.",
    fix="Revoke the membership.",
)
def server_access(scene: Scene) -> Iterator[Found]:
    yield from _predefined(scene, _SERVER)
    for each in scene.facts.builtin.values():
        for role in scene.application if each.name in _FILES else ():
            if not role.superuser and granted(each.grants, scene.reach.acts_as(role.name), "EXECUTE"):
                title = f"pg_catalog.{each.name}({each.arguments})"
                yield Found(
                    f"role {role.name} with {title}",
                    f"{role.name} was granted {title}, which reads or writes the server's files.",
                    f"REVOKE EXECUTE ON FUNCTION {title} FROM PUBLIC, {quoted(role.name)};",
                    role=role.name,
                )


_FILES = frozenset(
    {"pg_read_file", "pg_read_binary_file", "pg_ls_dir", "pg_stat_file", "lo_import", "lo_export"}
)
"""Functions of the server's own that only superusers may run, until somebody grants them."""


_ALL_DATA = {
    "pg_read_all_data": "read every table, also those without policies and those of other applications",
    "pg_write_all_data": "write every table, also those without policies and the shared ones",
}


@RULES.rule(
    "all-data",
    Severity.HIGH,
    summary="The application may read or write all data.",
    mechanism="pg_read_all_data and pg_write_all_data do not pass by policies, but they open every table "
    "that has none: backups of tables, audit logs, the next table that a migration makes.",
    fix="Revoke the membership, and grant on the tables that are meant.",
)
def all_data(scene: Scene) -> Iterator[Found]:
    yield from _predefined(scene, _ALL_DATA)


_MONITOR = {
    "pg_read_all_stats": "see the text of every session's statements",
    "pg_monitor": "see the text of every session's statements",
    "pg_signal_backend": "end the sessions and statements of other tenants",
}


@RULES.rule(
    "monitor",
    Severity.MEDIUM,
    summary="The application may look into, or end, other sessions.",
    mechanism="pg_stat_activity and pg_stat_statements show members of these roles what other sessions run, "
    "with the literals in it: other tenants' data. pg_signal_backend ends their work. (What runs under the "
    "same login is seen in any case: bind values as parameters.)",
    fix="Revoke the membership; monitor with a role of its own.",
)
def monitor(scene: Scene) -> Iterator[Found]:
    yield from _predefined(scene, _MONITOR)


def _predefined(scene: Scene, powers: dict[str, str]) -> Iterator[Found]:
    for role in scene.application:
        held = () if role.superuser else scene.reach.acts_as(role.name)
        for name, power in powers.items():
            if name not in held:
                continue
            # pg_monitor is a member of others that say the same: it is told once
            members = (each.member for each in scene.facts.memberships if each.role == name)
            if all(each in powers or each not in held for each in members):
                continue
            yield Found(
                f"role {role.name} with {name}",
                f"{scene.reach.way(role.name, name)}, so it may {power}.",
                leave(scene, role.name, name),
                role=role.name,
            )


@RULES.rule(
    "schema-owner",
    Severity.MEDIUM,
    summary="The application owns the schema of tenant tables.",
    mechanism="The owner of a schema may drop what is in it, whoever owns that, and make its own objects "
    "there: a function or a view that others take for theirs.",
    fix="Give the schema to the role that owns the tables.",
)
def schema_owner(scene: Scene) -> Iterator[Found]:
    names = {table.schema for table in scene.tenant_tables}
    for name in sorted(names & set(scene.facts.schemas)):
        schema = scene.facts.schemas[name]
        for role in scene.application:
            if role.superuser or schema.owner not in scene.reach.acts_as(role.name):
                continue
            owner = f" (as {schema.owner})" if schema.owner != role.name else ""
            yield Found(
                f"schema {quoted(name)} for {role.name}",
                f"{role.name} owns the schema {name}{owner}.",
                f"-- to a role that it cannot act as: ALTER SCHEMA {quoted(name)} OWNER TO …",
                role=role.name,
            )


@RULES.rule(
    "database-owner",
    Severity.MEDIUM,
    summary="The application owns the database.",
    mechanism="The owner may drop it, set defaults for every session (ALTER DATABASE … SET app.tenant_id), "
    "and is the member of pg_database_owner, which owns the schema public.",
    fix="Give the database to an administrator's role.",
)
def database_owner(scene: Scene) -> Iterator[Found]:
    server = scene.facts.server
    for role in scene.application:
        if not role.superuser and server.owner in scene.reach.acts_as(role.name):
            yield Found(
                f"database {server.database} for {role.name}",
                f"{role.name} owns the database {server.database}"
                + (f" (as {server.owner})." if server.owner != role.name else "."),
                f"-- to a role that it cannot act as: ALTER DATABASE {quoted(server.database)} OWNER TO …",
                role=role.name,
            )


@RULES.rule(
    "undeclared-bypass",
    Severity.MEDIUM,
    summary="A login with BYPASSRLS that nobody has declared.",
    mechanism="Whoever logs in as it sees every tenant. That may be meant, for a backup or an engine that "
    "serves all tenants; then it should be said, with the reason, so that the next one is noticed.",
    fix="Declare it as a service role with its reason, or take the attribute away.",
)
def undeclared_bypass(scene: Scene) -> Iterator[Found]:
    application = {each.name for each in scene.application}
    for role in sorted(scene.facts.roles.values(), key=lambda each: each.name):
        if role.superuser or role.name in application or not (role.bypasses_rls and role.can_login):
            continue
        yield Found(
            f"role {role.name}",
            f"{role.name} logs in with BYPASSRLS.",
            f"ALTER ROLE {quoted(role.name)} NOBYPASSRLS;",
            role=role.name,
            excuse=scene.scope.service.get(role.name, ""),
        )


@RULES.rule(
    "service-role-reachable",
    Severity.CRITICAL,
    summary="A tenant's role can act as a declared service role.",
    mechanism="A service role works across tenants; that is excused only while no tenant can become it. A "
    "membership, an inherited right or ADMIN OPTION makes it every tenant's.",
    fix="Revoke the membership. A service role is a login of its own.",
)
def service_role_reachable(scene: Scene) -> Iterator[Found]:
    for role in scene.application:
        for name in sorted(set(scene.scope.service) & scene.reach.takes(role.name)):
            if name == role.name:
                way = f"{role.name} is declared both as the application and as a service role"
            elif name in scene.reach.acts_as(role.name):
                way = scene.reach.way(role.name, name)
            else:
                way = f"{role.name} holds ADMIN OPTION by which it can grant itself {name}"
            yield Found(
                f"role {role.name} as {name}",
                f"{way}; {name} is a service role ({scene.scope.service[name]}).",
                "" if name == role.name else leave(scene, role.name, name),
                role=role.name,
            )


@RULES.rule(
    "service-role",
    Severity.INFO,
    summary="A declared service role, and what it may see.",
    mechanism="Told so that exceptions stay in sight: each is a way to every tenant's rows for whoever "
    "holds its password.",
    fix="Nothing, while the reason holds. Remove the declaration with the role.",
)
def service_role(scene: Scene) -> Iterator[Found]:
    for name, why in sorted(scene.scope.service.items()):
        seen = [
            each
            for each in scene.tenant_tables
            if scene.can(name, each, "SELECT") and scene.sees_all(name, each)
        ]
        message = (
            f"{name} sees every tenant's rows in {len(seen)} of {len(scene.tenant_tables)} tenant tables."
        )
        yield Found(f"role {name}", message, role=name, excuse=why)
