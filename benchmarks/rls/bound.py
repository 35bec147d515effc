"""A bound transaction beside an unbound one, for each driver: one indexed SELECT of ten rows, over a Unix
socket, over TCP on loopback, and over TCP with half a millisecond of network there and back.

What the ways are is said in ``peers/rls_bound_run.py``. The goal is against the unbound transaction, which
does not know its tenant and has no row policy to ask; ``by hand`` is what one writes without a binding: the
same policy, one round trip more, and no check of the session. The floor has neither checks nor that round
trip. What is held to the goal is the time on the wall of one transaction of one client, the median of many
that take turns: what a user waits. The processor time beside it is what a client and a server cost that have
one core between them, where nothing is hidden behind waiting. The server is one of its own, since the
benchmarks' other one has no TCP port."""

import asyncio
import json
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import FLOOR, OURS, Goal, Measured
from benchmarks.fleet import RunnerFailed
from benchmarks.rls.network import Network
from benchmarks.server import Server
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.urls import with_database

QUICK = True
SCRIPT = Path(__file__).parents[1] / "peers" / "rls_bound_run.py"
DRIVERS = ("asyncpg", "psycopg", "psycopg async", "sqlalchemy", "sqlalchemy async", "django")
UNBOUND = "unbound"
Ways = dict[str, tuple[float, float | None]]
LOGIN, DATABASE = "tenantry_bench_app", "rls_bound"
SOCKET, LOOPBACK, NETWORK = "Unix socket", "TCP, loopback", "TCP, 0.5 ms of network"
ONE_WAY = 0.25e-3
"""Seconds of that network, each way."""

SCHEMA = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tenantry_bench_app') THEN
        CREATE ROLE tenantry_bench_app LOGIN PASSWORD 'bench';
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
    with _served() as (server, port), Network(port, ONE_WAY) as network:
        await server.administer(f"CREATE DATABASE {DATABASE}")
        owner = with_database(server.url, DATABASE)
        await server.administer(SCHEMA, owner)
        wires = {
            SOCKET: owner.replace("//postgres@", f"//{LOGIN}@"),
            LOOPBACK: f"postgresql://{LOGIN}:bench@127.0.0.1:{port}/{DATABASE}",
            NETWORK: f"postgresql://{LOGIN}:bench@127.0.0.1:{network.port}/{DATABASE}",
        }
        if context.quick:
            del wires[LOOPBACK]
        await _measure(context, wires)


@contextmanager
def _served() -> Iterator[tuple[Server, int]]:
    home = Path(tempfile.mkdtemp(prefix="tntb-"))
    home.chmod(0o711)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    settings = {"listen_addresses": "127.0.0.1", "port": str(port)}
    try:
        with EmbeddedServer(home / "a", settings=settings) as embedded:
            yield Server(embedded.url()), port
    finally:
        shutil.rmtree(home, ignore_errors=True)


async def _measure(context: Context, wires: dict[str, str]) -> None:
    walls = {(driver, wire): _wall(driver, wire) for wire in wires for driver in DRIVERS}
    processors = {key: _processors(*key) for key in walls if NETWORK not in key}
    seconds = 0.15 if context.quick else 0.8
    for _ in range(context.runs):
        for driver in DRIVERS:
            told = await _figures(driver, seconds, list(wires.values()))
            for wire, ways in zip(wires, told, strict=True):
                for way, (wall, cpu) in ways.items():
                    system = {"ours": OURS, "floor": FLOOR}.get(way, way)
                    walls[driver, wire].add(system, wall)
                    if cpu is not None and (driver, wire) in processors:
                        processors[driver, wire].add(system, cpu)
    context.judge(*walls.values(), *(each for each in processors.values() if each.runs))


def _wall(driver: str, wire: str) -> Measured:
    claim = f"{driver}, {wire}: a bound transaction"
    return Measured(claim, "µs", "lower", Goal(at_least=1 / 1.15, against=UNBOUND))


def _processors(driver: str, wire: str) -> Measured:
    claim = f"{driver}, {wire}: its processor time, client and server"
    return Measured(claim, "µs", "lower", Goal(against=UNBOUND))


async def _figures(driver: str, seconds: float, urls: list[str]) -> list[Ways]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), driver, str(seconds), *urls,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await child.communicate()
    if child.returncode:
        raise RunnerFailed(f"bound, {driver}: {err.decode()[-300:]}")
    figures: list[Ways] = json.loads(out)
    return figures
