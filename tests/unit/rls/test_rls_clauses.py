"""Conditions as PostgreSQL writes them in plans, taken apart; and statements told from each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.rls.explain.clauses import bare, clauses
from tenantry.rls.explain.queries import parameters, statements
from tenantry.rls.explain.scans import joins, outline, scans

TENANT = "(o.tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::integer)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(o.status = 'open'::st)", (("o", "status"), "=", "'open'::st", "")),
        ("('open'::st = o.status)", (("o", "status"), "=", "'open'::st", "")),
        ("((o.name)::text ~~ 'a%'::text)", (("o", "name"), "~~", "'a%'::text", "text")),
        ('(o."Odd ""name" >= $1)', (("o", 'Odd "name'), ">=", "$1", "")),
        ("(o.id = ANY ('{1,2}'::integer[]))", (("o", "id"), "=", "ANY ('{1,2}'::integer[])", "")),
        ("(o.at < '2026-01-01 00:00:00+00'::timestamp with time zone)", (("o", "at"), "<",
         "'2026-01-01 00:00:00+00'::timestamp with time zone", "")),
        ("(o.amount IS NULL)", (("", ""), "", "", "")),
        ("((o.a = 1) OR (o.b = 2))", (("", ""), "", "", "")),
        ("(o.a = (o.b + 1))", (("o", "a"), "=", "(o.b + 1)", "")),
        ("(lower(o.email) = 'x'::text)", (("o", "email"), "=", "'x'::text", "")),
    ],
    ids=["plain", "swapped", "cast", "quoted", "any", "long type", "null", "or", "sum", "function"],
)  # fmt: skip
def test_a_condition_says_column_operator_and_value(
    text: str, said: tuple[tuple[str, str], str, str, str]
) -> None:
    (found,) = clauses(text)
    assert (found.column, found.operator, found.value, found.cast) == said


def test_conditions_joined_by_and_are_told_from_what_is_inside_them() -> None:
    found = clauses(f"({TENANT} AND (o.note = 'this AND (that'::text) AND ((o.a = 1) AND f(o.b)))")
    assert [each.text for each in found] == [
        TENANT[1:-1],
        "o.note = 'this AND (that'::text",
        "(o.a = 1) AND f(o.b)",
    ]
    assert found[0].functions == ("current_setting",)
    assert found[2].functions == ("f",)


@pytest.mark.parametrize(
    ("value", "kind", "constant"),
    [
        ("'5'::numeric", "numeric", True),
        ("'x'::public.\"Odd\"", 'public."Odd"', True),
        ("12", "integer", True),
        ("$1", "", False),
        ("($1)::numeric", "numeric", False),
        ("x.amount", "", False),
    ],
    ids=["numeric", "quoted", "integer", "parameter", "cast parameter", "column"],
)
def test_a_value_says_its_type_and_whether_it_stands_in_the_query(
    value: str, kind: str, constant: bool
) -> None:
    (found,) = clauses(f"(o.a = {value})")
    assert (found.value_type, found.value_is_constant) == (kind, constant)


def test_an_expression_is_compared_without_aliases_and_outer_parentheses() -> None:
    assert bare("(lower((o.email)::text))") == bare("lower((email)::text)")
    assert bare("o.a") != bare("o.b")


@given(st.text(alphabet="()'\"ab.=$1:AND \n", max_size=60))
def test_no_text_whatever_breaks_the_reading_or_is_lost(text: str) -> None:
    for each in clauses(text):
        assert each.text in text


def test_statements_are_told_apart_by_semicolons_that_are_between_them() -> None:
    text = """
        SELECT ';', ";", $tag$ ; $$ $tag$, E'\\'; ' -- ; not here
         WHERE a = $2; /* ; */
        UPDATE x SET a = $1;;
        -- nothing
    """
    first, second = statements(text)
    assert first.startswith("SELECT ';'")
    assert second.endswith("UPDATE x SET a = $1")
    assert [parameters(each) for each in (first, second)] == [2, 1]
    assert len(statements("SELECT $a$ $$ ; $a$; SELECT $$ $a$ ; $$")) == 2
    assert parameters("SELECT '$9', \"$8\", $$ $7 $$ -- $6") == 0


def test_a_plan_is_reduced_to_its_readings_of_tables_and_its_joins() -> None:
    plan = {
        "Node Type": "Hash Join",
        "Hash Cond": "(o.a = x.a)",
        "Plans": [
            {
                "Node Type": "Bitmap Heap Scan", "Relation Name": "orders", "Schema": "public", "Alias": "o",
                "Filter": "(o.b = 1)", "Plan Rows": 5,
                "Plans": [{"Node Type": "BitmapAnd", "Plans": [
                    {"Node Type": "Bitmap Index Scan", "Index Name": "i", "Index Cond": "(o.c = 1)"},
                    {"Node Type": "Bitmap Index Scan", "Index Name": "j", "Index Cond": "(o.d = 1)"},
                ]}],
            },
            {"Node Type": "Seq Scan", "Relation Name": "x", "Schema": "public", "Alias": "x"},
        ],
    }  # fmt: skip
    first, second = scans(plan)
    assert (first.indexes, first.conditions, first.filters) == (
        ("i", "j"), ("(o.c = 1)", "(o.d = 1)"), ("(o.b = 1)",),
    )  # fmt: skip
    assert (second.alias, second.indexes) == ("x", ())
    assert list(joins(plan)) == ["(o.a = x.a)"]
    assert list(outline(plan))[:3] == [
        "Hash Join",
        "  Hash Cond: (o.a = x.a)",
        "  ->  Bitmap Heap Scan on orders o",
    ]
