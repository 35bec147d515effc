"""Laws K1 to K3 under ``kill -9``: of nodes, at any moment, and of PostgreSQL itself, with fsync on."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import asyncpg
import pytest

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database
from tenantry.postgres.directory import write_registry
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.migrate import migrate
from tenantry.postgres.operator_store import PostgresOperatorStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.model import Accepted, JobId, NewJob

pytestmark = pytest.mark.needs_postgres

NODE = Path(__file__).with_name("node.py")
TENANTS = [TenantId(f"t{n}") for n in range(20)]
OPEN = Tier(TierName("open"))
BRIEF = Target("handler:brief")


class Nodes:
    """A handful of node processes, and the hand that kills them."""

    def __init__(self, admin_url: str, slots: int) -> None:
        self._admin_url, self._slots = admin_url, slots
        self._processes: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(NODE), self._admin_url, name, str(self._slots), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        self._processes[name] = process

    async def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        await process.wait()

    async def kill_all(self) -> None:
        for name in list(self._processes):
            await self.kill(name)

    def signal(self, name: str, number: signal.Signals) -> None:
        os.kill(self._processes[name].pid, number)


class Bench:
    """A server whose crash counts, its books, and what was accepted into them."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.urls = DatabaseUrls.derived(server.url())
        self.accepted: set[JobId] = set()

    async def prepare(self) -> None:
        await migrate(self.urls.admin)
        documents = tuple(TenantDocument(tenant, OPEN.name) for tenant in TENANTS)
        await write_registry(self.urls.admin, Registry(tiers=(OPEN,), tenants=documents))

    async def submit(self, count: int) -> None:
        async with await Database.open(self.urls) as database:
            hints = Hints(database)
            store = PostgresIntakeStore(database, hints, SystemClock(), SystemRandomness())
            for start in range(0, count, 500):
                tenant = TENANTS[start // 500 % len(TENANTS)]
                jobs = [NewJob(BRIEF, b"{}") for _ in range(min(500, count - start))]
                answer = await store.submit(tenant, jobs, bound=None)
                assert isinstance(answer, Accepted)
                self.accepted.update(answer.ids)
            await hints.close()

    async def faults(self) -> Sequence[str]:
        async with await Database.open(self.urls, engine_connections=1, tenant_connections=1) as database:
            return await PostgresOperatorStore(database, Hints(database)).audit()

    async def ended(self) -> list[JobId]:
        connection = await asyncpg.connect(self.urls.admin)
        try:
            rows = await connection.fetch("SELECT job_id FROM tenantry.outcomes WHERE state = 1")
            return [JobId(str(row["job_id"])) for row in rows]
        finally:
            await connection.close()

    async def unended(self) -> int:
        connection = await asyncpg.connect(self.urls.admin)
        try:
            return int(await connection.fetchval("SELECT count(*) FROM tenantry.jobs"))
        finally:
            await connection.close()


@pytest.fixture
async def bench(embedded_server_factory: Callable[..., EmbeddedServer]) -> AsyncIterator[Bench]:
    server = embedded_server_factory()
    server.start()
    made = Bench(server)
    await made.prepare()
    yield made
    server.stop()


async def ride_out(bench: Bench, *, jobs: int, slots: int, kills_of_server: int) -> None:
    """Four nodes, one killed every second, the server killed a few times on the way: the books must hold."""
    await bench.submit(jobs)
    nodes = Nodes(bench.urls.admin, slots)
    try:
        for number in range(4):
            await nodes.start(f"n{number}")
        turn, checks = 0, 0
        while await bench.unended():
            await asyncio.sleep(1.0)  # the story's beat, not a wait for anything
            await nodes.kill(f"n{turn}")
            if turn % 4 == 1 and kills_of_server:
                kills_of_server -= 1
                bench.server.kill()
                bench.server.start()
            await nodes.start(f"n{turn + 4}")  # as a process that has no name given: another one
            assert await _patiently(bench.faults) == []
            turn, checks = turn + 1, checks + 1
        assert checks > 0
        ended = await bench.ended()
        assert len(ended) == len(set(ended)), "a job ended twice in the books"
        assert set(ended) == bench.accepted, "an accepted job was lost, or one came from nowhere"
        assert kills_of_server == 0, "the jobs ended before every kill was made: use more jobs"
    finally:
        await nodes.kill_all()


async def _patiently(read: Callable[[], object]) -> object:
    """A server that has just been started again may turn the first reader away."""
    while True:
        try:
            return await read()  # type: ignore[misc]
        except StoreUnavailable:
            await asyncio.sleep(0.1)


@pytest.mark.timeout(180)
async def test_jobs_end_exactly_once_when_nodes_and_the_server_are_killed(bench: Bench) -> None:
    await ride_out(bench, jobs=6_000, slots=4, kills_of_server=1)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_crash_in_full(bench: Bench) -> None:
    await ride_out(bench, jobs=100_000, slots=10, kills_of_server=3)
