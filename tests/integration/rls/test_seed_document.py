"""The seed document's answer on row security, run again: its eight steps, its owner bypass and its two plans,
figure for figure, on policies that this product wrote."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
from rls_servers import Databases, applied, planned

INVOICES = """
    CREATE TABLE invoices (
      tenant_id int     NOT NULL,
      id        int     NOT NULL,
      amount    numeric NOT NULL,
      PRIMARY KEY (tenant_id, id)
    )"""
ROWS = "INSERT INTO invoices VALUES (1,1,100),(1,2,250),(2,1,999)"
VIEW = "CREATE VIEW invoice_totals AS SELECT tenant_id, sum(amount) AS total FROM invoices GROUP BY tenant_id"
DECLARED = 'roles = ["app_user"]\n[tables]\ninvoices = {}'
NOTES = DECLARED + '\nnotes = { replaces = ["p"] }'

TENANT = "tenant_id = (NULLIF(current_setting('app.tenant_id'::text, true), ''::text))::integer"
BITMAP = f"""\
Aggregate
  ->  Bitmap Heap Scan on invoices
        Recheck Cond: ({TENANT})
        ->  Bitmap Index Scan on invoices_pkey
              Index Cond: ({TENANT})"""
POINT = f"""\
Index Scan using invoices_pkey on invoices
  Index Cond: (({TENANT}) AND (id = 1200))"""

pytestmark = pytest.mark.needs_postgres


@pytest.fixture
def url(rls_databases: Databases) -> str:
    """The document's database: three invoices, and the policies that the declaration asks for."""
    found = rls_databases(INVOICES, ROWS)
    for role in ("app_user", "app_owner"):
        rls_databases.role(role)
    assert applied(found, DECLARED).is_whole
    return found


@pytest.fixture
async def session(url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    """The document's one session, a superuser's."""
    connection = await asyncpg.connect(url, statement_cache_size=0)
    yield connection
    await connection.close()


async def test_the_eight_steps_give_the_documents_figures(
    url: str, session: "asyncpg.Connection[Any]"
) -> None:
    assert await session.fetchval("SELECT count(*) FROM invoices") == 3  # 1: the superuser is not held
    await session.execute("SET ROLE app_user")
    assert await session.fetchval("SELECT count(*) FROM invoices") == 0  # 2: fails closed

    await session.execute("BEGIN")
    await session.execute("SET LOCAL app.tenant_id = '1'")
    rows = await session.fetch("SELECT tenant_id, id, amount FROM invoices ORDER BY id")
    assert [tuple(map(int, row)) for row in rows] == [(1, 1, 100), (1, 2, 250)]  # 3
    await session.execute("SAVEPOINT s")
    with pytest.raises(asyncpg.InsufficientPrivilegeError) as refused:  # 4
        await session.execute("INSERT INTO invoices VALUES (2, 50, 1)")
    assert str(refused.value) == 'new row violates row-level security policy for table "invoices"'
    await session.execute("ROLLBACK TO SAVEPOINT s")
    await session.execute("COMMIT")

    assert await session.fetchval("SELECT count(*) FROM invoices") == 0  # 5: and no error, thanks to NULLIF

    await session.execute("SET app.tenant_id = '2'")
    assert await session.fetchval("SELECT count(*) FROM invoices") == 1  # 6: request A
    leaked = await session.fetch("SELECT tenant_id, amount FROM invoices")  # request B forgot to set it
    assert [tuple(map(int, row)) for row in leaked] == [(2, 999)]
    await session.execute("RESET app.tenant_id")

    await session.execute("RESET ROLE")
    await session.execute(VIEW)
    await session.execute("GRANT SELECT ON invoice_totals TO app_user")
    await session.execute("SET ROLE app_user")
    await session.execute("SET app.tenant_id = '1'")
    totals = "SELECT * FROM invoice_totals ORDER BY tenant_id"
    assert [tuple(map(int, row)) for row in await session.fetch(totals)] == [(1, 350), (2, 999)]  # 7

    assert [step.up for step in planned(url, DECLARED).steps] == [
        ("ALTER VIEW public.invoice_totals SET (security_invoker = true)",)
    ]
    assert applied(url, DECLARED).is_whole
    assert [tuple(map(int, row)) for row in await session.fetch(totals)] == [(1, 350)]  # 8


async def test_the_owner_sees_both_notes_until_row_security_is_forced(
    url: str, session: "asyncpg.Connection[Any]"
) -> None:
    for statement in (
        "CREATE TABLE notes (tenant_id int NOT NULL, body text)",
        "ALTER TABLE notes OWNER TO app_owner",
        "INSERT INTO notes VALUES (1,'a'),(2,'b')",
        "ALTER TABLE notes ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON notes "
        "USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int)",
        "SET ROLE app_owner",
        "SET app.tenant_id = '1'",
    ):
        await session.execute(statement)
    assert await session.fetchval("SELECT count(*) FROM notes") == 2  # ENABLE only
    assert applied(url, NOTES).is_whole
    assert await session.fetchval("SELECT count(*) FROM notes") == 1  # FORCE


async def test_the_two_plans_are_the_documents_to_the_letter(session: "asyncpg.Connection[Any]") -> None:
    await session.execute(
        "INSERT INTO invoices SELECT t, g, 1 FROM generate_series(1,200) t, generate_series(1000,1500) g"
    )
    await session.execute("ANALYZE invoices")
    await session.execute("SET ROLE app_user")
    await session.execute("SET app.tenant_id = '7'")
    assert await _explained(session, "SELECT sum(amount) FROM invoices") == BITMAP
    assert await _explained(session, "SELECT * FROM invoices WHERE id = 1200") == POINT


def test_a_primary_key_that_leads_with_the_tenant_is_index_enough(rls_databases: Databases) -> None:
    steps = planned(rls_databases(INVOICES), DECLARED).steps
    assert [step.title for step in steps if not step.title.startswith("create the role")] == [
        "protect public.invoices"
    ]


async def _explained(session: "asyncpg.Connection[Any]", query: str) -> str:
    return "\n".join(row[0] for row in await session.fetch(f"EXPLAIN (COSTS OFF) {query}"))
