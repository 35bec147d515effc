"""The audit of a large database: the whole command, from its start to its end, in a process of its own.

The schema is made to differ from table to table, so that no two policies are equal and nothing is read once
for all: another place of the tenant column, another literal, every third with a subselect over a table of
members; keys to the table before, two indexes, a view and a function for every tenth.
"""

import asyncio
import json
import sys
import time

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from benchmarks.fleet import RunnerFailed
from tenantry.postgres.urls import with_database

QUICK = True
NAME = "rls_audit"
AT_ONCE = 50
"""Tables a transaction."""

_SETTING = "NULLIF(current_setting('app.tenant_id', true), '')::int"


async def run(context: Context) -> None:
    """1,000 tables with 3,000 policies, and a tenth of it for what grows with the size."""
    sizes = (1_000,) if context.quick else (100, 1_000)
    for tables in sizes:
        url = await made(context, tables)
        goal = Goal(at_most=2.0) if tables == 1_000 else Goal()
        took = Measured(
            f"an audit of {tables:,} tables with {3 * tables:,} policies, all unlike", "s", "lower", goal
        )
        for _ in range(context.runs):
            took.add(OURS, await audited(url, tables))
        context.judge(took)
        await context.server.administer(f"DROP DATABASE {NAME} WITH (FORCE)")


async def made(context: Context, tables: int) -> str:
    """The URL of a database with so many protected tables."""
    context.say(f"audit_speed: making {tables:,} tables")
    server = context.server
    await server.administer(f"CREATE DATABASE {NAME} TEMPLATE template0")
    url = with_database(server.url, NAME)
    await server.administer(
        "DO $$ BEGIN CREATE ROLE rls_app LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;"
        "CREATE TABLE members (tenant_id int NOT NULL, user_id int NOT NULL,"
        " PRIMARY KEY (tenant_id, user_id));" + protected("members", 0),
        url,
    )
    for start in range(1, tables, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, tables))
        await server.administer("\n".join(table(number) for number in numbers), url)
    return url


def table(number: int) -> str:
    """The statements that make one table and what belongs to it."""
    name, before = f"t{number}", f"t{number - 1}" if number > 1 else "members"
    other = "tenant_id, user_id" if number == 1 else "tenant_id, id"
    columns = [f"c{number}_{each} text" for each in range(number % 4)]
    listed = ", ".join(
        [*columns, "tenant_id int NOT NULL", "id int NOT NULL", "parent int", "at timestamptz"]
    )
    made_ = (
        f"CREATE TABLE {name} ({listed}, PRIMARY KEY (tenant_id, id),"
        f" FOREIGN KEY (tenant_id, parent) REFERENCES {before} ({other}));"
        f"CREATE INDEX ON {name} (tenant_id, at);" + protected(name, number)
    )
    if number % 10 == 0:
        made_ += (
            f"CREATE VIEW v{number} WITH (security_invoker = true) AS"
            f" SELECT * FROM {name} WHERE id > {number};"
            f"GRANT SELECT ON v{number} TO rls_app;"
            f"CREATE FUNCTION f{number}() RETURNS bigint LANGUAGE sql STABLE"
            f" AS 'SELECT count(*) FROM {name}';"
        )
    return made_


def protected(name: str, number: int) -> str:
    """Row security and three policies that no other table has."""
    member = f" AND {number} IN (SELECT m.user_id FROM members AS m WHERE m.tenant_id = {_SETTING})"
    extra = member if number % 3 == 0 and name != "members" else f" AND tenant_id <> {-1 - number}"
    return (
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY; ALTER TABLE {name} FORCE ROW LEVEL SECURITY;"
        f"CREATE POLICY seen_{number} ON {name} FOR SELECT USING (tenant_id = {_SETTING}{extra});"
        f"CREATE POLICY made_{number} ON {name} FOR INSERT"
        f" WITH CHECK (tenant_id = {_SETTING} AND {number} >= 0);"
        f"CREATE POLICY changed_{number} ON {name} FOR UPDATE"
        f" USING (tenant_id = {_SETTING} AND {number} >= 0)"
        f" WITH CHECK (tenant_id = {_SETTING} AND {number} >= 1);"
        f"GRANT SELECT, INSERT, UPDATE ON {name} TO rls_app;"
    )


async def audited(url: str, tables: int) -> float:
    """Seconds that the command takes. Raises :class:`RunnerFailed` if it looked at anything else."""
    words = ("rls", "audit", "--database-url", url, "--role", "rls_app", "--json")
    began = time.perf_counter()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tenantry.cli.main", *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await child.communicate()
    took = time.perf_counter() - began
    if child.returncode not in (0, 1):
        raise RunnerFailed(f"the audit: {err.decode()[-300:]}")
    if len(json.loads(out)["tenant_tables"]) != tables:
        raise RunnerFailed(f"the audit saw {len(json.loads(out)['tenant_tables'])} tables and not {tables}")
    return took
