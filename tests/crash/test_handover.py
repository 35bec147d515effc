"""Law F3 across a hand-over: the planner is killed, stopped or cut off, and the next job starts within ten
seconds; no job is ever in two live claims; and a planner that comes to again writes nothing.

Nodes are `tenantry worker` processes with the product's own settings.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from nodes import NodeProcess, Wire

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.postgres.database import Database
from tenantry.postgres.directory import write_registry
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.operator_store import PostgresOperatorStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.queue.events import NodeJoined, PlannerElected, PlannerLost
from tenantry.queue.model import Accepted, JobId, JobState, NewJob

pytestmark = pytest.mark.needs_postgres

ACME = TenantId("acme")
BRIEF = Target("handler:brief")
HANDED_OVER_IN: Seconds = 10.0


@dataclass(slots=True)
class Story:
    """Two nodes: one that plans and runs nothing, one that runs and stands by."""

    database: Database
    intake: PostgresIntakeStore
    operator: PostgresOperatorStore
    planner: NodeProcess
    other: NodeProcess
    wire: Wire
    submitted: list[JobId] = field(default_factory=list)

    async def submit(self) -> JobId:
        answer = await self.intake.submit(ACME, [NewJob(BRIEF, b"{}")], bound=None)
        assert isinstance(answer, Accepted)
        self.submitted += answer.ids
        return answer.ids[0]

    async def delivered(self, id_: JobId) -> Seconds:
        """Seconds until the job is delivered. Meanwhile more are submitted, and the books are audited."""
        clock = SystemClock()
        began = clock.monotonic()
        while True:
            view = await self.intake.job(ACME, id_)
            if view is not None and view.state is JobState.DELIVERED:
                return clock.monotonic() - began
            assert list(await self.operator.audit()) == []
            await self.submit()
            await asyncio.sleep(0.1)

    async def holder(self) -> str:
        return str(await self.database.engine.fetchval("SELECT holder FROM tenantry.place"))

    async def all_delivered(self) -> None:
        for id_ in list(self.submitted):
            await self.delivered(id_)
        assert list(await self.operator.audit()) == []


@asynccontextmanager
async def told(urls: DatabaseUrls, home: Path) -> AsyncIterator[Story]:
    tier = Tier(TierName("open"))
    await write_registry(urls.admin, Registry((tier,), (TenantDocument(ACME, tier.name),)))
    async with AsyncExitStack() as stack:
        wire, wired = Wire(_socket(urls.admin)), _through(urls.admin, home)
        await stack.enter_async_context(wire.listening(_socket(wired)))
        planner = await NodeProcess.started(
            "--database-url", wired, "--name", "planner", handlers="story_handlers:idle"
        )
        stack.push_async_callback(planner.kill)
        await planner.told(PlannerElected)
        other = await NodeProcess.started("--database-url", urls.admin, "--name", "other")
        stack.push_async_callback(other.kill)
        await other.told(NodeJoined)
        database = await stack.enter_async_context(await Database.open(urls))
        hints = Hints(database)
        stack.push_async_callback(hints.close)
        intake = PostgresIntakeStore(database, hints, SystemClock(), SystemRandomness())
        story = Story(database, intake, PostgresOperatorStore(database, hints), planner, other, wire)
        await story.delivered(await story.submit())
        assert await story.holder() == "planner"
        yield story


async def killed(story: Story) -> None:
    story.planner.signal(signal.SIGKILL)
    assert await story.delivered(await story.submit()) < HANDED_OVER_IN


async def stopped(story: Story) -> None:
    story.planner.signal(signal.SIGSTOP)
    assert await story.delivered(await story.submit()) < HANDED_OVER_IN
    await _comes_to_and_writes_nothing(story, lambda: story.planner.signal(signal.SIGCONT))


async def cut_off(story: Story) -> None:
    story.wire.cut()
    assert await story.delivered(await story.submit()) < HANDED_OVER_IN
    await _comes_to_and_writes_nothing(story, story.wire.mend)


async def _comes_to_and_writes_nothing(story: Story, wake: Callable[[], None]) -> None:
    """Its round that was on the way arrives, under a term that is over."""
    term = await story.database.engine.fetchval("SELECT term FROM tenantry.place")
    wake()
    lost = await story.planner.told(PlannerLost)
    assert lost["reason"] == "PlaceLost"
    assert lost["term"] < term
    await story.delivered(await story.submit())
    assert await story.holder() == "other"


STORIES: tuple[Callable[[Story], Awaitable[None]], ...] = (killed, stopped, cut_off)


@pytest.mark.timeout(90)
async def test_a_planner_that_is_killed_stopped_or_cut_off_is_replaced_within_ten_seconds(
    fresh_database: Callable[[], DatabaseUrls], server_home: Path
) -> None:
    """All three at once, each on a database of its own: most of the time they wait."""

    async def tell(story: Callable[[Story], Awaitable[None]], urls: DatabaseUrls) -> None:
        home = server_home / story.__name__
        home.mkdir()
        async with told(urls, home) as setting:
            await story(setting)
            await setting.all_delivered()

    await asyncio.gather(*(tell(story, fresh_database()) for story in STORIES))


def _socket(url: str) -> Path:
    options = parse_qs(urlsplit(url).query)
    return Path(options["host"][0]) / f".s.PGSQL.{options['port'][0]}"


def _through(url: str, home: Path) -> str:
    host = parse_qs(urlsplit(url).query)["host"][0]
    return url.replace(host, str(home))
