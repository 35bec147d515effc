"""Nodes that are killed, drained and restarted, and a server that restarts under them, with fsync on."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

import pytest
from nodes import NodeProcess

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import PlaceLost, StoreUnavailable
from tenantry.kernel.instant import Seconds
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
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.events import NodeJoined, NodeNameHeld
from tenantry.queue.lifecycle import NODE_FRESH_FOR
from tenantry.queue.model import ENDS, Accepted, JobId, JobState, JobView, NewJob

pytestmark = pytest.mark.needs_postgres

_T = TypeVar("_T")

ACME = TenantId("acme")
STEADY, LONG = Target("handler:steady"), Target("handler:long")


@dataclass(slots=True)
class Scene:
    """A server whose crash counts, the operator's and the tenants' side of its queue, and the nodes."""

    server: EmbeddedServer
    urls: DatabaseUrls
    database: Database
    intake: PostgresIntakeStore
    operator: PostgresOperatorStore
    stack: AsyncExitStack

    async def node(self, name: str, *words: str, slots: int = 4) -> NodeProcess:
        node = await NodeProcess.started(
            "--database-url", self.urls.admin, "--name", name, "--slots", str(slots), *words
        )
        self.stack.push_async_callback(node.kill)
        await node.told(NodeJoined)
        return node

    async def submit(self, jobs: Sequence[NewJob]) -> list[JobId]:
        ids: list[JobId] = []
        for start in range(0, len(jobs), 1_000):
            answer = await self.intake.submit(ACME, jobs[start : start + 1_000], bound=None)
            assert isinstance(answer, Accepted)
            ids += answer.ids
        return ids

    async def view(self, id_: JobId) -> JobView:
        view = await self.intake.job(ACME, id_)
        assert view is not None
        return view

    async def count(self, *states: JobState) -> int:
        counts = await patiently(self.operator.counts)
        return sum(counts[state] for state in states)

    async def until(self, count: int, *states: JobState) -> None:
        """Until so many jobs are in these states. The test's timeout is its end."""
        while await self.count(*states) < count:  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.05)

    async def faults(self) -> list[str]:
        return list(await patiently(self.operator.audit))


@pytest.fixture
async def scene(embedded_server_factory: Callable[..., EmbeddedServer]) -> AsyncIterator[Scene]:
    server = embedded_server_factory(made=True)
    await asyncio.to_thread(server.start)
    urls = DatabaseUrls.derived(server.url())
    await migrate(urls.admin)
    tier = Tier(TierName("open"))
    await write_registry(urls.admin, Registry((tier,), (TenantDocument(ACME, tier.name),)))
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(await Database.open(urls))
        hints = Hints(database)
        stack.push_async_callback(hints.close)
        intake = PostgresIntakeStore(database, hints, SystemClock(), SystemRandomness())
        operator = PostgresOperatorStore(database, hints)
        yield Scene(server, urls, database, intake, operator, stack)


async def test_sigterm_in_mid_job_drains_up_to_the_grace_and_leaves_nothing_claimed(scene: Scene) -> None:
    """Case Q15, as an orchestrator does it."""
    node = await scene.node("node", "--grace", "1")
    ends, stays = await scene.submit([NewJob(LONG, b"0.6"), NewJob(LONG, b"60")])
    await scene.until(2, JobState.RUNNING)
    node.signal(signal.SIGTERM)
    assert await node.ended() == 0
    assert await scene.count(JobState.RUNNING) == 0
    assert ((await scene.view(ends)).state, (await scene.view(ends)).attempts) == (JobState.DELIVERED, 1)
    assert ((await scene.view(stays)).state, (await scene.view(stays)).attempts) == (JobState.WAITING, 0)
    assert await scene.faults() == []


async def test_a_second_worker_under_the_name_of_a_live_one_is_refused_and_the_first_goes_on(
    scene: Scene,
) -> None:
    first = await scene.node("node")
    second = await NodeProcess.started("--database-url", scene.urls.admin, "--name", "node")
    scene.stack.push_async_callback(second.kill)
    assert await second.ended() == 2
    await second.kill()
    said = second.log[-1]["error"]["message"]
    assert said.startswith("the name 'node' belongs to another worker, which is alive")
    assert second.of(NodeJoined) == []
    (id_,) = await scene.submit([NewJob(STEADY, b"{}")])
    await scene.until(1, JobState.DELIVERED)
    assert (await scene.view(id_)).attempts == 1
    first.signal(signal.SIGTERM)
    assert await first.ended() == 0
    again = await scene.node("node")  # free at once: its worker has left
    assert again.of(NodeNameHeld) == []


