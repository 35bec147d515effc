"""What a policy says, read off the tree that a real server keeps, for the ways in which people write it."""

from dataclasses import replace

import pytest
from rls_world import FactsAfter

from tenantry.rls import Declared, Facts
from tenantry.rls.expression import (
    BoolTest,
    Case,
    Coalesce,
    Column,
    Constant,
    Distinct,
    Expression,
    NullTest,
    Operation,
    Session,
    Subselect,
    read,
    walk,
)
from tenantry.rls.meaning import Reading, is_false, is_true, reading, readings, relations
from tenantry.rls.scene import Scene
from tenantry.rls.scope import found

SETTING = "current_setting('app.tenant_id', true)"

TABLES = """
CREATE TABLE members (user_name text, tenant_id int);
CREATE TABLE t (tenant_id int, code varchar(9), id int, other int, kind text, ids int[], at timestamptz);
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
"""


async def expression(using: str, facts_after: FactsAfter) -> Expression:
    facts = await facts_after(f"{TABLES} CREATE POLICY p ON t USING ({using});")
    assert facts.policies[0].using_tree is not None
    return read(facts.policies[0].using_tree)


def held(facts: Facts, column: str = "tenant_id") -> tuple[Reading | None, ...]:
    """How the one policy of ``t`` holds ``column``: a reading for each alternative."""
    scene = Scene(facts, found(Declared(tables={"public.t": column}), facts))
    policy = facts.policies[0]
    return tuple(each.reading for each in scene.bindings(policy, scene.using(policy)))


SAFE = Reading("app.tenant_id", missing_ok=True, nullif=True, casts=(23,))


@pytest.mark.parametrize(
    ("using", "expected"),
    [
        (f"tenant_id = NULLIF({SETTING}, '')::int", (SAFE,)),
        (f"NULLIF({SETTING}, '')::int = tenant_id", (SAFE,)),
        (f"tenant_id = CAST(NULLIF({SETTING}, '') AS int) AND id > 3 AND kind = 'x'", (SAFE,)),
        (f"tenant_id = (SELECT NULLIF({SETTING}, '')::int)", (replace(SAFE, once=True),)),
        (f"tenant_id = {SETTING}::int", (Reading("app.tenant_id", True, False, None, (23,)),)),
        ("tenant_id = current_setting('app.tenant_id')::int", (Reading("app.tenant_id", casts=(23,)),)),
        (f"tenant_id = NULLIF({SETTING}, '')::int OR kind = 'public'", ()),
        (f"tenant_id = NULLIF({SETTING}, '')::int OR (tenant_id = {SETTING}::int AND id = 1)",
         (SAFE, Reading("app.tenant_id", True, False, None, (23,)))),
        (f"id = 1 AND (tenant_id = NULLIF({SETTING}, '')::int OR tenant_id = {SETTING}::int)",
         (SAFE, Reading("app.tenant_id", True, False, None, (23,)))),
        (f"tenant_id <> NULLIF({SETTING}, '')::int", ()),
        (f"other = NULLIF({SETTING}, '')::int", ()),
        ("tenant_id = other", ()),
        (f"NOT (tenant_id = NULLIF({SETTING}, '')::int)", ()),
        (f"tenant_id = ANY (ids) AND id = NULLIF({SETTING}, '')::int", ()),
    ],
)  # fmt: skip
async def test_the_comparison_that_holds_each_alternative_is_seen(
    using: str, expected: tuple[Reading, ...], facts_after: FactsAfter
) -> None:
    assert held(await facts_after(f"{TABLES} CREATE POLICY p ON t USING ({using});")) == expected


async def test_a_default_tenant_is_seen_and_a_default_of_null_is_none(facts_after: FactsAfter) -> None:
    falls = await expression(f"tenant_id = COALESCE(NULLIF({SETTING}, '')::int, 7)", facts_after)
    assert isinstance(falls, Operation)
    default = reading(falls.args[1])
    assert default is not None and default.default == Constant(type=23, value=7)
    assert not default.fails_closed


