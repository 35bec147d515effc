"""The loop that decides every start. At most one planner of a database holds the place; the others stand by.

A round is one statement: it writes the claims that the last plan decided and brings what has changed. Any
error ends the term: memory is discarded and, once the place is held again, rebuilt.
"""

import asyncio
import traceback
from dataclasses import dataclass

from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import DependencyError
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Instant, Seconds
from tenantry.queue.booking import NOTHING
from tenantry.queue.events import (
    BacklogMeasured,
    PlannerElected,
    PlannerLeft,
    PlannerLost,
    PlannerRebuilt,
    RoundPlanned,
    StoreFailed,
)
from tenantry.queue.plan import PlannerMemory
from tenantry.queue.ports import PlannerStore


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """All in seconds. ``place_for``: the lease of the place; a planner that was killed or cut off is replaced
    within ``place_for + stand_by_for``. ``round_for``: the longest pause between rounds (law F3).
    ``nodes_every``: how often heartbeats are read. ``measure_every``: how often the backlog is measured."""

    place_for: Seconds = 6.0
    stand_by_for: Seconds = 0.5
    round_for: Seconds = 0.05
    nodes_every: Seconds = 1.0
    measure_every: Seconds = 5.0


DEFAULTS = PlannerSettings()


class Planner:
    """Runs until cancelled. ``holder`` names this process in the place's row. One task."""

    def __init__(
        self,
        store: PlannerStore,
        directory: TenantDirectory,
        *,
        holder: str,
        clock: Clock,
        events: EventSink,
        settings: PlannerSettings = DEFAULTS,
    ) -> None:
        self._store, self._directory, self._clock = store, directory, clock
        self._holder, self._events, self._settings = holder, events, settings
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
        self._store, self._directory = planner._store, planner._directory
        self._clock, self._events, self._settings = planner._clock, planner._events, planner._settings
        self._term = term
        self._directory_version = self._directory.version
        self._kept_at = self._nodes_at = self._measured_at = self._clock.monotonic()

    async def serve(self) -> None:
        memory = await self._rebuilt()
        planned = NOTHING
        while True:
            began = self._clock.monotonic()
            answer = await self._store.round(self._term, planned.claims, planned.heads)
            nodes_changed = memory.apply(answer.changes, answer.now)
            await self._keep(began)
            await self._look_at_nodes(memory, began, at_once=nodes_changed)
            if self._directory.version != self._directory_version:
                memory = await self._follow_directory(memory)
            planned = memory.plan(answer.now)
            if planned.jobs or answer.changes:
                took = self._clock.monotonic() - began
                self._events(RoundPlanned(planned.jobs, len(answer.changes), memory.free(), took))
            if began - self._measured_at >= self._settings.measure_every:
                self._measured_at = began
                self._events(BacklogMeasured(memory.backlogs(answer.now), memory.pools()))
            if not planned.jobs:
                await self._store.wait(self._pause(memory, answer.now))

    def _pause(self, memory: PlannerMemory, now: float) -> Seconds:
        due = memory.next_due()
        return (
            self._settings.round_for if due is None else min(self._settings.round_for, max(0.001, due - now))
        )

    async def _rebuilt(self) -> PlannerMemory:
        began = self._clock.monotonic()
        standing = await self._store.rebuild(self._term)
        memory = PlannerMemory(standing, self._directory)
        took = self._clock.monotonic() - began
        self._events(PlannerRebuilt(self._term, took, memory.flows(), len(standing.held)))
        return memory

    async def _keep(self, now: Instant) -> None:
        if now - self._kept_at >= self._settings.place_for / 3:
            self._kept_at = now
            await self._store.keep_place(self._term, self._settings.place_for)

    async def _look_at_nodes(self, memory: PlannerMemory, now: Instant, *, at_once: bool) -> None:
        if at_once or now - self._nodes_at >= self._settings.nodes_every:
            self._nodes_at = now
            memory.set_nodes(await self._store.nodes(self._term))

    async def _follow_directory(self, memory: PlannerMemory) -> PlannerMemory:
        """Weights, caps and limits act on the backlog at once; a tenant that moves to another pool needs the
        picture drawn anew."""
        self._directory_version = self._directory.version
        return memory if memory.refresh_tiers() else await self._rebuilt()
