"""Python callables as targets: ``handler:NAME`` runs what was registered as ``NAME``.

A handler takes the :class:`~tenantry.queue.model.ClaimedJob` and returns when the work is done; what it
returns is not kept. Raising is failing: :class:`Reject` ends the job at once, :class:`RetryLater` names when
to come back, any other exception is retried by the target's backoff. An exception speaks about the *message*,
not about the target: it says nothing of how many jobs the handler can take. A handler that finds its own
dependency saturated says so with :class:`RetryLater`, and that speaks about the target.
"""

import asyncio
import contextvars
import inspect
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tenantry.config.model import TargetSettings
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.events import EventSink
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import identifier
from tenantry.lanes.model import HANDLER_PREFIX, Kind
from tenantry.lanes.outcome import Outcome, excerpt_of
from tenantry.queue.events import HandlerOverran
from tenantry.queue.model import ClaimedJob

_PATIENCE: Seconds = 1.0
"""What a cancelled handler may take to clean up before it is told of."""

Handler = Callable[[ClaimedJob], Any]
"""An async function, or a plain one, which runs in a thread."""

_H = TypeVar("_H", bound=Handler)


class RetryLater(Exception):
    """Raised by a handler: try this job again in ``seconds`` >= 0 at the earliest. The attempt counts.

    Raises :class:`InvalidValue` for a negative, infinite or NaN wait.
    """

    def __init__(self, seconds: Seconds, why: str = "") -> None:
        if not (math.isfinite(seconds) and seconds >= 0):
            raise InvalidValue("RetryLater.seconds", seconds, "finite seconds >= 0")
        self.seconds, self.why = float(seconds), why
        super().__init__(seconds, why)


class Reject(Exception):
    """Raised by a handler: this job can never succeed. It becomes a dead letter at once, with ``reason``."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Handlers:
    """The handlers of one process, by name. Register before the worker starts: a node announces its kinds
    once.

    ``threads``: most plain handlers at once, >= 1; give at least as many as the node has slots. ``events``:
    where it is told that a handler ignores its cancellation; a node sets its own where none is given.
    """

    def __init__(self, *, threads: int = 64, events: EventSink | None = None) -> None:
        if threads < 1:
            raise InvalidValue("handlers.threads", threads, "an integer >= 1")
        self.events = events
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="tenantry-handler")
        self._by_name: dict[str, tuple[Handler, bool]] = {}

    def register(self, name: str) -> Callable[[_H], _H]:
        """A decorator that makes a callable the target ``handler:NAME``. It returns the callable unchanged.

        Raises :class:`InvalidValue` for a name that is taken or is no identifier, and for what is not
        callable.
        """
        identifier(name, path="handler name")
        if name in self._by_name:
            raise InvalidValue("handler name", name, "a name that is not registered yet")

        def keep(handler: _H) -> _H:
            if not callable(handler):
                raise InvalidValue(f"handler {name}", handler, "a callable that takes the job")
            self._by_name[name] = (handler, _is_async(handler))
            return handler

        return keep

    @property
    def kinds(self) -> frozenset[Kind]:
        """What a node with these handlers can run."""
        return frozenset(Kind(HANDLER_PREFIX + name) for name in self._by_name)

    async def run(self, name: str, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        """One attempt by the handler ``name``. Returns how it ended, whatever the handler raised.

        An async handler is cancelled after ``settings.timeout_for``: whatever it makes of that, its attempt
        is a timeout. One that goes on all the same keeps its slot until it returns, as a thread does, and a
        second after its cancellation :class:`HandlerOverran` tells of it. A thread cannot be stopped: a plain
        handler keeps its slot until it returns, however long, since giving the job to another would make two
        live attempts of it. It should keep timeouts of its own. So cancelling this call returns once the
        thread has ended, with its outcome.
        """
        if name not in self._by_name:
            return Outcome("unknown_handler", excerpt=excerpt_of(f"no handler {name!r} on this node"))
        try:
            return await self._called(name, job, settings.timeout_for)
        except RetryLater as later:
            return Outcome("retry_later", retry_after=later.seconds, excerpt=excerpt_of(later.why))
        except Reject as rejection:
            return Outcome("rejected", excerpt=excerpt_of(rejection.reason))
        except BaseException as error:
            if _we_are_cancelled():
                raise
            return _failed(error)

    def close(self) -> None:
        """Lets no more plain handlers start. Those that run go on to their end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _called(self, name: str, job: ClaimedJob, timeout_for: Seconds) -> Outcome:
        handler, is_async = self._by_name[name]
        work = handler(job) if is_async else await self._in_thread(handler, job)
        if not inspect.isawaitable(work):
            return Outcome("ok")
        if not is_async and _we_are_cancelled():  # while a thread made what was to be awaited
            _closed(work)
            raise asyncio.CancelledError
        limit = _Limit(timeout_for, lambda: self._overran(name, job, timeout_for))
        try:
            await work
        except BaseException:
            if limit.over() and not _we_are_cancelled():
                return Outcome("timeout")
            raise
        return Outcome("timeout" if limit.over() else "ok")

    def _overran(self, name: str, job: ClaimedJob, timeout_for: Seconds) -> None:
        if self.events is not None:
            self.events(HandlerOverran(name, job.id, job.tenant, timeout_for))

    async def _in_thread(self, handler: Handler, job: ClaimedJob) -> Any:
        """Waits for the thread to its end, also when cancelled, unless it has not begun."""
        context = contextvars.copy_context()
        call = self._threads.submit(context.run, _contained, handler, job)
        work = asyncio.wrap_future(call)
        while not work.done():
            try:
                await asyncio.wait([work])  # it would not cancel what it waits for
            except asyncio.CancelledError:
                if call.cancel():
                    raise
        return work.result()


class _Limit:
    """Cancels the task that makes it after ``timeout_for`` seconds, and calls ``overran`` a second later if
    the task has not come back by then. :func:`asyncio.timeout` tells only those who let the cancellation out.
    """

    def __init__(self, timeout_for: Seconds, overran: Callable[[], None]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._overran, self._passed = task, overran, False
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(timeout_for, self._pass)

    def over(self) -> bool:
        """Whether the time had run out; ends the watch, and takes back the cancellation that is its own."""
        self._timer.cancel()
        if self._passed:
            self._passed = False
            self._task.uncancel()
            return True
        return False

    def _pass(self) -> None:
        self._passed = True
        self._task.cancel()
        self._timer = self._loop.call_later(_PATIENCE, self._overran)


def _contained(handler: Handler, job: ClaimedJob) -> Any:
    """A future cannot carry StopIteration (its caller would wait for ever), and SystemExit would end the
    node."""
    try:
        return handler(job)
    except (StopIteration, SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _closed(work: Any) -> None:
    """A coroutine that will not be run says so nowhere."""
    if inspect.iscoroutine(work):
        work.close()
    elif isinstance(work, asyncio.Future):
        work.cancel()


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    )


def _failed(error: BaseException) -> Outcome:
    return Outcome("handler_error", excerpt=excerpt_of(f"{type(error).__name__}: {error}"))


def _we_are_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
