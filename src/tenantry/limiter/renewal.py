"""What a node asks the authority, and what becomes of the answers. No I/O: :mod:`tenantry.limiter.node`
carries it out, the simulation and the model tests do so in virtual time.

A tenant has at most one ask under way. One without an answer is sent again as it was, with its own number,
for as long as it takes: so a lost answer charges once. Once the lease that it could bring would be over it
still tells what was spent, and asks for nothing."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from tenantry.kernel.clock import Clock
from tenantry.kernel.instant import Instant
from tenantry.limiter.buckets import NEVER, Crew, Leased
from tenantry.limiter.exchange import Answer, Ask, Part
from tenantry.limiter.settings import LimiterSettings
from tenantry.limiter.tenants import LeasedTenant
from tenantry.limiter.turns import take_turn

_LOOKED_AT: Final = 10_000
"""Leases looked at in one round, at most."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An ask under way: whose, of which buckets, and when it was first sent. ``last``: everything was given
    back with it."""

    entry: LeasedTenant
    ask: Ask
    buckets: tuple[Leased, ...]
    sent_at: Instant
    last: bool = False


class Renewals:
    """The asks of one node. ``want`` is safe to call from any thread, the rest belongs to one loop.

    ``node``: this process, unique among all that ever lived: the authority tells retries by it. ``wake``:
    called when there is something to send and nobody was told yet."""

    def __init__(self, node: str, clock: Clock, settings: LimiterSettings | None = None) -> None:
        self.node, self._clock = node, clock
        chosen = settings or LimiterSettings()
        self.crew = Crew(chosen, chosen.nodes)
        self.wake: Callable[[], None] = _nobody
        self._wanting: deque[LeasedTenant] = deque()
        self._reporting: deque[tuple[Instant, int, LeasedTenant]] = deque()
        self._held: deque[tuple[Instant, int, LeasedTenant]] = deque()  # leases by when they were granted

    def want(self, entry: LeasedTenant) -> None:
        """This tenant has something to ask or to tell. O(1)."""
        entry.asking = True
        self._wanting.append(entry)
        self.wake()

    def due(self) -> list[Pending]:
        """What is new and to be sent now. O(asks)."""
        now = self._clock.monotonic()
        self._look_at_leases(now)
        self._report(now)
        found = []
        for _ in range(len(self._wanting)):
            pending = self._asked(self._wanting.popleft(), now)
            if pending is not None:
                found.append(pending)
        return found

    def again(self, pending: Pending) -> Pending:
        """What to send where no answer came: the same, and for no lease that would be over when it comes."""
        settings = self.crew.settings
        if self._clock.monotonic() < pending.sent_at + settings.term * settings.trust:
            return pending
        parts = tuple(part._replace(need=0.0, want=0.0) for part in pending.ask.parts)
        return replace(pending, ask=replace(pending.ask, parts=parts))

    def answered(self, pending: Pending, answer: Answer) -> None:
        """The authority's word. O(buckets)."""
        entry, now = pending.entry, self._clock.monotonic()
        take_turn(entry.turn)
        try:
            for bucket, part, grant in zip(pending.buckets, pending.ask.parts, answer.grants, strict=True):
                bucket.answered(part, grant, pending.sent_at, now)
                if pending.last:
                    bucket.until = NEVER
            entry.asking = False
            held = any(bucket.left > 0 or bucket.spent > 0 for bucket in entry.buckets())
            untold = any(bucket.untold for bucket in entry.buckets())
            divided = any(bucket.reports for bucket in entry.buckets())
        finally:
            entry.turn.append(None)
        if untold:  # it went on spending while the answer was under way
            self.want(entry)
        elif held:
            self._held.append((now, entry.sequence, entry))
        if divided:
            self._reporting.append((now, entry.sequence, entry))

    def failed(self, pending: Pending) -> None:
        """No answer came: the tenant's buckets know that they are cut off. O(buckets)."""
        entry = pending.entry
        take_turn(entry.turn)
        try:
            for bucket in entry.buckets():
                bucket.cut = True
        finally:
            entry.turn.append(None)

    def closing(self, entries: list[LeasedTenant]) -> list[Pending]:
        """The last asks of all: everything is told and given back."""
        now = self._clock.monotonic()
        return [found for each in entries if (found := self._asked(each, now, closing=True)) is not None]

    def _asked(self, entry: LeasedTenant, now: Instant, *, closing: bool = False) -> Pending | None:
        take_turn(entry.turn)
        try:
            closing = closing or (entry.more is not None and entry.more.gone)
            said = [(bucket, bucket.part(now, closing=closing)) for bucket in entry.buckets()]
            said = [each for each in said if _says(each[1]) or each[0].assigned is not None]
            entry.asking = bool(said)
            entry.sequence += bool(said)
            sequence = entry.sequence
        finally:
            entry.turn.append(None)
        if not said:
            return None
        parts = tuple(part for _, part in said)
        ask = Ask(entry.tenant, self.node, sequence, self.crew.settings.term, parts, entry.ledger)
        return Pending(entry, ask, tuple(bucket for bucket, _ in said), now, last=closing)

    def _report(self, now: Instant) -> None:
        """Under static shares a node tells its demand now and then, above all that it has none."""
        every = self.crew.settings.sync_every
        while self._reporting and now >= self._reporting[0][0] + every:
            _, sequence, entry = self._reporting.popleft()
            if not entry.asking and entry.sequence == sequence:
                self.want(entry)

    def _look_at_leases(self, now: Instant) -> None:
        """Leases that are half over and were not renewed: what was spent of them is told, since at the end of
        the term the authority takes the lease for unspent; and a surplus goes back."""
        half = self.crew.settings.term / 2
        for _ in range(min(_LOOKED_AT, len(self._held))):
            granted_at, sequence, entry = self._held[0]
            if now < granted_at + half:
                return
            self._held.popleft()
            if entry.asking or entry.sequence != sequence:
                continue  # there is a later ask, and its lease has its own place in the line
            if any(bucket.spent > 0 or bucket.left >= 2 for bucket in entry.buckets()):
                self.want(entry)
            for bucket in entry.buckets():
                bucket.low = inf  # what is spent from now on is told at once


def _says(part: Part) -> bool:
    said = part.need + part.spent + part.returned + part.charge + part.unleased + part.demand
    return said > 0


def _nobody() -> None:
    """Nobody is there to be woken."""
