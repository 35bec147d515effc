"""SQL for each thing that a declaration asks for, with the SQL that takes it back. Pure: names in, text out.

A :class:`Step` is what must happen as one. The policy of a table, ENABLE and FORCE are one step: a table
with row security on and no policy shows nothing to anybody. An index is a step apart, built CONCURRENTLY,
which no transaction may enclose. Every step may be run twice: the second time changes nothing.

Why the policy has this form (the seed document's answer on row security): ``current_setting(…, true)`` is
NULL where the setting was never made, and '' in a session that had it by SET LOCAL once; NULLIF makes that
NULL, and NULL equals no tenant. Without it the cast of '' raises at the next use of a pooled connection.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from tenantry.kernel.tenant import TenantType
from tenantry.rls.declaration import LONGEST_NAME, TableName, TenantTable
from tenantry.rls.facts import Policy
from tenantry.rls.names import quoted
from tenantry.rls.roles import PUBLIC

ISOLATION = "tenant_isolation"
"""The policy that compares the row's tenant with the session's."""

SERVICE = "service_access"
"""The policy of the declared service roles."""

COLUMN_TYPES = {
    "int": ("integer", "smallint"),
    "bigint": ("bigint",),
    "uuid": ("uuid",),
    "text": ("text", "character varying"),
}
"""Types of the tenant column that an index still serves when it is compared with a declared type."""

ATTRIBUTES = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
"""Of the roles that are made: they may connect, and nothing else."""

_KEPT_TYPE = {"int": "integer", "bigint": "bigint", "uuid": "uuid"}


@dataclass(frozen=True, slots=True)
class Step:
    """What happens as one. ``up`` and ``down`` are statements without semicolons; ``down`` takes back what
    ``up`` does, given that it was not there before.

    ``apart``: each statement by itself, outside of transactions. ``relations``: whose locks it waits for.
    """

    title: str
    up: tuple[str, ...]
    down: tuple[str, ...] = ()
    apart: bool = False
    relations: tuple[TableName, ...] = field(default=())


def predicate(column: str, type: TenantType, setting: str) -> str:
    """The row belongs to the session's tenant; never true without one."""
    return f"{quoted(column)} = NULLIF(current_setting('{setting}', true), '')::{type}"


def kept_predicates(column: str, type: TenantType, setting: str) -> frozenset[str]:
    """How the server writes :func:`predicate` back, for each type that the column may have (deparsed by
    ruleutils.c; the same from PostgreSQL 15 to 18)."""
    nullif = f"NULLIF(current_setting('{setting}'::text, true), ''::text)"
    value = nullif if type == "text" else f"({nullif})::{_KEPT_TYPE[type]}"
    marked = '"' + column.replace('"', '""') + '"'
    plain = {f"({name} = {value})" for name in (column, marked)}
    cast = {f"(({name})::text = {value})" for name in (column, marked)} if type == "text" else set()
    return frozenset(plain | cast)


def protect(table: TenantTable, setting: str, services: tuple[str, ...], down: tuple[str, ...]) -> Step:
    """The policies, ENABLE and FORCE of one table. ``down`` puts back what the table had."""
    name = str(table.name)
    holds = predicate(table.column, table.type, setting)
    drops = tuple(
        f"DROP POLICY IF EXISTS {quoted(each)} ON {name}" for each in (ISOLATION, SERVICE, *table.replaces)
    )
    isolation = f"CREATE POLICY {ISOLATION} ON {name}\n  USING      ({holds})\n  WITH CHECK ({holds})"
    up = (*drops, isolation, *_service(name, services))
    switches = (
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY",
    )
    return Step(f"protect {name}", (*up, *switches), down, relations=(table.name,))


def _service(name: str, services: tuple[str, ...]) -> tuple[str, ...]:
    if not services:
        return ()
    to = ", ".join(map(quoted, services))
    return (f"CREATE POLICY {SERVICE} ON {name}\n  TO {to}\n  USING (true)\n  WITH CHECK (true)",)


