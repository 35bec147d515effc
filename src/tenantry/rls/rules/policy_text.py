"""Policy text: whether what a policy says holds a row to its tenant."""

from collections.abc import Iterator

from tenantry.rls.expression import Call, Expression, Session, Subselect, walk
from tenantry.rls.holding import PATTERN_FUNCTIONS, Alternative, Hold, Side, sides
from tenantry.rls.meaning import is_true, readings
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.rule import Rules
from tenantry.rls.rules.wording import mended, subject, table_of, who
from tenantry.rls.scene import Scene

RULES = Rules(Family.POLICY_TEXT)

_READS = "USING lets it be read"
_WRITES = "WITH CHECK lets it be written"


def _all_sides(scene: Scene) -> Iterator[Side]:
    for table in scene.tenant_tables:
        if table.rls_enabled and scene.tenant_column(table.oid):
            yield from sides(scene, table.oid)


def _judged(scene: Scene, hold: Hold, *, reads: bool | None = None) -> Iterator[tuple[Side, Alternative]]:
    """The first alternative of each side that is held by ``hold``: one is enough for a leak."""
    for side in _all_sides(scene):
        if reads is not None and side.reads is not reads:
            continue
        found = next((each for each in side.alternatives if each.hold is hold), None)
        if found is not None:
            yield side, found


def _found(scene: Scene, side: Side, message: str, severity: Severity | None = None) -> Found:
    policy, table = side.policy, table_of(scene, side.policy)
    return Found(
        f"{subject(scene, policy)}, {side.clause}",
        message.format(policy=policy.name, table=table.title, clause=side.clause),
        mended(scene, policy),
        table=policy.relation,
        role=who(scene, side),
        severity=severity,
    )


@RULES.rule(
    "policy-true",
    Severity.CRITICAL,
    summary="A permissive policy that shows every row.",
    mechanism="Permissive policies are joined by OR: one that is true, or has a true branch, shows the whole "
    "table, whatever the others say.",
    fix="Compare the tenant column in every branch, or drop the policy.",
)
def policy_true(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.TRUE, reads=True):
        yield _found(scene, side, "{policy} lets every tenant see every row of {table}.")


@RULES.rule(
    "policy-check-true",
    Severity.HIGH,
    summary="A permissive policy that lets any row be written.",
    mechanism="WITH CHECK (true) accepts a row stamped with another tenant's id, and lets an UPDATE without "
    "a WHERE move rows to another tenant.",
    fix="Say in WITH CHECK what USING says; or leave it out, and the server takes USING.",
)
def policy_check_true(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.TRUE, reads=False):
        yield _found(scene, side, "{policy} lets any tenant write rows of every other into {table}.")


@RULES.rule(
    "policy-null-open",
    Severity.CRITICAL,
    summary="A policy that opens when no tenant is bound, or for rows that have none.",
    mechanism="An alternative such as `setting IS NULL OR …`, `tenant_id IS NULL OR …` or COALESCE around "
    "the column is true for whoever forgot to bind a tenant, or shows rows without a tenant to all.",
    fix="Drop the alternative: without a tenant there must be no rows.",
)
def policy_null_open(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.NULL_OPEN):
        yield _found(scene, side, "{clause} of {policy} on {table} opens where there is no tenant.")


@RULES.rule(
    "policy-settable-flag",
    Severity.CRITICAL,
    summary="A policy that a session can open by setting a flag.",
    mechanism="Whoever can send SQL can SET a custom setting: `current_setting('app.is_admin') = 'on'` asks "
    "the attacker whether he may pass.",
    fix="Give those who work across tenants a role of their own, with a policy TO that role.",
)
def policy_settable_flag(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.FLAG):
        yield _found(scene, side, "{clause} of {policy} on {table} opens for any session that sets a flag.")


@RULES.rule(
    "policy-unbound",
    Severity.HIGH,
    summary="A permissive policy that does not hold rows to a tenant.",
    mechanism="Permissive policies are joined by OR, and one FOR ALL counts for every command: an "
    "alternative that does not compare the tenant column widens all the others.",
    fix="Compare the tenant column in every alternative, or make the policy AS RESTRICTIVE, which narrows.",
)
def policy_unbound(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.OPEN, reads=True):
        others = len(scene.policies_of[side.policy.relation]) - 1
        widens = ", and so widens what the others hold" if others else ""
        yield _found(scene, side, f"{{policy}} on {{table}} does not ask for the tenant{widens}.")


@RULES.rule(
    "policy-check-unbound",
    Severity.HIGH,
    summary="A policy whose WITH CHECK does not hold rows to a tenant.",
    mechanism="An explicit WITH CHECK replaces USING for what is written. If it does not compare the tenant "
    "column, rows can be written for another tenant.",
    fix="Compare the tenant column in WITH CHECK too; or leave it out, and the server takes USING.",
)
def policy_check_unbound(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.OPEN, reads=False):
        if side.policy.command != "UPDATE":
            yield _found(scene, side, "{policy} lets rows of another tenant be written into {table}.")


