"""Enforcement: whether policies hold at all for who asks."""

from collections.abc import Iterator

from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.rule import Rules
from tenantry.rls.scene import Scene

RULES = Rules(Family.ENFORCEMENT)


@RULES.rule(
    "rls-off",
    Severity.CRITICAL,
    summary="A tenant table on which row policies are not enabled.",
    mechanism="Without ENABLE ROW LEVEL SECURITY a table shows every row to whoever holds a privilege on it: "
    "one statement without its WHERE is a leak.",
    fix="Enable and force row security, with a policy on the tenant column.",
)
def rls_off(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        users = scene.users(table, "SELECT") or scene.users(table, "INSERT")
        if table.rls_enabled or not users or scene.policies_of.get(table.oid):
            continue
        yield Found(
            f"table {table.title}",
            f"{table.title} has no row policies enabled and {users[0].name} may use it.",
            f"ALTER TABLE {table.title} ENABLE ROW LEVEL SECURITY;\n"
            f"ALTER TABLE {table.title} FORCE ROW LEVEL SECURITY;",
            table=table.oid,
            role=users[0].name,
        )
