"""When the ends of jobs are recorded: alone at once, together where they follow each other."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from test_worker import SHORT, SOON, Store, running

from tenantry.config.model import TargetSettings
from tenantry.kernel.instant import Seconds
from tenantry.lanes.model import HTTP, Kind
from tenantry.lanes.outcome import Outcome
from tenantry.queue.model import ClaimedJob, JobId, Node, Seq, Settlement
from tenantry.testing.jobs import claimed_job

JOBS = [claimed_job(id=JobId(f"job-{n}"), seq=Seq(n)) for n in range(5)]
SPACED: Seconds = 0.25


@dataclass
class Recording(Store):
    """Keeps what was recorded together."""

    records: list[list[str]] = field(default_factory=list)
    more: asyncio.Event = field(default_factory=asyncio.Event)

    async def settle(self, node: Node, settlements: Sequence[Settlement]) -> int:
        self.records.append([str(each.job.id) for each in settlements])
        self.more.set()
        return len(settlements)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(SOON):
            while len(self.records) < count:
                self.more.clear()
                await self.more.wait()


@dataclass
class Gates:
    """Runs each job until its own gate opens."""

    kinds: frozenset[Kind] = frozenset({HTTP})
    open_: dict[str, asyncio.Event] = field(
        default_factory=lambda: {str(job.id): asyncio.Event() for job in JOBS}
    )

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        await self.open_[str(job.id)].wait()
        return Outcome("ok", status=200)

    def end(self, *numbers: int) -> None:
        for number in numbers:
            self.open_[f"job-{number}"].set()


async def test_an_end_that_comes_alone_is_recorded_at_once_and_those_that_follow_together() -> None:
    """Others run all the while, so that company could be waited for."""
    store, gates, loop = Recording(given=list(JOBS)), Gates(), asyncio.get_running_loop()
    async with running(store, gates, replace(SHORT, settle_every=SPACED)):
        began = loop.time()
        gates.end(0)
        await store.until(1)
        first_took = loop.time() - began
        gates.end(1, 2)
        await store.until(2)
        second_after = loop.time() - began
        gates.end(3)
        await store.until(3)
    assert store.records == [["job-0"], ["job-1", "job-2"], ["job-3"]]
    assert first_took < SPACED <= second_after


async def test_the_last_end_of_all_waits_for_nobody() -> None:
    store, gates = Recording(given=list(JOBS[:2])), Gates()
    async with running(store, gates, replace(SHORT, settle_every=10 * SOON)):
        gates.end(0)
        await store.until(1)
        gates.end(1)
        await store.until(2)
    assert store.records == [["job-0"], ["job-1"]]
