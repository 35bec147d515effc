"""A queue on a real database, with everything of it in one hand, for stories about it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database
from tenantry.postgres.directory import PostgresDirectory, write_registry
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.operator_store import PostgresFeederStore, PostgresOperatorStore
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.model import Accepted, JobId, NewJob

ACME, GLOBEX = TenantId("acme"), TenantId("globex")
OPEN = Tier(TierName("open"))
HOOK = Target("https://hooks.example.com/a")


@dataclass(slots=True)
class Queue:
    """The stores of one process over one database."""

    urls: DatabaseUrls
    database: Database
    hints: Hints
    intake: PostgresIntakeStore
    operator: PostgresOperatorStore
    planner: PostgresPlannerStore
    worker: PostgresWorkerStore
    feeder: PostgresFeederStore
    directory: PostgresDirectory

    async def submit(self, tenant: TenantId, jobs: Sequence[NewJob]) -> tuple[JobId, ...]:
        answer = await self.intake.submit(tenant, jobs, bound=None)
        assert isinstance(answer, Accepted), answer
        return answer.ids

    async def faults(self) -> list[str]:
        return list(await self.operator.audit())


@asynccontextmanager
async def opened(
    urls: DatabaseUrls, *, clock: Clock | None = None, connections: int = 4
) -> AsyncIterator[Queue]:
    """One process's side of the queue in the database of ``urls``."""
    async with await Database.open(
        urls, engine_connections=connections, tenant_connections=connections
    ) as database:
        hints = Hints(database)
        await hints.listen()
        queue = Queue(
            urls,
            database,
            hints,
            PostgresIntakeStore(database, hints, clock or SystemClock(), SystemRandomness()),
            PostgresOperatorStore(database, hints),
            PostgresPlannerStore(database, hints),
            PostgresWorkerStore(database, hints),
            PostgresFeederStore(database, hints),
            PostgresDirectory(database),
        )
        await queue.directory.refresh()
        yield queue
        await hints.close()


async def register_tenants(
    urls: DatabaseUrls, *tenants: TenantId, tier: Tier = OPEN, targets: TargetSettings | None = None
) -> None:
    """Put a registry in force in which ``tenants`` are all of one tier."""
    documents = tuple(TenantDocument(each, tier.name, targets or TargetSettings()) for each in tenants)
    await write_registry(urls.admin, Registry(tiers=(tier,), tenants=documents))


def jobs(count: int, target: Target = HOOK) -> list[NewJob]:
    return [NewJob(target, b"{}") for _ in range(count)]
