"""The worker's loops over a store that answers, hangs or forgets on cue."""

import asyncio
import threading
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from tenantry.config.model import TargetSettings
from tenantry.config.registry import Registry
from tenantry.delivery.handlers import Handlers
from tenantry.delivery.router import Router
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import StoreUnavailable, UsageError
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.randomness import SeededRandomness
from tenantry.lanes.model import HTTP, Kind
from tenantry.lanes.outcome import Outcome
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.attempts import Executor
from tenantry.queue.events import (
    JobDied,
    JobsClaimed,
    JobsDied,
    LeasesLost,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    NodeNameHeld,
)
from tenantry.queue.model import (
    Burial,
    ClaimedJob,
    ClaimId,
    Ending,
    NameHeld,
    Node,
    NodeId,
    Presence,
    Reclaimed,
    Seq,
    Settlement,
)
from tenantry.queue.settling import spent_before
from tenantry.queue.surroundings import Surroundings
from tenantry.queue.worker import Worker, WorkerSettings
from tenantry.testing.jobs import claimed_job

JOB = claimed_job()
SHORT = WorkerSettings(lease_for=0.3, grace_for=0.0, stop_within=0.02, heartbeat_every=0.01, poll_for=0.01)
SOON: Seconds = 5.0
"""Nothing here waits so long, unless what is claimed is not so."""


@dataclass
class Store:
    """A worker's side of a store. What it says is set by the story; what it is told it keeps."""

    given: list[ClaimedJob] = field(default_factory=lambda: [JOB])
    presence: list[Presence] = field(default_factory=list)
    reclaimed: list[Reclaimed] = field(default_factory=list)
    renewing: asyncio.Event = field(default_factory=asyncio.Event)
    taking: asyncio.Event = field(default_factory=asyncio.Event)
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    renewed: asyncio.Event = field(default_factory=asyncio.Event)
    settled: list[Settlement] = field(default_factory=list)
    joined: list[NameHeld | StoreUnavailable] = field(default_factory=list)
    incarnations: int = 0
    left: bool = False

    def __post_init__(self) -> None:
        self.renewing.set()
        self.taking.set()

    async def register(self, node: NodeId, pool: str, slots: int, kinds: Collection[Kind]) -> Node | NameHeld:
        answer = self.joined.pop(0) if self.joined else None
        if isinstance(answer, StoreUnavailable):
            raise answer
        if answer is not None:
            return answer
        self.incarnations += 1
        return Node(node, self.incarnations, pool, slots, frozenset(kinds))

    async def heartbeat(self, node: Node, *, draining: bool) -> Presence:
        return self.presence.pop(0) if self.presence else Presence.PRESENT

    async def take(self, node: Node, lease_for: Seconds) -> list[ClaimedJob]:
        self.taken.set()
        given, self.given = self.given, []
        await self.taking.wait()
        return given

    async def renew(self, node: Node, claims: Collection[ClaimId], lease_for: Seconds) -> set[ClaimId]:
        await self.renewing.wait()
        self.renewed.set()
        return set(claims)

    async def settle(self, node: Node, settlements: Sequence[Settlement]) -> int:
        self.settled += settlements
        return len(settlements)

    async def reclaim(self, *, limit: int) -> Reclaimed:
        return self.reclaimed.pop(0) if self.reclaimed else Reclaimed(0)

    async def leave(self, node: Node) -> None:
        self.left = True

    async def wait(self, node: Node, at_most: Seconds) -> None:
        await asyncio.sleep(at_most)


@dataclass
class Hanging:
    """Runs each job until it is told to let go, or is stopped."""

    kinds: frozenset[Kind] = frozenset({HTTP})
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    stopped_at: float = 0.0

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped_at = asyncio.get_running_loop().time()
            self.stopped.set()
            raise
        return Outcome("ok", status=200)


class Told:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._more.set()

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, kind: type[Event]) -> Event:
        async with asyncio.timeout(SOON):
            while not self.of(kind):
                self._more.clear()
                await self._more.wait()
        return self.of(kind)[0]


@asynccontextmanager
async def running(
    store: Store, executor: Executor, settings: WorkerSettings = SHORT
) -> AsyncIterator[tuple[Worker, Told, "asyncio.Task[None]"]]:
    told = Told()
    around = Surroundings(MemoryDirectory(Registry()), SystemClock(), SeededRandomness(1), told)
    worker = Worker(store, executor, around, node=NodeId("node"), settings=settings)
    task = asyncio.create_task(worker.run())
    try:
        yield worker, told, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def soon(event: asyncio.Event) -> None:
    async with asyncio.timeout(SOON):
        await event.wait()


# -- leases ----------------------------------------------------------------------------------------------


async def test_a_job_is_stopped_before_its_lease_is_over_though_the_renewal_gets_no_answer() -> None:
    """The network is cut: nothing that waits for the store may keep the job running."""
    store, executor = Store(), Hanging()
    store.renewing.clear()
    began = asyncio.get_running_loop().time()
    async with running(store, executor) as (_, told, _task):
        await soon(executor.stopped)
        await told.until(LeasesLost)
    assert executor.stopped_at - began < SHORT.lease_for


