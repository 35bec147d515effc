"""A bound transaction beside an unbound one, for each driver: one indexed SELECT of ten rows over a Unix
socket.

What the ways are is said in ``peers/rls_bound_run.py``. The goal is against the unbound transaction, which
does not know its tenant and has no row policy to ask; ``by hand`` is what one writes without a binding: the
same policy, one round trip more, and no check of the session. The floor has neither checks nor that round
trip."""

import asyncio
import json
import sys
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import FLOOR, OURS, Goal, Measured
from benchmarks.fleet import RunnerFailed
from tenantry.postgres.urls import with_database

QUICK = True
SCRIPT = Path(__file__).parents[1] / "peers" / "rls_bound_run.py"
DRIVERS = ("asyncpg", "psycopg", "psycopg async", "sqlalchemy", "sqlalchemy async", "django")
UNBOUND = "unbound"
LOGIN, DATABASE = "tenantry_bench_app", "rls_bound"

SCHEMA = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tenantry_bench_app') THEN
        CREATE ROLE tenantry_bench_app LOGIN;
    END IF;
END $$;
CREATE TABLE plain (tenant_id int, id int, body text NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE guarded (LIKE plain INCLUDING ALL);
INSERT INTO plain SELECT t, n, repeat('x', 100) FROM generate_series(1, 1000) t, generate_series(1, 10) n;
INSERT INTO guarded SELECT * FROM plain;
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON guarded USING (tenant_id = NULLIF(current_setting('app.tenant_id', true), '')::int);
GRANT SELECT ON plain, guarded TO tenantry_bench_app;
ANALYZE;
"""


async def run(context: Context) -> None:
    """Every driver in turn, over and over; the figures of one driver come from the same processes."""
    transactions = 600 if context.quick else 4_000
    claims = {driver: _claim(driver) for driver in DRIVERS}
    await context.server.administer(f"CREATE DATABASE {DATABASE}")
    owner = with_database(context.server.url, DATABASE)
    try:
        await context.server.administer(SCHEMA, owner)
        url = owner.replace("//postgres@", f"//{LOGIN}@")
        for _ in range(context.runs):
            for driver, claim in claims.items():
                for way, figure in (await _figures(driver, url, transactions)).items():
                    claim.add({"ours": OURS, "floor": FLOOR}.get(way, way), figure)
    finally:
        await context.server.administer(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    context.judge(*claims.values())


def _claim(driver: str) -> Measured:
    return Measured(f"{driver}: a bound transaction", "µs", "lower", Goal(at_least=1 / 1.15, against=UNBOUND))


async def _figures(driver: str, url: str, transactions: int) -> dict[str, float]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), driver, url, str(transactions),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await child.communicate()
    if child.returncode:
        raise RunnerFailed(f"bound, {driver}: {err.decode()[-300:]}")
    figures: dict[str, float] = json.loads(out)
    return figures
