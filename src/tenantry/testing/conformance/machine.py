"""Any story at all, against a model that a reader can check by eye: a state for each job, nothing else."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenantry.kernel.tenant import TenantId
from tenantry.queue.lifecycle import START_LEASE
from tenantry.queue.model import ENDS, Accepted, ClaimedJob, Ending, JobId, JobState, Node
from tenantry.testing.conformance.world import (
    ACME,
    GLOBEX,
    HOOK,
    LIVE_ENDINGS,
    OTHER_HOOK,
    World,
    job,
    settlement,
)

BOUND = 6
LEASE = START_LEASE - 1.0  # whoever waits out the one has waited out the other
DELAY, RETRY = 14.9, 19.9
"""A second and more beyond any sum of the times that stories let pass: a real clock cannot blur them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a story. ``pick`` chooses among what there is, wherever a choice is to be made."""

    name: str
    count: int = 1
    pick: int = 0


COUNTS = st.integers(1, 4)
PICKS = st.integers(0, 30)
STEPS = st.one_of(
    st.builds(Step, st.just("submit"), COUNTS, PICKS),
    st.builds(Step, st.just("submit_later"), COUNTS, PICKS),
    st.builds(Step, st.just("cancel"), COUNTS, PICKS),
    st.builds(Step, st.just("claim"), COUNTS, PICKS),
    st.builds(Step, st.just("claim_for_nobody"), COUNTS, PICKS),
    st.builds(Step, st.sampled_from([f"settle_{ending}" for ending in LIVE_ENDINGS]), COUNTS, PICKS),
    st.builds(Step, st.sampled_from(["pass_time", "reclaim", "restart", "take_over"]), COUNTS, PICKS),
)


@dataclass(slots=True)
class Story:
    """A world and what must be true in it.

    ``before``: what earlier stories left, all of it ended. ``held``: who believes to hold which job.
    """

    world: World
    nodes: list[Node]
    before: Mapping[JobState, int]
    states: dict[JobId, JobState] = field(default_factory=dict)
    owners: dict[JobId, TenantId] = field(default_factory=dict)
    held: dict[JobId, tuple[Node, ClaimedJob]] = field(default_factory=dict)
    stale: list[tuple[Node, ClaimedJob]] = field(default_factory=list)
    runs: Counter[JobId] = field(default_factory=Counter)

    async def tell(self, step: Step) -> None:
        await self.verbs()[step.name.partition("_")[0]](step)
        await self.check()

    def verbs(self) -> dict[str, Callable[[Step], Awaitable[None]]]:
        return {
            "submit": self.submit,
            "cancel": self.cancel,
            "claim": self.claim,
            "settle": self.settle,
            "pass": self.let_time_pass,
            "reclaim": self.reclaim,
            "restart": self.restart,
            "take": self.take_over,
        }

    async def submit(self, step: Step) -> None:
        tenant = (ACME, GLOBEX)[step.pick % 2]
        delay_for = DELAY if step.name == "submit_later" else 0.0
        target = (HOOK, OTHER_HOOK)[step.pick // 2 % 2]
        jobs = [replace(job(number, target=target), delay_for=delay_for) for number in range(step.count)]
        await self.world.room()
        answer = await self.world.intake.submit(tenant, jobs, bound=BOUND)
        room = BOUND - sum(self.owners[id_] == tenant for id_ in self.bounded())
        assert isinstance(answer, Accepted) is (step.count <= room)
        if isinstance(answer, Accepted):
            state = JobState.DELAYED if delay_for else JobState.WAITING
            self.states.update(dict.fromkeys(answer.ids, state))
            self.owners.update(dict.fromkeys(answer.ids, tenant))

    async def cancel(self, step: Step) -> None:
        if not self.states:
            return
        id_ = list(self.states)[step.pick % len(self.states)]
        if self.states[id_] in {JobState.WAITING, JobState.DELAYED, JobState.PARKED}:
            self.states[id_] = JobState.CANCELLED
        assert await self.world.intake.cancel(self.owners[id_], id_) is self.states[id_]

    async def claim(self, step: Step) -> None:
        node = self.nodes[step.pick % len(self.nodes)]
        planned = await self.world.hand.claim(node, step.count)
        assert planned == min(step.count, len(self.due()))
        if step.name == "claim_for_nobody":  # the worker dies before it takes
            await self.let_leases_run_out(planned)
            return
        for held in await self.world.worker.take(node, LEASE):
            assert self.states[held.id] is JobState.WAITING
            self.states[held.id] = JobState.RUNNING
            self.held[held.id] = (node, held)
            self.runs[held.id] = held.attempt

    async def settle(self, step: Step) -> None:
        ending = Ending(step.name.removeprefix("settle_"))
        await self.settle_stale(ending)
        if not self.held:
            return
        id_ = list(self.held)[step.pick % len(self.held)]
        node, held = self.held.pop(id_)
        report = settlement(held, ending, retry_for=RETRY)
        assert await self.world.worker.settle(node, [report]) == 1
        self.stale.append((node, held))
        self.states[id_] = AFTER[ending]

    async def settle_stale(self, ending: Ending) -> None:
        """Whoever lost its claim may say what it likes (law K2)."""
        for node, held in self.stale:
            assert await self.world.settle(node, [held], ending) == 0

    async def let_time_pass(self, step: Step) -> None:
        await self.world.pass_time(5.0 * step.count)
        await self.refresh()

    async def reclaim(self, step: Step) -> None:
        await self.let_leases_run_out(0)

    async def let_leases_run_out(self, untaken: int) -> None:
        """Until somebody takes it back, what was held is held, however long ago its lease ran out."""
        await self.world.pass_time(START_LEASE + 1.0)
        await self.refresh()
        assert (await self.world.worker.reclaim(limit=100)).jobs == len(self.held) + untaken
        for id_, pair in self.held.items():
            self.stale.append(pair)
            self.states[id_] = self.lost(pair[1])
        self.held.clear()

    def lost(self, held: ClaimedJob) -> JobState:
        """Where a job is whose worker was lost."""
        return JobState.WAITING

    async def restart(self, step: Step) -> None:
        """A worker comes back under its name; what its past holds goes on until it is settled or runs out."""
        index = step.pick % len(self.nodes)
        self.nodes[index] = await self.world.restarted(self.nodes[index])

    async def take_over(self, step: Step) -> None:
        """Another planner takes over, and knows what the last one knew."""
        await self.world.hand.listen()
        assert self.world.hand.term is not None
        await self.world.planner.leave_place(self.world.hand.term)
        self.world.hand.term = None
        await self.world.hand.begin()

    async def refresh(self) -> None:
        """Time alone makes delayed jobs due: ask which."""
        for id_, state in self.states.items():
            if state is JobState.DELAYED:
                view = await self.world.intake.job(self.owners[id_], id_)
                assert view is not None
                assert view.state in {JobState.DELAYED, JobState.WAITING}
                self.states[id_] = view.state

    def unended(self) -> list[JobId]:
        return [id_ for id_, state in self.states.items() if state not in ENDS]

    def bounded(self) -> list[JobId]:
        """Those that count to the bounds of their tenants."""
        return self.unended()

    def due(self) -> list[JobId]:
        """Those that a planner may claim now."""
        return [id_ for id_, state in self.states.items() if state is JobState.WAITING]

    async def check(self) -> None:
        counts = await self.world.operator.counts()
        expected = Counter(self.states.values())
        assert {state: counts[state] - self.before[state] for state in JobState} == {
            state: expected[state] for state in JobState
        }
        assert list(await self.world.operator.audit()) == []


AFTER = {
    Ending.DELIVERED: JobState.DELIVERED,
    Ending.DEAD: JobState.DEAD,
    Ending.RETRY: JobState.DELAYED,
    Ending.RELEASED: JobState.WAITING,
    Ending.PARKED: JobState.PARKED,
}


_LOST = ("submit", "claim_for_nobody")
_WAITED = ("pass_time",) * 5
_RESTARTED = ("restart", "reclaim")
_RELEASED = ("claim", "settle_released", "take_over")


class MachineConformance:
    """Whatever happens, in whatever order."""

    @pytest.fixture
    async def stage(self, open_world: Callable[[], Awaitable[World]]) -> "Stage":
        return Stage(open_world)

    @given(steps=st.lists(STEPS, max_size=25))
    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    async def test_every_job_is_where_the_story_put_it_and_ends_once(
        self, stage: "Stage", steps: list[Step]
    ) -> None:
        async with stage.story() as story:
            for step in steps:
                await story.tell(step)
            await finish(story)

    async def test_a_job_survives_every_way_of_coming_back(self, world: World) -> None:
        """One fixed story with all that can happen to a job before it ends (laws K1, K2, K3)."""
        story = await begin(world)
        for name in (*_LOST, "claim", "settle_retry", *_WAITED, "claim", *_RESTARTED, *_RELEASED, "claim"):
            await story.tell(Step(name))
        await story.tell(Step("settle_delivered"))
        assert list(story.states.values()) == [JobState.DELIVERED]
        assert story.runs[next(iter(story.states))] == 3


@dataclass(slots=True)
class Stage:
    """Many stories in one world, one after the other: each leaves nothing but ends. A story that failed may
    have left anything, so the next one gets a new world."""

    open_world: Callable[[], Awaitable[World]]
    world: World | None = None

    @asynccontextmanager
    async def story(self) -> AsyncIterator[Story]:
        world, self.world = self.world or await self.open_world(), None
        yield await begin(world)
        self.world = world


async def begin(world: World) -> Story:
    """A story with two workers and a planner in its place."""
    nodes = [await world.node("one"), await world.node("two")]
    await world.hand.listen()
    return Story(world, nodes, await world.operator.counts())


async def finish(story: Story) -> None:
    """However the story went, everything accepted can be brought to its end (law K1)."""
    await story.reclaim(Step("reclaim"))
    await story.world.pass_time(RETRY + 1.0)
    await story.refresh()
    unended = set(story.unended())
    node = await story.world.node("last")
    claimed = await story.world.claim(node)
    assert {held.id for held in claimed} == unended
    assert await story.world.settle(node, claimed, Ending.DELIVERED) == len(unended)
    story.states.update(dict.fromkeys(unended, JobState.DELIVERED))
    await story.check()
