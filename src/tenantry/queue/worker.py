"""The loop that runs what was claimed for this node: take, execute, settle; beside it renew and reclaim."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tenantry.config.model import TargetSettings
from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Kind
from tenantry.lanes.outcome import Outcome
from tenantry.queue.events import (
    JobDied,
    JobEnd,
    JobsClaimed,
    JobsDied,
    JobsReclaimed,
    JobsSettled,
    LeasesLost,
    NodeDraining,
    NodeJoined,
    NodeLeft,
    Start,
    StoreFailed,
)
from tenantry.queue.leases import JobKey, Leases, key_of
from tenantry.queue.model import ClaimedJob, ClaimId, Ending, Node, NodeId, Settlement
from tenantry.queue.ports import WorkerStore
from tenantry.queue.settling import lost_before, release, settlement_of

_T = TypeVar("_T")

NO_TIER = TierName("removed")
NO_SETTINGS = TargetSettings()


class Executor(Protocol):
    """What runs a job: deliveries and handlers. Never raises for a fault of a target or a message."""

    @property
    def kinds(self) -> frozenset[Kind]: ...

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """``slots``: jobs at once, >= 1. ``lease_for``: seconds, renewed every third of it. ``grace_for``: how
    long running jobs may go on after :meth:`Worker.drain`; then they are released, the attempt not counted.
    ``settle_every``: the longest an end waits for company before it is recorded. All times in seconds."""

    slots: int = 20
    pool: str = "shared"
    lease_for: Seconds = 15.0
    grace_for: Seconds = 20.0
    poll_for: Seconds = 0.1
    settle_every: Seconds = 0.005
    settle_batch: int = 500
    heartbeat_every: Seconds = 1.0
    reclaim_every: Seconds = 1.0
    retry_store_for: Seconds = 0.5


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a worker reads and tells: time, chance, tenants, and where its events go."""

    directory: TenantDirectory
    clock: Clock
    randomness: Randomness
    events: EventSink


