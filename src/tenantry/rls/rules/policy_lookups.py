"""Policy text: the tables and functions that policies ask."""

from collections.abc import Iterator, Mapping

from tenantry.rls.bodies import tables_named
from tenantry.rls.dependence import SESSION_WORD
from tenantry.rls.facts import Function, Policy, Relation
from tenantry.rls.holding import Judge
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.roles import Privilege
from tenantry.rls.rule import Rules
from tenantry.rls.rules.wording import subject
from tenantry.rls.scene import Scene

RULES = Rules(Family.POLICY_TEXT)

_WRITES: tuple[Privilege, ...] = ("INSERT", "UPDATE", "DELETE")
_COMMANDS: Mapping[Privilege, frozenset[str]] = {each: frozenset({each, "ALL"}) for each in _WRITES}


def _asked(scene: Scene) -> Iterator[tuple[Policy, Relation]]:
    """Each table that a policy of a tenant table asks, once, with the first such policy; not the table
    itself."""
    seen: set[int] = set()
    for table in scene.tenant_tables:
        for policy in scene.policies_of.get(table.oid, ()):
            for oid in sorted(scene.asks(policy) - seen - {table.oid}):
                relation = scene.facts.relations.get(oid)
                if relation is not None and relation.is_table:
                    seen.add(oid)
                    yield policy, relation


def _helpers(scene: Scene) -> Iterator[tuple[Policy, Function]]:
    """Each function of one's own that a policy runs, once, with the first such policy."""
    seen: set[int] = set()
    for table in scene.tenant_tables:
        for policy in scene.policies_of.get(table.oid, ()):
            for oid in sorted(scene.runs(policy) - seen):
                function = scene.facts.functions.get(oid)
                if function is not None and not function.extension:
                    seen.add(oid)
                    yield policy, function


def _writers(scene: Scene, table: Relation) -> Iterator[tuple[str, Privilege]]:
    """Who of the application may write rows of other tenants into ``table``, and how."""
    for privilege in _WRITES:
        for role in scene.users(table, privilege):
            if not table.rls_enabled or _lets(scene, table, role.name, privilege):
                yield role.name, privilege


def _lets(scene: Scene, table: Relation, role: str, privilege: Privilege) -> bool:
    judge = Judge(scene, table.oid)
    for policy in scene.policies_of.get(table.oid, ()):
        if policy.permissive and policy.command in _COMMANDS[privilege] and scene.applies(policy, role):
            said = scene.using(policy) if privilege == "DELETE" else scene.check(policy)
            if said is not None and not judge.is_held(said):
                return True
    return False


@RULES.rule(
    "membership-writable",
    Severity.CRITICAL,
    summary="A table that a policy asks, and that the application may write.",
    mechanism="A policy that looks up who belongs to which tenant is only as safe as that table: whoever may "
    "insert a row there makes himself a member of any tenant.",
    fix="Take the privileges away; let a function with checks of its own write memberships.",
)
def membership_writable(scene: Scene) -> Iterator[Found]:
    for policy, table in _asked(scene):
        found = list(_writers(scene, table))
        if found:
            role, privilege = found[0]
            words = ", ".join(dict.fromkeys(each for _, each in found))
            yield Found(
                f"table {table.title}",
                f"{subject(scene, policy)} asks {table.title}, and {role} may {privilege} there.",
                f"REVOKE {words} ON {table.title} FROM {quoted(role)};",
                table=policy.relation,
                role=role,
            )


@RULES.rule(
    "lookup-unprotected",
    Severity.MEDIUM,
    summary="A table that a policy asks, and that every tenant may read whole.",
    mechanism="The caller needs SELECT on what a policy asks. Without policies of its own the table shows "
    "every tenant's members to all.",
    fix="Give it policies (a user sees his own memberships), or ask it in a SECURITY DEFINER function.",
)
def lookup_unprotected(scene: Scene) -> Iterator[Found]:
    for policy, table in _asked(scene):
        if table.rls_enabled or table.oid in scene.scope.shared or scene.is_tenant_table(table.oid):
            continue
        users = scene.users(table, "SELECT")
        if users:
            yield Found(
                f"table {table.title}",
                f"{subject(scene, policy)} asks {table.title}, which {users[0].name} may read whole.",
                f"ALTER TABLE {table.title} ENABLE ROW LEVEL SECURITY;\n"
                f"ALTER TABLE {table.title} FORCE ROW LEVEL SECURITY;",
                table=policy.relation,
                role=users[0].name,
            )


