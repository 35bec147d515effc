"""The loop that runs what was claimed for this node: take, execute, settle; beside it renew and reclaim."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.queue.attempts import Attempts, Executor
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
from tenantry.queue.joining import Joining
from tenantry.queue.model import ClaimId, Ending, NameHeld, Node, NodeId, Presence, Settlement
from tenantry.queue.ports import WorkerStore
from tenantry.queue.settling import error_class_of, release
from tenantry.queue.surroundings import Surroundings

__all__ = ["Executor", "Surroundings", "Worker", "WorkerSettings"]

_T = TypeVar("_T")

NO_TIER = TierName("removed")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """``slots``: jobs at once, >= 1. ``lease_for``: seconds, renewed every third of it. ``grace_for``: how
    long running jobs may go on after :meth:`Worker.drain`; then they are stopped and released, the attempt
    not counted. ``stop_within``: how long a stopped job may take to end; one that does not, being in a
    thread, keeps its lease and is waited for. ``settle_every``: the least time from one record of ends to the
    next, for which what ends meanwhile waits. All times in seconds."""

    slots: int = 20
    pool: str = "shared"
    lease_for: Seconds = 15.0
    grace_for: Seconds = 20.0
    stop_within: Seconds = 1.0
    poll_for: Seconds = 0.1
    settle_every: Seconds = 0.005
    settle_batch: int = 500
    heartbeat_every: Seconds = 1.0
    reclaim_every: Seconds = 1.0
    retry_store_for: Seconds = 0.5


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
        self._attempts = Attempts(executor, around)
        self._draining = asyncio.Event()
        self._taking_turn = asyncio.Lock()
        self._node: Node | None = None
        self._joining = Joining(self._register, self._events, settings.heartbeat_every / 2)

    @property
    def running(self) -> int:
        """Jobs that are being executed now."""
        return len(self._attempts)

    def drain(self) -> None:
        """Take nothing more, let running jobs end within the grace, release the rest, leave. Idempotent."""
        self._draining.set()

    async def join(self) -> None:
        """Take the name. :meth:`run` does so itself; called before it, a name that cannot be had is known
        before anything is served. Waits while a worker that was killed may still be alive (5 s at most).

        Raises :class:`UsageError` when another worker lives under the name: that one is not disturbed."""
        self._node = self._node or await self._joined(self._joining.newcomer)

    async def run(self) -> None:
        """Join, serve, drain, leave. Cancelling it leaves the leases to run out, as a crash would. Raises as
        :meth:`join`, and only before it has joined: one that was away so long that its name went to another
        waits until it is free again, and holds nothing meanwhile."""
        try:
            await self.join()
            while self._node is not None and not await self._served(self._node):
                # What it held is unknown to the store, or was taken back while it was away.
                self._give_up(self._node, self._attempts.leases.claims())
                self._node = await self._joined(self._joining.returning)
        finally:
            await self._attempts.stop(within=self._settings.stop_within)

    async def _served(self, node: Node) -> bool:
        """Serve until drained. False: the store does not know this node any more."""
        loops = (self._taking, self._settling, self._renewing, self._expiring, self._reclaiming)
        tasks = [asyncio.create_task(loop(node), name=loop.__name__) for loop in loops]
        beating = asyncio.create_task(self._beating(node), name="_beating")
        draining = asyncio.create_task(self._draining.wait())
        try:
            done, _ = await asyncio.wait([*tasks, beating, draining], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a loop ends by a bug of ours: show it
            if not self._draining.is_set():
                return False
            released = await self._drain(node, taking=tasks[0])
        finally:
            await _cancelled([*tasks, beating, draining])
        await self._try(lambda: self._store.leave(node))
        self._events(NodeLeft(node.id, released))
        return True

    async def _joined(self, as_whom: Callable[[], Awaitable[Node]]) -> Node | None:
        """The node under its new incarnation; None when it was told to leave before it had joined."""
        joining = asyncio.create_task(self._until_done("worker", as_whom))
        draining = asyncio.create_task(self._draining.wait())
        try:
            await asyncio.wait([joining, draining], return_when=asyncio.FIRST_COMPLETED)
            node = joining.result() if joining.done() else None
        finally:
            await _cancelled([joining, draining])
        if node is not None:
            self._events(NodeJoined(node.id, node.incarnation, node.pool, node.slots))
        return node

    async def _register(self) -> Node | NameHeld:
        settings = self._settings
        return await self._store.register(self._name, settings.pool, settings.slots, self._executor.kinds)

    # -- taking and executing --------------------------------------------------------------------------

    async def _taking(self, node: Node) -> None:
        while True:
            await self._until_done("worker", lambda: self._take(node))
            await self._store.wait(node, self._settings.poll_for)

    async def _take(self, node: Node) -> None:
        """In one turn: what a take has started must be known here, or it stays leased and counts."""
        async with self._taking_turn:
            trusted_until = Instant(self._clock.monotonic() + self._settings.lease_for)
            jobs = await self._store.take(node, self._settings.lease_for)
            new = self._attempts.start(jobs, trusted_until) if jobs else jobs
        if new:
            starts = (Start(job.tenant, self._tier(job.tenant), job.job_class, job.waited_for) for job in new)
            self._events(JobsClaimed(node.id, tuple(starts)))

    def _tier(self, tenant: TenantId) -> TierName:
        tier = self._around.directory.tier_of(tenant)
        return tier.name if tier else NO_TIER

    # -- settling --------------------------------------------------------------------------------------

    async def _settling(self, node: Node) -> None:
        """Ends are recorded together, but one that comes alone at once: what comes within a few milliseconds
        of a record shares the next one."""
        attempts, clock = self._attempts, self._clock
        next_at = clock.monotonic()
        while True:
            await attempts.some_ended.wait()
            if attempts and (wait := next_at - clock.monotonic()) > 0.0:
                await asyncio.sleep(wait)
            attempts.some_ended.clear()
            if attempts.ended:
                await self._until_done("worker", lambda: self._settle(node))
                next_at = Instant(clock.monotonic() + self._settings.settle_every)
            if attempts.ended:  # more than a batch
                attempts.some_ended.set()

    async def _settle(self, node: Node) -> None:
        batch = self._attempts.ended[: self._settings.settle_batch]
        began = self._clock.monotonic()
        settled = await self._store.settle(node, batch)
        del self._attempts.ended[: len(batch)]
        self._attempts.settled(settlement.job for settlement in batch)
        took = self._clock.monotonic() - began
        self._events(JobsSettled(node.id, tuple(map(self._end, batch)), took, len(batch) - settled))
        died = tuple(JobDied(s.job.id, s.job.tenant, s.reason) for s in batch if s.ending is Ending.DEAD)
        if died:
            self._events(JobsDied(node.id, died))

    def _end(self, settlement: Settlement) -> JobEnd:
        job, tier = settlement.job, self._tier(settlement.job.tenant)
        error_class = error_class_of(settlement)
        return JobEnd(job.tenant, tier, job.job_class, settlement.ending, settlement.busy_for, error_class)

    # -- keeping ---------------------------------------------------------------------------------------

    async def _renewing(self, node: Node) -> None:
        """A renewal that gets no answer is tried again soon, since the next regular one may be too late."""
        wait = every = self._settings.lease_for / 3
        while True:
            await asyncio.sleep(wait)
            wait = every if await self._renewed(node, within=every) else every / 5

    async def _renewed(self, node: Node, *, within: Seconds) -> bool:
        lease_for, leases = self._settings.lease_for, self._attempts.leases
        began, claims = self._clock.monotonic(), leases.claims()
        if not claims:
            return True
        try:
            kept = await _answered(self._store.renew(node, claims, lease_for), within, "renewing leases")
        except StoreUnavailable as error:
            self._failed("renewal", error, within / 5)
            return False
        leases.renewed(kept, Instant(began + lease_for))
        self._give_up(node, set(claims) - kept)
        return True

    async def _expiring(self, node: Node) -> None:
        """Waits for nobody: what cannot be trusted at the next look is given up, while it is held still."""
        tick = self._settings.lease_for / 20
        while True:
            await asyncio.sleep(tick)
            until = Instant(self._clock.monotonic() + 2 * tick)
            self._give_up(node, self._attempts.leases.untrusted(until))

    def _give_up(self, node: Node, claims: Collection[ClaimId]) -> None:
        jobs = self._attempts.drop(claims)
        if jobs:
            self._events(LeasesLost(node.id, len({job.claim for job in jobs}), len(jobs)))

    async def _beating(self, node: Node) -> None:
        """Ends when the store does not know this node: a backup was restored, or it was away so long that
        another has its name."""
        every, within = self._settings.heartbeat_every, self._settings.lease_for / 3
        while True:
            beat = self._store.heartbeat(node, draining=self._draining.is_set())
            try:
                presence = await _answered(beat, within, "sending a heartbeat")
            except StoreUnavailable as error:
                self._failed("worker", error, every)
            else:
                if presence is not Presence.PRESENT:
                    return
            await asyncio.sleep(every)

    async def _reclaiming(self, node: Node) -> None:
        while True:
            wait = self._settings.reclaim_every * self._around.randomness.uniform(0.5, 1.5)
            await asyncio.sleep(wait)
            try:
                reclaimed = await self._store.reclaim(limit=100)
            except StoreUnavailable as error:
                self._failed("worker", error, wait)
                continue
            if reclaimed.jobs:
                self._events(JobsReclaimed(reclaimed.jobs))
            if reclaimed.dead:
                died = (JobDied(each.job, each.tenant, each.reason) for each in reclaimed.dead)
                self._events(JobsDied(node.id, tuple(died)))

    # -- leaving ---------------------------------------------------------------------------------------

    async def _drain(self, node: Node, *, taking: "asyncio.Task[None]") -> int:
        """How many jobs were given back."""
        self._events(NodeDraining(node.id, self.running, self._settings.grace_for))
        await self._try(lambda: self._store.heartbeat(node, draining=True))
        async with self._taking_turn:  # a take that is under way comes to its end
            await _cancelled([taking])
        try:
            async with asyncio.timeout(self._settings.grace_for):
                await self._attempts.quiet.wait()
        except TimeoutError:
            pass  # what still runs is given back
        released = await self._release(node)
        # What ended is being recorded, and what cannot be stopped is renewed until it ends: given back, it
        # would run twice at once. A store that does not answer ends this wait with the leases.
        await self._attempts.quiet.wait()
        return released

    async def _release(self, node: Node) -> int:
        """Stop what still runs and give it back unharmed, with the claims that were never started."""
        back = await self._attempts.stop(within=self._settings.stop_within)
        planned = await self._try(lambda: self._store.take(node, self._settings.lease_for))
        back += [release(job, 0.0) for job in planned or () if not self._attempts.leases.knows(job)]
        if back:
            await self._try(lambda: self._store.settle(node, back))
            self._attempts.settled(settlement.job for settlement in back)
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


async def _answered(call: Coroutine[Any, Any, _T], within: Seconds, doing: str) -> _T:
    """What ``call`` returns, if it does within so many seconds; else the store is unavailable."""
    try:
        async with asyncio.timeout(within):
            return await call
    except TimeoutError:
        raise StoreUnavailable(f"{doing}: the store gave no answer within {within:g} s") from None


async def _cancelled(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
