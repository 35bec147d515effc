"""Queries planned as the application, on real servers: what was held back, and that the advice helps."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
from rls_servers import Databases, applied, run

from tenantry.postgres.plans import PostgresPlanner, planner
from tenantry.rls.declaration import parse_declaration
from tenantry.rls.explain.asking import Asker, explain
from tenantry.rls.explain.model import Explanation
from tenantry.rls.explain.scans import outline
from tenantry.rls.ground import Ground

pytestmark = pytest.mark.needs_postgres

DECLARED = 'roles = ["asker"]\n[tables]\norders = {}\nlines = {}\n'
ORDERS = (
    "CREATE TYPE status AS ENUM ('open', 'closed', 'void')",
    """CREATE TABLE orders (tenant_id int NOT NULL, id int NOT NULL, status status NOT NULL, amount numeric,
                            name text COLLATE "C", PRIMARY KEY (tenant_id, id))""",
    "CREATE TABLE lines (tenant_id int NOT NULL, order_id int, amount numeric, note text)",
    """INSERT INTO orders SELECT g % 20, g, CASE WHEN g % 199 = 0 THEN 'closed' ELSE 'open' END::status, g,
                                 'name' || g FROM generate_series(1, 20000) g""",
    "INSERT INTO lines SELECT g % 20, g, g, 'note' || g FROM generate_series(1, 20000) g",
    "CREATE INDEX by_status ON orders (tenant_id, status)",
    "CREATE INDEX by_amount ON orders (tenant_id, amount)",
    "CREATE INDEX by_name ON orders (tenant_id, name)",
    "CREATE INDEX by_lower ON orders (tenant_id, (lower(name)))",
    "CREATE INDEX by_order ON lines (order_id)",
    "ANALYZE orders, lines",
)
ENUM = "SELECT * FROM orders WHERE status = 'closed'"


class Asking:
    """One database of orders, and a superuser who plans as ``asker`` for tenant 7."""

    def __init__(self, url: str, plans: PostgresPlanner) -> None:
        self.url, self._plans = url, plans

    async def __call__(self, query: str, *, role: str = "asker", tenant: str = "7") -> Explanation:
        ground = Ground(parse_declaration(DECLARED), await self._plans.facts())
        asker = Asker(role, tenant, "app.tenant_id")
        return await explain(query, ground, asker, self._plans, what_if=True)


@pytest.fixture(scope="module")
def orders_url(rls_server: Databases) -> Iterator[str]:
    """One database for all tests that only ask."""
    databases = Databases(rls_server.admin_url, rls_server.version)
    yield orders(databases)
    databases.drop()


def orders(databases: Databases) -> str:
    databases.role("asker")
    url = databases(*ORDERS)
    assert applied(url, DECLARED).is_whole
    return url


@pytest.fixture
async def ask_plan(orders_url: str) -> AsyncIterator[Asking]:
    async with planner(orders_url) as plans:
        yield Asking(orders_url, plans)


async def test_d8_an_index_whose_second_operator_is_not_leakproof_with_the_plan_before_and_after(
    ask_plan: Asking,
) -> None:
    found = await ask_plan(ENUM)
    (held,) = found.held_back
    assert held.clause.text == "orders.status = 'closed'::status"
    assert (held.function, held.indexes) == ("pg_catalog.enum_eq(anyenum, anyenum)", ("by_status",))
    assert not found.is_well
    assert found.plan is not None
    assert found.if_leakproof is not None
    now, then = ("\n".join(outline(each)) for each in (found.plan, found.if_leakproof))
    assert "Filter: (orders.status = 'closed'::status)" in now
    assert "AND (orders.status = 'closed'::status)" not in now
    assert "Index Cond" in then
    assert "Filter" not in then
    assert await _leakproof(ask_plan.url, "enum_eq") == [False]  # it was rolled back


@pytest.mark.parametrize(
    ("query", "function", "index"),
    [
        ("SELECT * FROM orders WHERE amount = 500", "pg_catalog.numeric_eq(numeric, numeric)", "by_amount"),
        ("SELECT * FROM orders WHERE amount < $1", "pg_catalog.numeric_lt(numeric, numeric)", "by_amount"),
        ("SELECT * FROM orders WHERE name LIKE 'name12%'", "pg_catalog.textlike(text, text)", "by_name"),
        ("SELECT * FROM orders WHERE lower(name) = 'name12'", "lower", "by_lower"),
        ("UPDATE orders SET id = id WHERE status = $1", "pg_catalog.enum_eq(anyenum, anyenum)", "by_status"),
        ("SELECT 1 FROM lines l JOIN orders o ON o.amount = l.amount AND l.order_id = 3",
         "pg_catalog.numeric_eq(numeric, numeric)", "by_amount"),
    ],
    ids=["numeric", "numeric parameter", "LIKE", "function", "update", "join"],
)  # fmt: skip
async def test_a_condition_that_had_to_wait_is_named_with_its_function_and_its_index(
    ask_plan: Asking, query: str, function: str, index: str
) -> None:
    found = await ask_plan(query)
    held = [(each.function, each.indexes) for each in found.held_back if each.indexes]
    assert held == [(function, (index,))]
    assert found.generic is ("$1" in query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders WHERE id = 1200",
        "SELECT * FROM orders WHERE name = 'name12'",
        "SELECT * FROM orders WHERE name >= 'name12' AND name < 'name13'",
        "SELECT * FROM orders WHERE id = ANY ('{1,2}')",
        "SELECT * FROM orders WHERE id = $1",
        "SELECT sum(amount) FROM orders",
        "DELETE FROM orders WHERE id = $1",
        "SELECT 1",
    ],
    ids=["key", "text", "range", "any", "parameter", "all", "delete", "no table"],
)
async def test_what_the_index_is_searched_by_is_not_reported(ask_plan: Asking, query: str) -> None:
    found = await ask_plan(query)
    assert (found.error, found.held_back) == ("", ())
    assert found.is_well
    assert all(each.tenant == "searched" and each.leads for each in found.readings if each.indexes)


async def test_a_role_that_no_policy_holds_is_told(ask_plan: Asking) -> None:
    found = await ask_plan(ENUM, role="postgres")
    assert [each.tenant for each in found.readings] == ["missing"]
    assert found.held_back == ()  # no policy was before it
    assert not found.is_well


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("DROP TABLE orders", "[42601]"),
        ("SELECT 1; DROP TABLE orders", "[42601] cannot insert multiple commands"),
        ("SELECT * FROM nowhere", "[42P01]"),
        ("SELECT $1", ""),
        ("COPY orders TO STDOUT", "[42601]"),
    ],
    ids=["definition", "two", "no table", "no type", "copy"],
)
async def test_what_is_no_query_is_not_run(ask_plan: Asking, query: str, said: str) -> None:
    found = await ask_plan(query)
    assert said in found.error
    assert (await ask_plan("SELECT * FROM orders WHERE id = 1")).is_well  # nothing was done, and it goes on


async def test_a_login_that_may_not_act_as_the_application_is_told_what_would_do(ask_plan: Asking) -> None:
    run(ask_plan.url, "DROP ROLE IF EXISTS somebody", "CREATE ROLE somebody LOGIN")
    async with planner(ask_plan.url.replace("postgres@", "somebody@", 1)) as plans:
        found = await Asking(ask_plan.url, plans)("SELECT * FROM orders")
    assert "log in as asker, or GRANT asker to the login" in found.error
    run(ask_plan.url, "DROP ROLE somebody")


async def test_a_tenant_that_is_none_of_its_type_is_told(ask_plan: Asking) -> None:
    assert "[22P02]" in (await ask_plan("SELECT * FROM orders", tenant="acme")).error


async def test_nothing_is_executed_not_even_what_writes(ask_plan: Asking) -> None:
    assert (await ask_plan("DELETE FROM orders")).error == ""
    connection = await asyncpg.connect(ask_plan.url)
    assert await connection.fetchval("SELECT count(*) FROM orders") == 20000
    await connection.close()


async def test_the_costliest_queries_of_the_application_come_from_pg_stat_statements(
    ask_plan: Asking,
) -> None:
    run(
        ask_plan.url,
        "CREATE SCHEMA stats",
        "CREATE EXTENSION pg_stat_statements SCHEMA stats",
        "SELECT stats.pg_stat_statements_reset()",  # a full table of them drops what is rare, in any database
    )
    run(ask_plan.url.replace("postgres@", "asker@", 1), ENUM, "SELECT 42", "CREATE TEMP TABLE x ()")
    as_itself = ask_plan.url.replace("postgres@", "asker@", 1)
    async with planner(as_itself) as plans:  # this login cannot keep itself out of the statistics
        ground = Ground(parse_declaration(DECLARED), await plans.facts())
        again = await explain(f"{ENUM} AND id > 3", ground, Asker("asker", "7", "app.tenant_id"), plans)
        assert again.if_leakproof is None
        assert [each.indexes for each in again.held_back] == [("by_status",)]
    run(as_itself, f"{ENUM} AND id > 3")
    async with planner(ask_plan.url) as plans:
        found = await plans.frequent(100, ("asker",))
    assert found.count("SELECT * FROM orders WHERE status = $1") == 1
    assert "SELECT * FROM orders WHERE status = $1 AND id > $2" in found
    assert not any("CREATE" in each or "PREPARE" in each for each in found)
    told = await ask_plan("SELECT * FROM orders WHERE status = $1")
    assert [each.indexes for each in told.held_back] == [("by_status",)]


async def _leakproof(url: str, function: str) -> list[bool]:
    connection = await asyncpg.connect(url)
    rows: list[Any] = await connection.fetch("SELECT proleakproof FROM pg_proc WHERE proname = $1", function)
    await connection.close()
    return [row[0] for row in rows]


@pytest.fixture(scope="module")
def changed_url(orders_url: str, rls_server: Databases) -> Iterator[str]:
    """The same once more, for tests that change it; each comes after the changes of those before."""
    databases = Databases(rls_server.admin_url, rls_server.version)
    url = databases(*ORDERS)
    assert applied(url, DECLARED).is_whole
    yield url
    databases.drop()


class TestAfterChanges:
    """What is advised, done."""

    @pytest.mark.parametrize(
        ("query", "made", "expected"),
        [
            ("SELECT * FROM orders WHERE amount = 500", "ALTER TABLE",
             ("SELECT * FROM orders WHERE amount_units = 50000", "orders_tenant_id_amount_units_idx")),
            (ENUM, "CREATE INDEX", (ENUM, "orders_tenant_id_idx")),
            ("SELECT * FROM orders WHERE name LIKE 'name12%'", "",
             ("SELECT * FROM orders WHERE name ^@ 'name12'", "by_name")),
        ],
        ids=["smallest unit", "partial index", "starts with"],
    )  # fmt: skip
    async def test_what_is_advised_is_searched_by(
        self, changed_url: str, query: str, made: str, expected: tuple[str, str]
    ) -> None:
        async with planner(changed_url) as plans:
            ask_plan = Asking(changed_url, plans)
            advice = [each for held in (await ask_plan(query)).held_back for each in held.instead]
            if made:
                words = next(each for each in advice if made in each).partition(made)[2]
                run(changed_url, made + words.replace("CONCURRENTLY ", ""))
            if made == "ALTER TABLE":
                run(changed_url, "CREATE INDEX ON orders (tenant_id, amount_units)")
            run(changed_url, "ANALYZE orders")
            found = await ask_plan(expected[0])
        assert [(each.indexes, each.leads) for each in found.readings] == [((expected[1],), True)]
        assert found.is_well

    async def test_an_index_of_another_column_first_reads_entries_of_all_tenants(
        self, changed_url: str
    ) -> None:
        run(changed_url, "DROP INDEX lines_tenant_id_idx")
        async with planner(changed_url) as plans:
            (reading,) = (await Asking(changed_url, plans)("SELECT * FROM lines WHERE order_id = 7")).readings
        assert (reading.indexes, reading.leads, reading.tenant) == (("by_order",), False, "filtered")
        assert reading.say == (
            "no index begins with the tenant: CREATE INDEX CONCURRENTLY ON public.lines (tenant_id)",
        )
