"""`tenantry worker` twice on one database, and the tenants whose lanes they serve."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from benchmarks.fleet import Runner, RunnerFailed
from benchmarks.server import Server
from benchmarks.systems import OWN, System
from tenantry.cli.connections import replay_service
from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.events import ignore
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.directory import PostgresDirectory, write_registry
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.migrate import migrate
from tenantry.postgres.operator_store import PostgresOperatorStore
from tenantry.postgres.urls import DatabaseUrls, with_database
from tenantry.queue.model import Accepted, NewJob
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.connections import NO_CONNECTIONS
from tenantry.replay.desk import ReplayService

TARGETS = System("targets", OWN, "", {}, script="target")
LOOP = System("a plain loop", OWN, "", {}, script="loop")
FRESH_WITHIN = 30.0

COMMAND = (
    sys.executable, "-m", "tenantry.cli.main", "worker", "--json", "--log-format", "json", "--log-level",
    "warning", "--metrics", "none", "--grace", "0", "--allow-private-targets",
)  # fmt: skip


@dataclass(slots=True)
class Product:
    """The product at work in a database of its own, at ``url``."""

    intake: PostgresIntakeStore
    operator: PostgresOperatorStore
    url: str
    replays: ReplayService

    async def submit(self, tenant: TenantId, target: Target, payloads: Sequence[bytes]) -> None:
        for start in range(0, len(payloads), 1_000):
            jobs = [NewJob(target, payload) for payload in payloads[start : start + 1_000]]
            answer = await self.intake.submit(tenant, jobs, bound=None)
            if not isinstance(answer, Accepted):
                raise RunnerFailed(f"refused: {answer}")


@asynccontextmanager
async def product(
    server: Server, tenants: Mapping[TenantId, TargetSettings], *, slots: int
) -> AsyncIterator[Product]:
    """A fresh database with ``tenants`` of one tier, and two worker processes of ``slots`` each; gone
    afterwards."""
    tier = Tier(TierName("bench"))
    documents = tuple(TenantDocument(each, tier.name, settings) for each, settings in tenants.items())
    async with served(server, Registry((tier,), documents), slots=slots) as found:
        yield found


@asynccontextmanager
async def served(server: Server, registry: Registry, *, slots: int) -> AsyncIterator[Product]:
    """The same with a registry of one's own."""
    name = "lanes"
    await server.administer(f"CREATE DATABASE {name} TEMPLATE template0")
    url = with_database(server.url, name)
    try:
        await migrate(url)
        await write_registry(url, registry)
        async with (
            _workers(url, slots),
            await Database.open(DatabaseUrls.derived(url)) as database,
        ):
            hints, directory = Hints(database), PostgresDirectory(database)
            await directory.refresh()
            clock, randomness = SystemClock(), SystemRandomness()
            around = Surroundings(directory, clock, randomness, ignore)
            replays = replay_service(database, hints, around, NO_CONNECTIONS)
            intake = PostgresIntakeStore(database, hints, clock, randomness)
            yield Product(intake, PostgresOperatorStore(database, hints), url, replays)
            await hints.close()
    finally:
        await server.administer(f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def _workers(url: str, slots: int) -> AsyncIterator[None]:
    processes = [
        await asyncio.create_subprocess_exec(
            *COMMAND, "--database-url", url, "--name", f"worker-{n}", "--slots", str(slots),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )
        for n in range(2)
    ]  # fmt: skip
    try:
        await _joined(url, len(processes))
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _joined(url: str, count: int) -> None:
    connection = await connect_once(url)
    try:
        async with asyncio.timeout(FRESH_WITHIN):
            while await connection.fetchval("SELECT count(*) FROM tenantry.nodes") < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)  # only the database knows
    except TimeoutError:
        raise RunnerFailed(f"no {count} workers within {FRESH_WITHIN:g} s") from None
    finally:
        await connection.close()


@asynccontextmanager
async def targets(servers: int, service: float) -> AsyncIterator[Runner]:
    """A process of targets, each with ``servers`` that take ``service`` seconds a call."""
    runner = Runner(TARGETS, "serve", {"servers": servers, "service": service})
    try:
        await runner.start()
        await runner.until("port")
        yield runner
    finally:
        await runner.end()


async def asked(target: Runner) -> dict[str, Any]:
    """What a process of targets has seen: its last words."""
    target.tell("stop")
    await target.until("stopped")
    return target.last
