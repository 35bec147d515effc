"""Any story at all, against a model that a reader can check by eye: where each message is, nothing else.
After every step the counts are what the model says, so they add up at every instant."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenantry.queue.model import ClaimedJob, Ending, JobId, JobState
from tenantry.replay.model import Fate, Lease, ReplayState
from tenantry.replay.repairs import AS_IT_IS
from tenantry.testing.conformance.replay_world import LEASE_FOR, ReplayWorld, letter, staged, where
from tenantry.testing.conformance.world import ACME, batch

WAITING, IN_FLIGHT, PARKED = "waiting", "in_flight", "parked"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a story. ``pick`` chooses among what there is, wherever a choice is to be made."""

    name: str
    count: int = 1
    pick: int = 0


VERBS = (
    "feed", "feed", "feed_letters", "feed_again", "feed_broken", "claim", "claim",
    *(f"settle_{ending}" for ending in Ending), "lose_worker", "cancel_job", "fold", "restart", "pause",
    "send_back", "drop", "hold",
)  # fmt: skip
STEPS = st.builds(Step, st.sampled_from(VERBS), st.integers(1, 3), st.integers(0, 30))


@dataclass(slots=True)
class Story:
    """A replay, and where each of its messages must be."""

    replays: ReplayWorld
    lease: Lease
    places: dict[JobId, str] = field(default_factory=dict)
    held: dict[JobId, ClaimedJob] = field(default_factory=dict)
    duplicates: int = 0
    names: int = 0

    async def tell(self, step: Step) -> None:
        verb, _, rest = step.name.partition("_")
        if verb == "settle":
            await self.settle(Ending(rest), step)
        else:
            await getattr(self, step.name)(step)
        await self.check()

    async def check(self) -> None:
        counts = await self.replays.counts(self.lease)
        expected = Counter(self.places.values())
        if self.duplicates:
            expected["duplicate"] = self.duplicates
        assert where(counts) == dict(expected)
        assert counts.taken == len(self.places) + self.duplicates
        assert list(await self.replays.queue.operator.audit()) == []

    # -- feeding ---------------------------------------------------------------------------------------

    async def feed(self, step: Step) -> None:
        messages = [staged(self._name()) for _ in range(step.count)]
        fates = await self.replays.fates(self.lease, *messages)
        assert fates == [Fate.STAGED] * step.count
        self.places.update((message.job, WAITING) for message in messages)

    async def feed_letters(self, step: Step) -> None:
        ids = await self.replays.queue.submit(*batch(step.count))
        held = {job.id: job for job in await self.replays.claim()}
        await self.replays.settle([held[id_] for id_ in ids], Ending.DEAD)
        await self.replays.settle([job for id_, job in held.items() if id_ not in ids], Ending.RELEASED)
        fates = await self.replays.fates(self.lease, *(letter(id_) for id_ in ids))
        assert fates == [Fate.STAGED] * step.count
        self.places.update((id_, WAITING) for id_ in ids)

    async def feed_again(self, step: Step) -> None:
        """What the source gives once more; and what another replay has."""
        if self.names:
            again = staged(f"{self.lease.replay} {step.pick % self.names}")
            assert await self.replays.fates(self.lease, again) == [Fate.AGAIN]
        other = await self.replays.running()
        theirs = staged(f"{other.replay} 0")
        await self.replays.offer(other, theirs)
        assert await self.replays.fates(self.lease, theirs) == [Fate.DUPLICATE]
        self.duplicates += 1
        await self.replays.desk.cancel(ACME, other.replay)
        while await self.replays.store.return_waiting(other, limit=5):
            pass
        assert await self.replays.move(other, ReplayState.CANCELLED)

    async def feed_broken(self, step: Step) -> None:
        message = staged(self._name(), broken="bad")
        assert await self.replays.fates(self.lease, message) == [Fate.PARKED]
        self.places[message.job] = PARKED

    # -- the queue -------------------------------------------------------------------------------------

    async def claim(self, step: Step) -> None:
        for job in await self.replays.claim(step.count):
            assert self.places[job.id] == WAITING
            self.places[job.id], self.held[job.id] = IN_FLIGHT, job

    async def settle(self, ending: Ending, step: Step) -> None:
        if not self.held:
            return
        id_ = list(self.held)[step.pick % len(self.held)]
        await self.replays.settle([self.held.pop(id_)], ending)
        self.places[id_] = _AFTER[ending]

    async def lose_worker(self, step: Step) -> None:
        await self.replays.lose_worker()
        for id_ in self.held:
            self.places[id_] = WAITING
        self.held.clear()
        await self._take_over()

    async def cancel_job(self, step: Step) -> None:
        """A person cancels one job: it is put aside for good."""
        for id_ in self._at(WAITING)[: step.count]:
            assert await self.replays.queue.intake.cancel(ACME, id_) is JobState.CANCELLED
            self.places[id_] = PARKED

    # -- the coordinator and people --------------------------------------------------------------------

    async def fold(self, step: Step) -> None:
        await self.replays.fold(self.lease)

    async def restart(self, step: Step) -> None:
        """The coordinator is gone; another goes on. What the first still says changes nothing."""
        old = self.lease
        await self.replays.queue.pass_time(LEASE_FOR)
        await self.lose_worker(step)
        assert old != self.lease
        assert await self.replays.store.fold(old) is None

    async def pause(self, step: Step) -> None:
        assert await self.replays.desk.pause(ACME, self.lease.replay) is not None
        assert await self.replays.claim() == []
        assert await self.replays.desk.resume(ACME, self.lease.replay) is not None

    async def send_back(self, step: Step) -> None:
        for aside in (await self._aside())[: step.count]:
            assert await self.replays.desk.send_back(ACME, aside, AS_IT_IS)
            self.places[aside] = WAITING

    async def drop(self, step: Step) -> None:
        for aside in (await self._aside())[: step.count]:
            assert await self.replays.desk.drop(ACME, aside)

    async def hold(self, step: Step) -> None:
        view = await self.replays.move(self.lease, ReplayState.RUNNING)
        assert view is not None
        assert view.counts == await self.replays.counts(self.lease)

    async def cancel(self) -> None:
        """However the story went, the replay can be cancelled, and everything is somewhere."""
        await self.replays.desk.cancel(ACME, self.lease.replay)
        while await self.replays.store.return_waiting(self.lease, limit=3):
            pass
        self.places.update(dict.fromkeys(self._at(WAITING), "returned"))
        await self.check()
        for id_ in list(self.held):
            await self.replays.settle([self.held.pop(id_)], Ending.DELIVERED)
            self.places[id_] = "delivered"
        ended = await self.replays.move(self.lease, ReplayState.CANCELLED)
        assert ended is not None
        await self.check()

    # --------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        await self.replays.store.release("one", {self.lease.replay: self.lease.token})
        self.lease = await self.replays.leased(await self.replays.view(self.lease))

    async def _aside(self) -> list[JobId]:
        parked = await self.replays.desk.parked(ACME, self.lease.replay, limit=100)
        assert {each.job for each in parked} <= set(self._at(PARKED))
        return [each.job for each in parked]

    def _at(self, place: str) -> list[JobId]:
        return [id_ for id_, where_ in self.places.items() if where_ == place]

    def _name(self) -> str:
        self.names += 1
        return f"{self.lease.replay} {self.names - 1}"


