"""How rules name policies and write the SQL that mends them."""

from tenantry.rls.facts import Policy, Relation
from tenantry.rls.holding import Side
from tenantry.rls.meaning import readings
from tenantry.rls.names import quoted
from tenantry.rls.render import ISOLATION
from tenantry.rls.scene import Scene

_TEXTS = frozenset({"text", "character varying", "name", "character", "citext"})
_DEFAULT_SETTING = "app.tenant_id"


def table_of(scene: Scene, policy: Policy) -> Relation:
    return scene.facts.relations[policy.relation]


def subject(scene: Scene, policy: Policy) -> str:
    """``policy p on shop.invoices``: the same for as long as both keep their names."""
    return f"policy {quoted(policy.name)} on {table_of(scene, policy).title}"


def setting_name(scene: Scene, table: int) -> str:
    """The setting that carries the tenant: declared, or read by the table's policies, or by most."""
    if scene.scope.setting:
        return scene.scope.setting
    policies = (*scene.policies_of.get(table, ()), *scene.facts.policies)
    for policy in policies:
        for expression in (scene.using(policy), scene.check(policy)):
            for each in readings(expression) if expression is not None else ():
                if each.name and "." in each.name:
                    return each.name
    return _DEFAULT_SETTING


def right_form(scene: Scene, table: int, setting: str = "") -> str:
    """The comparison that holds a row to its tenant and fails closed, "" where the table has no column.
    ``setting``: which to read, where not that of :func:`setting_name`."""
    relation, name = scene.facts.relations[table], scene.tenant_column(table)
    column = relation.column(name) if name else None
    if column is None:
        return ""
    name_of_it = (setting or setting_name(scene, table)).replace("'", "''")
    bare = f"NULLIF(current_setting('{name_of_it}', true), '')"
    cast = "" if column.type.partition("(")[0] in _TEXTS else f"::{column.type}"
    return f"{quoted(name)} = {bare}{cast}"


def mended(scene: Scene, policy: Policy, setting: str = "") -> str:
    """ALTER POLICY with the right form in every clause that its command has; ``setting`` as there."""
    form = right_form(scene, policy.relation, setting)
    if not form:
        return ""
    using = "" if policy.command == "INSERT" else f" USING ({form})"
    check = "" if policy.command in {"SELECT", "DELETE"} else f" WITH CHECK ({form})"
    return f"ALTER POLICY {quoted(policy.name)} ON {table_of(scene, policy).title}{using}{check};"


def protected(scene: Scene, table: Relation) -> str:
    """The tenant's policy, as ``tenantry rls apply`` writes it, and row security on and forced. Without a
    tenant column the policy is left to people."""
    form = right_form(scene, table.oid)
    policy = f"CREATE POLICY {ISOLATION} ON {table.title}\n    USING ({form})\n    WITH CHECK ({form});"
    first = policy if form else "-- first a policy: without one nobody but superusers sees a row"
    return f"{first}\n{enable(table)}"


def enable(table: Relation) -> str:
    """The SQL that has policies hold everybody on ``table``."""
    return (
        f"ALTER TABLE {table.title} ENABLE ROW LEVEL SECURITY;\n"
        f"ALTER TABLE {table.title} FORCE ROW LEVEL SECURITY;"
    )


def leave(scene: Scene, role: str, other: str) -> str:
    """The memberships of ``role`` itself by which it comes to act as ``other``, revoked. What it holds
    through a group it loses with the group: others may be in that with right."""
    ways = [
        each.role
        for each in scene.facts.memberships
        if each.member == role
        and (each.inherits or each.may_set or each.is_admin)
        and other in scene.reach.takes(each.role)
    ]
    return "\n".join(f"REVOKE {quoted(each)} FROM {quoted(role)};" for each in sorted({*ways} or {other}))


def who(scene: Scene, side: Side) -> str:
    """A role of the application that the policy is for: whom an attack would be made as."""
    policy = side.policy
    named = (each.name for each in scene.application if scene.applies(policy, each.name))
    return next(named, scene.application[0].name if scene.application else "")