def unprotect(
    name: TableName, *, enabled: bool, forced: bool, policies: tuple[Policy, ...]
) -> tuple[str, ...]:
    """Back to a table with these policies, and row security as it was."""
    return (
        *(() if forced else (f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY",)),
        *(() if enabled else (f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY",)),
        f"DROP POLICY IF EXISTS {ISOLATION} ON {name}",
        f"DROP POLICY IF EXISTS {SERVICE} ON {name}",
        *(statement for each in policies for statement in _again(name, each)),
    )


def _again(name: TableName, policy: Policy) -> tuple[str, ...]:
    kind = "PERMISSIVE" if policy.permissive else "RESTRICTIVE"
    to = ", ".join("PUBLIC" if role == PUBLIC else quoted(role) for role in policy.roles)
    using = f"\n  USING ({policy.using})" if policy.using is not None else ""
    check = f"\n  WITH CHECK ({policy.check})" if policy.check is not None else ""
    opening = f"CREATE POLICY {quoted(policy.name)} ON {name} AS {kind} FOR {policy.command}"
    drop = f"DROP POLICY IF EXISTS {quoted(policy.name)} ON {name}"
    return drop, f"{opening}\n  TO {to}{using}{check}"


def create_role(role: str) -> Step:
    """A role without rights. There is no way back: roles are the whole server's, others may have come to
    use it, and by itself it can do nothing."""
    body = (
        f"BEGIN\n  CREATE ROLE {quoted(role)} {ATTRIBUTES};\n"
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- it is there by now\nEND"
    )
    return Step(f"create the role {quoted(role)}", (block(body),))


def block(body: str) -> str:
    """``body`` as a DO statement, between dollar quotes that do not occur in it."""
    tag = next(tag for tag in (f"$do{number or ''}$" for number in range(len(body))) if tag not in body)
    return f"DO {tag} {body} {tag}"


def grant(privileges: tuple[str, ...], on: str, role: str) -> tuple[str, str]:
    """GRANT, and the REVOKE that takes it back. ``on``: such as ``TABLE app.invoices``."""
    listed, who = ", ".join(each.upper() for each in privileges), quoted(role)
    return f"GRANT {listed} ON {on} TO {who}", f"REVOKE {listed} ON {on} FROM {who}"


def revoke(privileges: tuple[str, ...], on: str, role: str) -> tuple[str, str]:
    """The same the other way round."""
    given, taken = grant(privileges, on, role)
    return taken, given


def build_index(name: TableName, table: TableName, column: str) -> Step:
    """An index that leads with the tenant, built while the table is in use."""
    literal = str(name).replace("'", "''")
    left = (
        "BEGIN\n  IF EXISTS (SELECT FROM pg_catalog.pg_index\n"
        f"              WHERE indexrelid = to_regclass('{literal}') AND NOT indisvalid) THEN\n"
        f"    DROP INDEX {name};  -- a build that did not end left it\n  END IF;\nEND"
    )
    create = f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {quoted(name.name)} ON {table} ({quoted(column)})"
    down = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    return Step(
        f"index {table} by its tenant", (block(left), create), (down,), apart=True, relations=(table,)
    )


def join_indexes(name: TableName, table: TableName, column: str, leaves: tuple[TableName, ...]) -> Step:
    """The index of a partitioned table over those that its partitions have: nothing is built."""
    create = f"CREATE INDEX IF NOT EXISTS {quoted(name.name)} ON {table} ({quoted(column)})"
    down = f"DROP INDEX IF EXISTS {name}"
    return Step(f"join the indexes of {table}", (create,), (down,), relations=(table, *leaves))


def invoke(view: TableName, before: str | None) -> Step:
    """A view that is read with the rights, and under the policies, of who reads it (PostgreSQL 15)."""
    up = f"ALTER VIEW {view} SET (security_invoker = true)"
    down = "RESET (security_invoker)" if before is None else f"SET (security_invoker = {before})"
    return Step(f"read {view} as who asks", (up,), (f"ALTER VIEW {view} {down}",), relations=(view,))


def index_name(table: TableName, column: str, is_taken: Callable[[str], bool]) -> TableName:
    """``table_column_idx``, as long as names may be, numbered where that is taken."""
    for number in count():
        ending = f"_{column}_idx{number or ''}".encode()[-48:].decode(errors="ignore")
        room = LONGEST_NAME - len(ending.encode())
        name = table.name.encode()[:room].decode(errors="ignore") + ending
        if not is_taken(name):
            return TableName(table.schema, name)
    raise AssertionError("numbers do not end")
