"""A job to what runs it: ``handler:NAME`` to the handlers, a broker's address to its connection, everything
else over HTTP."""

from typing import Protocol

from tenantry.config.model import TargetSettings
from tenantry.delivery.handlers import Handlers
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.lanes.address import scheme_of
from tenantry.lanes.model import HANDLER_PREFIX, HTTP, Kind, Target, kind_of
from tenantry.lanes.outcome import Outcome
from tenantry.queue.attempts import Executor
from tenantry.queue.model import ClaimedJob


class Delivers(Protocol):
    """What takes a job to a URL: :class:`~tenantry.delivery.http.HttpDelivery`, or a stand-in in a
    simulation."""

    async def deliver(self, job: ClaimedJob, settings: TargetSettings) -> Outcome: ...


class Router:
    """Executes claimed jobs, many at once, on one event loop. Each part may be left out.

    ``http`` and ``brokers`` must be entered (``async with``) by whoever made them; the router opens and
    closes nothing.
    """

    def __init__(
        self,
        handlers: Handlers | None = None,
        http: Delivers | None = None,
        brokers: Executor | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._handlers, self._http, self._brokers = handlers, http, brokers
        self._clock: Clock = clock or SystemClock()

    @property
    def kinds(self) -> frozenset[Kind]:
        """What this node can run, for it to announce."""
        from_handlers = self._handlers.kinds if self._handlers is not None else frozenset[Kind]()
        from_brokers = self._brokers.kinds if self._brokers is not None else frozenset[Kind]()
        return from_handlers | from_brokers | ({HTTP} if self._http is not None else frozenset[Kind]())

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        """One attempt of ``job``. Returns how it ended; raises only when cancelled.

        A fault of our own is an outcome too (``internal``, fault ``ours``): one job's bug must not stop a
        node.
        """
        began = self._clock.monotonic()
        try:
            outcome = await self._sent(job, settings)
        except Exception as error:  # noqa: BLE001 - reported as an outcome
            # its text might hold a secret, its type cannot
            outcome = Outcome("internal", excerpt=type(error).__name__)
        return outcome if outcome.busy_for else outcome.lasting(self._clock.monotonic() - began)

    async def _sent(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        address = settings.url if settings.url is not None else str(job.target)
        if scheme_of(address) is not None:
            return await self._to_broker(job, settings)
        if kind_of(Target(address)) != HTTP and self._handlers is not None:
            return await self._handlers.run(address.removeprefix(HANDLER_PREFIX), job, settings)
        if kind_of(Target(address)) == HTTP and self._http is not None:
            return await self._http.deliver(job, settings)
        return Outcome("unknown_handler", excerpt="this node runs no jobs of this kind")

    async def _to_broker(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        if self._brokers is None:
            return Outcome("unknown_connection", excerpt="this node has no connections to brokers")
        return await self._brokers.execute(job, settings)