@RULES.rule(
    "policy-blind-update",
    Severity.HIGH,
    summary="An UPDATE policy that lets rows be moved to another tenant.",
    mechanism="An UPDATE that reads no column (no WHERE, no RETURNING) is checked by WITH CHECK alone: "
    "`UPDATE t SET tenant_id = 2` hands the tenant's rows to another, or plants them there.",
    fix="Compare the tenant column in WITH CHECK, and do not grant UPDATE on the tenant column.",
)
def policy_blind_update(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.OPEN, reads=False):
        if side.policy.command == "UPDATE":
            yield _found(scene, side, "{policy} lets an UPDATE without WHERE move rows of {table} away.")


@RULES.rule(
    "policy-literal",
    Severity.HIGH,
    summary="A policy that compares the tenant column to a constant.",
    mechanism="Every session gets the rows of that one tenant, whoever asks: left over from a first try, or "
    "a shared tenant that nobody wrote down.",
    fix="Compare the column to the session's setting.",
)
def policy_literal(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.LITERAL):
        yield _found(scene, side, "{clause} of {policy} gives one tenant's rows of {table} to everybody.")


@RULES.rule(
    "policy-by-login",
    Severity.MEDIUM,
    summary="A policy that goes by the database login, where tenants share one.",
    mechanism="current_user is who logged in to the database. An application that serves all tenants from "
    "one login is the same user for all of them: the policy shows nothing, or one tenant's rows, to "
    "everybody.",
    fix="Compare the column to a setting that each transaction binds.",
)
def policy_by_login(scene: Scene) -> Iterator[Found]:
    if sum(each.can_login for each in scene.application) > 1:
        return  # a login a tenant: then it tells them apart
    for side, each in _judged(scene, Hold.SESSION):
        parts = set(walk(each.by)) if each.by is not None else set()
        if any(isinstance(part, Subselect) for part in parts):
            continue  # a list is asked, which may know more of a login than its tenant
        if any(isinstance(part, Session) for part in parts) and not any(map(_reads_setting, parts)):
            yield _found(scene, side, "{clause} of {policy} on {table} goes by the login that all share.")


@RULES.rule(
    "policy-restricts-nothing",
    Severity.LOW,
    summary="A restrictive policy that is true.",
    mechanism="AS RESTRICTIVE narrows what permissive policies let pass. One that is true narrows nothing, "
    "and looks as if it did.",
    fix="Say in it what must hold, or drop it.",
)
def policy_restricts_nothing(scene: Scene) -> Iterator[Found]:
    for table in scene.tenant_tables:
        for policy in scene.policies_of.get(table.oid, ()):
            said = [each for each in (scene.using(policy), scene.check(policy)) if each is not None]
            if not policy.permissive and table.rls_enabled and said and all(map(is_true, said)):
                name = f"{policy.name} on {table.title}"
                yield Found(subject(scene, policy), f"{name} is restrictive and true.", table=table.oid)


@RULES.rule(
    "policy-inverted",
    Severity.CRITICAL,
    summary="A policy that shows every tenant's rows but one's.",
    mechanism="The tenant column is compared with <> (or IS DISTINCT FROM) to the session: all other tenants "
    "match.",
    fix="Compare with =.",
)
def policy_inverted(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.INVERTED):
        yield _found(scene, side, "{clause} of {policy} on {table} lets the other tenants' rows pass.")


@RULES.rule(
    "policy-null-safe",
    Severity.LOW,
    summary="A policy that compares the tenant with IS NOT DISTINCT FROM.",
    mechanism="Unlike =, it is true for NULL and NULL: a session without a tenant sees all rows that have "
    "none. And no index serves it.",
    fix="Compare with =.",
)
def policy_null_safe(scene: Scene) -> Iterator[Found]:
    for side, _ in _judged(scene, Hold.NULL_SAFE):
        table = table_of(scene, side.policy)
        column = table.column(scene.tenant_column(table.oid))
        nullable = column is not None and not column.not_null
        message = "{clause} of {policy} on {table} compares with IS NOT DISTINCT FROM" + (
            ", and the column may be NULL: without a tenant such rows are seen." if nullable else "."
        )
        yield _found(scene, side, message, Severity.HIGH if nullable else None)


@RULES.rule(
    "policy-text-normalised",
    Severity.MEDIUM,
    summary="A policy that compares the tenant by a pattern, or by something made of it.",
    mechanism="LIKE, a regular expression, lower() or trim() make different tenants alike: with LIKE a "
    "tenant named `%` is everybody, with lower() `Acme` and `acme` are one. No plain index serves it either.",
    fix="Keep the tenant in one spelling and compare with = on the bare column.",
)
def policy_text_normalised(scene: Scene) -> Iterator[Found]:
    for side, each in _judged(scene, Hold.NORMALISED):
        pattern = each.by is not None and _reads_setting(each.by) and _is_pattern(scene, each.by)
        message = "{clause} of {policy} on {table} compares the tenant " + (
            "by a pattern that the session chooses." if pattern else "in another spelling than the column's."
        )
        yield _found(scene, side, message, Severity.HIGH if pattern else None)


def _reads_setting(expression: Expression) -> bool:
    return any(True for _ in readings(expression))


def _is_pattern(scene: Scene, expression: Expression) -> bool:
    if isinstance(expression, Call):
        called = scene.facts.builtin.get(expression.function)
        return called is not None and called.name in PATTERN_FUNCTIONS
    known = scene.facts.operators.get(getattr(expression, "operator", 0))
    return known is not None and known.name not in {"=", "<>"}
