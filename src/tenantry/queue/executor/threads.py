"""The executor's face for threads: no event loop needed. Every call is safe from any thread."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
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
    handle: "Future[Any]"


class ThreadFairExecutor:
    """Runs tenants' functions on at most ``slots`` threads, fairly; like ``concurrent.futures.Executor``.

    The settings are those of :class:`tenantry.queue.executor.FairExecutor`. Use it in a ``with`` statement:
    leaving it drains, or withdraws what waits if it raised. Functions that run are never interrupted.
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
        self._changed = threading.Condition(threading.RLock())
        self._timer: threading.Timer | None = None
        self._open = True

    def __enter__(self) -> "ThreadFairExecutor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown(cancel_futures=error is not None)

    def submit(
        self,
        tenant: TenantId | str,
        fn: Callable[..., Any],
        *args: Any,
        lane: str = "",
        job_class: JobClass = JobClass.LIVE,
        cost: Seconds | None = None,
    ) -> "Future[Any] | Refusal":
        """A future, or a refusal when the tenant is at its bound. Never waits.

        ``cost``: the slot-seconds it is expected to take, > 0; corrected by what it takes. Cancelling the
        future withdraws what waits. Raises InvalidValue, UnknownTenant, and Closed.
        """
        key = FlowKey(TenantId(tenant), lane, job_class)
        handle: Future[Any] = Future()
        with self._changed:
            if not self._open:
                raise Closed("this executor was shut down")
            entry = self._core.submit(key, _Call(partial(fn, *args), handle), cost=cost)
            if isinstance(entry, Refusal):
                return entry
            self._pump()
        handle.add_done_callback(lambda _handle: self._let_go(entry))
        return handle

    def submit_wait(
        self,
        tenant: TenantId | str,
        fn: Callable[..., Any],
        *args: Any,
        lane: str = "",
        job_class: JobClass = JobClass.LIVE,
        cost: Seconds | None = None,
    ) -> "Future[Any]":
        """As :meth:`submit`, but blocks until there is room."""
        with self._changed:
            while self._open and not self._core.has_room(TenantId(tenant)):
                self._changed.wait()
            handle = self.submit(tenant, fn, *args, lane=lane, job_class=job_class, cost=cost)
            assert not isinstance(handle, Refusal), "there was room, and the lock was held"
            return handle

    def run(
        self,
        tenant: TenantId | str,
        fn: Callable[..., Any],
        *args: Any,
        lane: str = "",
        job_class: JobClass = JobClass.LIVE,
        cost: Seconds | None = None,
    ) -> Any:
        """Block for room, then for the result, and return that."""
        return self.submit_wait(tenant, fn, *args, lane=lane, job_class=job_class, cost=cost).result()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept nothing more. ``cancel_futures``: withdraw what waits. ``wait``: until nothing runs."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
            waiting = self._core.waiting() if cancel_futures else []
        for entry in waiting:
            entry.item.handle.cancel()
        with self._changed:
            while wait and not self._core.idle:
                self._changed.wait()
        if wait:
            self._threads.shutdown()

    @property
    def quantum(self) -> Seconds:
        """The credit that a tenant may have, in slot-seconds."""
        return self._core.quantum

    def deficit(self, tenant: TenantId | str) -> Seconds:
        """The deficit counter of ``tenant`` in slot-seconds: credit > 0, debt < 0."""
        with self._changed:
            return self._core.deficit(TenantId(tenant))

    def active(self) -> Iterable[TenantId]:
        """The active list: tenants that may start something as soon as a slot is free."""
        with self._changed:
            return self._core.active()

    def stats(self) -> Stats:
        with self._changed:
            return self._core.stats()

    def _pump(self) -> None:
        """Start what may start. The lock is held."""
        now = self._clock.monotonic()
        for entry in self._core.next(now):
            self._threads.submit(self._work, entry)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self._core.next_timer()
        if at is not None:
            self._timer = threading.Timer(max(0.0, at - now), self._wake)
            self._timer.daemon = True
            self._timer.start()
        self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._pump()

    def _work(self, entry: Entry[_Call]) -> None:
        handle = entry.item.handle
        if handle.set_running_or_notify_cancel():
            try:
                result = entry.item.call()
            except BaseException as error:  # noqa: BLE001 - whatever a callable raises is its future's
                self._end(entry)
                handle.set_exception(error)
            else:
                self._end(entry)
                handle.set_result(result)
        else:
            self._end(entry)

    def _end(self, entry: Entry[_Call]) -> None:
        with self._changed:
            self._core.end(entry, self._clock.monotonic())
            self._pump()

    def _let_go(self, entry: Entry[_Call]) -> None:
        if entry.item.handle.cancelled():
            with self._changed:
                self._core.cancel(entry)
                self._pump()
