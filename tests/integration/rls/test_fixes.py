"""The SQL that a finding gives runs as it is given, on the schema that breaks the rule, and mends it."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
import pytest_asyncio
from rls_servers import Databases
from rls_world import undone

from tenantry.postgres.catalogue import read_facts_inside
from tenantry.rls import Declared, Finding, audit
from tenantry.testing.row_policies import Case, base, cases

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.parametrize("rls_server", [18], indirect=True),
]

LEFT = {
    "unique-across-tenants--column-grants": {"redundant-index"},  # by the new key, and told then
    "unique-across-tenants--primary-key": {"redundant-index"},
    "dump-under-policies": {"undeclared-bypass"},  # a role with BYPASSRLS is to be declared, with a reason
}
"""What is found where the SQL was run, of cases that are not mended by SQL alone."""

WITHOUT_SQL = {
    "copy-under-policies": "who may copy all rows is to be decided",
    "database-owner": "the new owner is to be named",
    "exclusion-across-tenants": "the operator for the tenant may be an extension's (btree_gist)",
    "index-not-leakproof": "the column is to get another type",
    "large-objects": "whose they are is not known",
    "no-policy-applies": "a policy, or no privileges: that is to be decided",
    "policy-correlated": "the policy is to be written anew",
    "policy-helper-each-row": "the policy is to be written anew",
    "policy-in-subselect": "the policy is to be written anew",
    "policy-or": "the policy is to be split by role",
    "policy-recursion": "the policy is to be written anew",
    "policy-restricts-nothing": "what was meant is not known",
    "policy-row-function": "the policy is to be written anew",
    "policy-setting-types": "one of the tables is to go by a setting of its own",
    "policy-volatile": "the policy is to be written anew",
    "publication": "which rows a subscriber may have is to be decided",
    "schema-owner": "the new owner is to be named",
    "server-flaw": "the server is to be updated",
    "service-role": "it is no fault",
    "unclassified-table": "it is to be declared",
}
"""Rules none of whose cases has SQL that runs, with the reason."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop(vacant_database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    async with undone(vacant_database_url) as connection:
        await connection.execute(base())
        yield connection


async def _found(connection: "asyncpg.Connection[Any]", case: Case) -> tuple[Finding, ...]:
    facts = await read_facts_inside(connection)
    if case.version:
        facts = replace(facts, server=replace(facts.server, version=case.version))
    return audit(facts, case.declared).findings


def _statements(sql: str) -> list[str]:
    """What runs of it: comments are for people."""
    lines = "\n".join(line for line in sql.splitlines() if not line.startswith("--"))
    return [each for each in re.split(r";\s*(?:\n|$)", lines) if each.strip()]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases()])
async def test_the_sql_of_a_finding_runs_and_mends_it(case: Case, shop: "asyncpg.Connection[Any]") -> None:
    savepoint = shop.transaction()
    await savepoint.start()
    try:
        await shop.execute(case.broken)
        await shop.execute("RESET ROLE")
        found = [each for each in await _found(shop, case) if each.rule == case.rule]
        steps = [step for each in found for step in _statements(each.fix_sql)]
        for step in steps:
            await shop.execute(step.replace(" CONCURRENTLY", ""))  # all is undone, so it is in a transaction
        if steps:
            left = await _found(shop, case)
            assert {each.rule for each in left} == LEFT.get(case.name, set()), [each.key for each in left]
    finally:
        await savepoint.rollback()


async def test_which_rules_leave_it_to_people(shop: "asyncpg.Connection[Any]") -> None:
    with_sql = set()
    for case in cases():
        savepoint = shop.transaction()
        await savepoint.start()
        await shop.execute(case.broken)
        await shop.execute("RESET ROLE")
        here = [each for each in await _found(shop, case) if each.rule == case.rule]
        with_sql |= {each.rule for each in here if _statements(each.fix_sql)}
        await savepoint.rollback()
    assert {case.rule for case in cases()} - with_sql == set(WITHOUT_SQL)


BARE = """
CREATE TABLE customers (id int PRIMARY KEY, tenant_id int NOT NULL, email text UNIQUE);
CREATE TABLE orders (
    id int PRIMARY KEY, tenant_id int NOT NULL, note text,
    customer_id int REFERENCES customers ON DELETE SET NULL ON UPDATE CASCADE,
    customer_email text REFERENCES customers (email) ON DELETE CASCADE
);
CREATE UNIQUE INDEX orders_note ON orders (lower(note)) INCLUDE (customer_id) WHERE note <> '';
CREATE TABLE events (id int, tenant_id int NOT NULL, day int, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (1) TO (2);
CREATE UNIQUE INDEX events_by_day ON events (day, id);
CREATE TABLE "Odd Name" (id int UNIQUE DEFERRABLE, tenant_id int NOT NULL);
CREATE TABLE threads (id int PRIMARY KEY, tenant_id int NOT NULL, parent int REFERENCES threads);
INSERT INTO customers VALUES (1, 1, 'a'), (2, 2, 'b');
INSERT INTO orders VALUES (1, 1, 'x', 1, 'a'), (2, 2, 'y', 2, 'b'), (3, 2, '', 2, NULL);
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO tenantry_test_newcomer;
"""
ROLE = "tenantry_test_newcomer"


@pytest.mark.parametrize("order", [1, -1], ids=["as told", "from the last"])
async def test_a_bare_database_is_mended_by_what_audits_give_one_after_the_other(
    rls_databases: Databases, order: int
) -> None:
    rls_databases.role(ROLE)
    connection = await asyncpg.connect(rls_databases(BARE))
    try:
        for _ in range(5):
            found = await _of_newcomer(connection)
            if not found:
                break
            for each in found[::order]:
                for step in _statements(each.fix_sql):
                    await connection.execute(step)
        assert [each.key for each in found] == []
        await _keeps_what_keys_do(connection)
    finally:
        await connection.close()


async def _of_newcomer(connection: "asyncpg.Connection[Any]") -> list[Finding]:
    async with connection.transaction():
        facts = await read_facts_inside(connection)
    report = audit(facts, Declared(application_roles=(ROLE,)))
    return [each for each in report.findings if _statements(each.fix_sql)]


async def _keeps_what_keys_do(connection: "asyncpg.Connection[Any]") -> None:
    """Deleting a customer takes its reference away and not the tenant; each table has its primary key."""
    await connection.execute("DELETE FROM customers WHERE id = 2")
    rows = await connection.fetch("SELECT id, tenant_id, customer_id FROM orders ORDER BY id")
    assert [tuple(each) for each in rows] == [(1, 1, 1), (3, 2, None)]
    await connection.execute("UPDATE customers SET id = 7")
    assert await connection.fetchval("SELECT customer_id FROM orders WHERE id = 1") == 7
    keys = await connection.fetch(
        "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contype IN ('p', 'u') AND conrelid IN ('customers'::regclass, 'orders'::regclass, "
        "'\"Odd Name\"'::regclass) ORDER BY 1, 2"
    )
    assert [tuple(each) for each in keys] == [
        ('"Odd Name"', "UNIQUE (tenant_id, id) DEFERRABLE"),
        ("customers", "PRIMARY KEY (tenant_id, id)"),
        ("customers", "UNIQUE (tenant_id, email)"),
        ("orders", "PRIMARY KEY (tenant_id, id)"),
    ]
