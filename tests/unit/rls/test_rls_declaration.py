"""A declaration is read whole or refused whole; a refusal says where, what is accepted and what to do."""

import pytest

from tenantry.config.validation import RegistryErrors
from tenantry.kernel.errors import UsageError
from tenantry.rls.declaration import TableName, TenantTable, parse_declaration, table_name

FULL = """
setting = "shop.tenant"
column = "org_id"
type = "uuid"
schema = "shop"
roles = ["web", "worker"]
grants = ["select", "insert"]

[tables]
invoices = {}
"billing.notes" = { column = "owner", type = "text", grants = ["select"], replaces = ["old"] }
'"odd.schema"."odd.name"' = {}

[shared]
countries = "one list for everybody"

[services]
reporting = "nightly totals"
"""


def test_what_a_table_does_not_say_is_what_stands_above() -> None:
    found = parse_declaration(FULL)
    assert found.tables == (
        TenantTable(TableName("shop", "invoices"), "org_id", "uuid", ("select", "insert")),
        TenantTable(TableName("billing", "notes"), "owner", "text", ("select",), ("old",)),
        TenantTable(TableName("odd.schema", "odd.name"), "org_id", "uuid", ("select", "insert")),
    )
    assert (found.setting, found.roles) == ("shop.tenant", ("web", "worker"))
    assert found.shared == {TableName("shop", "countries"): "one list for everybody"}
    assert found.services == {"reporting": "nightly totals"}


def test_json_says_the_same() -> None:
    text = '{"roles": ["web"], "tables": {"invoices": {"type": "bigint"}}}'
    assert parse_declaration(text, format="json") == parse_declaration(
        'roles = ["web"]\n[tables]\ninvoices = { type = "bigint" }'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty document"),
        ("[tables]\nx = {}", "roles: a missing value is not accepted; expected a list of one or more"),
        ('roles = ["web"]', "tables: a missing value is not accepted"),
        ('roles = ["web"]\n[tables]', "expected at least one tenant table"),
        ("roles = []\n[tables]\nx = {}", "one or more application roles"),
        ('roles = ["a", "a"]\n[tables]\nx = {}', "each once"),
        ('roles = ["pg_monitor"]\n[tables]\nx = {}', "roles[0]: 'pg_monitor' is not accepted"),
        ('rolls = ["web"]\n[tables]\nx = {}', "unknown key 'rolls'"),
        ('roles = ["web"]\n[tables]\nx = { colum = "t" }', "Did you mean 'column'?"),
        ('roles = ["web"]\n[tables]\nx = { type = "integer" }', "tables.x.type: 'integer' is not"),
        ('roles = ["web"]\ntype = "inte"\n[tables]\nx = {}', "Did you mean 'int'?"),
        ('roles = ["web"]\nsetting = "tenant"\n[tables]\nx = {}', "with a dot"),
        ('roles = ["web"]\nsetting = "app.x\'; DROP"\n[tables]\nx = {}', "with a dot"),
        ('roles = ["web"]\n[tables]\n"a.b.c" = {}', "a name with a dot in double quotes"),
        ('roles = ["web"]\n[tables]\nx = {}\n"public.x" = {}', "each table once"),
        ('roles = ["web"]\n[tables]\nx = { grants = ["truncate"] }', "tables.x.grants[0]"),
        ('roles = ["web"]\n[tables]\nx = 3', "tables.x: 3 is not accepted; expected a table"),
        ('roles = ["web"]\n[tables]\nx = {}\n[shared]\nx = "why"', "not among the tenant tables"),
        ('roles = ["web"]\n[tables]\nx = {}\n[shared]\ny = ""', "the reason"),
        ('roles = ["web"]\n[tables]\nx = {}\n[services]\nweb = "why"', "not an application role as well"),
        (f'roles = ["web"]\n[tables]\n{"x" * 64} = {{}}', "1 to 63 bytes"),
    ],
    ids=lambda value: None,
)  # fmt: skip
def test_a_wrong_declaration_is_told_what_to_change(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_declaration(text)
    assert said in str(refused.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(RegistryErrors) as refused:
        parse_declaration('setting = "x"\ntype = "y"\n[tables]\nz = { column = "" }')
    assert [each.path for each in refused.value.errors] == ["roles", "type", "setting", "tables.z.column"]


def test_a_quote_in_a_name_is_written_twice() -> None:
    assert table_name("", '"a""b".c', "public") == TableName('a"b', "c")
    assert str(TableName('a"b', "c")) == '"a""b".c'