@RULES.rule(
    "policy-recursion",
    Severity.MEDIUM,
    summary="Policies that ask each other's tables in a circle.",
    mechanism="A policy that reads its own table, or one whose policies read this one, is expanded without "
    "end: PostgreSQL refuses every query with `infinite recursion detected in policy`.",
    fix="Ask in a SECURITY DEFINER function owned by a role that the policies let pass, search_path pinned.",
)
def policy_recursion(scene: Scene) -> Iterator[Found]:
    asks = {oid: _asked_by(scene, oid) for oid in scene.policies_of if _is_enabled(scene, oid)}
    for table in scene.tenant_tables:
        if table.oid in asks and _comes_back(asks, table.oid):
            yield Found(
                f"table {table.title}",
                f"The policies of {table.title} lead back to it: every query of it fails.",
                table=table.oid,
            )


def _is_enabled(scene: Scene, oid: int) -> bool:
    relation = scene.facts.relations.get(oid)
    return relation is not None and relation.rls_enabled


def _asked_by(scene: Scene, oid: int) -> frozenset[int]:
    asking = (each for each in scene.policies_of[oid] if scene.for_application(each))
    return frozenset().union(*map(scene.asks, asking))


def _comes_back(asks: Mapping[int, frozenset[int]], start: int) -> bool:
    seen: set[int] = set()
    waiting = list(asks[start])
    while waiting:
        each = waiting.pop()
        if each == start:
            return True
        if each not in seen:
            seen.add(each)
            waiting += asks.get(each, ())
    return False


@RULES.rule(
    "helper-immutable",
    Severity.CRITICAL,
    summary="A policy's helper that is declared IMMUTABLE and depends on the session.",
    mechanism="The planner computes an IMMUTABLE call once and keeps the result in cached plans: a prepared "
    "statement goes on with the tenant for whom it was planned.",
    fix="Declare it STABLE.",
)
def helper_immutable(scene: Scene) -> Iterator[Found]:
    for policy, helper in _helpers(scene):
        depends = helper.reads or SESSION_WORD.search(helper.source) or tables_named(helper.source)
        if helper.volatility == "immutable" and depends:
            yield _about(scene, (policy, helper), "is declared IMMUTABLE and is not", "STABLE")


@RULES.rule(
    "helper-volatile",
    Severity.MEDIUM,
    summary="A policy's helper that is VOLATILE.",
    mechanism="VOLATILE, the default of CREATE FUNCTION, is called for every row and keeps the comparison "
    "from using an index.",
    fix="Declare it STABLE.",
)
def helper_volatile(scene: Scene) -> Iterator[Found]:
    for policy, helper in _helpers(scene):
        if helper.volatility == "volatile":
            yield _about(scene, (policy, helper), "is VOLATILE: called for every row", "STABLE")


@RULES.rule(
    "helper-search-path",
    Severity.HIGH,
    summary="A policy's helper whose tables the caller can put others in place of.",
    mechanism="A name without a schema is looked up when the function runs, in pg_temp first unless that is "
    "named last: a caller who makes a temporary table of that name answers the policy's question himself.",
    fix="Pin it: SET search_path = the schema, pg_temp; or write qualified names only.",
)
def helper_search_path(scene: Scene) -> Iterator[Found]:
    for policy, helper in _helpers(scene):
        bare = sorted(name for schema, name in tables_named(helper.source) if not schema)
        if bare and not helper.reads and not helper.pins_names:
            said = f"names {bare[0]} without a schema: a temporary table of that name takes its place"
            yield _about(scene, (policy, helper), said, "SET search_path = pg_catalog, pg_temp")


def _about(scene: Scene, asked: tuple[Policy, Function], said: str, sql: str) -> Found:
    policy, helper = asked
    return Found(
        f"function {helper.title}",
        f"{subject(scene, policy)} asks {helper.title}, which {said}.",
        f"ALTER FUNCTION {helper.title} {sql};",
        table=policy.relation,
    )
