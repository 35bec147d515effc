"""What `tenantry rls prove` shows of a finding is about that finding: its table, its key, its way."""

from collections.abc import Iterator

import pytest
from rls_servers import Databases, apart

from tenantry.postgres.proving import proving_range
from tenantry.rls import Declared
from tenantry.rls.prove.model import Judgement, Proof, Proved, Verdict
from tenantry.rls.prove.proving import prove

SETTING = "NULLIF(current_setting('app.tenant_id', true), '')"
newest = pytest.mark.parametrize("rls_server", [18], indirect=True)


def held(table: str, column: str = "tenant_id", kind: str = "int") -> tuple[str, ...]:
    """Row security with the right policy."""
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY p ON {table} USING ({column} = {SETTING}::{kind})",
    )


CUSTOMERS = (
    "CREATE TABLE customers (id serial PRIMARY KEY, tenant_id int NOT NULL, email text NOT NULL UNIQUE, "
    "UNIQUE (tenant_id, id))",
    "CREATE TABLE orders (id serial PRIMARY KEY, tenant_id int NOT NULL, "
    "customer_id int NOT NULL REFERENCES customers (id), "
    "status text NOT NULL CHECK (status IN ('open', 'paid')))",
    "GRANT ALL ON customers, orders TO app_user",
    "GRANT USAGE ON SEQUENCE customers_id_seq, orders_id_seq TO app_user",
)
APP = Declared(application_roles=("app_user",))


@pytest.fixture
def made(rls_databases: Databases) -> Iterator[Databases]:
    rls_databases.role("app_user")
    yield rls_databases


def attacked(url: str, declared: Declared = APP) -> Proof:
    async def attack() -> Proof:
        async with proving_range(url, statement_timeout=10, lock_timeout=1) as place:
            _, proof = await prove(place, declared)
            return proof

    return apart(attack())


def proved(proof: Proof, key: str) -> Proved:
    return next(each for each in proof.findings if each.finding.key == key)


def asked(found: Proved) -> str:
    """The evidence of a finding that is confirmed."""
    assert found.verdict is Verdict.CONFIRMED, found.why
    assert found.by is not None
    return found.by.attempt.asked


@newest
def test_a_key_is_shown_by_its_own_violation_and_by_no_other_keys(made: Databases) -> None:
    proof = attacked(made(*CUSTOMERS, *held("customers"), *held("orders")))
    refers = proved(proof, "foreign-key-oracle: constraint orders_customer_id_fkey on public.orders")
    assert "INTO public.orders" in asked(refers)
    assert refers.by is not None
    assert refers.by.violated == "orders_customer_id_fkey on public.orders"
    for column, index in (("email", "customers_email_key"), ("id", "customers_pkey"), ("id", "orders_pkey")):
        table = "public." + index.partition("_")[0]
        found = proved(proof, f"on-conflict: index {index} on {table}")
        assert f"ON CONFLICT ({column}) DO UPDATE" in asked(found)
        assert asked(found).startswith(f"INSERT INTO {table} ")


@newest
def test_a_key_whose_columns_no_caller_may_write_is_no_finding(made: Databases) -> None:
    url = made(
        *CUSTOMERS,
        *held("customers"),
        *held("orders"),
        "REVOKE INSERT ON orders FROM app_user",
        "GRANT INSERT (tenant_id, customer_id, status) ON orders TO app_user",
    )
    keys = {each.finding.key for each in attacked(url).findings}
    assert "on-conflict: index customers_pkey on public.customers" in keys
    assert "on-conflict: index orders_pkey on public.orders" not in keys


@newest
def test_a_table_that_others_refer_to_is_truncated_with_cascade(made: Databases) -> None:
    proof = attacked(made(*CUSTOMERS, *held("customers"), *held("orders")))
    assert asked(proved(proof, "truncate: table public.customers for app_user")).endswith("CASCADE")


@newest
def test_what_leaks_elsewhere_is_no_evidence(made: Databases) -> None:
    url = made(
        *CUSTOMERS,
        *held("customers"),
        "CREATE TABLE sessions (id int PRIMARY KEY, data text)",
        "GRANT SELECT ON sessions TO app_user",
        "REVOKE SELECT ON orders FROM app_user",
        "CREATE VIEW open_orders AS SELECT * FROM orders",
        "GRANT SELECT ON open_orders TO app_user",
    )
    declared = Declared(
        application_roles=("app_user",),
        tables={"public.customers": "tenant_id", "public.orders": "tenant_id"},
    )
    proof = attacked(url, declared)
    for key in ("unclassified-table: table public.sessions", "references: table public.orders for app_user"):
        assert proved(proof, key).verdict is Verdict.BEYOND
    assert asked(proved(proof, "rls-off: table public.orders")).startswith("INSERT INTO public.orders ")
    assert any("public.open_orders" in each.attempt.asked for each in proof.leaked)
    assert proof.unfound == ()


MIXED = (
    "CREATE TABLE invoices (tenant_id int NOT NULL, id int, PRIMARY KEY (tenant_id, id))",
    "CREATE TABLE notes (org_id uuid NOT NULL, id int, PRIMARY KEY (org_id, id))",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON invoices, notes TO app_user",
    *held("invoices"),
    *held("notes", "org_id", "uuid"),
)


@newest
def test_a_setting_of_two_types_is_bound_for_each_table_as_it_reads_it(made: Databases) -> None:
    proof = attacked(made(*MIXED))
    assert proof.leaked == ()
    read = {
        (each.attempt.asked, each.judgement)
        for each in proof.outcomes
        if each.attempt.door == "read" and each.attempt.bound.value == "tenant A"
    }
    assert read == {
        ("SELECT tenant_id, id FROM public.invoices", Judgement.HELD),
        ("SELECT org_id, id FROM public.notes", Judgement.HELD),
    }
    assert not [each.why for each in proof.outcomes if "22P02" in each.why]


@newest
def test_what_fails_of_a_value_refutes_nothing(made: Databases) -> None:
    url = made(
        *MIXED,
        "CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM 'x'::int; END $$",
        "CREATE TRIGGER guard BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION guard()",
    )
    proof = attacked(url)
    inserted = [each for each in proof.outcomes if each.attempt.door == "insert"]
    ended = {(each.judgement, "22P02" in each.why) for each in inserted if "invoices" in each.attempt.asked}
    assert ended == {(Judgement.BEYOND, True)}
