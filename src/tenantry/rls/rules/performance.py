"""Performance: policies that cost more than the filter that they are."""

from collections.abc import Iterator

from tenantry.rls.expression import (
    OWN,
    Call,
    Column,
    Expression,
    Subselect,
    walk,
)
from tenantry.rls.facts import Index, Policy, Relation
from tenantry.rls.holding import HELD, held
from tenantry.rls.meaning import CURRENT_SETTING, functions
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.rule import Rules
from tenantry.rls.rules.keys import concurrently, parents_index
from tenantry.rls.rules.wording import mended, subject, table_of
from tenantry.rls.scene import Scene

RULES = Rules(Family.PERFORMANCE)


def _clauses(scene: Scene) -> Iterator[tuple[Policy, Expression]]:
    """USING of each policy that the application passes through: what every query of the table pays for."""
    for table in scene.tenant_tables:
        for policy in scene.policies_of.get(table.oid, ()):
            using = scene.using(policy)
            if table.rls_enabled and using is not None and scene.for_application(policy):
                yield policy, using


def _about(scene: Scene, policy: Policy, said: str, sql: str = "") -> Found:
    text = f"{policy.name} on {table_of(scene, policy).title} {said}."
    return Found(subject(scene, policy), text, sql, table=policy.relation)


def _leads(index: Index, column: str) -> bool:
    return index.valid and not index.predicate and bool(index.keys) and index.keys[0].column == column


@RULES.rule(
    "no-leading-index",
    Severity.MEDIUM,
    summary="A tenant table without an index that leads with the tenant.",
    mechanism="The policy is a filter on the tenant column. Without an index that begins with it every query "
    "reads every tenant's rows, and gets slower with each new tenant.",
    fix="Lead the primary key with the tenant column, or another key that is unique over all tenants (then "
    "no index of its own is needed); else add an index that does.",
)
def no_leading_index(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        column = scene.tenant_column(table.oid)
        if not column or not _is_used(scene, table):
            continue
        if not any(_leads(each, column) for each in scene.indexes_of.get(table.oid, ())):
            yield Found(
                f"table {table.title}",
                f"No index of {table.title} begins with {quoted(column)}.",
                f"CREATE INDEX{concurrently(table)} ON {table.title} ({quoted(column)});",
                table=table.oid,
            )


def _is_used(scene: Scene, table: Relation) -> bool:
    """Whether the application reads it under policies; a partition is read through its parent."""
    return table.rls_enabled and bool(scene.users(table, "SELECT"))


@RULES.rule(
    "tenant-cast",
    Severity.MEDIUM,
    summary="A policy that casts the tenant column.",
    mechanism="`tenant_id::text = setting` is computed for every row of every tenant: an index on the column "
    "does not serve it.",
    fix="Cast the setting, not the column.",
)
def tenant_cast(scene: Scene) -> Iterator[Found]:
    for policy, using in _clauses(scene):
        bound = scene.bindings(policy, using)
        if any(not each.bare for each in bound):
            yield _about(scene, policy, "casts the tenant column: no index serves it", mended(scene, policy))


@RULES.rule(
    "policy-or",
    Severity.LOW,
    summary="A policy with OR or CASE.",
    mechanism="The planner cannot look one tenant up in an index where the condition has alternatives, and "
    "tests each row instead.",
    fix="One comparison a policy. For those who work across tenants, a policy TO their own role.",
)
def policy_or(scene: Scene) -> Iterator[Found]:
    for policy, _ in _clauses(scene):
        found = held(scene, policy, reads=True)
        ways = {each.by for each in found}
        if len(ways) > 1 and all(each.hold in HELD for each in found):
            yield _about(scene, policy, f"has {len(ways)} ways to a tenant: no index leads to its rows")


@RULES.rule(
    "policy-in-subselect",
    Severity.LOW,
    summary="A policy that looks the row's tenant up with IN (SELECT …).",
    mechanism="The list is built for every query, hashed, and every row of the table is tested against it: "
    "the index on the tenant column is not used.",
    fix="tenant_id = ANY (ARRAY(SELECT …)) is computed once and can use the index; one tenant bound in a "
    "setting is cheaper still.",
)
def policy_in_subselect(scene: Scene) -> Iterator[Found]:
    for policy, using in _clauses(scene):
        if any(isinstance(each, Subselect) and each.kind == "any" for each in walk(using)):
            yield _about(scene, policy, "tests every row against a subselect")


@RULES.rule(
    "policy-correlated",
    Severity.MEDIUM,
    summary="A policy with a subselect that depends on the row.",
    mechanism="EXISTS (SELECT … WHERE m.tenant_id = t.tenant_id) may be run once a row, in every query.",
    fix="Bind the tenant in a setting; or turn it round: tenant_id = ANY (ARRAY(SELECT …)), which is run "
    "once.",
)
def policy_correlated(scene: Scene) -> Iterator[Found]:
    for policy, using in _clauses(scene):
        subselects = (each for each in walk(using) if isinstance(each, Subselect))
        if any(_reads_row(each.query) for each in subselects):
            yield _about(scene, policy, "runs a subselect for each row")


def _reads_row(expression: Expression) -> bool:
    return any(isinstance(each, Column) and each.relation == OWN for each in walk(expression))


@RULES.rule(
    "policy-row-function",
    Severity.MEDIUM,
    summary="A policy that hands the row to a function.",
    mechanism="A function of the row's columns is run for each row of every tenant, and no index serves it; "
    "what it decides cannot be seen in the policy either.",
    fix="Compare the column: tenant_id = (SELECT the_function()).",
)
def policy_row_function(scene: Scene) -> Iterator[Found]:
    for policy, using in _clauses(scene):
        found = (each for each in walk(using) if isinstance(each, Call))
        own = (each for each in found if each.function in scene.facts.functions)
        if any(_reads_row(part) for each in own for part in each.args):
            yield _about(scene, policy, "hands each row to a function")


@RULES.rule(
    "policy-helper-each-row",
    Severity.LOW,
    summary="A policy that calls its helper without a subselect around it.",
    mechanism="A STABLE function of one's own may be called for each row that is looked at; in a subselect "
    "of its own it is called once a query.",
    fix="tenant_id = (SELECT helper()).",
)
def policy_helper_each_row(scene: Scene) -> Iterator[Found]:
    for policy, using in _clauses(scene):
        for each in _outside(using):
            helper = scene.facts.functions.get(each.function)
            if helper is not None and helper.volatility == "stable" and not each.args:
                said = f"calls {helper.schema}.{helper.name}() where a subselect would call it once"
                yield _about(scene, policy, said)
                break


def _outside(expression: Expression) -> Iterator[Call]:
    """The calls that stand in no subselect."""
    waiting = [expression]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Call):
            yield each
        if not isinstance(each, Subselect):
            waiting.extend(each.args)


