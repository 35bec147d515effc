"""Runs handlers in the fair executor: attempts, putting aside, and the end of a partition's work."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tenantry.brokers.kafka.backlog import Item
from tenantry.brokers.kafka.events import RecordFailed
from tenantry.brokers.kafka.model import Message
from tenantry.brokers.kafka.settings import ConsumerSettings, Handling
from tenantry.kernel.errors import UnknownTenant
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.queue.executor import FairExecutor

_SKIPPED = object()
"""What a call returns whose partition was taken away before it began."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Where the runner reports to: ``finished(item)``, and ``stuck(item, why)`` for what nobody takes."""

    finished: Callable[[Item], None]
    stuck: Callable[[Item, BaseException], None]
    emit: EventSink


@dataclass(slots=True, eq=False)
class _Call:
    """One run of the user's code. ``begun`` is set before ``live`` is looked at, and ``live`` is cleared
    before ``begun`` is looked at: either the call sees that it must not begin, or the revocation waits for
    it."""

    item: Item
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    begun: bool = False
    handle: "asyncio.Future[Any] | None" = None

    def may_begin(self) -> bool:
        self.begun = True
        return self.item.share.live

    def in_thread(self) -> Any:
        return self.fn(*self.args) if self.may_begin() else _SKIPPED

    async def on_loop(self) -> Any:
        return await self.fn(*self.args) if self.may_begin() else _SKIPPED

    async def apart(self) -> Any:
        """Outside the executor: for records that no tenant is charged for."""
        if inspect.iscoroutinefunction(self.fn):
            return await self.on_loop()
        result = await asyncio.to_thread(self.in_thread)
        return await result if isinstance(result, Awaitable) else result


class Runner:
    """For one event loop. At most one call of an item at a time."""

    def __init__(
        self,
        handling: Handling,
        settings: ConsumerSettings,
        executor: FairExecutor,
        outcomes: Outcomes,
        *,
        randomness: Randomness,
    ) -> None:
        self._handling, self._settings, self._executor = handling, settings, executor
        self._outcomes, self._randomness = outcomes, randomness
        self._calls: dict[Item, _Call] = {}

    def start(self, item: Item) -> None:
        """The next attempt of a live item, or putting aside one with a fault."""
        identity = item.identity
        if not item.share.live:
            return
        if item.fault is not None or identity is None:
            self._put_aside(item)
            return
        item.attempts += 1
        message = Message(item.record, identity.tenant, identity.entity, item.attempts)
        self._submit(_Call(item, self._handling.handle, (message,)))

    async def withdraw(self, items: Iterable[Item], within: Seconds) -> None:
        """Of items that are no longer live: what waits is dropped, what runs has ``within`` to end, then
        coroutines are cancelled. A function in a thread runs on, and changes nothing here any more."""
        running: list[asyncio.Future[Any]] = []
        for call in [self._calls[item] for item in items if item in self._calls]:
            if call.handle is None:
                continue
            if call.begun:
                running.append(call.handle)
            else:
                call.handle.cancel()
        if running and within > 0:
            await asyncio.wait(running, timeout=within)
        for handle in running:
            handle.cancel()

    def _submit(self, call: _Call) -> None:
        item = call.item
        assert item.identity is not None, "only what is somebody's is submitted"
        spot = item.record.spot
        run = call.on_loop if inspect.iscoroutinefunction(call.fn) else call.in_thread
        try:
            handle = self._executor.submit(item.identity.tenant, run, lane=f"{spot.topic}/{spot.partition}")
        except UnknownTenant as error:
            item.fault = error
            self._put_aside(item)
            return
        assert isinstance(handle, asyncio.Future), "tiers have no bound here"
        self._follow(call, handle)

    def _follow(self, call: _Call, handle: "asyncio.Future[Any]") -> None:
        call.handle = handle
        self._calls[call.item] = call
        handle.add_done_callback(lambda ended: self._ended(call.item, ended))

    def _ended(self, item: Item, handle: "asyncio.Future[Any]") -> None:
        self._calls.pop(item, None)
        error = _error_of(handle)
        if error is None and handle.result() is not _SKIPPED:
            self._outcomes.finished(item)
        elif error is not None and item.share.live:
            self._failed(item, error)

    def _failed(self, item: Item, error: BaseException) -> None:
        if item.fault is not None or not isinstance(error, Exception):
            self._outcomes.stuck(item, error)
        elif item.attempts < self._settings.attempts:
            delay = self._settings.backoff.delay(item.attempts, self._randomness.uniform(0.0, 1.0))
            asyncio.get_running_loop().call_later(delay, self.start, item)
        else:
            item.fault = error
            self._put_aside(item)

    def _put_aside(self, item: Item) -> None:
        """Charged to its tenant like any other work, unless there is none."""
        fault, identity = item.fault, item.identity
        assert fault is not None, "only what failed is put aside"
        tenant = None if identity is None else identity.tenant
        record = item.record
        self._outcomes.emit(RecordFailed(record.spot, record.offset, tenant, type(fault).__name__))
        if self._handling.on_failed is None:
            self._outcomes.stuck(item, fault)
            return
        call = _Call(item, self._handling.on_failed, (record, fault))
        if identity is None or isinstance(fault, UnknownTenant):
            self._follow(call, asyncio.ensure_future(call.apart()))
        else:
            self._submit(call)


def _error_of(handle: "asyncio.Future[Any]") -> BaseException | None:
    if handle.cancelled():
        return RuntimeError("the handler was cancelled")
    return handle.exception()
