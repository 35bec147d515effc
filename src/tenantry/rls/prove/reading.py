"""Attempts to see another tenant's rows: through every relation, function, flag and list. Pure."""

from collections.abc import Iterator
from itertools import islice, product

from tenantry.rls.bodies import builds_statements, tables_named
from tenantry.rls.expression import Expression
from tenantry.rls.facts import Function, Relation
from tenantry.rls.meaning import functions, readings, relations
from tenantry.rls.names import quoted
from tenantry.rls.prove.model import Attempt, Bound
from tenantry.rls.prove.outside import outside_of
from tenantry.rls.prove.planting import Plot, insertion, other_settings
from tenantry.rls.prove.stances import Attacker, Settings
from tenantry.rls.prove.values import literal, value

PEEK = """\
CREATE FUNCTION pg_temp.peek(anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN IF $1::text = ANY (ARRAY[{marks}]) THEN RAISE NOTICE 'seen: %', $1; END IF; RETURN true; END $$"""
"""A function of the application's own that costs nothing, so that the planner would run it first."""

_SCANS = tuple(f"SET LOCAL enable_{each} = off" for each in ("indexscan", "indexonlyscan", "bitmapscan"))
"""An index would be searched by the view's own condition, and hand nothing else on."""

TRUTHS = ("on", "true", "1", "yes", "admin", "service_role", "*")
_CALLS = 6


def reading(attacker: Attacker) -> Iterator[Attempt]:
    for relation, tables in attacker.reached:
        yield from _selects(attacker, relation, tables)
        if relation.kind == "materialized view":
            yield from _refreshed(attacker, relation, tables)
        yield from _peeks(attacker, relation, tables)
        yield from _leakproof(attacker, relation, tables)
    for function in attacker.scene.own_functions():
        yield from _calls(attacker, function)
    yield from _flags(attacker)
    yield from _wildcards(attacker)
    yield from _memberships(attacker)
    yield from _shadows(attacker)
    yield from _kept_plans(attacker)


def _through(attacker: Attacker, relation: Relation, tables: frozenset[str]) -> str:
    return "" if relation.title in tables else relation.title


def _selects(attacker: Attacker, relation: Relation, tables: frozenset[str]) -> Iterator[Attempt]:
    for bound in attacker.bounds:
        yield Attempt(
            door="read",
            role=attacker.role,
            bound=bound,
            settings=attacker.binding(bound, tables),
            asked=attacker.selection(relation),
            tables=tables,
            through=_through(attacker, relation, tables),
            reads=True,
        )


def _bound(given: Settings) -> list[str]:
    return [f"SELECT set_config({literal(name)}, {literal(text)}, true)" for name, text in given]


def _refreshed(attacker: Attacker, view: Relation, tables: frozenset[str]) -> Iterator[Attempt]:
    for other in attacker.field.others[:1]:
        bind = _bound(attacker.binding_of(other, tables))
        yield Attempt(
            door="read",
            role=attacker.role,
            settings=attacker.binding(Bound.A, tables),
            prepare=(*bind, f"REFRESH MATERIALIZED VIEW {view.title}"),
            asked=attacker.selection(view),
            tables=tables,
            through=view.title,
            reads=True,
        )


def _peeks(attacker: Attacker, relation: Relation, tables: frozenset[str]) -> Iterator[Attempt]:
    marks = dict(attacker.marks(tables, relation))
    for name, text in list(marks.items())[-1:]:
        yield Attempt(
            door="peek",
            role=attacker.role,
            settings=attacker.binding(Bound.A, tables),
            statements=(*_SCANS, PEEK.format(marks=literal(text))),
            asked=f"SELECT count(*) FROM {relation.title} WHERE pg_temp.peek({quoted(name)})",
            tables=tables,
            through=_through(attacker, relation, tables),
            reads=True,
        )


def _leakproof(attacker: Attacker, relation: Relation, tables: frozenset[str]) -> Iterator[Attempt]:
    for function in attacker.scene.own_functions():
        if not function.leakproof or outside_of(attacker.scene, function):
            continue
        kinds = arguments(function)
        fitting = [each for each in attacker.columns(relation) if kinds == [each.type]]
        for column in fitting[:4]:
            yield Attempt(
                door="leakproof",
                role=attacker.role,
                settings=attacker.binding(Bound.A, tables),
                asked=f"SELECT count(*) FROM {relation.title} "
                f"WHERE {_called(function)}({quoted(column.name)}) IS NOT NULL",
                tables=tables,
                through=function.title,
                reads=True,
            )