async def test_a_renewal_that_got_no_answer_is_tried_again_in_time() -> None:
    """A single lost packet is no reason to give work up."""
    store, executor = Store(), Hanging()
    store.renewing.clear()
    async with running(store, executor, replace(SHORT, lease_for=1.2)) as (_, told, _task):
        await soon(executor.begun)
        asyncio.get_running_loop().call_later(0.85, store.renewing.set)  # after the first has been given up
        await soon(store.renewed)
        executor.go.set()
        await told.until(JobsClaimed)
    assert told.of(LeasesLost) == []


async def test_a_store_that_repeats_a_job_after_an_answer_was_lost_does_not_start_it_twice() -> None:
    store, executor = Store(), Hanging()
    async with running(store, executor) as (worker, told, _task):
        await soon(executor.begun)
        store.given = [JOB, replace(JOB, seq=Seq(2))]
        while len(told.of(JobsClaimed)) < 2:  # noqa: ASYNC110 - the test's timeout is its end
            await asyncio.sleep(0)
        assert worker.running == 2


# -- presence --------------------------------------------------------------------------------------------


async def test_a_node_that_the_store_has_forgotten_drops_what_it_holds_and_joins_again() -> None:
    store, executor = Store(), Hanging()
    async with running(store, executor) as (_, told, _task):
        await soon(executor.begun)
        store.presence = [Presence.FORGOTTEN]
        await soon(executor.stopped)
        await told.until(LeasesLost)
        executor.go.set()
        store.given = [replace(JOB, claim=ClaimId(2))]
        while not store.settled:  # noqa: ASYNC110 - the test's timeout is its end
            await asyncio.sleep(0)
    assert store.incarnations == 2
    assert [(s.job.claim, s.ending) for s in store.settled] == [(2, Ending.DELIVERED)]


def held(beat_at: float, *, incarnation: int = 7) -> NameHeld:
    return NameHeld(NodeId("node"), incarnation, Timestamp(beat_at), 0.001, draining=False)


@pytest.mark.parametrize("second", [held(2.0), held(1.0, incarnation=8)], ids=["beats", "newer"])
async def test_a_newcomer_under_the_name_of_a_worker_that_lives_is_refused_in_one_line(
    second: NameHeld,
) -> None:
    store = Store(joined=[held(1.0), held(1.0), second])
    async with running(store, Hanging()) as (_, told, task):
        with pytest.raises(UsageError, match="'node' belongs to another worker") as refused:
            await asyncio.wait_for(task, SOON)
    said = str(refused.value)
    assert "one name is one worker" in said, "the rule"
    assert "free as soon as that worker has left, or 5 s after the last heartbeat" in said, "when"
    assert "Give this worker a name of its own" in said, "what to do"
    assert "\n" not in said
    assert (store.incarnations, len(told.of(NodeNameHeld))) == (0, 1)


async def test_a_newcomer_under_the_name_of_a_worker_that_was_killed_comes_up_once_its_heartbeat_is_old() -> (
    None
):
    store = Store(joined=[held(1.0)] * 5)
    async with running(store, Hanging()) as (_, told, _task):
        joined = await told.until(NodeJoined)
        assert isinstance(joined, NodeJoined)
        assert (joined.incarnation, len(told.of(NodeNameHeld))) == (1, 1)


async def test_a_newcomer_does_not_take_its_own_lost_registration_for_another_worker() -> None:
    """The answer was lost: what is fresh under the name may be its own doing."""
    store = Store(
        joined=[held(1.0), StoreUnavailable("cut"), held(2.0, incarnation=8), held(2.0, incarnation=8)]
    )
    hasty = replace(SHORT, retry_store_for=0.001)
    async with running(store, Hanging(), hasty) as (_, told, _task):
        await told.until(NodeJoined)
    assert store.joined == []


async def test_a_node_that_was_away_while_another_took_its_name_waits_and_lets_nothing_else_fall() -> None:
    store, executor = Store(), Hanging()
    async with running(store, executor) as (worker, told, task):
        await soon(executor.begun)
        store.joined = [held(1.0), held(2.0), held(3.0)]  # the other lives, and leaves in the end
        store.presence = [Presence.SUPERSEDED]
        await soon(executor.stopped)
        await told.until(NodeNameHeld)
        while store.incarnations < 2:  # noqa: ASYNC110 - the test's timeout is its end
            await asyncio.sleep(0)
        assert not task.done()
        worker.drain()
        await asyncio.wait_for(task, SOON)
    assert len(told.of(LeasesLost)) == 1


async def test_a_worker_that_waits_for_its_name_can_be_told_to_leave() -> None:
    store = Store(joined=[held(1.0)] * 100_000)
    async with running(store, Hanging()) as (worker, told, task):
        await told.until(NodeNameHeld)
        worker.drain()
        await asyncio.wait_for(task, SOON)
    assert (store.incarnations, store.left) == (0, False)


