"""Doors: views, functions, triggers and rules, which read rows as somebody whom their policies do not
hold."""

from collections.abc import Iterator

from tenantry.rls.bodies import builds_statements, tables_named
from tenantry.rls.doors import Doors
from tenantry.rls.expression import read_query
from tenantry.rls.facts import Function, Relation, Trigger
from tenantry.rls.model import Family, Found, Severity
from tenantry.rls.names import quoted
from tenantry.rls.roles import Privilege
from tenantry.rls.rule import Rules
from tenantry.rls.scene import Scene

RULES = Rules(Family.DOORS)


def _titles(scene: Scene, oids: dict[int, Relation]) -> str:
    names = sorted(scene.facts.relations[oid].title for oid in oids)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _foreign(scene: Scene, role: str, leaks: dict[int, Relation]) -> dict[int, Relation]:
    """Without the tables of which the role sees everything anyway: that is another rule's finding."""
    relations = scene.facts.relations
    return {oid: opener for oid, opener in leaks.items() if not scene.sees_all(role, relations[oid])}


@RULES.rule(
    "definer-view",
    Severity.CRITICAL,
    summary="A view reads a tenant table as its owner, whom the policies do not hold.",
    mechanism="A view asks for its tables as its owner. If the owner is a superuser, has BYPASSRLS, or owns "
    "a table that does not force its policies, the view shows every tenant's rows to whoever may select "
    "from it.",
    fix="Set security_invoker (PostgreSQL 15), so that the view asks as the current user; or give it to an "
    "owner whom the policies hold. A view that filters by the tenant itself needs security_barrier as well.",
)
def definer_view(scene: Scene) -> Iterator[Found]:
    doors = Doors(scene)
    for view in scene.relations("view"):
        for role in scene.users(view, "SELECT"):
            leaks = _foreign(scene, role.name, doors.leaks(view, role.name))
            own = {oid: opener for oid, opener in leaks.items() if opener is view}
            if own:
                yield Found(
                    f"view {view.title}",
                    f"{view.title} reads {_titles(scene, own)} as {view.owner}, whom the policies do not "
                    f"hold, and {role.name} may read the view.",
                    f"ALTER VIEW {view.title} SET (security_invoker = true);",
                    min(own),
                    role.name,
                )
                break


@RULES.rule(
    "nested-definer-view",
    Severity.CRITICAL,
    summary="A view reads, through another view, a tenant table as somebody whom the policies do not hold.",
    mechanism="Each view in a chain asks as its own owner. A harmless view over one that a superuser owns "
    "shows what the inner one may see, though nobody was granted the inner one. security_invoker on the "
    "outer view does not reach inwards.",
    fix="Set security_invoker on the inner view.",
)
def nested_definer_view(scene: Scene) -> Iterator[Found]:
    doors = Doors(scene)
    for view in scene.relations("view"):
        for role in scene.users(view, "SELECT"):
            leaks = _foreign(scene, role.name, doors.leaks(view, role.name))
            inner = {
                oid: each for oid, each in leaks.items() if each is not view and _passes(scene, view, each)
            }
            inner = {oid: each for oid, each in inner.items() if role not in scene.users(each, "SELECT")}
            if inner:
                opener = inner[min(inner)]
                sql = (
                    f"ALTER VIEW {opener.title} SET (security_invoker = true);"
                    if opener.kind == "view"
                    else ""
                )
                yield Found(
                    f"view {view.title}",
                    f"{view.title} reads the {opener.kind} {opener.title}, which reads "
                    f"{_titles(scene, inner)} as {opener.owner}; {role.name} may read {view.title}.",
                    sql,
                    min(inner),
                    role.name,
                )
                break


def _passes(scene: Scene, view: Relation, opener: Relation) -> bool:
    """Whether the view may read what opens the table: as its owner, for the caller may not."""
    return opener.oid not in view.reads or scene.can(view.owner, opener, "SELECT")


