"""Whatever the tables are called and whatever was there: the SQL is accepted, twice, does what it says, and
can be taken back."""

from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rls_servers import Databases, apart

from tenantry.postgres.catalogue import read_facts
from tenantry.rls.declaration import Declaration, TableName, TenantTable
from tenantry.rls.facts import Facts
from tenantry.rls.names import quoted
from tenantry.rls.plan import plan
from tenantry.rls.render import Step

pytestmark = pytest.mark.needs_postgres

NAMES = st.one_of(
    st.sampled_from(
        [
            "orders",
            "Orders",
            "order",
            "user",
            "values",
            "between",
            "tenant id",
            'a"b',
            "a'b",
            "a.b",
            "$do$",
            "ü%s:x",
            "x" * 63,
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12),
)
TYPES = {
    "int": (("integer", "smallint"), ("1", "2")),
    "bigint": (("bigint",), ("1", "9000000000")),
    "uuid": (("uuid",), ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002")),
    "text": (("text", "character varying(40)"), ("acme", "o'hara")),
}
KEYS = ("", "PRIMARY KEY (tenant, id)", "PRIMARY KEY (id)", "UNIQUE (id, tenant)")
BEFORE = (
    "",
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY old ON {table} FOR UPDATE TO app_user USING (true) WITH CHECK (id > 0)",
    "CREATE POLICY tenant_isolation ON {table} AS RESTRICTIVE FOR SELECT USING (id > 0)",
    "GRANT TRUNCATE, SELECT ON {table} TO app_user",
    "GRANT SELECT ON {table} TO PUBLIC",
    "CREATE INDEX ON {table} (tenant) WHERE id > 0",
)


@dataclass(frozen=True)
class Made:
    """One table as it was before."""

    name: str
    column: str
    type: str
    column_type: str
    key: str
    before: tuple[str, ...]
    partitioned: bool
    view: bool


@st.composite
def tables(draw: st.DrawFn) -> Made:
    kind = draw(st.sampled_from(sorted(TYPES)))
    name, column = draw(NAMES), draw(NAMES.filter(lambda each: each not in ("id", "ctid", "xmin", "xmax")))
    before = draw(st.lists(st.sampled_from(BEFORE), max_size=3, unique=True))
    partitioned = draw(st.booleans())
    key = draw(st.sampled_from(KEYS[:1] if partitioned else KEYS))
    column_type = draw(st.sampled_from(TYPES[kind][0]))
    return Made(name, column, kind, column_type, key, tuple(before), partitioned, draw(st.booleans()))


def _fits(made: Made) -> bool:
    """Within what PostgreSQL takes as a name, and no system column."""
    return all(len(each.encode()) <= 63 for each in (made.name, made.column))


@pytest.fixture
def url(rls_databases: Databases) -> str:
    for role in ("app_user", "reporting"):
        rls_databases.role(role)
    return rls_databases()


@pytest.mark.parametrize("rls_server", [18], indirect=True)  # the forms on both are those of apply's tests
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables().filter(_fits), NAMES.filter(lambda each: len(each.encode()) <= 63), st.booleans())
def test_any_declaration_is_carried_out_twice_means_what_it_says_and_is_taken_back(
    url: str, made: Made, schema: str, serves: bool
) -> None:
    apart(_story(url, made, schema if not schema.startswith("pg_") else "s", serves))


async def _story(url: str, made: Made, schema: str, serves: bool) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
        await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
        await _make(connection, made, schema)
        await _tell(connection, made, schema, serves)
    finally:
        await connection.execute(f"DROP SCHEMA IF EXISTS {quoted(schema)} CASCADE")
        await connection.close()


async def _tell(connection: "asyncpg.Connection[Any]", made: Made, schema: str, serves: bool) -> None:
    name = TableName(schema, made.name)
    table = TenantTable(name, made.column, made.type, replaces=("old",))  # type: ignore[arg-type]
    services = {"reporting": "totals"} if serves else {}
    declared = Declaration(roles=("app_user",), tables=(table,), setting="app.tenant", services=services)
    before = await read_facts(connection)
    found = plan(declared, before)
    assert found.objections == ()
    for _ in range(2):
        await _carried_out(connection, found.steps)
        left = plan(declared, await read_facts(connection))
        assert (left.steps, left.objections) == ((), ())
    await _isolates(connection, made, name)
    await _carried_out(connection, found.back)
    assert _state(await read_facts(connection), schema) == _state(before, schema)


async def _make(connection: "asyncpg.Connection[Any]", made: Made, schema: str) -> None:
    table, column = str(TableName(schema, made.name)), quoted(made.column)
    key = made.key.replace("tenant", column)
    columns = f"{column} {made.column_type} NOT NULL, id int{', ' if key else ''}{key}"
    split = " PARTITION BY LIST (id)" if made.partitioned else ""
    await connection.execute(f"CREATE TABLE {table} ({columns}){split}")
    if made.partitioned:
        await connection.execute(f"CREATE TABLE {quoted(schema)}.part_0 PARTITION OF {table} DEFAULT")
    for each in made.before:
        statement = each.format(table=table).replace("(tenant)", f"({column})")
        await connection.execute(statement or "SELECT 1")
    if made.view:
        await connection.execute(f"CREATE VIEW {quoted(schema)}.view_0 AS SELECT * FROM {table}")
        await connection.execute(f"GRANT SELECT ON {quoted(schema)}.view_0 TO app_user")
    for place, value in enumerate(TYPES[made.type][1]):
        if made.column_type != "smallint" or place == 0 or value == "2":
            literal = value.replace("'", "''")
            await connection.execute(f"INSERT INTO {table} VALUES ('{literal}', {place})")


async def _isolates(connection: "asyncpg.Connection[Any]", made: Made, name: TableName) -> None:
    """As the application: nothing without a tenant, one's own row with one, also after SET LOCAL has
    ended."""
    read = [str(name), *([f"{quoted(name.schema)}.part_0"] if made.partitioned else [])]
    read += [f"{quoted(name.schema)}.view_0"] if made.view else []
    undone = connection.transaction()
    await undone.start()
    for each in read[1:]:  # partitions are not granted: a grant of the test's own
        await connection.execute(f"GRANT SELECT ON {each} TO app_user")
    await connection.execute("SET LOCAL ROLE app_user")
    for value in (None, *TYPES[made.type][1], ""):
        if value is not None:
            await connection.fetch("SELECT set_config('app.tenant', $1, true)", value)
        for each in read:
            rows = await connection.fetch(f"SELECT {quoted(made.column)}::text FROM {each}")
            assert [row[0] for row in rows] == ([value] if value else [])
    await undone.rollback()


async def _carried_out(connection: "asyncpg.Connection[Any]", steps: tuple[Step, ...]) -> None:
    for step in steps:
        for statement in step.up:
            await connection.execute(statement)


def _state(facts: Facts, schema: str) -> object:
    """What is to be as it was: all but the ACLs' spelling, and OIDs of what was made anew."""
    relations = {oid: each for oid, each in facts.relations.items() if each.schema == schema}
    policies = sorted(
        (
            each.relation,
            each.name,
            each.permissive,
            each.command,
            each.roles,
            each.using or "",
            each.check or "",
        )
        for each in facts.policies
    )
    rights = {
        (oid, grant.grantee, tuple(sorted(grant.privileges)))
        for oid, each in relations.items()
        for grant in each.grants
        if grant.grantee != each.owner
    }
    return (
        {oid: (each.rls_enabled, each.rls_forced, dict(each.options)) for oid, each in relations.items()},
        policies,
        rights,
        {(each.relation, each.name, each.valid) for each in facts.indexes if each.relation in relations},
    )
