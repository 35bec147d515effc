"""Shaped lanes of nodes that are real processes, over real HTTP, and a hand that kills them.

Probes are counted, no breaker wedges, and what was learned outlives everybody."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from nodes import NodeProcess

from tenantry.config.model import TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes import model as lanes
from tenantry.lanes import shaper_state
from tenantry.lanes.shaper import ShaperState
from tenantry.postgres.database import Database
from tenantry.postgres.directory import write_registry
from tenantry.postgres.embedded import EmbeddedServer
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.migrate import migrate
from tenantry.postgres.operator_store import PostgresOperatorStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.events import BreakerMoved, NodeJoined
from tenantry.queue.lifecycle import NODE_FRESH_FOR
from tenantry.queue.model import ENDS, Accepted, JobState, NewJob
from tenantry.testing.target import Target

pytestmark = pytest.mark.needs_postgres

ACME = TenantId("acme")
TIMEOUT: Seconds = 1.0
PROBE_LEASE: Seconds = 5.0
"""Beyond the timeout, until a probe of which nothing is heard is given up."""

ROUND: Seconds = 1.0
"""A round takes 50 ms; the rest is for a machine with other work."""

QUICK = TargetSettings(timeout_for=TIMEOUT, backoff_base=0.1, backoff_cap=0.2, max_attempts=100)


@dataclass(slots=True)
class Scene:
    """A target of ours, a server whose crash counts, and nodes by name."""

    target: Target
    urls: DatabaseUrls
    database: Database
    intake: PostgresIntakeStore
    operator: PostgresOperatorStore
    stack: AsyncExitStack
    nodes: dict[str, NodeProcess] = field(default_factory=dict)

    async def planner(self) -> NodeProcess:
        """A node that plans and runs nothing."""
        return await self._started("planner", handlers="story_handlers:idle", http=False)

    async def worker(self, name: str, *, slots: int = 60) -> NodeProcess:
        """A node that delivers and never plans."""
        return await self._started(name, "--no-planner", "--slots", str(slots))

    async def whole(self, name: str, *, slots: int = 60) -> NodeProcess:
        """A node that does everything."""
        return await self._started(name, "--slots", str(slots))

    async def _started(
        self, name: str, *words: str, handlers: str = "story_handlers", http: bool = True
    ) -> NodeProcess:
        node = await NodeProcess.started(
            "--database-url", self.urls.admin, "--name", name, *words, handlers=handlers, http=http
        )
        self.nodes[name] = node
        self.stack.push_async_callback(node.kill)
        await node.told(NodeJoined)
        return node

    async def submit(self, count: int) -> None:
        jobs = [NewJob(lanes.Target(self.target.url), b"{}")] * count
        for start in range(0, count, 1_000):
            answer = await self.intake.submit(ACME, jobs[start : start + 1_000], bound=None)
            assert isinstance(answer, Accepted)

    async def count(self, *states: JobState) -> int:
        counts = await self.operator.counts()
        return sum(counts[state] for state in states)

    async def holders(self) -> Sequence[str]:
        """The nodes that hold a job now, once for each claim."""
        rows = await self.database.engine.fetch("SELECT node_id FROM tenantry.claims")
        return [row["node_id"] for row in rows]

    async def learned(self) -> ShaperState | None:
        """The state of the lane as it was last kept."""
        row = await self.database.engine.fetchrow(
            "SELECT state, extract(epoch FROM kept_at)::float AS at FROM tenantry.shapers"
        )
        if row is None:
            return None
        return shaper_state.decoded(json.loads(row["state"]), in_flight=0, now=row["at"])


@pytest.fixture
async def scene(embedded_server_factory: Callable[..., EmbeddedServer]) -> AsyncIterator[Scene]:
    server = embedded_server_factory(made=True)
    await asyncio.to_thread(server.start)
    urls = DatabaseUrls.derived(server.url())
    await migrate(urls.admin)
    tier = Tier(TierName("open"))
    await write_registry(urls.admin, Registry((tier,), (TenantDocument(ACME, tier.name, QUICK),)))
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(Target())
        database = await stack.enter_async_context(await Database.open(urls))
        hints = Hints(database)
        stack.push_async_callback(hints.close)
        intake = PostgresIntakeStore(database, hints, SystemClock(), SystemRandomness())
        yield Scene(target, urls, database, intake, PostgresOperatorStore(database, hints), stack)


async def took(waiting: asyncio.Future[None] | asyncio.Task[None]) -> Seconds:
    """Seconds until it is done."""
    clock = SystemClock()
    began = clock.monotonic()
    await waiting
    return clock.monotonic() - began


async def received(scene: Scene, count: int) -> Seconds:
    """Seconds until the target has received so many in all."""
    return await took(asyncio.ensure_future(scene.target.received_count(count)))


async def silent(scene: Scene) -> None:
    """Returns when no node has been heard of for as long as makes it dead."""
    alive = (
        "SELECT count(*) FROM tenantry.nodes WHERE seen_at > clock_timestamp() - make_interval(secs => $1)"
    )
    while await scene.database.engine.fetchval(alive, NODE_FRESH_FOR):  # noqa: ASYNC110 - only it knows
        await asyncio.sleep(0.05)


async def until(scene: Scene, most: int, *states: JobState) -> Seconds:
    """Seconds until no more jobs than that are in these states."""
    clock = SystemClock()
    began = clock.monotonic()
    while await scene.count(*states) > most:  # noqa: ASYNC110 - only the database knows
        await asyncio.sleep(0.02)
    return clock.monotonic() - began


async def test_s6_with_a_hundred_callers_waiting_exactly_one_probe_passes_at_each_half_open_instant(
    scene: Scene,
) -> None:
    """And before that: a lane whose target becomes a black hole gives its slots back within a timeout and a
    round."""
    planner = await scene.planner()
    await scene.worker("one")
    await scene.worker("two")
    scene.target.delays(0.1)
    await scene.submit(1_000)
    await scene.target.received_count(300)
    scene.target.hangs()
    busy = await scene.count(JobState.RUNNING)
    assert busy >= 5, "the lane had found out that its target takes more than one at a time"
    assert await until(scene, 1, JobState.RUNNING) <= TIMEOUT + ROUND
    for probes in (1, 2, 3):
        opened = await planner.told(BreakerMoved, count=2 * probes - 1)
        assert opened["state"] == "open"
        before = scene.target.total
        half_open = await planner.told(BreakerMoved, count=2 * probes)
        assert half_open["state"] == "half_open"
        await planner.told(BreakerMoved, count=2 * probes + 1)  # the probe has run into its timeout
        assert scene.target.total == before + 1
        assert await scene.count(JobState.WAITING, JobState.DELAYED) >= 100
    scene.target.answers(200)
    while (await planner.told(BreakerMoved, count=len(planner.of(BreakerMoved)) + 1))["state"] != "closed":
        pass
    await until(scene, 0, JobState.WAITING, JobState.DELAYED, JobState.RUNNING)
    assert await scene.count(JobState.DELIVERED) == 1_000
    assert await scene.operator.audit() == []


async def test_s5_when_the_worker_that_holds_the_probe_is_killed_another_probe_comes_in_time(
    scene: Scene,
) -> None:
    planner = await scene.planner()
    for name in ("one", "two"):
        await scene.worker(name)
    scene.target.hangs()
    await scene.submit(20)
    await planner.told(BreakerMoved)
    before = scene.target.total
    await scene.target.received_count(before + 1)
    (holder,) = await scene.holders()
    await scene.nodes[holder].kill()
    scene.target.answers(200)
    assert await received(scene, before + 2) <= TIMEOUT + PROBE_LEASE + ROUND
    closed = await planner.told(BreakerMoved, count=3)
    assert closed["state"] == "closed"
    await until(scene, 1, JobState.WAITING, JobState.DELAYED, JobState.RUNNING)  # one waits for its lease
    assert await scene.operator.audit() == []


async def test_s5_when_planner_and_workers_are_killed_with_a_probe_out_another_comes(scene: Scene) -> None:
    await scene.whole("one")
    scene.target.hangs()
    await scene.submit(20)
    await scene.nodes["one"].told(BreakerMoved)
    before = scene.target.total
    await scene.target.received_count(before + 1)
    await scene.nodes["one"].kill()
    scene.target.answers(200)
    again = await scene.whole("two")
    await scene.target.received_count(before + 2)
    assert (await again.told(BreakerMoved))["state"] == "closed", "it took up the breaker that was half-open"
    await until(scene, 1, JobState.WAITING, JobState.DELAYED, JobState.RUNNING)
    assert await scene.operator.audit() == []


async def test_what_a_lane_has_learned_outlives_kill_9_of_every_worker_and_planner(scene: Scene) -> None:
    for name in ("one", "two"):
        await scene.whole(name)
    scene.target.delays(0.1)
    await scene.submit(600)
    await until(scene, 0, JobState.WAITING, JobState.DELAYED, JobState.RUNNING)
    learned = await scene.learned()
    assert learned is not None
    assert learned.limit.permits >= 8
    for node in scene.nodes.values():
        await node.kill()
    await silent(scene)  # or a planner of the first instant gives the dead what then waits for their lease
    await scene.submit(200)
    before = scene.target.total
    scene.target.delays(0.8)
    for name in ("three", "four"):
        await scene.whole(name)
    await scene.target.received_count(before + 1)
    one_node_takes = min(learned.limit.permits // 2, 50)  # the other may still be on its way
    first_wave = await received(scene, before + one_node_takes)
    assert first_wave < 0.8, "as many as before start at once, before anything has come back"
    scene.target.answers(200)
    await until(scene, 0, JobState.WAITING, JobState.DELAYED, JobState.RUNNING)
    assert await scene.count(*ENDS) == 800
    assert await scene.operator.audit() == []