@RULES.rule(
    "materialized-view",
    Severity.CRITICAL,
    summary="A materialized view holds rows of every tenant, and the application may read it.",
    mechanism="A materialized view is a table that its owner filled. It has no row policies and cannot have "
    "any: what its owner saw at the last REFRESH, everybody who may select from it sees.",
    fix="Revoke SELECT on it and give the application a view with security_barrier over it that compares "
    "the tenant column to the setting; or keep a table with policies instead.",
)
def materialized_view(scene: Scene) -> Iterator[Found]:
    doors = Doors(scene)
    for view in scene.relations("materialized view"):
        leaks = doors.leaks(view, view.owner)
        users = scene.users(view, "SELECT") if leaks else ()
        if users:
            yield Found(
                f"materialized view {view.title}",
                f"{view.title} holds rows of {_titles(scene, leaks)} of every tenant, and {users[0].name} "
                "may read it.",
                f"REVOKE SELECT ON {view.title} FROM {quoted(users[0].name)};",  # noqa: S608 - shown, not run
                min(leaks),
                users[0].name,
            )


@RULES.rule(
    "materialized-of-one",
    Severity.MEDIUM,
    summary="A materialized view holds what one tenant saw, and the application may read it.",
    mechanism="The policies held its owner at the last REFRESH. So it is empty, or it holds the rows of the "
    "tenant that was bound then; and whoever may select from it sees those, whatever tenant is bound now.",
    fix="Use a view with security_invoker, or a table with policies of its own.",
)
def materialized_of_one(scene: Scene) -> Iterator[Found]:
    doors = Doors(scene)
    for view in scene.relations("materialized view"):
        tables = sorted(oid for oid in view.reads if scene.is_tenant_table(oid))
        users = scene.users(view, "SELECT") if tables and not doors.leaks(view, view.owner) else ()
        if users:
            yield Found(
                f"materialized view {view.title}",
                f"{users[0].name} may read {view.title}, which holds what was seen at its last REFRESH.",
                f"REVOKE SELECT ON {view.title} FROM {quoted(users[0].name)};",  # noqa: S608 - shown, not run
                tables[0],
                users[0].name,
            )


_VERBS: tuple[Privilege, ...] = ("INSERT", "UPDATE", "DELETE")


@RULES.rule(
    "writable-view",
    Severity.CRITICAL,
    summary="Rows of a tenant table can be written through a view whose owner the policies do not hold.",
    mechanism="A simple view can be written to, and writes as its owner: neither USING nor WITH CHECK of "
    "the table holds what comes through it. WITH CHECK OPTION checks the view's own condition, not the "
    "policies.",
    fix="Set security_invoker, or revoke the privilege.",
)
def writable_view(scene: Scene) -> Iterator[Found]:
    for view in scene.relations("view"):
        if view.security_invoker or not read_query(view.tree).plain:
            continue
        tables = [scene.facts.relations[oid] for oid in view.reads if scene.is_tenant_table(oid)]
        open_ = [each for each in tables if scene.skips_policies(view.owner, each)]
        for role in scene.application if open_ else ():
            verbs = [verb for verb in _VERBS if role in scene.users(view, verb)]
            if verbs and not scene.skips_policies(role.name, open_[0]):
                yield Found(
                    f"view {view.title} for {role.name}",
                    f"{role.name} may {', '.join(verbs)} through {view.title}, which writes {open_[0].title} "
                    f"as {view.owner}, whom the policies do not hold.",
                    f"ALTER VIEW {view.title} SET (security_invoker = true);",
                    open_[0].oid,
                    role.name,
                )


@RULES.rule(
    "definer-function",
    Severity.HIGH,
    summary="A SECURITY DEFINER function reads a tenant table as somebody whom the policies do not hold.",
    mechanism="The function runs as its owner. Where the owner is a superuser, has BYPASSRLS or owns a "
    "table that does not force its policies, no policy holds what the function does; a caller gets what it "
    "returns. Whether it filters by the tenant itself cannot be proved from its text: that is said with a "
    "lower severity.",
    fix="Make it SECURITY INVOKER, or give it to an owner whom the policies hold, or revoke EXECUTE.",
)
def definer_function(scene: Scene) -> Iterator[Found]:
    doors = Doors(scene)
    for function in scene.own_functions():
        if not function.security_definer or function.is_trigger or function.kind not in {"f", "p"}:
            continue
        users = scene.users(function, "EXECUTE")
        leaks = doors.function_leaks(function) if users else {}
        leaks = {} if not users else _foreign(scene, users[0].name, leaks)
        if leaks:
            filters = "current_setting" in function.source
            yield Found(
                f"function {function.title}",
                f"{function.title} runs as {function.owner}, whom the policies of {_titles(scene, leaks)} do "
                f"not hold, and {users[0].name} may call it"
                + ("; it reads a setting: check that it filters every row by it." if filters else "."),
                f"ALTER {_kind(function)} {function.title} SECURITY INVOKER;",
                min(leaks),
                users[0].name,
                Severity.LOW if filters else None,
            )


