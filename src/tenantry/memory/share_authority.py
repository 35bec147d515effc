"""Static shares with rebalancing, in memory: the other strategy under the authority's port."""

from collections.abc import AsyncIterator, Sequence
from datetime import date

from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import UsageError
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Answer, Ask, Charge, Decision, Grant
from tenantry.limiter.ledger import LedgerLine
from tenantry.limiter.shares import OPENING, Division, reported


class MemoryShareAuthority:
    """Implements :class:`~tenantry.limiter.ports.Authority` by dividing each limit among the nodes; one event
    loop. It grants no tokens, so it keeps no ledger, and it cannot decide exact limits.

    ``gone_after``: a node that was silent for so many seconds has lost its part.
    """

    opening = OPENING

    def __init__(self, clock: Clock, *, gone_after: Seconds = 10.0) -> None:
        self._clock, self._gone_after = clock, gone_after
        self._divisions: dict[tuple[TenantId, str], Division] = {}
        self._answers: dict[tuple[TenantId, str], Answer] = {}
        self._nodes: dict[str, Instant] = {}

    def shard_of(self, tenant: TenantId) -> str:
        return ""

    async def exchange(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        return [self._answer(ask) for ask in asks]

    async def decide(self, charge: Charge) -> Decision:
        """Raises :class:`UsageError`: nobody here counts."""
        raise UsageError("static shares cannot decide exact limits: use an authority that leases")

    async def present(self, node: str, present_for: Seconds) -> int:
        now = self._clock.monotonic()
        self._nodes[node] = Instant(now + present_for)
        self._nodes = {name: until for name, until in self._nodes.items() if until > now}
        return len(self._nodes)

    async def leave(self, node: str) -> None:
        self._nodes.pop(node, None)
        for place, division in self._divisions.items():
            self._divisions[place] = {name: held for name, held in division.items() if name != node}

    async def ledger(self, tenant: TenantId) -> Sequence[LedgerLine]:
        return []

    async def day_of_all(self, day: date) -> AsyncIterator[LedgerLine]:
        for line in await self.ledger(TenantId("")):
            yield line

    def parts(self, tenant: TenantId, name: str = "tenant") -> dict[str, float]:
        """The part of a limit that each node was told."""
        return {node: held.told for node, held in self._divisions.get((tenant, name), {}).items()}

    def _answer(self, ask: Ask) -> Answer:
        last = self._answers.get((ask.tenant, ask.node))
        if last is not None and last.sequence >= ask.sequence:
            return last
        now, grants = self._clock.monotonic(), []
        for part in ask.parts:
            place = (ask.tenant, part.name)
            self._divisions[place], share = reported(
                self._divisions.get(place, {}),
                ask.node,
                part.demand,
                nodes=len(self._nodes),
                now=now,
                gone_after=self._gone_after,
            )
            grants.append(Grant(0.0, 0.0, 0.0, share))
        answer = self._answers[ask.tenant, ask.node] = Answer(ask.sequence, tuple(grants))
        return answer