async def test_a_worker_that_was_killed_comes_back_under_its_name_once_its_heartbeat_is_old(
    scene: Scene,
) -> None:
    """Without a person's doing, and within 5 s of its last heartbeat by the database's clock."""
    first = await scene.node("node")
    await first.kill()
    second = await scene.node("node")
    (held,) = second.of(NodeNameHeld)
    assert 0.0 < held["frees_in"] <= NODE_FRESH_FOR
    assert (await second.told(NodeJoined))["incarnation"] == 2
    await scene.submit([NewJob(STEADY, b"{}")])
    await scene.until(1, JobState.DELIVERED)
    assert await scene.faults() == []


async def test_a_worker_that_was_stopped_while_another_took_its_name_waits_and_takes_it_again(
    scene: Scene,
) -> None:
    """The first is not ended by a newcomer, not even by one that came in its absence."""
    first = await scene.node("node")
    first.signal(signal.SIGSTOP)
    second = await scene.node("node")
    first.signal(signal.SIGCONT)
    await first.told(NodeNameHeld)
    second.signal(signal.SIGTERM)
    assert await second.ended() == 0
    assert (await first.told(NodeJoined, count=2))["incarnation"] == 3
    await scene.submit([NewJob(STEADY, b"{}")])
    await scene.until(1, JobState.DELIVERED)
    assert await scene.faults() == []


async def test_a_crash_of_the_server_ends_the_planners_term_though_it_came_back_in_time(scene: Scene) -> None:
    """Laws K1 and K3: the crash may have undone rounds that the planner was told of. Where it did not notice,
    as behind a PgBouncer, it must not go on from a memory of what never was."""
    planner = PostgresPlannerStore(scene.database, Hints(scene.database))
    term = await planner.take_place("here", 60.0)
    assert term is not None
    await planner.keep_place(term, 60.0)
    await asyncio.to_thread(scene.server.stop)
    await asyncio.to_thread(scene.server.start)
    await patiently(lambda: planner.keep_place(term, 60.0))  # nothing was undone: the term goes on
    await asyncio.to_thread(scene.server.kill)
    await asyncio.to_thread(scene.server.start)
    for call in (
        lambda: planner.round(term, (), {}),
        lambda: planner.keep_place(term, 60.0),
        lambda: planner.nodes(term),
        lambda: planner.held(term),
    ):
        with pytest.raises(PlaceLost):
            await patiently(call)
    await planner.leave_place(term)
    again = await planner.take_place("here", 60.0)
    assert again == term + 1, "the term itself had waited for the disk"
    await planner.round(again, (), {})


@pytest.mark.timeout(120)
async def test_full_speed_within_ten_seconds_of_a_servers_restart_and_nothing_lost(scene: Scene) -> None:
    """Case Q19: ended in order first, by a crash then, under the same nodes. What a crash undoes of the last
    fraction of a second must not hold slots until its leases are over."""
    accepted = await scene.submit([NewJob(STEADY, b"{}")] * 2_000)
    for name in ("one", "two"):
        await scene.node(name, slots=4)
    await scene.until(100, *ENDS)
    before = await rate(scene, 2.0)
    for end in (scene.server.stop, scene.server.kill):
        await asyncio.to_thread(end)
        await asyncio.to_thread(scene.server.start)
        await full_speed(scene, 0.8 * before)
    await scene.until(len(accepted), JobState.DELIVERED)
    assert await scene.count(JobState.DELIVERED) == len(accepted)
    assert await scene.faults() == []


async def full_speed(scene: Scene, wanted: float) -> None:
    """Until as many jobs end a second as wanted; it has ten seconds."""
    clock = SystemClock()
    back = clock.monotonic()
    while (now := await rate(scene, 1.0)) < wanted:
        assert clock.monotonic() - back < 10.0, f"{now:.0f} jobs a second after ten, {wanted:.0f} wanted"
        assert await scene.faults() == []


async def rate(scene: Scene, over: Seconds) -> float:
    """Jobs that end a second."""
    clock = SystemClock()
    ended, at = await scene.count(*ENDS), clock.monotonic()
    await asyncio.sleep(over)
    return (await scene.count(*ENDS) - ended) / (clock.monotonic() - at)


async def patiently(read: Callable[[], Awaitable[_T]]) -> _T:
    """A server that has just been started again may turn the first reader away."""
    while True:
        try:
            return await read()
        except StoreUnavailable:
            await asyncio.sleep(0.05)
