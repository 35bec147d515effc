"""How rules name policies and write the SQL that mends them."""

from tenantry.rls.facts import Policy, Relation
from tenantry.rls.holding import Side
from tenantry.rls.meaning import readings
from tenantry.rls.names import quoted
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


def right_form(scene: Scene, table: int) -> str:
    """The comparison that holds a row to its tenant and fails closed, "" where the table has no column."""
    relation, name = scene.facts.relations[table], scene.tenant_column(table)
    column = relation.column(name) if name else None
    if column is None:
        return ""
    setting = setting_name(scene, table).replace("'", "''")
    bare = f"NULLIF(current_setting('{setting}', true), '')"
    cast = "" if column.type.partition("(")[0] in _TEXTS else f"::{column.type}"
    return f"{quoted(name)} = {bare}{cast}"


def mended(scene: Scene, policy: Policy) -> str:
    """ALTER POLICY with the right form in every clause that the policy's command has."""
    form = right_form(scene, policy.relation)
    if not form:
        return ""
    using = "" if policy.command == "INSERT" else f" USING ({form})"
    check = "" if policy.command in {"SELECT", "DELETE"} else f" WITH CHECK ({form})"
    return f"ALTER POLICY {quoted(policy.name)} ON {table_of(scene, policy).title}{using}{check};"


def who(scene: Scene, side: Side) -> str:
    """A role of the application that the policy is for: whom an attack would be made as."""
    policy = side.policy
    named = (each.name for each in scene.application if scene.applies(policy, each.name))
    return next(named, scene.application[0].name if scene.application else "")