@RULES.rule(
    "policy-volatile",
    Severity.MEDIUM,
    summary="A policy with a function that is volatile.",
    mechanism="What can change from row to row is computed for each, and keeps the whole condition from "
    "being used to search an index.",
    fix="Take it out: a policy depends on the row and on the session, and on nothing else.",
)
def policy_volatile(scene: Scene) -> Iterator[Found]:
    for policy, using in _clauses(scene):
        builtin = (scene.facts.builtin.get(oid) for oid in functions(using) - CURRENT_SETTING)
        volatile = sorted(each.name for each in builtin if each is not None and each.volatility == "volatile")
        if volatile:
            yield _about(scene, policy, f"calls {volatile[0]}(), which is volatile")


@RULES.rule(
    "index-not-leakproof",
    Severity.LOW,
    summary="An index of tenant and something whose operators are not leakproof.",
    mechanism="Under a policy a condition may be used to search an index only if its operator is leakproof: "
    "those of enums, numeric, arrays, LIKE and most extensions are not. The index is searched by the tenant "
    "alone, and the rest is filtered row by row.",
    fix="Keep the value in a column of a leakproof type (text, integer), a generated one if need be, and ask "
    "by that. An index on an expression does not help: the functions in it must be leakproof too. See "
    "`tenantry rls explain`.",
)
def index_not_leakproof(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        column = scene.tenant_column(table.oid)
        if not column or not _is_used(scene, table):
            continue
        for index in scene.indexes_of.get(table.oid, ()):
            held = [each for each in index.keys[1:] if not each.equality_leakproof]
            if _leads(index, column) and held and index.method == "btree":
                what = held[0].column or held[0].expression
                yield Found(
                    f"index {quoted(index.name)} on {table.title}",
                    f"{quoted(index.name)} cannot be searched by {what} under a policy: the operators of "
                    f"{held[0].operator_class} are not leakproof.",
                    table=table.oid,
                )


@RULES.rule(
    "redundant-index",
    Severity.LOW,
    summary="An index on the tenant alone beside one that begins with it.",
    mechanism="Every write pays for it, and what it finds the other one finds as well. It may have been "
    "right when it was built: `tenantry rls apply` builds one where no index leads with the tenant, and a "
    "key that is led with the tenant later takes its place.",
    fix="Drop it, and keep the other one; `rls apply` does not build it again.",
)
def redundant_index(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        column = scene.tenant_column(table.oid)
        indexes = scene.indexes_of.get(table.oid, ()) if column else ()
        for index in indexes:
            alone = _leads(index, column) and len(index.keys) == 1 and not index.unique and not index.included
            if parents_index(scene, table, index) is not None:
                continue
            rest = (each for each in indexes if each is not index and each.method == index.method)
            other = next((each for each in rest if _leads(each, column)), None)
            if alone and other is not None and (len(other.keys) > 1 or other.oid < index.oid):
                yield Found(
                    f"index {quoted(index.name)} on {table.title}",
                    f"{quoted(index.name)} finds nothing that {quoted(other.name)} does not: drop "
                    f"{quoted(index.name)}, and keep {quoted(other.name)}, which begins with it.",
                    f"DROP INDEX{concurrently(table)} {quoted(table.schema)}.{quoted(index.name)};",
                    table=table.oid,
                )
