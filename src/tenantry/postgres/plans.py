"""The port :class:`tenantry.rls.explain.asking.Planner`: queries planned as another role, and not run."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from tenantry.kernel.errors import UsageError
from tenantry.postgres.catalogue import read_facts
from tenantry.postgres.database import connect_once
from tenantry.postgres.errors import FOREIGN, translated
from tenantry.postgres.statements import statement
from tenantry.rls.explain.asking import Asker, Refused
from tenantry.rls.explain.model import Leakproofness, Operation
from tenantry.rls.explain.scans import PlanNode
from tenantry.rls.facts import Facts
from tenantry.rls.names import quoted

_NAME = "tenantry_explained"
_UNCOUNTED = """
    SELECT set_config('compute_query_id', 'off', true) FROM pg_roles
     WHERE rolname = session_user AND rolsuper"""
"""Keeps what we plan out of pg_stat_statements, where the login may say so."""

_GONE = ("08", "53", "57P", "58")


class PostgresPlanner:
    """See the port. Opened by :func:`planner`."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def facts(self) -> Facts:
        """The catalogue, as the login sees it."""
        with translated("reading the catalogue"):
            return await read_facts(self._connection)

    async def plan(
        self, query: str, parameters: int, asker: Asker, *, leakproof: tuple[str, ...] = ()
    ) -> PlanNode | Refused:
        """A prepared statement and not EXPLAIN (GENERIC_PLAN): it plans the same way on every version from
        15 on, and, sent in the extended protocol, it cannot be two statements."""
        with translated("planning a query"):
            try:
                return await self._planned(query, parameters, asker, leakproof)
            except asyncpg.PostgresError as error:
                if self._connection.is_closed() or (error.sqlstate or "").startswith(_GONE):
                    raise
                return Refused(f"[{error.sqlstate}] {' '.join(str(error).split())}{_hint(error, asker)}")
            finally:
                await self._forget()

    async def leakproofness(
        self, operators: list[tuple[str, str]], functions: list[str], casts: list[tuple[str, str]]
    ) -> Leakproofness:
        with translated("asking what is leakproof"):
            operations = await self._pairs("operators", operators)
            named = await self._connection.fetch(statement("rls_explain/functions"), functions)
            free = await self._pairs("casts", casts)
        return Leakproofness(
            tuple(Operation(**row) for row in operations),
            {row["name"]: row["leakproof"] for row in named},
            frozenset((row["source"], row["target"]) for row in free),
        )

    async def frequent(self, count: int, roles: tuple[str, ...]) -> list[str]:
        """The ``count`` queries on which ``roles`` spent most time, as pg_stat_statements keeps them.

        Raises :class:`UsageError` where it is not installed, or the login may not read it.
        """
        with translated("reading pg_stat_statements"):
            where = await self._connection.fetchval(
                "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = $1",
                "pg_stat_statements",
            )
            if where is None:
                raise UsageError("pg_stat_statements is not here: CREATE EXTENSION pg_stat_statements")
            query = statement("rls_explain/frequent").replace(
                "pg_stat_statements", f"{where}.pg_stat_statements"
            )
            try:
                rows = await self._connection.fetch(query, list(roles), count)
            except asyncpg.ObjectNotInPrerequisiteStateError as error:
                raise UsageError(f"{error}: add it there and restart the server") from error
        return [row["query"] for row in rows]

    async def _pairs(self, name: str, pairs: list[tuple[str, str]]) -> "list[asyncpg.Record]":
        left, right = [each for each, _ in pairs], [each for _, each in pairs]
        rows: list[asyncpg.Record] = await self._connection.fetch(
            statement(f"rls_explain/{name}"), left, right
        )
        return rows

    async def _planned(
        self, query: str, parameters: int, asker: Asker, leakproof: tuple[str, ...]
    ) -> PlanNode:
        run = self._connection.execute
        await run("BEGIN" if leakproof else "BEGIN READ ONLY")
        await run("SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '10s'")
        await self._connection.fetch(_UNCOUNTED)
        for each in leakproof:
            await run(f"ALTER FUNCTION {each} LEAKPROOF")
        await self._connection.fetch("SELECT set_config($1, $2, true)", asker.setting, asker.tenant)
        if asker.search_path:
            await self._connection.fetch("SELECT set_config('search_path', $1, true)", asker.search_path)
        await run(f"SET LOCAL ROLE {quoted(asker.role)}")
        if parameters:
            await run("SET LOCAL plan_cache_mode = force_generic_plan")
        await self._connection.fetch(f"PREPARE {_NAME} AS {query}")
        values = f"({', '.join(['NULL'] * parameters)})" if parameters else ""
        found = await self._connection.fetchval(f"EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE {_NAME}{values}")
        plan: PlanNode = json.loads(found)[0]["Plan"]
        return plan

    async def _forget(self) -> None:
        """Prepared statements outlive a rollback."""
        if not self._connection.is_closed():
            await self._connection.execute("ROLLBACK")
            left = "SELECT FROM pg_prepared_statements WHERE name = $1"
            if await self._connection.fetchrow(left, _NAME) is not None:
                await self._connection.execute(f"DEALLOCATE {_NAME}")


def _hint(error: asyncpg.PostgresError, asker: Asker) -> str:
    if "permission denied to set role" in str(error):
        return f": log in as {asker.role}, or GRANT {quoted(asker.role)} to the login"
    return ""


@asynccontextmanager
async def planner(url: str) -> AsyncIterator[PostgresPlanner]:
    """A session of its own on ``url``. Raises :class:`StoreUnavailable`."""
    connection = await connect_once(url)
    try:
        yield PostgresPlanner(connection)
    finally:
        try:
            await connection.close(timeout=5)
        except FOREIGN:
            connection.terminate()
