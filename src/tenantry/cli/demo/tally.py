"""What the node and the door tell, kept per tenant: for the table while it runs, and for the figures.

The ends of jobs are read from the store's books and not from here: see :mod:`tenantry.cli.demo.show`.
"""

from collections import deque
from dataclasses import dataclass, field

from tenantry.cli.demo.scenario import Member
from tenantry.kernel.clock import Clock
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.queue.events import JobsClaimed, JobsSettled
from tenantry.queue.model import Ending

RECENT: Seconds = 5.0
"""How far back the table's rates and percentiles look."""


@dataclass(slots=True)
class Account:
    """One tenant. ``waits``: of each started job, with the instant of its start. ``ends``: of each attempt,
    with how long its target took. ``arrivals``: instants and counts of accepted jobs. ``held``: slot-seconds
    from claims to settles up to the instant ``held_until``; ``used``: those of the measured time."""

    member: Member
    accepted: int = 0
    refused: int = 0
    started: int = 0
    ended: int = 0
    delivered: int = 0
    arrivals: list[tuple[Instant, int]] = field(default_factory=list)
    waits: list[tuple[Instant, Seconds]] = field(default_factory=list)
    ends: list[tuple[Instant, Seconds]] = field(default_factory=list)
    recent_waits: deque[tuple[Instant, Seconds]] = field(default_factory=deque)
    recent_ends: deque[Instant] = field(default_factory=deque)
    always_waiting: bool = True
    held: Seconds = 0.0
    held_until: Instant = Instant(0.0)  # noqa: RUF009 - a NewType: the number itself
    used: Seconds = 0.0

    @property
    def waiting(self) -> int:
        """Jobs in line. A start may be heard before the answer to its submit: never below 0."""
        return max(0, self.accepted - self.started)

    @property
    def running(self) -> int:
        return max(0, self.started - self.ended)

    @property
    def unended(self) -> int:
        return self.accepted - self.ended

    def hold(self, now: Instant) -> None:
        """Counts what its running jobs have held since the last time."""
        self.held += self.running * (now - self.held_until)
        self.held_until = now

    def forget(self, before: Instant) -> None:
        while self.recent_waits and self.recent_waits[0][0] < before:
            self.recent_waits.popleft()
        while self.recent_ends and self.recent_ends[0] < before:
            self.recent_ends.popleft()


class Tally:
    """The node's event sink. ``accounts`` by tenant; one event loop's."""

    def __init__(self, everyone: tuple[Member, ...], clock: Clock) -> None:
        self.accounts = {member.tenant: Account(member) for member in everyone}
        self._clock = clock
        self.eligible: list[int] = []
        self.measured_from: Instant | None = None
        self.measured_until: Instant | None = None
        self.burst_at: Instant | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case JobsClaimed():
                self._claim(event)
            case JobsSettled():
                self._settle(event)
            case _:
                return

    def accept(self, tenant: TenantId, count: int) -> None:
        self.accounts[tenant].accepted += count
        self.accounts[tenant].arrivals.append((self._clock.monotonic(), count))

    def refuse(self, tenant: TenantId, count: int) -> None:
        self.accounts[tenant].refused += count

    def burst(self) -> None:
        """The burst has come. What its sender submits from now on is part of it."""
        self.burst_at = self._clock.monotonic()

    def measure(self) -> None:
        """From now on shares are measured."""
        self.measured_from = now = self._clock.monotonic()
        for account in self.accounts.values():
            account.hold(now)
            account.used = -account.held
            account.always_waiting = account.waiting > 0

    def stop_measuring(self) -> None:
        self.measured_until = now = self._clock.monotonic()
        for account in self.accounts.values():
            account.hold(now)
            account.used += account.held

    @property
    def measuring(self) -> bool:
        return self.measured_from is not None and self.measured_until is None

    def look(self) -> None:
        """Called many times a second: how many tenants are eligible, and what is recent no more."""
        now = self._clock.monotonic()
        for account in self.accounts.values():
            account.forget(Instant(now - RECENT))
        if self.measuring:
            self.eligible.append(sum(account.waiting > 0 for account in self.accounts.values()))

    def unended(self) -> int:
        return sum(account.unended for account in self.accounts.values())

    def _claim(self, event: JobsClaimed) -> None:
        now, emptied = self._clock.monotonic(), set[TenantId]()
        for start in event.starts:
            account = self.accounts[start.tenant]
            account.hold(now)
            account.started += 1
            account.waits.append((now, start.waited_for))
            account.recent_waits.append((now, start.waited_for))
            if account.accepted <= account.started:
                emptied.add(start.tenant)
        if self.measuring:
            for tenant in emptied:
                self.accounts[tenant].always_waiting = False

    def _settle(self, event: JobsSettled) -> None:
        now = self._clock.monotonic()
        for end in event.ends:
            account = self.accounts[end.tenant]
            account.hold(now)
            account.ends.append((now, end.busy_for))
            if end.ending in (Ending.RETRY, Ending.RELEASED):
                account.started -= 1  # in line again, after its delay
                continue
            account.ended += 1
            account.delivered += end.ending is Ending.DELIVERED
            account.recent_ends.append(now)
