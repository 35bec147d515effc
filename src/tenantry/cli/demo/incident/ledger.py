"""What the node tells during the incident, kept per tenant."""

from collections import Counter
from collections.abc import Iterable
from math import inf

from tenantry.kernel.clock import Clock
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.queue.events import JobsClaimed, JobsSettled
from tenantry.queue.model import Ending, JobClass

LiveWait = tuple[Instant, TenantId, Seconds]


class Ledger:
    """The node's event sink; one event loop's.

    ``running``: slots that each tenant holds now. ``dead``: how many of its jobs died. ``live_waits``: of
    each job of class live, when it started, whose it was, and how long it had waited for its slot.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.running: Counter[TenantId] = Counter()
        self.dead: Counter[TenantId] = Counter()
        self.live_waits: list[LiveWait] = []
        self._held: dict[TenantId, Seconds] = {}
        self._since: dict[TenantId, Instant] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case JobsClaimed():
                self._claim(event)
            case JobsSettled():
                self._settle(event)
            case _:
                return

    def held(self) -> dict[TenantId, Seconds]:
        """Slot-seconds of each tenant up to now."""
        now = self._clock.monotonic()
        for tenant in self.running:
            self._hold(tenant, now)
        return dict(self._held)

    def waits(self, *, since: Instant, until: float = inf) -> list[tuple[TenantId, Seconds]]:
        """Of the live jobs that started from ``since`` on and before ``until``."""
        return [(tenant, wait) for at, tenant, wait in _lately(self.live_waits, since) if at < until]

    def _claim(self, event: JobsClaimed) -> None:
        now = self._clock.monotonic()
        for start in event.starts:
            self._hold(start.tenant, now)
            self.running[start.tenant] += 1
            if start.job_class is JobClass.LIVE:
                self.live_waits.append((now, start.tenant, start.waited_for))

    def _settle(self, event: JobsSettled) -> None:
        now = self._clock.monotonic()
        for end in event.ends:
            self._hold(end.tenant, now)
            self.running[end.tenant] -= 1
            self.dead[end.tenant] += end.ending is Ending.DEAD

    def _hold(self, tenant: TenantId, now: Instant) -> None:
        since = self._since.get(tenant, now)
        self._held[tenant] = self._held.get(tenant, 0.0) + self.running[tenant] * (now - since)
        self._since[tenant] = now


def _lately(waits: list[LiveWait], since: Instant) -> Iterable[LiveWait]:
    """The newest of them, back to ``since``: they stand in order of time."""
    for each in reversed(waits):
        if each[0] < since:
            return
        yield each
