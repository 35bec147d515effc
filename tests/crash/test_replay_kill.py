"""Replays under ``kill -9`` of nodes, each of which leads replays, plans and delivers: from a tenant's own
dead letters, a table and a queue of RabbitMQ.

Every message comes at least once. What comes twice was in flight at a kill, and nothing comes again that had
been marked as delivered.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nodes import NodeProcess
from replayed import (
    TENANT,
    Door,
    InQueue,
    InTable,
    Lying,
    OwnLetters,
    brokers_of_tests,
    connections,
    delivered,
    held_by,
)

from tenantry.cli.connections import read_connections, replay_service
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.events import ignore
from tenantry.kernel.randomness import SeededRandomness, SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database
from tenantry.postgres.directory import PostgresDirectory, write_registry
from tenantry.postgres.hints import Hints
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.desk import ReplayService
from tenantry.replay.lifecycle import ENDED
from tenantry.replay.model import ReplaySpec

pytestmark = pytest.mark.needs_postgres

OPEN = Tier(TierName("open"))
ACME = TenantId(TENANT)


@pytest.fixture(scope="module")
def queue_url() -> Iterator[str]:
    """The URL of a RabbitMQ."""
    with brokers_of_tests():
        from rabbitmq_server import rabbitmq_url

        with rabbitmq_url() as url:
            yield url


class Stage:
    """The product, its nodes, and the hand that kills them."""

    def __init__(self, urls: DatabaseUrls, file: Path, replays: ReplayService) -> None:
        self._urls, self._file, self.replays = urls, file, replays
        self._nodes: dict[str, NodeProcess] = {}
        self._names = iter(range(1_000_000))
        self.in_flight = 0

    async def start(self) -> None:
        name = f"n{next(self._names)}"
        self._nodes[name] = await NodeProcess.started(
            "--database-url", self._urls.admin, "--name", name, "--slots", "4", "--grace", "0",
            "--connections-file", str(self._file), http=True,
        )  # fmt: skip

    async def kill(self, draw: float) -> None:
        """Whichever ``draw`` in [0, 1) falls on, and another one in its place."""
        name = list(self._nodes)[int(draw * len(self._nodes))]
        await self._nodes.pop(name).kill()
        self.in_flight += await held_by(self._urls.admin, name)
        await self.start()

    async def end(self) -> None:
        for node in self._nodes.values():
            await node.kill()


@asynccontextmanager
async def stage(urls: DatabaseUrls, home: Path, rabbitmq: str | None = None) -> AsyncIterator[Stage]:
    await write_registry(urls.admin, Registry((OPEN,), (TenantDocument(ACME, OPEN.name),)))
    file = connections(home / "connections.toml", database=urls.admin, rabbitmq=rabbitmq)
    async with await Database.open(urls, engine_connections=2, tenant_connections=2) as database:
        hints, directory = Hints(database), PostgresDirectory(database)
        await directory.refresh()
        clock, randomness = SystemClock(), SystemRandomness()
        made = Stage(
            urls,
            file,
            replay_service(
                database, hints, Surroundings(directory, clock, randomness, ignore), read_connections(file)
            ),
        )
        try:
            for _ in range(3):
                await made.start()
            yield made
        finally:
            await made.end()
            await hints.close()


async def ride_out(on: Stage, lying: Lying, urls: DatabaseUrls, *, messages: int, kills: int) -> None:
    """A kill whenever so many more have come, spread over the whole replay."""
    door, chance = Door(), SeededRandomness(3)
    async with door.listening() as target:
        await lying.put(target, messages)
        spec = ReplaySpec(tenant=ACME, source=lying.address, target=Target(target))
        plan = (await on.replays.plan(spec)).view
        await on.replays.start(ACME, plan.id)
        marked: list[tuple[float, set[int]]] = []
        for kill in range(kills):
            await door.until(int(messages * (kill + chance.uniform(0.2, 0.8)) / kills))
            ended = await delivered(urls.admin)
            marked.append((door.clock.monotonic(), door.of_jobs(ended)))
            await on.kill(chance.uniform(0.0, 0.999))
        view = await on.replays.replay(ACME, plan.id)
        while view.state not in ENDED:
            assert view.hold is None, view.hold
            await asyncio.sleep(0.2)  # only the store knows
            view = await on.replays.replay(ACME, plan.id)
    assert set(door.came) == set(range(1, messages + 1)), "a message never came"
    assert (view.counts.taken, view.counts.delivered) == (messages, messages), view.counts
    assert await lying.left() == 0
    assert door.twice <= on.in_flight, "more came twice than was in flight at the kills"
    again = {
        number
        for since, numbers in marked
        for number in numbers
        if any(at > since for at, _ in door.came[number])
    }
    assert again == set(), "a message came again that had been marked as delivered"


@pytest.mark.timeout(240)
async def test_own_dead_letters_all_come_when_nodes_are_killed(
    database_urls: DatabaseUrls, tmp_path: Path
) -> None:
    async with stage(database_urls, tmp_path) as on:
        await ride_out(on, OwnLetters(database_urls.admin), database_urls, messages=1_000, kills=2)


@pytest.mark.timeout(240)
async def test_messages_of_a_queue_all_come_when_nodes_are_killed(
    database_urls: DatabaseUrls, tmp_path: Path, queue_url: str
) -> None:
    async with stage(database_urls, tmp_path, queue_url) as on:
        await ride_out(on, InQueue(queue_url), database_urls, messages=600, kills=1)


_FULL: dict[str, Callable[[DatabaseUrls, str], Lying]] = {
    "dead letters": lambda urls, _: OwnLetters(urls.admin),
    "table": lambda urls, _: InTable(urls.admin),
    "queue": lambda _, url: InQueue(url),
}


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("where", list(_FULL))
async def test_replay_kills_in_full(
    database_urls: DatabaseUrls, tmp_path: Path, queue_url: str, where: str
) -> None:
    async with stage(database_urls, tmp_path, queue_url) as on:
        lying = _FULL[where](database_urls, queue_url)
        await ride_out(on, lying, database_urls, messages=100_000, kills=50)


@pytest.mark.timeout(240)
async def test_rows_of_a_table_all_come_when_nodes_are_killed(
    database_urls: DatabaseUrls, tmp_path: Path
) -> None:
    async with stage(database_urls, tmp_path) as on:
        await ride_out(on, InTable(database_urls.admin), database_urls, messages=600, kills=1)