def _kind(function: Function) -> str:
    return "PROCEDURE" if function.kind == "p" else "FUNCTION"


def _bypasses(scene: Scene, owner: str) -> bool:
    role = scene.facts.roles.get(owner)
    return role is not None and (role.superuser or role.bypasses_rls)


@RULES.rule(
    "definer-dynamic-sql",
    Severity.MEDIUM,
    summary="A SECURITY DEFINER function of an owner whom no policy holds runs text as SQL.",
    mechanism="What a function builds and runs with EXECUTE cannot be told from its body: a table's name "
    "may come from the caller. As a superuser or a role with BYPASSRLS it reaches everything.",
    fix="Give it to an owner whom the policies hold; build statements with format('%I') and USING.",
)
def definer_dynamic_sql(scene: Scene) -> Iterator[Found]:
    for function in scene.own_functions():
        if not function.security_definer or function.is_trigger or not _bypasses(scene, function.owner):
            continue
        users = scene.users(function, "EXECUTE")
        if users and function.language.startswith("pl") and builds_statements(function.source):
            yield Found(
                f"function {function.title}",
                f"{function.title} runs text as SQL as {function.owner}, and {users[0].name} may call it.",
                f"ALTER {_kind(function)} {function.title} SECURITY INVOKER;",
                role=users[0].name,
            )


@RULES.rule(
    "definer-search-path",
    Severity.HIGH,
    summary="A SECURITY DEFINER function takes the search path of its caller.",
    mechanism="Without SET search_path the caller decides which table, operator or function an unqualified "
    "name in the body means, temporary objects before all others; the owner's rights are used on the "
    "caller's objects. A path that does not end in pg_temp is still searched after the caller's temporary "
    "tables.",
    fix="Set the function's search_path to the schemas that it needs, with pg_temp last.",
)
def definer_search_path(scene: Scene) -> Iterator[Found]:
    helpers, fired = _policy_helpers(scene), _fired(scene)
    for function in scene.own_functions():
        if not function.security_definer or function.oid in helpers or function.pins_names:
            continue
        users = () if function.is_trigger else scene.users(function, "EXECUTE")
        role = users[0].name if users else fired.get(function.oid)
        path, bare = function.setting("search_path"), _bare_tables(function)
        if role is not None and (path is None or bare):
            how = "the search path of its caller" if path is None else f"{bare[0]} looked up in pg_temp first"
            yield Found(
                f"function {function.title}",
                f"{function.title} runs as {function.owner} with {how}, and {role} may "
                f"{'fire' if function.is_trigger else 'call'} it.",
                f"ALTER {_kind(function)} {function.title} SET search_path = {_ending_in_temp(function)};",
                role=role,
                severity=None if path is None else Severity.MEDIUM,
            )


def _fired(scene: Scene) -> dict[int, str]:
    """Functions of triggers that the application can fire, each with a role that can."""
    fired = _definer_triggers(scene, "BEFORE", "AFTER", "INSTEAD OF")
    return {function.oid: role for _, function, _, role in fired}


def _bare_tables(function: Function) -> list[str]:
    """Tables that its text names without a schema; a body that the server has parsed has none."""
    if function.reads:
        return []
    return sorted(name for schema, name in tables_named(function.source) if not schema)


def _ending_in_temp(function: Function) -> str:
    path = function.setting("search_path") or quoted(function.schema)
    return f"{path}, pg_temp"


def _policy_helpers(scene: Scene) -> frozenset[int]:
    """The functions that policies call: a rule of policy texts looks at them."""
    return frozenset().union(*map(scene.runs, scene.facts.policies))