def _called(function: Function) -> str:
    return f"{quoted(function.schema)}.{quoted(function.name)}"


def arguments(function: Function) -> list[str]:
    """The types of its arguments; [""] for one that cannot be told."""
    found = []
    for each in function.arguments.split(", ") if function.arguments else []:
        words = [word for word in each.split(" ") if word not in {"IN", "VARIADIC", "INOUT"}]
        tails = (" ".join(words[start:]) for start in range(len(words)))
        found.append(next((tail for tail in tails if value(tail, 1, "") is not None), ""))
    return found


def _calls(attacker: Attacker, function: Function) -> Iterator[Attempt]:
    """SECURITY DEFINER functions with arguments of plain types: made-up ones, and another tenant's."""
    scene = attacker.scene
    if not function.security_definer or function.is_trigger or outside_of(scene, function):
        return
    if function.kind not in {"f", "p"} or not scene.could(attacker.role, function, "EXECUTE"):
        return
    kinds = arguments(function)
    if "" in kinds:
        return
    tables = frozenset(each.title for each in attacker.planted)
    ways = dict.fromkeys(attacker.binding(Bound.A, (title,)) for title in sorted(tables))
    for given, bound in product(islice(dict.fromkeys(_given(attacker, function, kinds)), _CALLS), ways):
        call = f"{_called(function)}({', '.join(map(literal, given))})"
        yield Attempt(
            door="call",
            role=attacker.role,
            settings=bound,
            asked=f"CALL {call}" if function.kind == "p" else f"SELECT * FROM {call} AS answer",
            tables=tables,
            through=function.title,
            reads=function.kind == "f",
        )


def _given(attacker: Attacker, function: Function, kinds: list[str]) -> Iterator[tuple[str | None, ...]]:
    field = attacker.field
    for tenant in (*field.others[:1], field.a):
        yield tuple(tenant.named(each, "") for each in kinds)
        yield tuple(value(each, tenant.number, tenant.label) for each in kinds)
    if builds_statements(function.source):
        for table in attacker.planted[:2]:
            column = attacker.scene.tenant_column(table.oid)
            if column and field.others:
                theirs = literal(field.tenant_value(table, field.others[0]))
                text = f"{table.title} AS t WHERE {quoted(column)} = {theirs} AND t::text::int > 0"
                yield tuple(text if each == "text" else value(each, 1, "") for each in kinds)


def _asking(attacker: Attacker) -> Iterator[tuple[Relation, list[Expression]]]:
    """Planted tables with what their policies say."""
    scene = attacker.scene
    for table in attacker.planted:
        policies = scene.policies_of.get(table.oid, ())
        said = [each for policy in policies for each in (scene.using(policy), scene.check(policy)) if each]
        yield table, said


def _flags(attacker: Attacker) -> Iterator[Attempt]:
    flags = [each for each in other_settings(attacker.scene) if "." in each]
    for table, said in _asking(attacker):
        read = {each.name for expression in said for each in readings(expression)}
        names = dict(attacker.field.others[0].rows.get(table.oid, {})) if attacker.field.others else {}
        for flag in flags if read else ():
            if flag not in read:
                continue
            tried = dict.fromkeys((*TRUTHS, names.get(attacker.scene.tenant_column(table.oid)) or "on"))
            for truth in tried:
                yield Attempt(
                    door="flag",
                    role=attacker.role,
                    settings=(*attacker.binding(Bound.A, (table.title,)), (flag, truth)),
                    asked=attacker.selection(table),
                    tables=frozenset({table.title}),
                    through=flag,
                    reads=True,
                )


def _wildcards(attacker: Attacker) -> Iterator[Attempt]:
    """A tenant with the name of everybody, where tenants are texts."""
    for table in attacker.planted:
        column = table.column(attacker.scene.tenant_column(table.oid))
        if column is not None and attacker.field.kind(column) in {"text", "character varying"}:
            yield Attempt(
                door="read",
                role=attacker.role,
                settings=tuple((name, "%") for name, _ in attacker.binding(Bound.A, (table.title,))),
                asked=attacker.selection(table),
                tables=frozenset({table.title}),
                reads=True,
            )