# -- draining --------------------------------------------------------------------------------------------


async def test_a_take_that_is_under_way_when_draining_begins_comes_to_its_end() -> None:
    """Its claims are started whatever becomes of the answer: unheard, they would stay leased and count."""
    store, executor = Store(), Hanging()
    store.taking.clear()
    async with running(store, executor) as (worker, told, task):
        await soon(store.taken)
        worker.drain()
        await told.until(NodeDraining)
        store.taking.set()
        await asyncio.wait_for(task, SOON)
    assert [(s.job, s.ending) for s in store.settled] == [(JOB, Ending.RELEASED)]
    assert store.left


async def test_a_job_in_a_thread_is_not_given_back_while_it_runs_and_is_settled_when_it_ends() -> None:
    store, handlers, begun, go = Store(), Handlers(threads=1), threading.Event(), threading.Event()
    store.given = [claimed_job("handler:work")]

    @handlers.register("work")
    def work(job: ClaimedJob) -> None:
        begun.set()
        go.wait(SOON)

    async with running(store, Router(handlers)) as (worker, told, task):
        await asyncio.to_thread(begun.wait, SOON)
        worker.drain()
        await told.until(NodeDraining)
        store.renewed.clear()
        await soon(store.renewed)
        await asyncio.wait([task], timeout=2 * SHORT.lease_for)
        assert (store.settled, store.left, task.done()) == ([], False, False)
        go.set()
        await asyncio.wait_for(task, SOON)
        assert await told.until(NodeLeft) == NodeLeft(NodeId("node"), 0)
    assert [s.ending for s in store.settled] == [Ending.DELIVERED]
    handlers.close()


async def test_what_can_be_stopped_is_given_back_at_once_beside_a_thread_that_cannot() -> None:
    store, handlers, begun, go = Store(), Handlers(threads=1), threading.Event(), threading.Event()
    thread, coroutine = claimed_job("handler:thread"), claimed_job("handler:coroutine", claim=ClaimId(2))
    store.given = [thread, coroutine]

    @handlers.register("thread")
    def plain(job: ClaimedJob) -> None:
        begun.set()
        go.wait(SOON)

    @handlers.register("coroutine")
    async def forever(job: ClaimedJob) -> None:
        await asyncio.Event().wait()

    async with running(store, Router(handlers)) as (worker, _told, task):
        await asyncio.to_thread(begun.wait, SOON)
        worker.drain()
        while not store.settled:  # noqa: ASYNC110 - the test's timeout is its end
            await asyncio.sleep(0)
        assert [(s.job, s.ending) for s in store.settled] == [(coroutine, Ending.RELEASED)]
        go.set()
        await asyncio.wait_for(task, SOON)
    assert [(s.job, s.ending) for s in store.settled[1:]] == [(thread, Ending.DELIVERED)]
    handlers.close()


# -- what is told ----------------------------------------------------------------------------------------


async def test_the_wait_that_is_told_is_the_stores_whatever_this_nodes_clock_says() -> None:
    store, executor = Store(given=[replace(JOB, waited_for=2.5)]), Hanging()
    async with running(store, executor) as (_, told, _task):
        claimed = await told.until(JobsClaimed)
    assert isinstance(claimed, JobsClaimed)
    assert [start.waited_for for start in claimed.starts] == [2.5]


async def test_dead_letters_of_a_reclaim_are_told() -> None:
    store = Store(reclaimed=[Reclaimed(1, (Burial(JOB.id, JOB.tenant, "worker_lost after 100 attempts"),))])
    async with running(store, Hanging(), replace(SHORT, reclaim_every=0.01)) as (_, told, _task):
        died = await told.until(JobsDied)
    assert died == JobsDied(NodeId("node"), (JobDied(JOB.id, JOB.tenant, "worker_lost after 100 attempts"),))


async def test_a_job_whose_attempts_lost_workers_used_up_dies_without_one_more_being_counted() -> None:
    store, executor = Store(), Hanging()
    store.given = [replace(JOB, attempt=TargetSettings().max_attempts + 1)]
    async with running(store, executor) as (_, told, _task):
        await told.until(JobsDied)
    (settled,) = store.settled
    assert (settled.ending, settled.failure, executor.begun.is_set()) == (Ending.DEAD, None, False)
    assert settled.reason.startswith(f"worker_lost after {TargetSettings().max_attempts} attempts")


def test_a_job_with_an_attempt_left_is_not_lost() -> None:
    assert spent_before(replace(JOB, attempt=3), TargetSettings(max_attempts=3)) is None


async def test_a_store_that_is_away_at_first_is_asked_again() -> None:
    class Late(Store):
        async def take(self, node: Node, lease_for: Seconds) -> list[ClaimedJob]:
            if not self.taken.is_set():
                self.taken.set()
                raise StoreUnavailable("away")
            return await super().take(node, lease_for)

    executor = Hanging()
    async with running(Late(), executor, replace(SHORT, retry_store_for=0.01)):
        await soon(executor.begun)