def _definer_triggers(scene: Scene, *timings: str) -> Iterator[tuple[Trigger, Function, Relation, str]]:
    """Triggers that the application can fire and whose functions run as their owners; with who fires them."""
    for trigger in scene.facts.triggers:
        function = scene.facts.functions.get(trigger.function)
        relation = scene.facts.relations.get(trigger.relation)
        if function is None or relation is None or trigger.timing not in timings or trigger.enabled == "D":
            continue
        if not function.security_definer or function.extension or not scene.in_scope(relation.schema):
            continue
        for verb in _VERBS:
            users = scene.users(relation, verb) if verb in trigger.events else ()
            if users:
                yield trigger, function, relation, users[0].name
                break


def _trigger_findings(scene: Scene, *timings: str) -> Iterator[Found]:
    doors = Doors(scene)
    for trigger, function, relation, role in _definer_triggers(scene, *timings):
        leaks = {
            oid: named
            for oid, named in _foreign(scene, role, doors.function_leaks(function)).items()
            if oid != relation.oid
        }
        if leaks:
            yield Found(
                f"trigger {quoted(trigger.name)} on {relation.title}",
                f"{trigger.name} on {relation.title} runs {function.title} as {function.owner}, whom the "
                f"policies of {_titles(scene, leaks)} do not hold; {role} fires it.",
                f"ALTER FUNCTION {function.title} SECURITY INVOKER;",
                min(leaks),
                role,
            )


@RULES.rule(
    "definer-trigger",
    Severity.MEDIUM,
    summary="A trigger that the application fires works on a tenant table as somebody whom policies do not "
    "hold.",
    mechanism="The trigger's function is SECURITY DEFINER: what it reads and writes in other tables no "
    "policy holds. A value of the new row that it uses as a key reaches any tenant's rows.",
    fix="Make the function SECURITY INVOKER, or give it to an owner whom the policies hold.",
)
def definer_trigger(scene: Scene) -> Iterator[Found]:
    yield from _trigger_findings(scene, "BEFORE", "AFTER")


@RULES.rule(
    "instead-of-trigger",
    Severity.HIGH,
    summary="An INSTEAD OF trigger writes a tenant table as somebody whom the policies do not hold.",
    mechanism="Writes to the view become whatever the trigger's function does, and it is SECURITY DEFINER: "
    "neither the view's condition nor a policy is asked about the rows that it touches.",
    fix="Make the function SECURITY INVOKER, or give it to an owner whom the policies hold.",
)
def instead_of_trigger(scene: Scene) -> Iterator[Found]:
    yield from _trigger_findings(scene, "INSTEAD OF")


@RULES.rule(
    "rewrite-rule",
    Severity.HIGH,
    summary="A rule (CREATE RULE) reads or writes a tenant table as somebody whom the policies do not hold.",
    mechanism="The statements that a rule adds ask for their tables as the owner of the table or view that "
    "the rule is on, not as the one who ran the statement.",
    fix="Write a trigger instead; or have the owner be somebody whom the policies hold.",
)
def rewrite_rule(scene: Scene) -> Iterator[Found]:
    for rule in scene.facts.rewrite_rules:
        relation = scene.facts.relations.get(rule.relation)
        if (
            relation is None
            or rule.enabled == "D"
            or relation.extension
            or not scene.in_scope(relation.schema)
        ):
            continue
        verb: Privilege = next((each for each in _VERBS if each == rule.event), "SELECT")
        tables = [scene.facts.relations[oid] for oid in rule.reads if scene.is_tenant_table(oid)]
        open_ = [each for each in tables if scene.sees_all(relation.owner, each)]
        users = scene.users(relation, verb) if open_ else ()
        if users:
            yield Found(
                f"rule {quoted(rule.name)} on {relation.title}",
                f"{rule.name} on {relation.title} touches {open_[0].title} as {relation.owner}, whom its "
                f"policies do not hold; {users[0].name} may {rule.event} there.",
                f"DROP RULE {quoted(rule.name)} ON {relation.title};",
                open_[0].oid,
                users[0].name,
            )
