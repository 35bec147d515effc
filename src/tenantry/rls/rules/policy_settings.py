"""Policy text: how policies read the session's tenant, and what they find where nobody bound one."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher

from tenantry.rls.bodies import falls_back
from tenantry.rls.expression import Cast, Constant, Expression, walk
from tenantry.rls.facts import Policy
from tenantry.rls.holding import Hold, held, setting_of
from tenantry.rls.meaning import Reading, functions, reading, readings, uncast
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.rule import Rules
from tenantry.rls.rules.wording import mended, setting_name, subject, table_of
from tenantry.rls.scene import Scene

RULES = Rules(Family.POLICY_TEXT)


def _policies(scene: Scene) -> Iterator[Policy]:
    """Those of tenant tables that the application passes through, by table and name."""
    for table in scene.tenant_tables:
        for policy in scene.policies_of.get(table.oid, ()):
            if table.rls_enabled and scene.for_application(policy):
                yield policy


def _held_by(scene: Scene) -> Iterator[tuple[Policy, Reading]]:
    """Each policy with the settings that its tenant column is compared to."""
    yield from scene.once("held by settings", lambda: tuple(_all_held_by(scene)))


def _all_held_by(scene: Scene) -> Iterator[tuple[Policy, Reading]]:
    for policy in _policies(scene):
        found = {
            said
            for reads in (True, False)
            for each in held(scene, policy, reads=reads)
            if (said := setting_of(each)) is not None
        }
        yield from ((policy, each) for each in sorted(found, key=repr))


def _held_otherwise(scene: Scene) -> Iterator[tuple[Policy, Expression]]:
    """Each comparison of the tenant column with something made of the session: a claim in JSON, a helper."""
    for policy in _policies(scene):
        found = (each for reads in (True, False) for each in held(scene, policy, reads=reads))
        yield from ((policy, each.by) for each in found if each.hold is Hold.SESSION and each.by is not None)


def _fails_on_empty(expression: Expression) -> bool:
    """Whether it reads '' as JSON, a number, an array: as anything but text, and there is no NULLIF."""
    if not isinstance(expression, Cast) or not expression.by_text:
        return False
    said = reading(expression)
    return said is not None and not said.nullif and said.default is None


def _names(scene: Scene, policy: Policy) -> frozenset[str]:
    """The settings that it reads, by name."""
    found = (each.name for clause in scene.expressions(policy) for each in readings(clause))
    return scene.once(("names", policy.oid), lambda: frozenset(each for each in found if each is not None))


def _report(scene: Scene, policy: Policy, message: str, severity: Severity | None = None) -> Found:
    table = table_of(scene, policy)
    return Found(
        subject(scene, policy),
        message.format(policy=policy.name, table=table.title),
        mended(scene, policy),
        table=policy.relation,
        severity=severity,
    )


def _each_once(found: Iterator[Found]) -> Iterator[Found]:
    yield from {each.subject: each for each in found}.values()


@RULES.rule(
    "policy-default-tenant",
    Severity.CRITICAL,
    summary="A policy that falls back to a tenant when none is bound.",
    mechanism="COALESCE(setting, 1) makes whoever forgets to bind a tenant act as tenant 1, silently.",
    fix="Take the default away: no tenant, no rows.",
)
def policy_default_tenant(scene: Scene) -> Iterator[Found]:
    def found() -> Iterator[Found]:
        for policy, said in _held_by(scene):
            default = uncast(said.default) if said.default is not None else None
            if default is not None and not (isinstance(default, Constant) and default.value is None):
                yield _report(scene, policy, "{policy} on {table} falls back to a tenant when none is bound.")
        for policy, part in _held_otherwise(scene):
            for oid in sorted(functions(part)):
                helper = scene.facts.functions.get(oid)
                if helper is not None and falls_back(helper.source):
                    said_by = f"{{policy}} on {{table}} asks {helper.title}, which falls back to a tenant."
                    yield replace(_report(scene, policy, said_by), fix_sql="")

    yield from _each_once(found())


@RULES.rule(
    "policy-missing-nullif",
    Severity.MEDIUM,
    summary="A policy that takes the empty setting for a tenant.",
    mechanism="After a transaction with SET LOCAL the setting reads as '' for the rest of the session, not "
    "as NULL. Cast to a number or uuid, '' is an error in the next request on a pooled connection; compared "
    "as text, it is a tenant of that name.",
    fix="Wrap it: NULLIF(current_setting(…, true), '').",
)
def policy_missing_nullif(scene: Scene) -> Iterator[Found]:
    def found() -> Iterator[Found]:
        for policy, said in _held_by(scene):
            if said.nullif or said.default is not None:
                continue
            column = table_of(scene, policy).column(scene.tenant_column(policy.relation))
            is_text = column is not None and column.type.startswith(("text", "character", "citext"))
            does = "matches rows of a tenant ''" if is_text else "fails on an empty setting"
            severity = Severity.LOW if is_text else None
            yield _report(scene, policy, f"{{policy}} on {{table}} {does}.", severity)
        for policy, part in _held_otherwise(scene):
            if any(_fails_on_empty(each) for each in walk(part)):
                yield replace(
                    _report(scene, policy, "{policy} on {table} fails on an empty setting."), fix_sql=""
                )

    yield from _each_once(found())


@RULES.rule(
    "policy-missing-ok",
    Severity.LOW,
    summary="A policy that fails, instead of showing nothing, where the setting was never made.",
    mechanism="current_setting(name) without its second argument raises an error in a session that has not "
    "set it: nothing leaks, but every forgotten bind is an outage, and tools that only look get errors.",
    fix="Read it with current_setting(name, true).",
)
def policy_missing_ok(scene: Scene) -> Iterator[Found]:
    def found() -> Iterator[Found]:
        for policy, said in _held_by(scene):
            if not said.missing_ok:
                yield _report(scene, policy, "{policy} on {table} fails where the setting was never made.")

    yield from _each_once(found())


@RULES.rule(
    "policy-setting-unqualified",
    Severity.MEDIUM,
    summary="A policy that reads a setting without a prefix.",
    mechanism="Settings of one's own have two parts (app.tenant_id). A name of one part is the server's: it "
    "cannot be set for a tenant, so the policy shows nothing or fails, or compares to something unrelated.",
    fix="Give the setting a prefix, in the policy and where it is bound.",
)
def policy_setting_unqualified(scene: Scene) -> Iterator[Found]:
    def found() -> Iterator[Found]:
        for policy, said in _held_by(scene):
            if said.name is not None and "." not in said.name:
                yield _report(scene, policy, "{policy} on {table} reads a setting that is none of yours.")

    yield from _each_once(found())


@RULES.rule(
    "policy-setting-typo",
    Severity.MEDIUM,
    summary="A policy that reads another setting than the rest, of nearly the same name.",
    mechanism="Nobody ever sets the misspelt name, so the policy lets nothing pass; and whoever sets it by "
    "hand is held by nothing else.",
    fix="Read the setting that the application binds.",
)
def policy_setting_typo(scene: Scene) -> Iterator[Found]:
    said = {policy.oid: _names(scene, policy) for policy in _policies(scene)}
    times = Counter(name for names in said.values() for name in names)
    expected = scene.scope.setting or (times.most_common(1)[0][0] if times else "")
    for policy in _policies(scene):
        for name in sorted(said[policy.oid]):
            rare = times[name] * 2 <= times[expected] or bool(scene.scope.setting)
            if name != expected and rare and _alike(name, expected):
                message = f"{{policy}} on {{table}} reads {name}, where others read {expected}."
                yield replace(_report(scene, policy, message), fix_sql=mended(scene, policy, expected))


def _alike(one: str, other: str) -> bool:
    """A letter or two apart."""
    return SequenceMatcher(None, one, other).ratio() >= 0.9


_NUMBERS = frozenset({20, 21, 23, 1700})
_UUID = 2950


@RULES.rule(
    "policy-setting-types",
    Severity.LOW,
    summary="A setting that policies take for a number on one table, and for a UUID on another.",
    mechanism="No text reads as both: while a tenant of the one kind is bound, each query of a table of the "
    "other fails with `invalid input syntax`. Nothing leaks, but no session can serve both tables.",
    fix="Give the tenant columns one type, or bind the other kind by a setting of its own.",
)
def policy_setting_types(scene: Scene) -> Iterator[Found]:
    held_by = tuple(_held_by(scene))
    numbers = {said.name for _, said in held_by if not _NUMBERS.isdisjoint(said.casts)}

    def found() -> Iterator[Found]:
        for policy, said in held_by:
            if said.name in numbers and _UUID in said.casts:
                message = f"{{policy}} on {{table}} takes {said.name} for a UUID, where others take a number."
                yield replace(_report(scene, policy, message), fix_sql="")

    yield from _each_once(found())


@RULES.rule(
    "role-default-tenant",
    Severity.HIGH,
    summary="A tenant that every session of a role, or of the database, starts with.",
    mechanism="ALTER ROLE … SET or ALTER DATABASE … SET gives the setting a value before anybody binds a "
    "tenant: whoever forgets to, acts as that tenant. RESET and DISCARD go back to it too.",
    fix="Reset it. Bind the tenant in each transaction.",
)
def role_default_tenant(scene: Scene) -> Iterator[Found]:
    read = {name.lower() for policy in _policies(scene) for name in _names(scene, policy)}
    read.add(setting_name(scene, 0).lower())
    reachable = {name for role in scene.application for name in scene.reach.acts_as(role.name)}
    for each in scene.facts.settings:
        if each.name.lower() not in read or not each.value:
            continue
        if each.role is not None and each.role not in reachable:
            continue
        whose = f"ROLE {quoted(each.role)}" if each.role is not None else "ROLE ALL"
        where = f" IN DATABASE {quoted(scene.facts.server.database)}" if each.here else ""
        if each.role is None and each.here:
            whose, where = f"DATABASE {quoted(scene.facts.server.database)}", ""
        yield Found(
            f"{each.name} of {whose}{where}",
            f"Sessions start with {each.name} set: one that forgets to bind a tenant acts as that one.",
            f"ALTER {whose}{where} RESET {each.name};",
            role=each.role or "",
        )


@RULES.rule(
    "policy-editable-claim",
    Severity.HIGH,
    summary="A policy that goes by a claim that users edit themselves.",
    mechanism="`user_metadata` of a token is written by its user: a policy that takes the tenant from there "
    "lets everybody choose one.",
    fix="Keep the tenant in `app_metadata`, or in a table that users cannot write.",
)
def policy_editable_claim(scene: Scene) -> Iterator[Found]:
    for policy in _policies(scene):
        constants = {
            each.value
            for clause in scene.expressions(policy)
            for each in walk(clause)
            if isinstance(each, Constant)
        }
        if constants & {"user_metadata", "raw_user_meta_data"}:
            yield _report(scene, policy, "{policy} on {table} goes by a claim that users edit themselves.")
