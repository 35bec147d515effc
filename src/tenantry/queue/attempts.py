"""The attempts that one node makes now: a task for each, its lease, and the ends yet to be recorded.

An attempt ends in a settlement, unless it is stopped: then its lease is lost, or its job is given back. What
cannot be stopped, a thread, goes on to its end and is settled like any other; whether that still counts is
for the store to say (law K2).
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from tenantry.config.model import NO_SETTINGS, TargetSettings
from tenantry.kernel.instant import Instant, Seconds
from tenantry.lanes.model import Kind
from tenantry.lanes.outcome import Outcome
from tenantry.queue.leases import JobKey, Leases, key_of
from tenantry.queue.model import ClaimedJob, ClaimId, Settlement
from tenantry.queue.settling import release, settlement_of, spent_before
from tenantry.queue.surroundings import Surroundings


class Executor(Protocol):
    """What runs a job: deliveries and handlers. Never raises for a fault of a target or a message."""

    @property
    def kinds(self) -> frozenset[Kind]: ...

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        """One attempt. Cancelled, it ends once nothing of the attempt goes on any more: at once, or, where it
        cannot be stopped, at its own end and with its outcome."""
        ...


class Attempts:
    """``leases``: what is held. ``ended``: ends to be recorded, in order; ``some_ended`` is set when one
    comes. ``quiet`` is set while nothing is held. One event loop."""

    def __init__(self, executor: Executor, around: Surroundings) -> None:
        self._executor, self._around, self._clock = executor, around, around.clock
        self.leases = Leases()
        self.ended: list[Settlement] = []
        self.some_ended, self.quiet = asyncio.Event(), asyncio.Event()
        self.quiet.set()
        self._tasks: dict[JobKey, asyncio.Task[None]] = {}
        self._began: dict[JobKey, Instant] = {}
        self._stopped: set[JobKey] = set()  # those that were told to stop

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, jobs: Iterable[ClaimedJob], trusted_until: Instant) -> list[ClaimedJob]:
        """Begin those of ``jobs`` that are new to this node, and return them."""
        new, now = self.leases.take(jobs, trusted_until), self._clock.monotonic()
        for job in new:
            key = key_of(job)
            self._began[key] = now
            self._tasks[key] = asyncio.create_task(self._execute(job, key))
        if new:
            self.quiet.clear()
        return new

    def settled(self, jobs: Iterable[ClaimedJob]) -> None:
        """The store has recorded their ends."""
        self.leases.settled(jobs)
        self._hush()

    def drop(self, claims: Iterable[ClaimId]) -> list[ClaimedJob]:
        """The jobs of lost claims are stopped here: someone else will run them, or does already."""
        jobs = self.leases.drop(claims)
        for job in jobs:
            self._stop(key_of(job))
        self._hush()
        return jobs

    async def stop(self, *, within: Seconds) -> list[Settlement]:
        """Stop what runs, waiting at most so long for it, and give back what was stopped.

        What ends by itself all the same is in ``ended``; what still runs then keeps its lease.
        """
        now, began = self._clock.monotonic(), dict(self._began)
        tasks = list(self._tasks.values())
        for key in list(self._tasks):
            self._stop(key)
        if tasks:
            await asyncio.wait(tasks, timeout=within)
        accounted = self._tasks.keys() | {key_of(settlement.job) for settlement in self.ended}
        stopped = [job for job in self.leases.jobs() if key_of(job) not in accounted]
        return [release(job, now - began.get(key_of(job), now)) for job in stopped]

    def _stop(self, key: JobKey) -> None:
        task = self._tasks.get(key)
        if task is not None:
            self._stopped.add(key)
            task.cancel()

    def _hush(self) -> None:
        if not self.leases:
            self.quiet.set()

    async def _execute(self, job: ClaimedJob, key: JobKey) -> None:
        settings = self._settings_for(job)
        try:
            self.ended.append(spent_before(job, settings) or await self._settlement(job, key, settings))
            self.some_ended.set()
        finally:
            self._tasks.pop(key, None)
            self._began.pop(key, None)
            self._stopped.discard(key)

    async def _settlement(self, job: ClaimedJob, key: JobKey, settings: TargetSettings) -> Settlement:
        """An executor that raises, or cancels itself, would leave its job leased for ever: its fault becomes
        an outcome. Only who was told to stop ends without one."""
        try:
            outcome = await self._executor.execute(job, settings)
        except BaseException as error:
            if key in self._stopped or not isinstance(error, (Exception, asyncio.CancelledError)):
                raise
            outcome = Outcome("internal", excerpt=type(error).__name__)
        draw = self._around.randomness.uniform(0.0, 1.0)
        return settlement_of(job, settings, outcome, ended_at=self._clock.now(), draw=draw)

    def _settings_for(self, job: ClaimedJob) -> TargetSettings:
        document = self._around.directory.tenant(job.tenant)
        return document.settings_for(job.target) if document else NO_SETTINGS
