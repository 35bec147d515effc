"""A coordinator over a real store, with a real file as its source and a hand that ends what is fed: what the
loop and a store promise together."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tenantry.brokers.jsonl import JsonLinesSource
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.model import ClaimedJob, Ending, JobState
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.connections import Connection
from tenantry.replay.coordinator import Coordinator, CoordinatorSettings
from tenantry.replay.desk import NotNow, ReplayService, UnknownReplay
from tenantry.replay.kit import RunSettings
from tenantry.replay.lifecycle import ENDED
from tenantry.replay.model import (
    Budget,
    HoldRule,
    LanePace,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    SourceAddress,
)
from tenantry.replay.progress import Phase
from tenantry.replay.window import WindowSettings
from tenantry.testing.conformance.replay_store import OpenReplays
from tenantry.testing.conformance.replay_world import ReplayWorld
from tenantry.testing.conformance.world import ACME, HOOK

QUICK = CoordinatorSettings(
    keep_every=0.02,
    take_every=0.02,
    run=RunSettings(
        window=WindowSettings(soonest=0.005, latest=0.02, wait_for=0.01),
        tell_every=0.02,
        stand_every=0.02,
        arrived_every=0.05,
        retry_source_for=0.05,
        rest_for=0.02,
    ),
)


class Cut:
    """A store that a killed process can reach no more."""

    def __init__(self, store: object) -> None:
        self._store, self.is_cut = store, False

    def __getattr__(self, name: str) -> Any:
        if self.is_cut:
            raise StoreUnavailable("the process is gone")
        return getattr(self._store, name)


class Story:
    """A file, a coordinator, a hand that ends jobs, and the side of people."""

    def __init__(self, world: ReplayWorld, root: Path) -> None:
        self.world, self._root, self.told = world, root, list[Event]()
        tier = Tier(TierName("gold"), replays=3)
        directory = MemoryDirectory(Registry((tier,), (TenantDocument(ACME, tier.name),)))
        self.around = Surroundings(directory, SystemClock(), SystemRandomness(), self.told.append)
        self.service = ReplayService(world.desk, self, self, self.around)
        self.ending: Callable[[ClaimedJob], Ending] = lambda job: Ending.DELIVERED
        self.sent: Counter[bytes] = Counter()
        self.at_once = 40
        self._tasks: list[asyncio.Task[None]] = []
        self._hand_is_free = asyncio.Lock()
        self._cuts: list[Cut] = []

    # the ports

    def source(self, tenant: TenantId, address: SourceAddress) -> JsonLinesSource:
        return JsonLinesSource(Connection(name="files", kind="jsonl", url=str(self._root)), address)

    async def shares(self, tenant: TenantId) -> tuple[float, float] | None:
        return None

    async def lanes(self, tenant: TenantId, targets: object) -> dict[str, LanePace]:
        return {HOOK: LanePace(20, 0.1)}

    # the verbs

    def write(self, count: int, name: str = "dead.jsonl", **fields: object) -> None:
        """A file of so many messages."""
        with (self._root / name).open("a") as file:
            for n in range(count):
                entry = {"id": f"m{n}", "target": HOOK, "payload": {"n": n}, **fields}
                file.write(json.dumps(entry) + "\n")

    async def start(self, name: str = "dead.jsonl", **spec: Any) -> ReplayId:
        """Plan and start."""
        planned = await self.service.plan(
            ReplaySpec(tenant=ACME, source=SourceAddress("jsonl", name, "files"), **spec)
        )
        await self.service.start(ACME, planned.view.id)
        return planned.view.id

    def launch(self, holder: str = "n1") -> None:
        cut = Cut(self.world.store)
        self._cuts.append(cut)
        coordinator = Coordinator(cut, self, self, self.around, holder=holder, settings=QUICK)  # type: ignore[arg-type]
        self._tasks.append(asyncio.create_task(coordinator.run()))
        if len(self._tasks) == 1:
            self._tasks.append(asyncio.create_task(self._work()))

    async def kill(self) -> None:
        """The first coordinator is gone without a word, and its leases run out."""
        self._cuts[0].is_cut = True
        await _end(self._tasks.pop(0))
        async with self._hand_is_free:  # a worker's own leases are not what is tested
            await self.world.queue.pass_time(QUICK.lease_for + 1.0)

    async def close(self) -> None:
        for task in self._tasks:
            await _end(task)

    async def _work(self) -> None:
        """A worker: takes up to ``at_once`` jobs and ends each as ``ending`` says."""
        while True:
            async with self._hand_is_free:
                for job in await self.world.claim(self.at_once):
                    self.sent[job.payload] += 1
                    await self.world.settle([job], self.ending(job))
            await asyncio.sleep(0.002)

    async def until(self, replay: ReplayId, holds: Callable[[ReplayView], bool]) -> ReplayView:
        while True:
            view = await self.service.replay(ACME, replay)
            for task in self._tasks:
                if task.done():
                    task.result()
            if holds(view):
                return view
            await asyncio.sleep(0.01)

    async def ended(self, replay: ReplayId) -> ReplayView:
        return await self.until(replay, lambda view: view.state in ENDED)


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class LeadingConformance:
    """Derive from it, and give the fixture ``open_replays``."""

    @pytest.fixture
    async def story(self, open_replays: OpenReplays, tmp_path: Path) -> AsyncIterator[Story]:
        story = Story(await open_replays(), tmp_path)
        yield story
        await story.close()
        assert list(await story.world.queue.operator.audit()) == []

    async def test_a_file_is_replayed_to_its_end_and_a_second_plan_knows_it(self, story: Story) -> None:
        story.write(230)
        spec = ReplaySpec(tenant=ACME, source=SourceAddress("jsonl", "dead.jsonl", "files"))
        planned = await story.service.plan(spec)
        assert (planned.report.count, planned.report.meant.count) == (230, 230)
        assert planned.report.delivered.count == 0
        assert planned.report.duration.low == pytest.approx(230 / 200)
        await story.service.start(ACME, planned.view.id)
        story.launch()
        view = await story.ended(planned.view.id)
        assert (view.state, view.counts.delivered, view.counts.taken) == (ReplayState.FINISHED, 230, 230)
        assert set(story.sent.values()) == {1}
        record = await story.service.progress(ACME, planned.view.id)
        assert (record.phase, record.done, record.total) == (Phase.FINISHED, 230, 230)
        again = await story.service.plan(spec)
        assert again.report.delivered.count == 230
        assert again.report.duration.low == 0.0

    async def test_r1_the_same_messages_asked_for_twice_at_once_are_in_one_replay_each(
        self, story: Story
    ) -> None:
        story.write(150)
        one, other = await story.start(), await story.start()
        story.launch()
        first, second = await story.ended(one), await story.ended(other)
        assert first.counts.delivered + second.counts.delivered == 150
        assert first.counts.duplicate + second.counts.duplicate == 150
        assert set(story.sent.values()) == {1}

    async def test_r2_a_line_that_is_no_message_is_parked_and_can_be_dropped(self, story: Story) -> None:
        story.write(20)
        with (story._root / "dead.jsonl").open("a") as file:
            file.write('{"id": "odd", "payload"\n')
        replay = await story.start()
        story.launch()
        view = await story.ended(replay)
        assert (view.counts.delivered, view.counts.parked) == (20, 1)
        (parked,) = await story.service.parked(ACME, replay)
        assert parked.rule == "broken"
        assert await story.service.drop(ACME, parked.job)
        assert await story.service.parked(ACME, replay) == []

    async def test_r3_a_coordinator_that_is_killed_is_replaced_and_nothing_is_sent_twice(
        self, story: Story
    ) -> None:
        story.write(400)
        replay = await story.start()
        story.at_once = 5
        story.launch("n1")
        await story.until(replay, lambda view: view.counts.delivered > 30)
        await story.kill()
        story.at_once = 40
        story.launch("n2")
        view = await story.ended(replay)
        assert view.counts.delivered == 400
        assert set(story.sent.values()) == {1}

    async def test_a_pause_is_at_once_and_a_resume_goes_on(self, story: Story) -> None:
        story.write(300)
        replay = await story.start()
        story.at_once = 5
        story.launch()
        await story.until(replay, lambda view: view.counts.delivered > 20)
        await story.service.pause(ACME, replay)
        await story.until(replay, lambda view: not view.counts.in_flight)
        delivered = (await story.service.replay(ACME, replay)).counts.delivered
        await story.until(replay, lambda view: '"paused"' in view.progress)
        assert (await story.service.replay(ACME, replay)).counts.delivered == delivered
        with pytest.raises(NotNow, match="a replay that is paused cannot be given 'pause'"):
            await story.service.pause(ACME, replay)
        story.at_once = 40
        await story.service.resume(ACME, replay)
        assert (await story.ended(replay)).counts.delivered == 300

    async def test_cancel_returns_what_was_taken_and_not_delivered_to_the_dead_letters(
        self, story: Story
    ) -> None:
        story.write(2_000)
        replay = await story.start()
        story.at_once = 5
        story.launch()
        await story.until(replay, lambda view: view.counts.delivered > 20)
        await story.service.cancel(ACME, replay)
        view = await story.ended(replay)
        assert view.state is ReplayState.CANCELLED
        assert view.counts.returned > 0
        assert view.counts.taken == view.counts.delivered + view.counts.returned < 2_000
        dead = await story.world.queue.intake.jobs(ACME, state=JobState.DEAD, limit=1_000)
        assert len(dead) == view.counts.returned

    async def test_a_budget_holds_and_a_larger_one_frees(self, story: Story) -> None:
        story.write(120)
        replay = await story.start(budget=Budget(messages=60))
        story.launch()
        view = await story.until(replay, lambda view: view.hold is not None and not view.counts.unended)
        assert view.hold is not None
        assert (view.hold.rule, view.counts.delivered) == (HoldRule.BUDGET, 60)
        await story.service.rebudget(ACME, replay, Budget(messages=500))
        assert (await story.ended(replay)).counts.delivered == 120

    async def test_r9_all_poison_holds_the_replay_early_stops_it_and_a_continue_tries_again(
        self, story: Story
    ) -> None:
        story.write(900, error_class="http_422", failure="bad order")
        replay = await story.start()
        story.ending = lambda job: Ending.PARKED
        story.launch()
        view = await story.until(replay, lambda view: view.hold is not None)
        assert view.hold is not None
        assert (view.hold.rule, view.hold.stops) == (HoldRule.POISON, True)
        assert view.counts.taken <= 500
        view = await story.until(replay, lambda view: not view.counts.in_flight)
        sent = story.sent.total()
        await story.until(replay, lambda view: '"held"' in view.progress)
        assert story.sent.total() == sent
        story.ending = lambda job: Ending.DELIVERED
        await story.service.proceed(ACME, replay)
        view = await story.ended(replay)
        assert view.counts.delivered >= 400

    async def test_r9_a_class_that_fails_alike_is_parked_and_the_rest_goes_on(self, story: Story) -> None:
        with (story._root / "dead.jsonl").open("w") as file:
            for n in range(400):
                bad = n % 2 == 0
                error = "http_422" if bad else "timeout"
                entry = {"id": f"m{n}", "target": HOOK, "payload": {"bad": bad, "n": n}, "error_class": error}
                file.write(json.dumps(entry) + "\n")
        replay = await story.start()
        story.ending = lambda job: Ending.PARKED if b"true" in job.payload else Ending.DELIVERED
        story.launch()
        view = await story.ended(replay)
        assert (view.counts.delivered, view.counts.parked) == (200, 200)
        assert sum(b"true" in payload for payload in story.sent) < 150
        rules = Counter(each.rule for each in await story.service.parked(ACME, replay, limit=1_000))
        assert rules["class"] > 50

    async def test_more_replays_than_a_tenant_may_run_wait_for_their_turn(self, story: Story) -> None:
        for n in range(5):
            story.write(30, f"f{n}.jsonl", id=f"f{n}", payload={"file": n})
        replays = [await story.start(f"f{n}.jsonl") for n in range(5)]
        views = [await story.service.replay(ACME, each) for each in replays]
        assert [view.state for view in views] == [ReplayState.RUNNING] * 3 + [ReplayState.HELD] * 2
        story.launch()
        for replay in replays:
            assert (await story.ended(replay)).state is ReplayState.FINISHED

    async def test_a_replay_that_is_not_there_is_told_so(self, story: Story) -> None:
        with pytest.raises(UnknownReplay, match="there is no replay"):
            await story.service.pause(ACME, ReplayId("0190c0de-0000-7000-8000-000000000001"))
