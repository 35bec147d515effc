"""A queue on a real database, with everything of it in one hand, for stories about it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import HTTP, Kind, Target
from tenantry.lanes.outcome import Outcome
from tenantry.postgres.database import Database
from tenantry.postgres.directory import PostgresDirectory, write_registry
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.operator_store import PostgresFeederStore, PostgresOperatorStore
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.replay_flows import PostgresReplayFlows
from tenantry.postgres.urls import DatabaseUrls
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.events import NodeJoined, PlannerElected
from tenantry.queue.feeder import Feeder
from tenantry.queue.model import Accepted, ClaimedJob, JobId, NewJob, NodeId
from tenantry.queue.planner import DEFAULTS as PLANNING
from tenantry.queue.planner import Planner, PlannerSettings
from tenantry.queue.surroundings import Surroundings
from tenantry.queue.worker import Worker, WorkerSettings

ACME, GLOBEX = TenantId("acme"), TenantId("globex")
UNSHAPED = TargetSettings(adaptive=False)
OPEN = Tier(TierName("open"))
SETTINGS = WorkerSettings()
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
    replays: PostgresReplayFlows

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
            PostgresReplayFlows(database, hints),
        )
        await queue.directory.refresh()
        yield queue
        await hints.close()


async def register_tenants(
    urls: DatabaseUrls, *tenants: TenantId, tier: Tier = OPEN, targets: TargetSettings = UNSHAPED
) -> None:
    """Put a registry in force in which ``tenants`` are all of one tier."""
    documents = tuple(TenantDocument(each, tier.name, targets) for each in tenants)
    await write_registry(urls.admin, Registry(tiers=(tier,), tenants=documents))


def jobs(count: int, target: Target = HOOK) -> list[NewJob]:
    return [NewJob(target, b"{}") for _ in range(count)]


Work = Callable[[ClaimedJob], Awaitable[Outcome]]


@dataclass(slots=True)
class Doing:
    """An executor that does what a story says, and remembers which jobs it began."""

    work: Work
    kinds: frozenset[Kind] = frozenset({HTTP})
    begun: list[ClaimedJob] = field(default_factory=list)

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        self.begun.append(job)
        return await self.work(job)


async def at_once(job: ClaimedJob) -> Outcome:
    """A job that succeeds without taking any time."""
    return Outcome("ok", status=200)


class Told:
    """Every event that was told, and a way to wait for one."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Condition()
        self._waking: set[asyncio.Task[None]] = set()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        task = asyncio.ensure_future(self._wake())
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    def of(self, *kinds: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kinds)]

    async def until(self, kind: type[Event], *, count: int = 1) -> None:
        """Until ``count`` events of this kind have been told."""
        async with self._more:
            await self._more.wait_for(lambda: len(self.of(kind)) >= count)

    async def _wake(self) -> None:
        async with self._more:
            self._more.notify_all()


@dataclass(slots=True)
class Running:
    """The loops of one node, as tasks."""

    worker: Worker
    told: Told
    tasks: dict[str, "asyncio.Task[None]"]


@asynccontextmanager
async def running(
    queue: Queue,
    executor: Doing,
    *,
    name: str = "node",
    settings: WorkerSettings = SETTINGS,
    clock: Clock | None = None,
    plans: bool = True,
    planning: PlannerSettings = PLANNING,
) -> AsyncIterator[Running]:
    """A planner, a worker and a feeder over ``queue`` for a block; then they end as a crash would end them.

    ``plans``: the planner's place is free for it; another holds it otherwise.
    """
    told, time, chance = Told(), clock or SystemClock(), SystemRandomness()
    around = Surroundings(queue.directory, time, chance, told)
    planner = Planner(queue.planner, around, holder=name, settings=planning)
    worker = Worker(queue.worker, executor, around, node=NodeId(name), settings=settings)
    feeder = Feeder(queue.feeder, queue.directory, clock=time, randomness=chance, events=told)
    loops = {"planner": planner.run, "worker": worker.run, "feeder": feeder.run}
    tasks = {loop: asyncio.create_task(run(), name=loop) for loop, run in loops.items()}
    try:
        if plans:
            await told.until(PlannerElected)
        await told.until(NodeJoined)
        yield Running(worker, told, tasks)
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


async def until(holds: Callable[[], Awaitable[bool]], *, every: float = 0.02) -> None:
    """Until ``holds``: for what only the database knows. The test's timeout is its end."""
    while not await holds():  # noqa: ASYNC110 - nobody here could set an event
        await asyncio.sleep(every)
