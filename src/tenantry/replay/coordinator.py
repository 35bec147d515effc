"""The loop that leads replays: it takes their leases, keeps them, and runs each in a task of its own.

Theory
    A replay has one coordinator at a time, by a lease that the store's clock decides (law K4); several may
    run, on several nodes. A lease is trusted for as long as it was asked for, counted from when the asking
    *began*, less a margin: what cannot be trusted any more is dropped, before anybody else can have it. The
    fencing token makes a late write of a stopped process change nothing.

    Renewals come twice a second, since their answers bring people's orders; they are also when a replay that
    was lost, or has ended, is noticed.

    Each replay is a task. A source that is slow, broken or silent holds up its own replay and no other. What
    is remembered of a replay does not grow with its messages.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Final

from tenantry.kernel.errors import DependencyError, StoreUnavailable
from tenantry.kernel.instant import Instant, Seconds
from tenantry.queue.events import StoreFailed
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.events import CoordinatorFaulted, ReplayFaulted, ReplayLost, ReplaysMeasured, ReplayTaken
from tenantry.replay.feeding import cancelled
from tenantry.replay.kit import Kit, Lost, RunSettings, placed
from tenantry.replay.model import ReplayId, ReplayView
from tenantry.replay.ports import ReplayStore, Sources, Standing
from tenantry.replay.run import Run

_DEFAULT_RUN: Final = RunSettings()


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """All but ``most`` in seconds. ``lease_for``: of a replay; a coordinator that was killed is replaced
    within ``lease_for + take_every``. ``keep_every``: between renewals, and so how soon an order is seen.
    ``most``: replays of one coordinator; ``most_at_once``: taken in one go, so that several coordinators
    share."""

    lease_for: Seconds = 15.0
    keep_every: Seconds = 0.5
    take_every: Seconds = 1.0
    measure_every: Seconds = 5.0
    most: int = 500
    most_at_once: int = 50
    run: RunSettings = _DEFAULT_RUN


DEFAULTS: Final = CoordinatorSettings()


class Coordinator:
    """Runs until cancelled, which frees the leases at once. ``holder`` names this process. One task."""

    def __init__(
        self,
        store: ReplayStore,
        sources: Sources,
        standing: Standing,
        around: Surroundings,
        *,
        holder: str,
        settings: CoordinatorSettings = DEFAULTS,
    ) -> None:
        self._store, self._holder, self._settings = store, holder, settings
        self._clock, self._events = around.clock, around.events
        self._kit = Kit(store, sources, standing, around, settings.run)
        self._runs: dict[ReplayId, Run] = {}
        self._tasks: dict[ReplayId, asyncio.Task[None]] = {}
        self._taken_at: Instant | None = None
        self._measured_at: Instant | None = None

    @property
    def replays(self) -> frozenset[ReplayId]:
        """Those it leads now."""
        return frozenset(self._runs)

    async def run(self) -> None:
        """Take, keep, and again. Ends only by cancellation."""
        expiring = asyncio.create_task(self._expiring())
        try:
            while True:
                await self._round()
                await asyncio.sleep(self._settings.keep_every)
        finally:
            await cancelled([expiring])
            await self._leave()

    async def _round(self) -> None:
        try:
            await self._keep()
            await self._take()
            await self._reap()
        except DependencyError as error:
            self._events(StoreFailed("replay", type(error).__name__, self._settings.keep_every))
        except Exception as error:  # noqa: BLE001 - told with its place: one bad row must not stop all replays
            self._events(CoordinatorFaulted(self._holder, placed(error), self._settings.keep_every))
        self._measure()

    # -- leases ------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        if not self._runs:
            return
        began, settings = self._clock.monotonic(), self._settings
        leases = {replay: run.lease.token for replay, run in self._runs.items()}
        keeping = self._store.keep(self._holder, leases, settings.lease_for)
        try:
            async with asyncio.timeout(settings.lease_for / 3):
                kept = await keeping
        except TimeoutError:
            raise StoreUnavailable("the store gave no answer to a renewal in time") from None
        for replay in leases.keys() & self._runs.keys():
            if replay in kept:
                self._runs[replay].trusted_until = self._trust(began)
                self._runs[replay].see(kept[replay], began)
        await self._drop([each for each in leases if each not in kept and not self._is_ending(each)])

    def _is_ending(self, replay: ReplayId) -> bool:
        """What has ended is kept by nobody, and is not lost: its task is about to say so itself."""
        run = self._runs.get(replay)
        return run is not None and run.is_ending

    async def _take(self) -> None:
        now, settings = self._clock.monotonic(), self._settings
        room = min(settings.most - len(self._runs), settings.most_at_once)
        if room <= 0 or (self._taken_at is not None and now - self._taken_at < settings.take_every):
            return
        self._taken_at = now
        for view in await self._store.take(self._holder, settings.lease_for, limit=room):
            await self._drop([view.id])  # an old life of it here, if there is one, has lost its token
            self._start(view, self._trust(now))

    def _trust(self, began: Instant) -> Instant:
        return Instant(began + 0.9 * self._settings.lease_for)

    def _start(self, view: ReplayView, trusted_until: Instant) -> None:
        run = Run(view, self._kit, trusted_until=trusted_until)
        self._runs[view.id] = run
        self._tasks[view.id] = asyncio.create_task(run.serve(), name=f"replay {view.id}")
        self._events(ReplayTaken(view.spec.tenant, view.id, self._holder, view.token, view.state))

    async def _expiring(self) -> None:
        """Waits for no store: what cannot be trusted at the next look is dropped."""
        tick = self._settings.lease_for / 20
        while True:
            await asyncio.sleep(tick)
            until = self._clock.monotonic() + tick
            await self._drop([each for each, run in self._runs.items() if run.trusted_until < until])

    async def _drop(self, replays: list[ReplayId]) -> None:
        """These are not ours any more, or cannot be said to be: everything of them ends at once. A task that
        has ended by itself had reached its replay's end, or was told of the loss first."""
        ended = []
        for replay in replays:
            run, task = self._runs.pop(replay, None), self._tasks.pop(replay, None)
            if run is None or task is None:
                continue
            ended.append(task)
            if (not task.done() and not run.is_ending) or isinstance(_error_of(task), Lost):
                self._events(ReplayLost(run.view.spec.tenant, replay, self._holder, run.lease.token))
        await cancelled(ended)

    async def _reap(self) -> None:
        """Replays that have ended, and those whose loss was told to them first."""
        ended: dict[ReplayId, int] = {}
        for replay in [replay for replay, task in self._tasks.items() if task.done()]:
            run, task = self._runs.pop(replay), self._tasks.pop(replay)
            tenant, token, error = run.view.spec.tenant, run.lease.token, _error_of(task)
            if isinstance(error, Lost):
                self._events(ReplayLost(tenant, replay, self._holder, token))
                continue
            if error is not None:  # released, it is taken again, and goes on from what is stored
                self._events(ReplayFaulted(tenant, replay, type(error).__name__, self._settings.take_every))
            ended[replay] = token
        if ended:
            await self._store.release(self._holder, ended)

    async def _leave(self) -> None:
        leases = {replay: run.lease.token for replay, run in self._runs.items()}
        await cancelled(list(self._tasks.values()))
        self._runs.clear()
        self._tasks.clear()
        try:
            if leases:
                await self._store.release(self._holder, leases)
        except DependencyError as error:  # out of reach: then they run out
            self._events(StoreFailed("replay", type(error).__name__, self._settings.lease_for))

    def _measure(self) -> None:
        now = self._clock.monotonic()
        if self._measured_at is None or now - self._measured_at >= self._settings.measure_every:
            self._measured_at = now
            self._events(ReplaysMeasured(Counter(run.phase for run in self._runs.values())))


def _error_of(task: "asyncio.Task[None]") -> BaseException | None:
    """Why it ended, if not by itself. A cancellation that nobody here gave is an adapter's fault."""
    return asyncio.CancelledError() if task.cancelled() else task.exception()