@pytest.mark.parametrize(
    ("side", "column", "kind", "bare"),
    [
        ("tenant_id", "tenant_id", "int", [True]),
        ("tenant_id::text", "tenant_id", "text", [False]),
        ("code", "code", "text", [True]),
        ("lower(code)", "code", "text", []),
    ],
)
async def test_a_column_is_bare_unless_more_than_relabelling_stands_around_it(
    side: str, column: str, *, kind: str, bare: list[bool], facts_after: FactsAfter
) -> None:
    facts = await facts_after(
        f"{TABLES} CREATE POLICY p ON t USING ({side} = NULLIF({SETTING}, '')::{kind});"
    )
    scene = Scene(facts, found(Declared(tables={"public.t": column}), facts))
    bindings = scene.bindings(facts.policies[0], scene.using(facts.policies[0]))
    assert [each.bare for each in bindings] == bare


@pytest.mark.parametrize(
    ("using", "true", "false"),
    [
        ("true", True, False),
        ("false", False, True),
        ("NULL", False, True),
        ("true OR id = 1", True, False),
        ("true AND id = 1", False, False),
        ("NOT false", True, False),
        ("false AND id = 1", False, True),
        ("id = 1", False, False),
    ],
)
async def test_what_is_plainly_true_or_false(
    using: str, true: bool, false: bool, facts_after: FactsAfter
) -> None:
    found_ = await expression(using, facts_after)
    assert (is_true(found_), is_false(found_)) == (true, false)


@pytest.mark.parametrize(
    ("using", "kind"),
    [
        ("tenant_id IN (SELECT tenant_id FROM members)", Subselect),
        ("EXISTS (SELECT FROM members AS m WHERE m.tenant_id = t.tenant_id)", Subselect),
        ("CASE WHEN id = 1 THEN true ELSE false END", Case),
        ("COALESCE(tenant_id, 0) = 0", Coalesce),
        ("tenant_id IS NOT DISTINCT FROM 3", Distinct),
        ("tenant_id IS NULL", NullTest),
        ("(id = 1) IS NOT FALSE", BoolTest),
        ("kind = current_user", Session),
    ],
)
async def test_each_construct_is_known_by_its_name(
    using: str, kind: type[Expression], facts_after: FactsAfter
) -> None:
    assert any(isinstance(each, kind) for each in walk(await expression(using, facts_after)))


async def test_columns_of_a_subselect_and_of_the_own_table_are_told_apart(facts_after: FactsAfter) -> None:
    facts = await facts_after(
        f"{TABLES} CREATE POLICY p ON t USING (EXISTS (SELECT FROM members AS m"
        " JOIN members AS n USING (user_name) WHERE m.tenant_id = t.tenant_id));"
    )
    members = next(each.oid for each in facts.relations.values() if each.name == "members")
    tree = read(facts.policies[0].using_tree or "")
    found_ = {(each.relation, each.number) for each in walk(tree) if isinstance(each, Column)}
    assert {(-1, 1), (members, 2), (members, 1)} <= found_
    assert relations(tree) == {members}


async def test_settings_are_seen_inside_what_is_opaque_too(facts_after: FactsAfter) -> None:
    found_ = await expression(f"ARRAY[NULLIF({SETTING}, '')::int] && ids", facts_after)
    assert [each.name for each in readings(found_)] == ["app.tenant_id"]


async def test_names_and_texts_beyond_ascii_come_through(facts_after: FactsAfter) -> None:
    found_ = await expression("kind = 'dröge {x} \"y\" \\z'", facts_after)
    assert [each.value for each in walk(found_) if isinstance(each, Constant)] == ['dröge {x} "y" \\z']


async def test_equal_policies_on_two_tables_are_one_expression(facts_after: FactsAfter) -> None:
    facts = await facts_after(
        f"{TABLES} CREATE TABLE u (LIKE t); CREATE POLICY longer_name ON u USING (id = 3);"
        "CREATE POLICY p ON t USING (id = 3);"
    )
    first, second = facts.policies
    assert first.using_tree == second.using_tree


async def test_what_is_nested_without_end_is_opaque_and_never_safe(facts_after: FactsAfter) -> None:
    deep = " || ".join(["kind"] * 900)
    facts = await facts_after(f"{TABLES} CREATE POLICY p ON t USING (tenant_id = 1 AND {deep} = 'x');")
    found_ = read(facts.policies[0].using_tree or "")
    assert not is_true(found_)
    assert held(facts) in {(), (None,)}
