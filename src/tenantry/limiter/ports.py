"""What the limiter needs from outside: where plans come from, and who grants."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import date
from typing import Protocol

from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Answer, Ask, Charge, Decision
from tenantry.limiter.ledger import LedgerLine
from tenantry.limiter.model import Plan

PlanListener = Callable[[TenantId | None], None]
"""Told of a tenant whose plan has changed; of None when any may have."""


class PlanSource(Protocol):
    """Who may use what. Answers from memory, never waits, is safe to call from any thread."""

    def plan_of(self, tenant: TenantId) -> Plan | None:
        """The tenant's plan, or None for one without limits. O(1)."""
        ...

    def subscribe(self, listener: PlanListener) -> None:
        """Call ``listener`` after each change. It returns at once."""
        ...


class Authority(Protocol):
    """Who keeps the global buckets and grants from them. One event loop.

    Every method raises :class:`~tenantry.kernel.errors.StoreUnavailable` when it cannot be reached, and does
    so within its own timeout.
    """

    @property
    def opening(self) -> float:
        """Which part of an even share a node may spend before the first answer, in (0, 1]."""
        ...

    def shard_of(self, tenant: TenantId) -> str:
        """Which part of the authority keeps this tenant: asks of one shard travel in one call. O(1)."""
        ...

    async def exchange(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """One call: what was spent is booked, what can be granted is. The answers are in the asks' order.

        An ask that comes again (the same node, tenant and sequence number) is answered as the first time and
        changes nothing. All asks are of one shard.
        """
        ...

    async def decide(self, charge: Charge) -> Decision:
        """One exact decision: all limits of the charge are charged, or none. The same id charges once."""
        ...

    async def present(self, node: str, present_for: Seconds) -> int:
        """This node is there, for so long; answers how many are, at least 1."""
        ...

    async def leave(self, node: str) -> None:
        """This node is there no longer."""
        ...

    async def ledger(self, tenant: TenantId) -> Sequence[LedgerLine]:
        """What was booked for a tenant whose plan has a ledger, by day and limit."""
        ...

    def day_of_all(self, day: date) -> AsyncIterator[LedgerLine]:
        """What was booked on ``day``: the tenants' own limits (not their keys' and routes'), of every tenant
        that has such a line, in no order. A tenant that is being booked meanwhile may come twice: the later
        line counts."""
        ...
