"""What a plan writes, held to golden files: as SQL, as an Alembic and as a Django migration, and back."""

from pathlib import Path

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.rls.declaration import TableName, parse_declaration
from tenantry.rls.facts import Column, Facts, Index, IndexKey, Policy, Relation, Schema, Server
from tenantry.rls.migrations import alembic_migration, django_migration
from tenantry.rls.plan import Plan, plan
from tenantry.rls.render import Step, block, build_index, index_name, predicate
from tenantry.rls.roles import Grant, Role
from tenantry.rls.script import Bounds, one_line, sql_file

GOLDEN = Path(__file__).parent / "golden"
BOUNDS = Bounds()


def relation(oid: int, name: str, kind: str = "table", **more: object) -> Relation:
    columns = (Column(1, "tenant_id", "integer", 23, not_null=True), Column(2, "id", "integer", 23))
    return Relation(oid, "public", name, kind, "owner", columns=columns, **more)  # type: ignore[arg-type]


WORLD = Facts(
    Server(160004, "16.4", "shop", "owner", "owner"),
    roles={name: Role(oid, name) for oid, name in enumerate(("owner", "app_user"), 10)},
    schemas={"public": Schema(1, "public", "owner", (Grant("app_user", frozenset({"USAGE"})),))},
    relations={
        1: relation(1, "invoices", grants=(Grant("app_user", frozenset({"SELECT", "TRUNCATE"})),)),
        2: relation(2, "notes", rls_enabled=True),
        3: relation(3, "totals", "view", reads=(1,), grants=(Grant("app_user", frozenset({"SELECT"})),)),
        4: relation(4, "countries"),
    },
    indexes=(
        Index(7, 1, "invoices_pkey", "btree", tuple(IndexKey(each, each, "int4_ops", True, True)
                                                     for each in ("tenant_id", "id")), unique=True),
    ),
    policies=(Policy(8, 2, "old", True, "SELECT", ("app_user",), "(id > 0)"),),
)  # fmt: skip
DECLARED = parse_declaration("""
roles = ["app_user"]
[tables]
invoices = {}
notes = { replaces = ["old"] }
[shared]
countries = "one list"
[services]
reporting = "nightly totals"
""")
PLAN = plan(DECLARED, WORLD)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("up.sql", sql_file(PLAN.steps, BOUNDS, heading="What is missing")),
        ("down.sql", sql_file(PLAN.back, BOUNDS, heading="Takes it back")),
        ("alembic.txt", alembic_migration(PLAN, BOUNDS, after="3f2a9c1b7d5e")),
        ("django.txt", django_migration(PLAN, BOUNDS, after="shop.0001_initial")),
    ],
    ids=["up", "down", "alembic", "django"],
)
def test_it_writes_what_the_golden_file_holds(name: str, written: str) -> None:
    assert written == (GOLDEN / name).read_text()


def test_nothing_missing_is_a_plan_without_steps() -> None:
    assert Plan().steps == ()
    assert "pass  # there is nothing to do" in alembic_migration(Plan(), BOUNDS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("invoice", "did you mean public.invoices?"),
        ("invoices = { column = 'tenantid' }", "did you mean 'tenant_id'?"),
        ("invoices = { type = 'bigint' }", 'is of type integer, declared as bigint: declare type = "int"'),
        ("totals = {}", "public.totals is a view, which takes no row policies: declare what it reads"),
    ],
    ids=["table", "column", "type", "view"],
)
def test_what_the_database_lacks_is_an_objection_with_its_way_out(text: str, said: str) -> None:
    tables = text if "=" in text else f"{text} = {{}}"
    found = plan(parse_declaration(f'roles = ["app_user"]\n[tables]\n{tables}'), WORLD)
    assert found.steps == ()
    (objection,) = found.objections
    assert said in objection


def test_an_index_name_is_cut_to_what_postgresql_takes_and_is_free() -> None:
    long = TableName("public", "t" * 63)
    first = index_name(long, "tenant_id", set().__contains__)
    second = index_name(long, "tenant_id", {first.name}.__contains__)
    assert first.name.endswith("_tenant_id_idx")
    assert second.name.endswith("_tenant_id_idx1")
    assert {len(each.name.encode()) for each in (first, second)} == {63}
    wide = index_name(TableName("public", "ü" * 31), "ö" * 31, set().__contains__)
    assert len(wide.name.encode()) <= 63


def test_no_name_leaves_its_quotes_or_its_comment() -> None:
    name = TableName("public", 'x";\nDROP TABLE y; --')
    step = build_index(name, name, "$do$")
    assert step.up[0].startswith("DO $do1$") or "$do$" not in step.up[0].removeprefix("DO $do$")[:-4]
    assert one_line("a\nb\u2028c") == "a b c"
    assert "\nDROP" not in sql_file([Step(f"protect {name}", ())], BOUNDS)
    assert block("$do$ $do1$").startswith("DO $do2$")
    assert predicate('a"b', "uuid", "app.t").startswith('"a""b" = NULLIF(')


@pytest.mark.parametrize(
    "given",
    [{"lock_wait": 0}, {"lock_wait": float("nan")}, {"build_wait": 90_000}, {"attempts": 0}],
    ids=["no wait", "no number", "too long", "no attempt"],
)
def test_a_bound_out_of_range_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        Bounds(**given)  # type: ignore[arg-type]


def test_the_longest_wait_is_all_attempts_and_the_pauses_between() -> None:
    assert Bounds(lock_wait=2, attempts=5).longest() == 5 * 2 + 0.5 + 1 + 2 + 4


@pytest.mark.parametrize("after", ["a b", "x'; y", ""], ids=["space", "quote", "nothing"])
def test_a_predecessor_that_is_none_is_refused(after: str) -> None:
    for write in (alembic_migration, django_migration):
        with pytest.raises(InvalidValue):
            write(PLAN, BOUNDS, after=after)
