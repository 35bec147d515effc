"""The loop: fetch, start, steer, commit. Its decisions are the pure modules'; its client is a port."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tenantry.brokers.kafka import events
from tenantry.brokers.kafka.backlog import Backlog, Item
from tenantry.brokers.kafka.errors import HandlingFailed
from tenantry.brokers.kafka.lag import PartitionLag, lag_of
from tenantry.brokers.kafka.model import Identity, Record, Spot
from tenantry.brokers.kafka.ports import Source
from tenantry.brokers.kafka.reorder import Gate, ReorderWindow
from tenantry.brokers.kafka.runner import Outcomes, Runner
from tenantry.brokers.kafka.settings import ConsumerSettings, Handling
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed, TenantryError
from tenantry.kernel.events import EventSink, ignore
from tenantry.kernel.instant import Instant
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.queue.executor import FairExecutor

P = ParamSpec("P")
T = TypeVar("T")

_FETCH_WAIT = 0.05
"""Seconds that a fetch waits for a record: how late a resume or a commit may come."""


class FairConsumer:
    """Works a topic's partitions fairly between tenants, in order per entity, at least once.

    ``source``: one group member, such as :class:`~tenantry.brokers.kafka.confluent.ConfluentSource`.
    ``handling``: what is done with records. Run it once, with :meth:`run`; for one event loop.
    """

    def __init__(
        self,
        source: Source,
        handling: Handling,
        settings: ConsumerSettings | None = None,
        *,
        emit: EventSink = ignore,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._source, self._handling = source, handling
        self._settings = settings or ConsumerSettings()
        self._emit, self._clock = emit, clock or SystemClock()
        self._randomness = randomness or SystemRandomness()
        self._backlog = Backlog(self._settings.limits)
        self._window: ReorderWindow[Item] = ReorderWindow(self._settings.hold_for)
        self._ends: dict[Spot, int] = {}
        self._stopping = False
        self._failure: TenantryError | None = None
        self._commit_at = self._report_at = Instant(0.0)
        self._thread: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop
        self._runner: Runner

    async def run(self) -> None:
        """Work until :meth:`stop`, then finish what runs, commit, and leave the group. So too when cancelled.

        Raises :class:`HandlingFailed` for a record that nobody takes aside, :class:`BrokerFailed`,
        :class:`MissingExtra`, :class:`InvalidValue` for a setting the client refuses; :class:`Closed` when
        it was run before. Does not return while a function that was given up still runs in a thread.
        """
        if self._thread is not None:
            raise Closed("this consumer was run before; make another one")
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka")
        tiers = self._settings.unbounded_tiers()
        async with FairExecutor(self._settings.slots, tiers=tiers, clock=self._clock) as executor:
            outcomes = Outcomes(self._finished, self._stuck, self._emit)
            self._runner = Runner(
                self._handling, self._settings, executor, outcomes, randomness=self._randomness
            )
            try:
                await self._in_thread(self._source.open, self)
                while not self._stopping and self._failure is None:
                    await self._round()
            finally:
                await asyncio.shield(self._in_thread(self._source.close))
                self._thread.shutdown(wait=False)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Ask :meth:`run` to end. Safe from any thread and from signal handlers; asking twice is asking
        once."""
        self._stopping = True

    def lag(self) -> tuple[PartitionLag, ...]:
        """The lag of every owned partition, by tenant. O(held). On the loop's thread."""
        now = self._clock.now()
        return tuple(lag_of(share, self._ends.get(share.spot), now) for share in self._backlog.shares())

    # called by the source, in its thread

    def assigned(self, spots: Sequence[Spot]) -> None:
        """See :class:`~tenantry.brokers.kafka.ports.Listener`, here and below."""
        self._on_loop(self._assign(spots))

    def revoked(self, spots: Sequence[Spot]) -> Mapping[Spot, int]:
        """Waits for what runs, ``finish_within`` at most."""
        return self._on_loop(self._revoke(spots, lost=False))

    def lost(self, spots: Sequence[Spot]) -> None:
        """Waits for nothing: whatever runs is repeated elsewhere already."""
        self._on_loop(self._revoke(spots, lost=True))

    def complained(self, code: str, doing: str) -> None:
        """Told as an event."""
        self._loop.call_soon_threadsafe(self._emit, events.BrokerComplained(code, doing))

    # the loop

    async def _round(self) -> None:
        records = await self._in_thread(self._source.fetch, self._backlog.room(), _FETCH_WAIT)
        for record in records:
            self._take(record)
        await self._steer()
        now = self._clock.monotonic()
        if now >= self._commit_at:
            self._commit_at = Instant(now + self._settings.commit_every)
            await self._commit()
            await self._ask_gates()
        for gate, items in self._window.over(now).items():
            self._emit(events.ReorderWindowOver(*gate, len(items)))
            self._go_on(items)
        if now >= self._report_at:
            self._report_at = Instant(now + self._settings.report_every)
            self._emit(events.LagMeasured(self.lag()))

    def _take(self, record: Record) -> None:
        identity: Identity | Exception
        try:
            identity = self._handling.identify(record)
        except (TenantryError, UnicodeDecodeError) as error:  # bytes that are no text: the record's fault
            identity = error
        item = self._backlog.accept(record, identity)
        if item is not None:
            self._go(item)

    def _go(self, item: Item) -> None:
        """Start the head of a line, or hold it before a gate."""
        if not self._window.holds(item, self._gates(item), self._clock.monotonic()):
            self._runner.start(item)

    def _gates(self, item: Item) -> tuple[Gate, ...]:
        if self._handling.gates is None or item.identity is None:
            return ()
        try:
            return self._handling.gates(item.record, item.identity)
        except TenantryError as error:
            item.fault = error
            return ()

    def _finished(self, item: Item) -> None:
        following = self._backlog.finished(item)
        if following is not None:
            self._go(following)

    def _stuck(self, item: Item, why: BaseException) -> None:
        if self._failure is None:
            self._failure = HandlingFailed(item.record)
            self._failure.__cause__ = why

    async def _steer(self) -> None:
        pause, resume = self._backlog.steer({gate.spot for gate in self._window.shut()})
        if pause:
            await self._in_thread(self._source.pause, pause)
            self._emit(events.PartitionsPaused(tuple(pause)))
        if resume:
            await self._in_thread(self._source.resume, resume)
            self._emit(events.PartitionsResumed(tuple(resume)))

    async def _commit(self) -> None:
        positions = self._backlog.positions()
        accepted = bool(positions) and await self._in_thread(self._source.commit, positions)
        if accepted:
            self._backlog.committed(positions)
            self._emit(events.OffsetsCommitted(tuple(positions.items())))
        spots = [share.spot for share in self._backlog.shares()]
        self._ends = await self._in_thread(self._source.ends, spots)

    async def _ask_gates(self) -> None:
        shut = self._window.shut()
        if not shut:
            return
        for gate in await self._in_thread(self._source.passed, shut):
            items = self._window.opened(gate)
            self._emit(events.GatePassed(*gate, len(items)))
            self._go_on(items)

    def _go_on(self, items: Iterable[Item]) -> None:
        for item in items:
            self._go(item)

    async def _assign(self, spots: Sequence[Spot]) -> None:
        self._backlog.assign(spots)
        self._window.forget()
        self._emit(events.PartitionsAssigned(tuple(spots)))

    async def _revoke(self, spots: Sequence[Spot], *, lost: bool) -> dict[Spot, int]:
        items = self._backlog.stop(spots)
        self._window.discard(lambda item: not item.share.live)
        await self._runner.withdraw(items, 0.0 if lost else self._settings.finish_within)
        dropped = self._backlog.records
        positions = self._backlog.revoke(spots)
        self._emit(events.PartitionsRevoked(tuple(spots), dropped - self._backlog.records, lost))
        return positions

    # two threads

    async def _in_thread(self, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        assert self._thread is not None, "run() made it"
        return await self._loop.run_in_executor(self._thread, partial(call, *args, **named))

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