class Worker:
    """One node. :meth:`run` serves until :meth:`drain` has been carried out. Belongs to one event loop."""

    def __init__(
        self,
        store: WorkerStore,
        executor: Executor,
        around: Surroundings,
        *,
        node: NodeId,
        settings: WorkerSettings = WorkerSettings(),
    ) -> None:
        self._store, self._executor, self._around = store, executor, around
        self._name, self._settings = node, settings
        self._clock, self._events = around.clock, around.events
        self._leases = Leases()
        self._tasks: dict[JobKey, asyncio.Task[None]] = {}
        self._began: dict[JobKey, Instant] = {}
        self._ended: list[Settlement] = []
        self._some_ended, self._draining, self._quiet = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._quiet.set()

    @property
    def running(self) -> int:
        """Jobs that are being executed now."""
        return len(self._tasks)

    def drain(self) -> None:
        """Take nothing more, let running jobs end within the grace, release the rest, leave. Idempotent."""
        self._draining.set()

    async def run(self) -> None:
        """Join, serve, drain, leave. Cancelling it leaves the leases to run out, as a crash would."""
        node = await self._joined()
        if node is None:
            return
        loops = (self._taking, self._settling, self._renewing, self._beating, self._reclaiming)
        tasks = [asyncio.create_task(loop(node), name=loop.__name__) for loop in loops]
        draining = asyncio.create_task(self._draining.wait())
        try:
            done, _ = await asyncio.wait([*tasks, draining], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a loop ends only by a bug of ours: show it
            await self._drain(node, taking=tasks[0])
        finally:
            await _cancelled([*tasks, draining, *self._tasks.values()])

    async def _joined(self) -> Node | None:
        """The node under its new incarnation; None when it was told to leave before the store answered."""
        joining = asyncio.create_task(self._until_done("worker", self._join))
        draining = asyncio.create_task(self._draining.wait())
        try:
            await asyncio.wait([joining, draining], return_when=asyncio.FIRST_COMPLETED)
            return joining.result() if joining.done() else None
        finally:
            await _cancelled([joining, draining])

    async def _join(self) -> Node:
        settings = self._settings
        node = await self._store.register(self._name, settings.pool, settings.slots, self._executor.kinds)
        self._events(NodeJoined(node.id, node.incarnation, node.pool, node.slots))
        return node

    # -- taking and executing --------------------------------------------------------------------------

    async def _taking(self, node: Node) -> None:
        while True:
            began = self._clock.monotonic()
            jobs = await self._until_done("worker", lambda: self._store.take(node, self._settings.lease_for))
            if jobs:
                self._start(node, jobs, Instant(began + self._settings.lease_for))
            await self._store.wait(node, self._settings.poll_for)

    def _start(self, node: Node, jobs: list[ClaimedJob], trusted_until: Instant) -> None:
        self._leases.take(jobs, trusted_until)
        self._quiet.clear()
        wall, now = self._clock.now(), self._clock.monotonic()
        for job in jobs:
            key = key_of(job)
            self._began[key] = now
            self._tasks[key] = asyncio.create_task(self._execute(job, key))
        starts = (
            Start(job.tenant, self._tier(job.tenant), job.job_class, max(0.0, wall - job.submitted_at))
            for job in jobs
        )
        self._events(JobsClaimed(node.id, tuple(starts)))

    async def _execute(self, job: ClaimedJob, key: JobKey) -> None:
        """Ends in a settlement, unless it is cancelled: then the lease is lost, or the job is released."""
        settings = self._settings_for(job)
        try:
            outcome = lost_before(job, settings) or await self._attempt(job, settings)
            draw = self._around.randomness.uniform(0.0, 1.0)
            self._ended.append(settlement_of(job, settings, outcome, ended_at=self._clock.now(), draw=draw))
            self._some_ended.set()
        finally:
            self._tasks.pop(key, None)
            self._began.pop(key, None)

    async def _attempt(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        """An executor that raises would leave its job leased for ever: its fault becomes an outcome."""
        try:
            return await self._executor.execute(job, settings)
        except Exception as error:  # noqa: BLE001 - reported as the attempt's outcome
            return Outcome("internal", excerpt=type(error).__name__)

    def _settings_for(self, job: ClaimedJob) -> TargetSettings:
        document = self._around.directory.tenant(job.tenant)
        return document.settings_for(job.target) if document else NO_SETTINGS

    def _tier(self, tenant: TenantId) -> TierName:
        tier = self._around.directory.tier_of(tenant)
        return tier.name if tier else NO_TIER

    # -- settling --------------------------------------------------------------------------------------

    async def _settling(self, node: Node) -> None:
        """Ends are recorded together: what comes within a few milliseconds shares a statement."""
        while True:
            await self._some_ended.wait()
            if self._tasks:
                await asyncio.sleep(self._settings.settle_every)
            self._some_ended.clear()
            while self._ended:
                await self._until_done("worker", lambda: self._settle(node))

    async def _settle(self, node: Node) -> None:
        batch = self._ended[: self._settings.settle_batch]
        began = self._clock.monotonic()
        settled = await self._store.settle(node, batch)
        del self._ended[: len(batch)]
        self._leases.settled(settlement.job for settlement in batch)
        if not self._leases:
            self._quiet.set()
        took = self._clock.monotonic() - began
        self._events(JobsSettled(node.id, tuple(map(self._end, batch)), took, len(batch) - settled))
        died = tuple(JobDied(s.job.id, s.job.tenant, s.reason) for s in batch if s.ending is Ending.DEAD)
        if died:
            self._events(JobsDied(node.id, died))

    def _end(self, settlement: Settlement) -> JobEnd:
        job, failure = settlement.job, settlement.failure
        error_class = failure.error_class if failure else ""
        tier = self._tier(job.tenant)
        return JobEnd(job.tenant, tier, job.job_class, settlement.ending, settlement.busy_for, error_class)

    # -- keeping ---------------------------------------------------------------------------------------

    async def _renewing(self, node: Node) -> None:
        lease_for = self._settings.lease_for
        while True:
            await asyncio.sleep(lease_for / 3)
            began, claims = self._clock.monotonic(), self._leases.claims()
            try:
                kept = await self._store.renew(node, claims, lease_for) if claims else set[ClaimId]()
            except StoreUnavailable as error:
                self._failed("renewal", error, lease_for / 3)
            else:
                self._leases.renewed(kept, Instant(began + lease_for))
                self._drop(node, set(claims) - kept)
            # What could run out before the next renewal is answered is given up now.
            self._drop(node, self._leases.untrusted(Instant(self._clock.monotonic() + lease_for / 3)))

    def _drop(self, node: Node, claims: set[ClaimId]) -> None:
        """The jobs of lost claims are stopped here: someone else will run them, or does already."""
        jobs = self._leases.drop(claims)
        for job in jobs:
            task = self._tasks.get(key_of(job))
            if task is not None:
                task.cancel()
        if jobs:
            self._events(LeasesLost(node.id, len({job.claim for job in jobs}), len(jobs)))
        if not self._leases:
            self._quiet.set()

    async def _beating(self, node: Node) -> None:
        every = self._settings.heartbeat_every
        while True:
            try:
                await self._store.heartbeat(node, draining=self._draining.is_set())
            except StoreUnavailable as error:
                self._failed("worker", error, every)
            await asyncio.sleep(every)

    async def _reclaiming(self, node: Node) -> None:
        while True:
            wait = self._settings.reclaim_every * self._around.randomness.uniform(0.5, 1.5)
            await asyncio.sleep(wait)
            try:
                count = await self._store.reclaim(limit=100)
            except StoreUnavailable as error:
                self._failed("worker", error, wait)
                continue
            if count:
                self._events(JobsReclaimed(count))

    # -- leaving ---------------------------------------------------------------------------------------

    async def _drain(self, node: Node, *, taking: "asyncio.Task[None]") -> None:
        self._events(NodeDraining(node.id, self.running, self._settings.grace_for))
        await self._try(lambda: self._store.heartbeat(node, draining=True))
        await _cancelled([taking])
        try:
            async with asyncio.timeout(self._settings.grace_for):
                await self._quiet.wait()
        except TimeoutError:
            pass  # what still runs is given back
        released = await self._release(node)
        await self._try(lambda: self._store.leave(node))
        self._events(NodeLeft(node.id, released))

    async def _release(self, node: Node) -> int:
        """Stop what still runs and give it back unharmed, with the claims that were never started."""
        now, began = self._clock.monotonic(), dict(self._began)
        await _cancelled(list(self._tasks.values()))
        ended = {key_of(s.job) for s in self._ended}
        unfinished = [job for job in self._leases.jobs() if key_of(job) not in ended]
        back = [release(job, now - began.get(key_of(job), now)) for job in unfinished]
        planned = await self._try(lambda: self._store.take(node, self._settings.lease_for))
        back += [release(job, 0.0) for job in planned or ()]
        if back or self._ended:
            await self._try(lambda: self._store.settle(node, [*self._ended, *back]))
        return len(back)

    # -- when the store fails --------------------------------------------------------------------------

    async def _until_done(self, loop: str, call: Callable[[], Awaitable[_T]]) -> _T:
        """Try again until the store answers. What is repeated is fenced by claim and token."""
        while True:
            try:
                return await call()
            except StoreUnavailable as error:
                wait = self._settings.retry_store_for * self._around.randomness.uniform(0.5, 1.0)
                self._failed(loop, error, wait)
                await asyncio.sleep(wait)

    async def _try(self, call: Callable[[], Awaitable[_T]]) -> _T | None:
        """Once: on the way out there is no second chance, and the leases run out by themselves."""
        try:
            return await call()
        except StoreUnavailable as error:
            self._failed("worker", error, 0.0)
            return None

    def _failed(self, loop: str, error: StoreUnavailable, retry_for: Seconds) -> None:
        self._events(StoreFailed(loop, type(error).__name__, retry_for))


async def _cancelled(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
