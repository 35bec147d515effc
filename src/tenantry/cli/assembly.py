"""The composition root: from settings to a running node, and down again in order.

A node ends from the outside in: its worker drains, the API takes no more, the planner leaves its place, the
connections close, and the embedded server, if this process started it, stops last. Each step is taken even
when one before it failed or was cancelled.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from tenantry.cli.connections import NodeSources, broker_targets
from tenantry.cli.loops import EmbeddedGuard, LoopFailed, Loops, follow_registry, tidy_replays
from tenantry.cli.settings import Address, NodeSettings, Role
from tenantry.delivery.http import DeliverySettings, HttpDelivery
from tenantry.delivery.router import Router
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import InvalidValue, StoreUnavailable
from tenantry.kernel.events import EventSink, ignore
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.memory.rate_gate import MemoryRateGate
from tenantry.postgres.database import Database
from tenantry.postgres.directory import PostgresApiKeys, PostgresDirectory
from tenantry.postgres.errors import translated
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.migrate import migrate, pending
from tenantry.postgres.operator_keys import PostgresOperatorKeys
from tenantry.postgres.operator_store import PostgresFeederStore, PostgresOperatorStore
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.replay_desk import PostgresReplayDesk
from tenantry.postgres.replay_standing import PostgresStanding
from tenantry.postgres.replay_store import PostgresReplayStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.feeder import Feeder, FeederSettings
from tenantry.queue.intake import Admission, IntakeSettings
from tenantry.queue.level_watch import LevelWatch
from tenantry.queue.model import NodeId
from tenantry.queue.planner import Planner
from tenantry.queue.surroundings import Surroundings
from tenantry.queue.worker import Worker, WorkerSettings
from tenantry.replay.coordinator import Coordinator
from tenantry.replay.desk import ReplayService
from tenantry.telemetry.prometheus import Metrics
from tenantry.telemetry.sinks import fan_out
from tenantry.web.api import create_api
from tenantry.web.health import ReadinessCheck
from tenantry.web.operator import create_operator_app
from tenantry.web.server import HttpServer
from tenantry.web.services import ApiServices, OperatorServices, OrderServices

_LEAVING: Seconds = 10.0
"""What a drained worker may take to give back, settle and leave, beyond its grace."""


@dataclass(frozen=True, slots=True)
class Ambient:
    """Time, chance, and where events go: what everything in a node is handed."""

    clock: Clock
    randomness: Randomness
    events: EventSink


class Node:
    """A running node, as :func:`assemble` yields it. Belongs to one event loop.

    ``urls``: the three logins. ``admission`` accepts jobs, ``intake`` and ``operator`` are the stores beside
    it. ``replays``: the people's side of replays. ``directory``: the registry as this node sees it,
    ``levels``: what pools shed. ``planner``,
    ``worker``: None without that role.
    ``api_url`` and ``metrics_url``: where they are served, None where they are not.
    """

    def __init__(
        self, settings: NodeSettings, urls: DatabaseUrls, database: Database, around: Ambient
    ) -> None:
        self.settings, self.urls, self.database = settings, urls, database
        self.name = settings.name or f"{socket.gethostname()}-{os.getpid()}"
        self.around = around
        self.metrics = Metrics(per_tenant=settings.per_tenant_metrics)
        self.events = fan_out(self.metrics, around.events)
        self.hints = Hints(database)
        self.directory = PostgresDirectory(database)
        self.intake = PostgresIntakeStore(database, self.hints, around.clock, around.randomness)
        self.operator = PostgresOperatorStore(database, self.hints)
        self.levels = LevelWatch(self.operator, clock=around.clock, events=self.events)
        self.admission = Admission(
            self.intake,
            self.directory,
            MemoryRateGate(self.directory, around.clock),
            randomness=around.randomness,
            events=self.events,
            settings=IntakeSettings(level_of=self.levels.level_of),
        )
        self.surroundings = Surroundings(self.directory, around.clock, around.randomness, self.events)
        self.sources = NodeSources(database, settings.outside)
        self.standing = PostgresStanding(database, self.hints, self.directory, around.clock)
        self.replays = ReplayService(
            PostgresReplayDesk(database, self.hints, around.randomness),
            self.sources,
            self.standing,
            self.surroundings,
        )
        self.planner: Planner | None = None
        self.worker: Worker | None = None
        self.api_url: str | None = None
        self.metrics_url: str | None = None

    async def check(self) -> None:
        """Whether the database answers the tenants' login. Raises :class:`StoreUnavailable`."""
        with translated("checking"):
            await self.database.tenant.fetchval("SELECT 1")


