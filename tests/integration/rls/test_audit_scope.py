"""Who and what an audit is about: as declared, and, where nothing is, as read off a database."""

import pytest
from rls_world import FactsAfter

from tenantry.kernel.errors import InvalidValue
from tenantry.rls import Declared, Facts, Scope, audit
from tenantry.rls.declaration import parse_declaration
from tenantry.rls.scope import declared_by, found

TABLES = """
CREATE ROLE own NOLOGIN; CREATE ROLE app LOGIN; CREATE ROLE boss LOGIN SUPERUSER;
CREATE TABLE a (tenant_id int, account_id int); CREATE TABLE b (tenant_id int);
CREATE TABLE c (account_id int);
CREATE TABLE "Odd.name" (tenant_id int);
ALTER TABLE a OWNER TO own; ALTER TABLE b OWNER TO own; ALTER TABLE "Odd.name" OWNER TO own;
"""
SETTING = "NULLIF(current_setting('app.firm', true), '')::int"


def tables(facts: Facts, scope: Scope) -> dict[str, str]:
    return {facts.relations[oid].name: column for oid, column in scope.tenant_tables.items()}


async def test_one_column_names_the_tenant_the_one_that_most_tables_have(facts_after: FactsAfter) -> None:
    facts = await facts_after(TABLES)
    found_tables = tables(facts, found(Declared(), facts))
    assert found_tables == {"a": "tenant_id", "b": "tenant_id", "Odd.name": "tenant_id"}


async def test_a_column_that_policies_compare_to_a_setting_names_the_tenant_whatever_it_is_called(
    facts_after: FactsAfter,
) -> None:
    facts = await facts_after(
        "CREATE TABLE a (firm int, account_id int); CREATE TABLE b (firm int); CREATE TABLE c (firm int);"
        f"CREATE POLICY p ON a USING (firm = {SETTING}); CREATE POLICY p ON b USING ({SETTING} = firm);"
    )
    assert tables(facts, found(Declared(), facts)) == {"a": "firm", "b": "firm", "c": "firm"}


@pytest.mark.parametrize("schema", ["public", "billing"])
@pytest.mark.parametrize("schemas", [(), ("public",)])
async def test_one_table_that_a_policy_binds_by_its_column_does_not_hide_those_that_have_another(
    schema: str, schemas: tuple[str, ...], facts_after: FactsAfter
) -> None:
    facts = await facts_after(
        "CREATE ROLE app LOGIN; CREATE SCHEMA billing; CREATE TABLE customers (tenant_id int NOT NULL);"
        "CREATE TABLE orders (tenant_id int NOT NULL); CREATE TABLE invoices (tenant_id int NOT NULL);"
        "CREATE TABLE loose (org_id int); GRANT SELECT ON customers, orders, invoices TO app;"
        f"CREATE TABLE {schema}.notes (org_id int); ALTER TABLE {schema}.notes ENABLE ROW LEVEL SECURITY;"
        f"CREATE POLICY p ON {schema}.notes USING (org_id = {SETTING});"
    )
    bare = {"customers": "tenant_id", "orders": "tenant_id", "invoices": "tenant_id", "loose": "org_id"}
    noted = {"notes": "org_id"} if schema == "public" or not schemas else {}
    report = audit(facts, Declared(schemas=schemas))
    assert tables(facts, report.scope) == {**bare, **noted}
    assert {"rls-off: table public.customers", "rls-off: table public.invoices"} <= {
        each.key for each in report.findings
    }


async def test_a_column_beside_the_one_that_a_policy_binds_is_no_tenant_however_many_tables_have_it(
    facts_after: FactsAfter,
) -> None:
    facts = await facts_after(
        "CREATE TABLE notes (org_id int, customer_id int); CREATE TABLE a (customer_id int);"
        f"CREATE TABLE b (customer_id int); CREATE POLICY p ON notes USING (org_id = {SETTING});"
    )
    assert tables(facts, found(Declared(), facts)) == {"notes": "org_id"}


async def test_a_table_whose_policy_reads_a_setting_otherwise_is_a_tenants_without_a_column(
    facts_after: FactsAfter,
) -> None:
    facts = await facts_after(
        "CREATE TABLE parents (tenant_id int, id int); CREATE TABLE lines (parent int);"
        f"CREATE POLICY p ON lines USING (parent IN (SELECT id FROM parents WHERE tenant_id = {SETTING}));"
    )
    assert tables(facts, found(Declared(), facts)) == {"parents": "tenant_id", "lines": ""}