def _memberships(attacker: Attacker) -> Iterator[Attempt]:
    """Rows that make the application a member of another tenant, in lists that policies ask."""
    lookups = Plot(attacker.scene).lookups
    for table, said in _asking(attacker):
        asked = frozenset().union(*map(relations, said)) & lookups if said else frozenset()
        for oid in sorted(asked - {table.oid}):
            listed = attacker.scene.facts.relations[oid]
            for row in crafted(attacker, listed):
                yield Attempt(
                    door="member",
                    role=attacker.role,
                    settings=_as_user(attacker, table),
                    statements=(insertion(listed.title, row),),
                    asked=attacker.selection(table),
                    tables=frozenset({table.title}),
                    through=listed.title,
                    reads=True,
                )


def _as_user(attacker: Attacker, table: Relation) -> tuple[tuple[str, str], ...]:
    """Other settings that policies read are taken to name a user, of tenant A."""
    user = str(attacker.field.a.number)
    flags = tuple((each, user) for each in other_settings(attacker.scene) if "." in each)
    return (*attacker.binding(Bound.A, (table.title,)), *flags)


def crafted(attacker: Attacker, listed: Relation) -> Iterator[dict[str, str | None]]:
    """Rows in which one column is another tenant and the others are whoever asks: each column in turn."""
    field = attacker.field
    columns = [each for each in listed.columns if not each.generated]
    for other in field.others[:1]:
        for chosen in columns[:6]:
            for who in (attacker.role, str(field.a.number)):
                row: dict[str, str | None] = {}
                for each in columns:
                    kind = field.kind(each)
                    plain = value(kind, field.a.number, "a")
                    text = who if kind.startswith(("text", "name", "character")) else plain
                    row[each.name] = other.named(kind, field.style) if each is chosen else text
                yield row


def _shadows(attacker: Attacker) -> Iterator[Attempt]:
    """Temporary tables in place of those that policies' helpers name."""
    scene = attacker.scene
    for table, said in _asking(attacker):
        helpers = frozenset().union(*map(functions, said)) if said else frozenset()
        for helper in (scene.facts.functions[oid] for oid in sorted(helpers) if oid in scene.facts.functions):
            for _, name in sorted(tables_named(helper.source)):
                for listed in scene.by_name.get(name, ())[:1]:
                    yield from _shadow(attacker, table, helper, listed)


def _shadow(attacker: Attacker, table: Relation, helper: Function, listed: Relation) -> Iterator[Attempt]:
    temporary = f"pg_temp.{quoted(listed.name)}"
    columns = ", ".join(f"{quoted(each.name)} {each.type}" for each in listed.columns)
    for row in crafted(attacker, listed):
        yield Attempt(
            door="shadow",
            role=attacker.role,
            settings=_as_user(attacker, table),
            prepare=("DISCARD PLANS",),
            statements=(
                f"CREATE TEMPORARY TABLE {quoted(listed.name)} ({columns})",
                f"GRANT ALL ON {temporary} TO PUBLIC",
                insertion(temporary, row, overriding=False),
            ),
            asked=attacker.selection(table),
            tables=frozenset({table.title}),
            through=helper.title,
            reads=True,
        )


def _kept_plans(attacker: Attacker) -> Iterator[Attempt]:
    """A statement that was prepared while another tenant was bound, run by A."""
    field = attacker.field
    for table, said in _asking(attacker):
        helpers = frozenset().union(*map(functions, said)) if said else frozenset()
        if not helpers & attacker.scene.facts.functions.keys():
            continue
        for other in field.others[:1]:
            theirs = _bound(attacker.binding_of(other, (table.title,)))
            ours = _bound(attacker.binding(Bound.A, (table.title,)))
            yield Attempt(
                door="kept plan",
                role=attacker.role,
                prepare=("DEALLOCATE ALL",),
                statements=(
                    *theirs,
                    "SET LOCAL plan_cache_mode = force_generic_plan",
                    f"PREPARE kept AS {attacker.selection(table)}",
                    "EXECUTE kept",
                    *ours,
                ),
                asked="EXECUTE kept",
                tables=frozenset({table.title}),
            )