@asynccontextmanager
async def assemble(
    settings: NodeSettings,
    *,
    events: EventSink = ignore,
    clock: Clock | None = None,
    randomness: Randomness | None = None,
) -> AsyncIterator[Node]:
    """A node that runs for as long as the block does, and is taken down in order after it.

    ``events``: told everything beside the node's own metrics. Raises :class:`StoreUnavailable` when the
    database cannot be used (also when its schema is behind, unless ``settings.migrate``), :class:`UsageError`
    for an address that cannot be bound, a directory that cannot hold the server and a name that another
    worker has, and :class:`LoopFailed` out of the block when a loop ended by itself. Cancelling the block
    skips the drain: what ran is taken back by its lease.
    """
    around = Ambient(clock or SystemClock(), randomness or SystemRandomness(), events)
    try:
        async with AsyncExitStack() as stack:
            yield await _assembled(stack, settings, around)
    except BaseExceptionGroup as group:
        failure = _first_failure(group)
        raise failure from failure.__cause__


async def _assembled(stack: AsyncExitStack, settings: NodeSettings, around: Ambient) -> Node:
    guard, urls = await _server(stack, settings, around.events)
    await _schema(urls, migrating=settings.migrate)
    database = await stack.enter_async_context(
        await Database.open(
            urls, engine_connections=settings.connections, tenant_connections=settings.connections
        )
    )
    node = Node(settings, urls, database, around)
    stack.push_async_callback(node.hints.close)
    await _behind(database)
    await node.directory.refresh()
    await node.hints.listen()
    loops = Loops(await stack.enter_async_context(asyncio.TaskGroup()))
    _start_keeping(stack, node, loops, guard)
    _start_planning(stack, node, loops)
    await _start_serving(stack, node)
    await _start_working(stack, node, loops)
    return node


async def _server(
    stack: AsyncExitStack, settings: NodeSettings, events: EventSink
) -> tuple[EmbeddedGuard | None, DatabaseUrls]:
    if settings.database is not None:
        return None, settings.database
    guard = EmbeddedGuard(settings.data_dir, events)
    await guard.start()
    stack.push_async_callback(guard.stop)
    return guard, DatabaseUrls.derived(guard.server.url())


async def _schema(urls: DatabaseUrls, *, migrating: bool) -> None:
    if migrating:
        await migrate(urls.admin, engine_password=urls.engine_password, tenant_password=urls.tenant_password)


async def _behind(database: Database) -> None:
    async with database.control.connection() as connection:
        lacking = await pending(connection)
    if lacking:
        names = ", ".join(map(str, lacking))
        raise StoreUnavailable(
            f"the database lacks {len(lacking)} migrations ({names}). Run `tenantry migrate`"
        )


def _start_keeping(stack: AsyncExitStack, node: Node, loops: Loops, guard: EmbeddedGuard | None) -> None:
    following = partial(
        follow_registry,
        node.directory,
        every=node.settings.refresh_every,
        randomness=node.around.randomness,
        events=node.events,
    )
    loops.start("directory", following)
    stack.push_async_callback(loops.end, "directory")
    loops.start("levels", node.levels.run)
    stack.push_async_callback(loops.end, "levels")
    if guard is not None:
        loops.start("embedded server", guard.run)
        stack.push_async_callback(loops.end, "embedded server")


