"""Whatever happens in whatever order, with replays in it: every job is where the story put it, each end is
told once, and the bound counts what it counts without them."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenantry.kernel.tenant import TenantId
from tenantry.queue.model import (
    ClaimedJob,
    Ending,
    EndKind,
    JobId,
    JobState,
    Node,
    ReplayedJob,
    ReplayTerms,
)
from tenantry.testing.conformance.machine import AFTER, COUNTS, DELAY, PICKS, RETRY, Step, Story
from tenantry.testing.conformance.world import ACME, GLOBEX, HOOK, OTHER_HOOK, World, messages, settlement

TERMS = (ReplayTerms("r1"), ReplayTerms("r2", hold_unknown=True))
KINDS = {
    Ending.DELIVERED: EndKind.DELIVERED,
    Ending.DEAD: EndKind.DEAD,
    Ending.PARKED: EndKind.PARKED,
    Ending.RETRY: EndKind.FAILED,
}
STEPS = st.one_of(
    st.builds(Step, st.sampled_from(["feed", "replay", "pause", "withdraw", "submit"]), COUNTS, PICKS),
    st.builds(Step, st.sampled_from(["claim", "claim", "claim_for_nobody", "cancel"]), COUNTS, PICKS),
    st.builds(Step, st.sampled_from([f"settle_{ending}" for ending in Ending]), COUNTS, PICKS),
    st.builds(Step, st.sampled_from(["pass_time", "reclaim", "restart", "take_over"]), COUNTS, PICKS),
)


@dataclass(slots=True)
class ReplayedStory(Story):
    """A story with two replays of each tenant. ``replayed``: whose job each is or was last. ``told``: what
    the replays are to be told."""

    replayed: dict[JobId, str] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    told: Counter[tuple[str, JobId, EndKind]] = field(default_factory=Counter)

    def verbs(self) -> dict[str, Callable[[Step], Awaitable[None]]]:
        more = {"feed": self.feed, "replay": self.replay, "pause": self.pause, "withdraw": self.withdraw}
        return Story.verbs(self) | more

    async def feed(self, step: Step) -> None:
        """New messages, in one lane or in two."""
        tenant, terms = self.terms_of(step)
        lanes = [(HOOK, OTHER_HOOK)[(step.pick + number) % 2] for number in range(step.count)]
        jobs = [message for target in lanes for message in messages(1, target=target)]
        await self.fed(tenant, terms, jobs)

    async def replay(self, step: Step) -> None:
        """Dead letters, and parked jobs that are sent back: into any replay of their tenant."""
        tenant, terms = self.terms_of(step)
        aside = {JobState.DEAD, JobState.PARKED}
        ids = [id_ for id_, state in self.states.items() if state in aside and self.owners[id_] == tenant]
        await self.fed(tenant, terms, [ReplayedJob(id_, HOOK, b"{}") for id_ in ids[: step.count]])

    async def fed(self, tenant: TenantId, terms: ReplayTerms, jobs: list[ReplayedJob]) -> None:
        if not jobs:
            return
        await self.world.replays.feed_replay(tenant, terms, jobs)
        for job in jobs:
            self.states[job.id], self.owners[job.id] = JobState.WAITING, tenant
            self.replayed[job.id] = terms.id

    async def pause(self, step: Step) -> None:
        """Paused ones go on, others stop. One that was never fed is not there to be paused."""
        tenant, terms = self.terms_of(step)
        if terms.id in self.replayed.values():
            self.paused ^= {terms.id}
            await self.world.replays.pause_replay(tenant, terms.id, paused=terms.id in self.paused)

    async def withdraw(self, step: Step) -> None:
        tenant, terms = self.terms_of(step)
        out = {JobState.WAITING, JobState.DELAYED}
        there = {
            id_ for id_, state in self.states.items() if state in out and self.replay_of(id_) == terms.id
        }
        gone = await self.world.replays.withdraw_replay(tenant, terms.id, limit=step.count)
        assert set(gone) <= there
        assert len(gone) == min(step.count, len(there))
        self.states.update(dict.fromkeys(gone, JobState.DEAD))

    async def cancel(self, step: Step) -> None:
        before = dict(self.states)
        await Story.cancel(self, step)
        for id_ in (each for each, state in self.states.items() if state is not before[each]):
            self.tell_of(id_, EndKind.CANCELLED)

    async def settle(self, step: Step) -> None:
        ending = Ending(step.name.removeprefix("settle_"))
        await self.settle_stale(ending)
        if not self.held:
            return
        id_ = list(self.held)[step.pick % len(self.held)]
        node, held = self.held.pop(id_)
        ending = _possible(ending, held)
        assert await self.world.worker.settle(node, [settlement(held, ending, retry_for=RETRY)]) == 1
        self.stale.append((node, held))
        self.states[id_] = AFTER[ending]
        if ending in KINDS:
            self.tell_of(id_, KINDS[ending])

    async def settle_stale(self, ending: Ending) -> None:
        for node, held in self.stale:
            assert await self.world.settle(node, [held], _possible(ending, held)) == 0

    def lost(self, held: ClaimedJob) -> JobState:
        holds = held.replay is not None and held.replay.hold_unknown
        self.tell_of(held.id, EndKind.PARKED if holds else EndKind.UNKNOWN)
        return JobState.PARKED if holds else JobState.WAITING

    def bounded(self) -> list[JobId]:
        return [id_ for id_ in self.unended() if id_ not in self.replayed]

    def due(self) -> list[JobId]:
        return [id_ for id_ in Story.due(self) if self.replay_of(id_) not in self.paused]

    def terms_of(self, step: Step) -> tuple[TenantId, ReplayTerms]:
        tenant, terms = (ACME, GLOBEX)[step.pick % 2], TERMS[step.pick // 2 % 2]
        return tenant, ReplayTerms(f"{tenant}-{terms.id}", terms.park_after, terms.hold_unknown)

    def replay_of(self, id_: JobId) -> str:
        return self.replayed.get(id_, "")

    def tell_of(self, id_: JobId, kind: EndKind) -> None:
        if id_ in self.replayed:
            self.told[self.replayed[id_], id_, kind] += 1

    async def finish(self) -> None:
        """However the story went, all of it can be brought to its end (law K1), and every end was told."""
        await self.reclaim(Step("reclaim"))
        for tenant in (ACME, GLOBEX):
            for number in range(2):
                _, terms = self.terms_of(Step("", pick=number * 2 + (tenant == GLOBEX)))
                await self.world.replays.pause_replay(tenant, terms.id, paused=False)
        self.paused.clear()
        for pick in range(4):
            await self.replay(Step("replay", count=1_000, pick=pick))
        await self.world.pass_time(max(RETRY, DELAY) + 1.0)
        await self.refresh()
        node = await self.world.node("last")
        claimed = await self.world.claim(node)
        assert {held.id for held in claimed} == set(self.unended())
        await self.world.settle(node, claimed, Ending.DELIVERED)
        for held in claimed:
            self.states[held.id] = JobState.DELIVERED
            self.tell_of(held.id, EndKind.DELIVERED)
        await self.check()
        assert await self.heard() == self.told

    async def heard(self) -> Counter[tuple[str, JobId, EndKind]]:
        replays = {self.terms_of(Step("", pick=pick))[1].id for pick in range(4)}
        ends = [end for replay in replays for end in await self.world.ends(replay)]
        return Counter((end.replay, end.job, end.kind) for end in ends)


def _possible(ending: Ending, held: ClaimedJob) -> Ending:
    """Only a replay parks."""
    return Ending.DEAD if ending is Ending.PARKED and held.replay is None else ending


class ReplayedMachineConformance:
    """Stories with replays."""

    @pytest.fixture
    async def replay_stage(self, open_world: Callable[[], Awaitable[World]]) -> "ReplayedStage":
        return ReplayedStage(open_world)

    @given(steps=st.lists(STEPS, max_size=25))
    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    async def test_with_replays_every_job_is_where_the_story_put_it_and_every_end_is_told_once(
        self, replay_stage: "ReplayedStage", steps: list[Step]
    ) -> None:
        async with replay_stage.story() as story:
            for step in steps:
                await story.tell(step)
            await story.finish()

    async def test_a_message_survives_every_way_of_coming_back(self, world: World) -> None:
        """One fixed story with all that a replay can do to a job before it ends."""
        story = await begin_replayed(world)
        names = (
            *("feed", "pause", "claim", "pause", "claim", "settle_retry", *("pass_time",) * 5),
            *("claim", "reclaim", "withdraw", "replay", "claim", "settle_dead", "replay", "take_over"),
            *("claim", "settle_parked", "replay", "claim", "settle_released", "claim", "settle_delivered"),
        )
        for name in names:
            await story.tell(Step(name))
        assert list(story.states.values()) == [JobState.DELIVERED]
        assert await story.heard() == story.told


@dataclass(slots=True)
class ReplayedStage:
    """As :class:`~tenantry.testing.conformance.machine.Stage`."""

    open_world: Callable[[], Awaitable[World]]
    world: World | None = None

    @asynccontextmanager
    async def story(self) -> AsyncIterator[ReplayedStory]:
        world, self.world = self.world or await self.open_world(), None
        yield await begin_replayed(world)
        self.world = world


async def begin_replayed(world: World) -> ReplayedStory:
    """A story with two workers and a planner in its place."""
    nodes: list[Node] = [await world.node("one"), await world.node("two")]
    await world.hand.listen()
    return ReplayedStory(world, nodes, await world.operator.counts())
