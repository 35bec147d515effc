"""Which tables the text of a function's body names."""

import pytest

from tenantry.rls.bodies import builds_statements, tables_named


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("SELECT * FROM invoices", {("", "invoices")}),
        ("SELECT * FROM shop.Invoices i JOIN ONLY b ON true", {("shop", "invoices"), ("", "b")}),
        ('SELECT 1 FROM "Odd ""name".t, "B" AS x WHERE true', {('Odd "name', "t"), ("", "B")}),
        ("INSERT INTO a SELECT * FROM b", {("", "a"), ("", "b")}),
        ("UPDATE ONLY a SET x = 1; DELETE FROM b USING c, d", {("", n) for n in "abcd"}),
        ("-- FROM hidden\n/* JOIN hidden */ SELECT 1", set()),
        ("SELECT extract(year FROM at)", {("", "at")}),
        ("SELECT from_unit, joined FROM x", {("", "x")}),
        ("BEGIN FOR r IN SELECT * FROM a LOOP NULL; END LOOP; END", {("", "a")}),
    ],
)
def test_names_stand_behind_the_words_that_tables_stand_behind(
    source: str, expected: set[tuple[str, str]]
) -> None:
    assert tables_named(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("BEGIN EXECUTE 'x'; END", True),
        ("BEGIN execute format('x'); END", True),
        ("-- EXECUTE nothing", False),
        ("CREATE TRIGGER t EXECUTE FUNCTION f()", False),
        ("SELECT executed FROM x", False),
    ],
)
def test_text_that_is_run_as_sql_is_noticed(source: str, expected: bool) -> None:
    assert builds_statements(source) is expected