def _start_planning(stack: AsyncExitStack, node: Node, loops: Loops) -> None:
    around = node.around
    if Role.FEEDER in node.settings.roles:
        feeder = Feeder(
            PostgresFeederStore(node.database, node.hints),
            node.directory,
            clock=around.clock,
            randomness=around.randomness,
            events=node.events,
            settings=FeederSettings(keep_days=node.settings.keep_days),
        )
        loops.start("feeder", feeder.run)
        stack.push_async_callback(loops.end, "feeder")
    if Role.PLANNER in node.settings.roles:
        store = PostgresPlannerStore(node.database, node.hints)
        node.planner = Planner(store, node.surroundings, holder=node.name)
        loops.start("planner", node.planner.run)
        stack.push_async_callback(loops.end, "planner")
    if Role.REPLAY in node.settings.roles:
        replays = PostgresReplayStore(node.database, node.hints)
        coordinator = Coordinator(replays, node.sources, node.standing, node.surroundings, holder=node.name)
        loops.start("replays", coordinator.run)
        stack.push_async_callback(loops.end, "replays")
        tidying = partial(tidy_replays, replays, randomness=around.randomness, events=node.events)
        loops.start("replays' tidying", tidying)
        stack.push_async_callback(loops.end, "replays' tidying")


async def _start_serving(stack: AsyncExitStack, node: Node) -> None:
    settings, around = node.settings, node.around
    services = ApiServices(
        intake=node.admission,
        store=node.intake,
        keys=PostgresApiKeys(node.database),
        directory=node.directory,
        readiness=node,
        replays=node.replays,
        events=node.events,
        clock=around.clock,
        randomness=around.randomness,
    )
    ready = ReadinessCheck(services)
    if settings.metrics is not None:
        keys = PostgresOperatorKeys(node.database)
        telling = OperatorServices(
            node.metrics.exposition,
            ready,
            node.events,
            around.clock,
            around.randomness,
            OrderServices(node.operator, node.directory, keys),
        )
        server = HttpServer(
            create_operator_app(telling), host=settings.metrics.host, port=settings.metrics.port
        )
        node.metrics_url = await _listening(stack, server, settings.metrics, "metrics")
    if Role.API in settings.roles:
        server = HttpServer(create_api(services, ready), host=settings.listen.host, port=settings.listen.port)
        node.api_url = await _listening(stack, server, settings.listen, "listen")


async def _listening(stack: AsyncExitStack, server: HttpServer, address: Address, path: str) -> str:
    try:
        await stack.enter_async_context(server)
    except OSError as error:
        hint = f"{error.strerror or error}. Is it running already? Port 0 takes any free one."
        raise InvalidValue(path, str(address), "an address that this process can listen on", hint) from error
    return server.url


async def _start_working(stack: AsyncExitStack, node: Node, loops: Loops) -> None:
    settings, around = node.settings, node.around
    if Role.WORKER not in settings.roles:
        return
    # Nothing can end without a partition for its outcome: they are made before the first job runs.
    await PostgresFeederStore(node.database, node.hints).tidy(keep_days=settings.keep_days)
    if settings.handlers is not None and settings.handlers.events is None:
        settings.handlers.events = node.events
    http = None
    if settings.http:
        delivery = DeliverySettings(connections=max(256, settings.slots), addresses=settings.addresses)
        http = await stack.enter_async_context(HttpDelivery(delivery, clock=around.clock))
    brokers = await stack.enter_async_context(broker_targets(settings.outside, around.clock))
    node.worker = worker = Worker(
        PostgresWorkerStore(node.database, node.hints),
        Router(settings.handlers, http, brokers, clock=around.clock),
        node.surroundings,
        node=NodeId(node.name),
        settings=WorkerSettings(slots=settings.slots, pool=settings.pool, grace_for=settings.grace_for),
    )
    await worker.join()
    loops.start("worker", worker.run)

    async def drained(kind: type[BaseException] | None, *_: object) -> None:
        worker.drain()
        try:
            if kind is None:
                await loops.ended("worker", within=settings.grace_for + _LEAVING)
        finally:
            await loops.end("worker")

    stack.push_async_exit(drained)


def _first_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure that ended a node; what fell with it only followed."""
    failed = group.subgroup(LoopFailed)
    first: BaseException = failed if failed is not None else group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first
