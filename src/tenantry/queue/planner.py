"""The loop that decides every start. At most one planner of a database holds the place; the others stand by.

A round is one statement: it writes the claims that the last plan decided and brings what has changed. Any
error ends the term: memory is discarded and, once the place is held again, rebuilt.
"""

import asyncio
import traceback
from dataclasses import dataclass

from tenantry.algorithms.shedding import DEFAULTS as SHEDDING
from tenantry.algorithms.shedding import SheddingSettings
from tenantry.kernel.errors import DependencyError, InvariantBroken
from tenantry.kernel.instant import Instant, Seconds, Timestamp
from tenantry.queue.booking import NOTHING
from tenantry.queue.events import (
    BacklogMeasured,
    BreakerMoved,
    LevelChanged,
    LevelsMeasured,
    PlannerElected,
    PlannerLeft,
    PlannerLost,
    PlannerRebuilt,
    RoundPlanned,
    StoreFailed,
)
from tenantry.queue.model import FlowId, Seq
from tenantry.queue.overload import LEVEL_FRESH_FOR, Levels
from tenantry.queue.plan import PlannerMemory
from tenantry.queue.ports import PlannerStore
from tenantry.queue.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """All in seconds. ``place_for``: the lease of the place; a planner that was killed or cut off is replaced
    within ``place_for + stand_by_for``. ``round_for``: the longest pause between rounds (law F3).
    ``nodes_every``: how often heartbeats are read. ``measure_every``: how often the backlog is measured.
    ``shed_every``: how often the level of each pool is stepped, by the thresholds of ``shedding``."""

    place_for: Seconds = 6.0
    stand_by_for: Seconds = 0.5
    round_for: Seconds = 0.05
    nodes_every: Seconds = 1.0
    measure_every: Seconds = 5.0
    shed_every: Seconds = 1.0
    shedding: SheddingSettings = SHEDDING


DEFAULTS = PlannerSettings()


class Planner:
    """Runs until cancelled. ``holder`` names this process in the place's row. One task."""

    def __init__(
        self,
        store: PlannerStore,
        around: Surroundings,
        *,
        holder: str,
        settings: PlannerSettings = DEFAULTS,
    ) -> None:
        self._store, self._around = store, around
        self._holder, self._events, self._settings = holder, around.events, settings
        self._term: int | None = None

    @property
    def term(self) -> int | None:
        """The term under which this planner holds the place, None while it stands by."""
        return self._term

    async def run(self) -> None:
        """Stand by, hold the place, and again. Ends only by cancellation, which frees the place at once."""
        while True:
            try:
                self._term = await self._store.take_place(self._holder, self._settings.place_for)
                if self._term is not None:
                    await self._hold(self._term)
            except DependencyError as error:
                self._events(StoreFailed("planner", type(error).__name__, self._settings.stand_by_for))
            await asyncio.sleep(self._settings.stand_by_for)

    async def _hold(self, term: int) -> None:
        """One term. Whatever ends it, a bug of ours too, discards the memory; the next term rebuilds it."""
        self._events(PlannerElected(self._holder, term))
        reason = ""
        try:
            await _Term(self, term).serve()
        except DependencyError as error:
            reason = type(error).__name__
        except Exception as error:  # noqa: BLE001 - told with its place; work goes on from the books
            reason = _told(error)
        finally:
            self._term = None
            self._events(
                PlannerLost(self._holder, term, reason) if reason else PlannerLeft(self._holder, term)
            )
            await self._leave(term)

    async def _leave(self, term: int) -> None:
        try:
            await self._store.leave_place(term)
        except DependencyError as error:  # lost already, or out of reach: then the place runs out
            self._events(StoreFailed("planner", type(error).__name__, self._settings.place_for))


