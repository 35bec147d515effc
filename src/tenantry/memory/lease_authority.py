"""The authority in memory: the pure rule over a dict. For one process, for tests, and for the simulation."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, date, datetime

from tenantry.kernel.clock import Clock
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import (
    Answer,
    Ask,
    Balance,
    Booking,
    Charge,
    Decision,
    booked,
    current,
    idle,
    opened,
    shortfall,
    taken,
)
from tenantry.limiter.ledger import LedgerLine, added
from tenantry.limiter.model import Limit

REMEMBERED_FOR: Seconds = 60.0
"""So long a node's last answer, and the decision of an id, are known again."""
_SWEPT = 2  # tenants looked at for each ask


class _Tenant:
    """One tenant's balances by the name of the limit, and the last answer to each node."""

    __slots__ = ("answers", "balances", "ledger", "limits")

    def __init__(self) -> None:
        self.balances: dict[str, Balance] = {}
        self.limits: dict[str, Limit] = {}
        self.answers: dict[str, tuple[Instant, Answer]] = {}
        self.ledger = False


class MemoryLeaseAuthority:
    """Implements :class:`~tenantry.limiter.ports.Authority`; one event loop, or one thread at a time.

    Its clock's monotonic time decides leases; the ledger's days are of its wall clock. Memory: one record for
    each tenant that has a bucket that is not full, a live lease, or an answer of the last minute.
    """

    opening = 1.0

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tenants: OrderedDict[TenantId, _Tenant] = OrderedDict()
        self._decisions: dict[str, tuple[Instant, Decision]] = {}
        self._nodes: dict[str, Instant] = {}
        self._ledger: dict[tuple[TenantId, date, str], Booking] = {}

    def shard_of(self, tenant: TenantId) -> str:
        return ""

    async def exchange(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        return self.exchanged(asks)

    def exchanged(self, asks: Sequence[Ask]) -> list[Answer]:
        """:meth:`exchange`, for those who have no event loop."""
        now = self._clock.monotonic()
        answers = [self._answer(ask, now) for ask in asks]
        self._sweep(len(asks), now)
        return answers

    async def decide(self, charge: Charge) -> Decision:
        now = self._clock.monotonic()
        self._forget_decisions(now)
        known = self._decisions.get(charge.id)
        if known is not None:
            return known[1]
        decision = self._decided(charge, now)
        self._decisions[charge.id] = (now, decision)
        return decision

    async def present(self, node: str, present_for: Seconds) -> int:
        now = self._clock.monotonic()
        self._nodes[node] = Instant(now + present_for)
        self._nodes = {name: until for name, until in self._nodes.items() if until > now}
        return max(1, len(self._nodes))

    async def leave(self, node: str) -> None:
        self._nodes.pop(node, None)

    async def ledger(self, tenant: TenantId) -> Sequence[LedgerLine]:
        return [
            LedgerLine(tenant, day, name, booking)
            for (who, day, name), booking in self._ledger.items()
            if who == tenant
        ]

    async def day_of_all(self, day: date) -> AsyncIterator[LedgerLine]:
        for (tenant, booked_on, name), booking in list(self._ledger.items()):
            if booked_on == day and name == "tenant":
                yield LedgerLine(tenant, day, name, booking)

    def level(self, tenant: TenantId, name: str = "tenant") -> float | None:
        """What a bucket holds now, negative while it owes; None for one that says no more than a full one."""
        known = self._tenants.get(tenant)
        if known is None or name not in known.balances:
            return None
        balance, _ = current(known.balances[name], known.limits[name], self._clock.monotonic())
        return balance.bucket.tokens

    def _answer(self, ask: Ask, now: Instant) -> Answer:
        known = self._tenants.setdefault(ask.tenant, _Tenant())
        last = known.answers.get(ask.node)
        if last is not None and last[1].sequence >= ask.sequence:
            known.answers[ask.node] = (now, last[1])
            return last[1]
        known.ledger = ask.ledger
        grants = []
        for part in ask.parts:
            balance = known.balances.get(part.name) or opened(part.limit, now)
            balance, grant, booking = booked(balance, part, ask.node, term=ask.term, now=now)
            known.balances[part.name], known.limits[part.name] = balance, part.limit
            grants.append(grant)
            if ask.ledger:
                self._book(ask.tenant, part.name, booking)
        answer = Answer(ask.sequence, tuple(grants))
        known.answers[ask.node] = (now, answer)
        return answer

    def _decided(self, charge: Charge, now: Instant) -> Decision:
        known = self._tenants.setdefault(charge.tenant, _Tenant())
        balances = []
        for name, limit in charge.parts:
            balance, lapsed = current(known.balances.get(name) or opened(limit, now), limit, now)
            balances.append(balance)
            known.balances[name], known.limits[name] = balance, limit
            if charge.ledger and lapsed:
                self._book(charge.tenant, name, Booking(lapsed=lapsed))
        waits = [
            shortfall(balance, limit, charge.cost)
            for balance, (_, limit) in zip(balances, charge.parts, strict=True)
        ]
        longest = max(waits, default=0.0)
        if longest:
            return Decision(False, longest, charge.parts[waits.index(longest)][0])
        for balance, (name, _) in zip(balances, charge.parts, strict=True):
            known.balances[name] = taken(balance, charge.cost)
            if charge.ledger:
                self._book(charge.tenant, name, Booking(exact=charge.cost))
        return Decision(True)

    def _book(self, tenant: TenantId, name: str, booking: Booking) -> None:
        day = datetime.fromtimestamp(self._clock.now(), UTC).date()
        key = (tenant, day, name)
        self._ledger[key] = added(self._ledger.get(key, Booking()), booking)

    def _sweep(self, asks: int, now: Instant) -> None:
        """Look at the next few tenants, as a clock's hand goes round, and drop those that say nothing."""
        for _ in range(min(_SWEPT * asks, len(self._tenants))):
            tenant, known = self._tenants.popitem(last=False)
            known.answers = {
                node: last for node, last in known.answers.items() if last[0] + REMEMBERED_FOR > now
            }
            for name in [
                each for each, kept in known.balances.items() if idle(kept, known.limits[each], now)
            ]:
                self._close_balance(tenant, known, name, now)
            if known.balances or known.answers:
                self._tenants[tenant] = known

    def _close_balance(self, tenant: TenantId, known: _Tenant, name: str, now: Instant) -> None:
        """It says no more than a new one would, but for what its last leases returned."""
        _, lapsed = current(known.balances.pop(name), known.limits.pop(name), now)
        if known.ledger and lapsed:
            self._book(tenant, name, Booking(lapsed=lapsed))

    def _forget_decisions(self, now: Instant) -> None:
        while self._decisions:
            oldest = next(iter(self._decisions))
            if self._decisions[oldest][0] + REMEMBERED_FOR > now:
                return
            del self._decisions[oldest]