async def test_declared_columns_tables_and_schemas_win(facts_after: FactsAfter) -> None:
    facts = await facts_after(TABLES + "CREATE SCHEMA s; CREATE TABLE s.d (tenant_id int, owner_id int);")
    assert tables(facts, found(Declared(tenant_columns=("account_id",)), facts)) == {
        "a": "account_id",
        "c": "account_id",
    }
    assert tables(facts, found(Declared(schemas=("s",)), facts)) == {"d": "tenant_id"}
    declared = Declared(tables={"s.d": "owner_id"}, shared={"public.b": "for all"})
    scope = found(declared, facts)
    assert tables(facts, scope) == {"a": "tenant_id", "d": "owner_id", "Odd.name": "tenant_id"}
    assert [facts.relations[oid].name for oid in scope.shared] == ["b"]
    assert scope.declared


@pytest.mark.parametrize("name", ['public."Odd.name"', "public.Odd.name"])
async def test_a_table_may_be_named_as_sql_writes_it_or_without_quotes(
    name: str, facts_after: FactsAfter
) -> None:
    facts = await facts_after(TABLES)
    assert "Odd.name" in tables(facts, found(Declared(tables={name: "tenant_id"}), facts))


@pytest.mark.parametrize(
    ("grants", "roles"),
    [
        ("GRANT SELECT ON a TO app", ("app",)),
        ("GRANT SELECT (tenant_id) ON a TO app", ("app",)),
        ("CREATE ROLE team; GRANT INSERT ON a TO team; GRANT team TO app", ("app",)),
        ("CREATE ROLE team; GRANT INSERT ON a TO team", ("team",)),
        ("CREATE ROLE web LOGIN NOINHERIT; CREATE ROLE anon; GRANT anon TO web; GRANT SELECT ON a TO anon",
         ("web",)),
        ("GRANT SELECT ON a TO app, boss", ("app",)),
        ("GRANT SELECT ON a TO PUBLIC", ("app",)),
        ("GRANT REFERENCES ON a TO app", ("own",)),
        ("ALTER ROLE own LOGIN", ("own",)),
        ("CREATE ROLE feed LOGIN; GRANT SELECT ON a TO app, feed", ("app",)),
    ],
)  # fmt: skip
async def test_the_application_is_whoever_was_granted_something_else_the_owners(
    grants: str, roles: tuple[str, ...], facts_after: FactsAfter
) -> None:
    facts = await facts_after(f"{TABLES} {grants};")
    assert found(Declared(service_roles={"feed": "feeds the search index"}), facts).application == roles


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (Declared(tables={"public.aa": "tenant_id"}), "'public.a'"),
        (Declared(tables={"a": "tenant_id"}), "public.a"),
        (Declared(tables={"public.a": "tennant_id"}), "tenant_id, account_id"),
        (Declared(shared={"nowhere": "for all"}), "schema"),
        (Declared(application_roles=("ap",)), "'app'"),
    ],
)
async def test_what_the_database_lacks_is_refused_with_what_is_near(
    declared: Declared, said: str, facts_after: FactsAfter
) -> None:
    facts = await facts_after(TABLES)
    with pytest.raises(InvalidValue) as refused:
        found(declared, facts)
    assert said in str(refused.value)


async def test_a_service_role_that_does_not_exist_has_nothing_to_be_excused(facts_after: FactsAfter) -> None:
    facts = await facts_after(TABLES)
    assert found(Declared(service_roles={"nobody": "why"}), facts).service == {}


async def test_a_declaration_file_says_the_same_as_its_parts(facts_after: FactsAfter) -> None:
    facts = await facts_after(TABLES)
    file = """
    roles = ["app"]
    setting = "app.tenant_id"
    [tables]
    a = {}
    'public."Odd.name"' = {}
    [shared]
    c = "for all"
    [services]
    boss = "sees to everything"
    """
    scope = found(declared_by(parse_declaration(file)), facts)
    assert scope.application == ("app",)
    assert tables(facts, scope)["Odd.name"] == "tenant_id"
    assert scope.service == {"boss": "sees to everything"}
    assert scope.setting == "app.tenant_id"
    assert [facts.relations[oid].name for oid in scope.shared] == ["c"]


async def test_a_tenant_column_in_another_spelling_is_one(facts_after: FactsAfter) -> None:
    facts = await facts_after(
        'CREATE TABLE a ("tenantId" int NOT NULL, id int, PRIMARY KEY ("tenantId", id));'
        'CREATE TABLE b ("tenantId" int NOT NULL, id int, PRIMARY KEY ("tenantId", id));'
    )
    assert tables(facts, found(Declared(), facts)) == {"a": "tenantId", "b": "tenantId"}