def _told(error: Exception) -> str:
    """A bug's message and place, for whoever has to find it."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})"


class _Term:
    """One term: a memory, and what is due when."""

    def __init__(self, planner: Planner, term: int) -> None:
        around = planner._around
        self._store, self._directory, self._randomness = planner._store, around.directory, around.randomness
        self._clock, self._events, self._settings = around.clock, around.events, planner._settings
        self._term = term
        self._directory_version = self._directory.version
        self._kept_at = self._nodes_at = self._measured_at = self._shed_at = self._clock.monotonic()
        self._levels = Levels(self._settings.shedding)
        self._doubts: frozenset[tuple[FlowId, Seq]] = frozenset()

    async def serve(self) -> None:
        memory = await self._rebuilt()
        planned = NOTHING
        while True:
            began = self._clock.monotonic()
            answer = await self._store.round(self._term, planned.claims, planned.heads)
            nodes_changed = memory.apply(answer.changes, answer.now)
            await self._keep(began)
            if not await self._follow(memory, began, nodes_changed=nodes_changed):
                memory = await self._rebuilt()
            await self._look_after(memory, began, answer.now)
            await self._shed(memory, began, answer.now)
            planned = memory.plan(answer.now)
            await self._keep_shapers(memory, answer.now)
            if planned.jobs or answer.changes:
                took = self._clock.monotonic() - began
                self._events(RoundPlanned(planned.jobs, len(answer.changes), memory.free(), took))
            if not planned.jobs:
                await self._store.wait(self._pause(memory, answer.now))

    async def _keep_shapers(self, memory: PlannerMemory, now: Timestamp) -> None:
        for move in memory.breakers_moved():
            self._events(BreakerMoved(move.lane.tenant, move.state))
        states = memory.shapers_to_keep(now)
        if states:
            await self._store.keep_shapers(self._term, states)

    async def _shed(self, memory: PlannerMemory, now: Instant, store_now: Timestamp) -> None:
        """Once a second: how much each pool sheds, for the nodes that admit and for this memory's retries."""
        if now - self._shed_at < self._settings.shed_every:
            return
        self._shed_at = now
        for level, before in self._levels.step(memory.pressures(store_now), now=store_now):
            self._events(LevelChanged(level, before))
        memory.shed(self._levels.current())
        self._events(LevelsMeasured(self._levels.current()))
        due = self._levels.to_keep(store_now)
        if due:
            await self._store.keep_levels(self._term, due, LEVEL_FRESH_FOR)

    def _draw(self) -> float:
        return self._randomness.uniform(0.0, 1.0)

    def _pause(self, memory: PlannerMemory, now: float) -> Seconds:
        due = memory.next_due()
        return (
            self._settings.round_for if due is None else min(self._settings.round_for, max(0.001, due - now))
        )

    async def _rebuilt(self) -> PlannerMemory:
        """However long it takes, the place is kept meanwhile; the building is done beside the loop."""
        began = self._clock.monotonic()
        keeping = asyncio.create_task(self._keep_on())
        try:
            self._directory_version = self._directory.version
            standing = await self._store.rebuild(self._term)
            memory = await asyncio.to_thread(PlannerMemory, standing, self._directory, draw=self._draw)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        self._doubts = frozenset()
        self._levels.adopt(standing.levels)
        memory.shed(self._levels.current())
        took = self._clock.monotonic() - began
        self._events(PlannerRebuilt(self._term, took, memory.flows(), len(standing.held)))
        return memory

    async def _keep_on(self) -> None:
        while True:
            await self._store.keep_place(self._term, self._settings.place_for)
            await asyncio.sleep(self._settings.place_for / 3)

    async def _keep(self, now: Instant) -> None:
        if now - self._kept_at >= self._settings.place_for / 3:
            self._kept_at = now
            await self._store.keep_place(self._term, self._settings.place_for)

    async def _follow(self, memory: PlannerMemory, now: Instant, *, nodes_changed: bool) -> bool:
        """Take up what changed among nodes and tenants: weights, caps and limits act on the backlog at once.
        False when the picture must be drawn anew."""
        fits = True
        if nodes_changed or now - self._nodes_at >= self._settings.nodes_every:
            self._nodes_at = now
            fits = memory.set_nodes(await self._store.nodes(self._term))
        if self._directory.version != self._directory_version:
            self._directory_version = self._directory.version
            fits = memory.refresh_tiers() and fits
        return fits

    async def _look_after(self, memory: PlannerMemory, now: Instant, store_now: Timestamp) -> None:
        """Every few seconds: tell the backlog, and hold the memory against the live claims (law K3)."""
        if now - self._measured_at < self._settings.measure_every:
            return
        self._measured_at = now
        self._events(BacklogMeasured(memory.backlogs(store_now), memory.pools(), memory.held_lanes()))
        doubts = memory.in_flight() ^ await self._store.held(self._term)
        # A difference seen once may be a change that is on its way; the same one seen twice is not.
        if doubts & self._doubts:
            raise InvariantBroken(f"{len(doubts & self._doubts)} jobs are in flight here or there, not both")
        self._doubts = doubts
