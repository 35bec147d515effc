"""The executor's face for one event loop."""

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from tenantry.config.ports import TenantDirectory
from tenantry.config.tiers import Tier
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.queue.executor.core import (
    DEFAULT_TIER,
    Entry,
    ExecutorCore,
    FlowKey,
    Settings,
    Stats,
    TierLookup,
)
from tenantry.queue.model import JobClass


@dataclass(eq=False, slots=True)
class _Call:
    call: Callable[[], Any]
    handle: "asyncio.Future[Any]"
    task: "asyncio.Task[None] | None" = None
    begun: bool = False


class FairExecutor:
    """Runs tenants' callables, coroutine functions on the loop and plain functions in threads, fairly.

    ``slots``: most at once, >= 1. ``tiers``: a directory, a lookup ``tenant -> Tier | None``, or one tier for
    everybody. ``floor`` and ``quantum``: see :class:`tenantry.algorithms.fair_share.FairShare`. Use as
    ``async with FairExecutor(slots=8) as executor``: leaving it drains, or cancels if it raised. One event
    loop only. Raises InvalidValue for a setting out of range.
    """

    def __init__(
        self,
        slots: int,
        *,
        tiers: TenantDirectory | TierLookup | Tier = DEFAULT_TIER,
        floor: float = 0.25,
        quantum: float = 0.010,
        clock: Clock | None = None,
    ) -> None:
        self._core: ExecutorCore[_Call] = ExecutorCore(Settings(slots, tiers, floor, quantum))
        self._clock = clock or SystemClock()
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="fair")
        self._room: dict[TenantId, deque[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._open = False
        self._drained = asyncio.Event()

    async def __aenter__(self) -> "FairExecutor":
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(cancel=error is not None)

    def submit(
        self,
        tenant: TenantId | str,
        fn: Callable[..., Any],
        *args: Any,
        lane: str = "",
        job_class: JobClass = JobClass.LIVE,
        cost: Seconds | None = None,
    ) -> "asyncio.Future[Any] | Refusal":
        """A handle to await or cancel, or a refusal when the tenant is at its bound. Never waits.

        ``cost``: the slot-seconds it is expected to take, > 0; corrected by what it takes. Cancelling the
        handle withdraws what waits and cancels a coroutine; a function in a thread runs on, and keeps its
        slot. Raises InvalidValue, UnknownTenant, and Closed.
        """
        if not self._open:
            raise Closed("this executor is not open; use it inside `async with`")
        handle: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        key = FlowKey(TenantId(tenant), lane, job_class)
        entry = self._core.submit(key, _Call(partial(fn, *args), handle), cost=cost)
        if isinstance(entry, Refusal):
            return entry
        handle.add_done_callback(lambda _handle: self._let_go(entry))
        self._pump()
        return handle

    async def submit_wait(
        self,
        tenant: TenantId | str,
        fn: Callable[..., Any],
        *args: Any,
        lane: str = "",
        job_class: JobClass = JobClass.LIVE,
        cost: Seconds | None = None,
    ) -> "asyncio.Future[Any]":
        """As :meth:`submit`, but waits until there is room; first come, first served within a tenant."""
        name, passed = TenantId(tenant), False
        while self._open and not (self._core.has_room(name) and (passed or not self._room.get(name))):
            await self._wait_for_room(name)
            passed = True
        handle = self.submit(tenant, fn, *args, lane=lane, job_class=job_class, cost=cost)
        assert not isinstance(handle, Refusal), "there was room, and nothing ran in between"
        self._call_next(name)
        return handle

    async def run(
        self,
        tenant: TenantId | str,
        fn: Callable[..., Any],
        *args: Any,
        lane: str = "",
        job_class: JobClass = JobClass.LIVE,
        cost: Seconds | None = None,
    ) -> Any:
        """Wait for room, then for the result, and return that. Cancelled: so is the callable."""
        return await (await self.submit_wait(tenant, fn, *args, lane=lane, job_class=job_class, cost=cost))

    async def close(self, *, cancel: bool = False) -> None:
        """Accept nothing more and return when nothing runs. ``cancel``: also cancel all that can be."""
        self._open = False
        for waiters in self._room.values():
            for waiter in waiters:
                _resolve(waiter)
        if cancel:
            for entry in [*self._core.waiting(), *self._core.running()]:
                entry.item.handle.cancel()
        while not self._core.idle:
            self._drained.clear()
            await self._drained.wait()
        if self._timer is not None:
            self._timer.cancel()
        self._threads.shutdown(wait=False)

    @property
    def quantum(self) -> Seconds:
        """The credit that a tenant may have, in slot-seconds."""
        return self._core.quantum

    def deficit(self, tenant: TenantId | str) -> Seconds:
        """The deficit counter of ``tenant`` in slot-seconds: credit > 0, debt < 0."""
        return self._core.deficit(TenantId(tenant))

    def active(self) -> Iterable[TenantId]:
        """The active list: tenants that may start something as soon as a slot is free."""
        return self._core.active()

    def stats(self) -> Stats:
        return self._core.stats()

    def _pump(self) -> None:
        """Start what may start; called whenever something changed."""
        now = self._clock.monotonic()
        for entry in self._core.next(now):
            entry.item.task = asyncio.get_running_loop().create_task(self._work(entry))
            self._call_next(entry.key.tenant)
        at = self._core.next_timer()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if at is None else asyncio.get_running_loop().call_later(at - now, self._pump)

    async def _work(self, entry: Entry[_Call]) -> None:
        handle = entry.item.handle
        entry.item.begun = True
        try:
            result = await self._call(entry.item.call)
        except asyncio.CancelledError:
            handle.cancel()
        except BaseException as error:  # noqa: BLE001 - whatever a callable raises is its handle's
            if not handle.done():
                handle.set_exception(error)
        else:
            if not handle.done():
                handle.set_result(result)
        finally:
            self._free(entry)

    def _free(self, entry: Entry[_Call]) -> None:
        """Its slot may be given to another."""
        self._core.end(entry, self._clock.monotonic())
        self._pump()
        self._drained.set()

    async def _call(self, call: Callable[[], Any]) -> Any:
        if _is_async(call):
            return await call()
        work = asyncio.get_running_loop().run_in_executor(self._threads, _tellable, call)
        result = await _unhurried(work)
        return await result if isinstance(result, Awaitable) else result

    def _let_go(self, entry: Entry[_Call]) -> None:
        """The handle is done; if it was cancelled, so is the work."""
        if not entry.item.handle.cancelled():
            return
        if self._core.cancel(entry):
            self._call_next(entry.key.tenant)
            self._pump()
            self._drained.set()
        elif entry.item.task is not None and _is_async(entry.item.call):
            entry.item.task.cancel()
            if not entry.item.begun:  # then it never runs a step, not even its end
                self._free(entry)

    async def _wait_for_room(self, tenant: TenantId) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.setdefault(tenant, deque()).append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._call_next(tenant)  # the room that it was given goes to the next
            raise

    def _call_next(self, tenant: TenantId) -> None:
        """There may be room for one who waits for it."""
        waiters = self._room.get(tenant)
        while waiters and self._core.has_room(tenant):
            if _resolve(waiters.popleft()):
                break
        if not waiters:
            self._room.pop(tenant, None)


def _tellable(call: Callable[[], Any]) -> Any:
    """An asyncio future cannot hold StopIteration: whoever awaits it would wait for ever."""
    try:
        return call()
    except StopIteration as error:
        raise RuntimeError("the callable raised StopIteration") from error


def _resolve(waiter: "asyncio.Future[None]") -> bool:
    if waiter.done():
        return False
    waiter.set_result(None)
    return True


def _is_async(call: Callable[[], Any]) -> bool:
    return inspect.iscoroutinefunction(call.func if isinstance(call, partial) else call)


async def _unhurried(work: "asyncio.Future[Any]") -> Any:
    """Wait for a thread to its end: a slot is free when the thread is, not when someone lost patience."""
    while not work.done():
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            continue
        except BaseException:  # noqa: BLE001 - told below, by result()
            break
    return work.result()