_AFTER = {
    Ending.DELIVERED: "delivered",
    Ending.RETRY: WAITING,
    Ending.DEAD: "dead",
    Ending.RELEASED: WAITING,
    Ending.PARKED: PARKED,
}


class ReplayMachineConformance:
    """Whatever happens, in whatever order."""

    @pytest.fixture
    async def stage(self, open_replays: Callable[[], Awaitable[ReplayWorld]]) -> "Stage":
        return Stage(open_replays)

    @given(steps=st.lists(STEPS, max_size=20))
    @settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
    async def test_every_message_is_where_the_story_put_it_and_the_counts_say_so(
        self, stage: "Stage", steps: list[Step]
    ) -> None:
        async with stage.story() as story:
            for step in steps:
                await story.tell(step)
            await story.cancel()

    async def test_a_message_is_counted_once_in_every_way_it_can_go(self, replays: ReplayWorld) -> None:
        """One fixed story with all that can happen to a message before it ends."""
        story = await begin(replays)
        for verb in dict.fromkeys(VERBS):
            for name in ("feed", "claim", verb, "fold"):
                await story.tell(Step(name, 2))
        await story.cancel()


@dataclass(slots=True)
class Stage:
    """Many stories in one world, one after the other. A story that failed may have left anything, so the next
    one gets a new world."""

    open_replays: Callable[[], Awaitable[ReplayWorld]]
    world: ReplayWorld | None = None

    @asynccontextmanager
    async def story(self) -> AsyncIterator[Story]:
        world, self.world = self.world or await self.open_replays(), None
        yield await begin(world)
        self.world = world


async def begin(world: ReplayWorld) -> Story:
    """A replay that runs."""
    return Story(world, await world.running())
