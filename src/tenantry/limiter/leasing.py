"""Decisions from leases: like those of :mod:`tenantry.limiter.local`, but what a bucket lacks is asked
for."""

from collections.abc import Mapping
from typing import Any

from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import UsageError
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.buckets import Leased
from tenantry.limiter.local import Limiter, applying
from tenantry.limiter.model import ALLOWED, MOST, Basis, Limit, Plan, Verdict
from tenantry.limiter.ports import PlanSource
from tenantry.limiter.renewal import Renewals
from tenantry.limiter.tenants import UNLIMITED, LeasedTenant, More
from tenantry.limiter.turns import take_turn, wait_for_turn

_PASSED = ALLOWED[Basis.LEASE]
_EXACT = "a limit of this tenant is exact: the authority decides, so await limiter.acquire(...)"


class LeasingLimiter(Limiter):
    """A :class:`Limiter` that spends what ``renewals`` brings. It does no I/O: whoever holds ``renewals``
    sends what is due and hands it the answers."""

    def __init__(
        self, plans: Plan | Mapping[str, Plan] | PlanSource, renewals: Renewals, *, clock: Clock | None = None
    ) -> None:
        self._renewals = renewals
        super().__init__(plans, clock=clock, settings=renewals.crew.settings)

    def try_acquire(
        self, tenant: str, *, key: str | None = None, route: str | None = None, cost: float = 1
    ) -> Verdict:
        """As :meth:`Limiter.try_acquire`."""
        entry = self._tenants.get(tenant)
        if entry is None or entry.more is not None or not 0 < cost <= MOST:
            return self._decided(tenant, key, route, cost)
        turn = entry.turn
        try:
            turn.pop()
        except IndexError:
            wait_for_turn(turn)
        try:
            now, gone = self._now(), entry.more is not None
            if now < entry.until and cost <= entry.left and not gone:
                # Leased.wait_for and .spend, written out for the calls that are nearly all
                entry.left -= cost
                entry.spent += cost
                if entry.left >= entry.low or entry.coming or entry.asking:
                    return _PASSED
                verdict, waits, wants = _PASSED, 0.0, True
            elif not gone:
                verdict, waits = entry.allowed(now), entry.wait_for(cost, now)
                wants = entry.wanting(now) if waits else entry.spend(cost, now)
        finally:
            turn.append(None)
        if gone:
            return self._decided(tenant, key, route, cost)
        if wants and not entry.asking:
            self._ask(entry)
        return Verdict(False, verdict.basis, waits, "tenant") if waits else verdict

    def _all_or_none(self, entry: Any, key: str | None, route: str | None, cost: float) -> Verdict | None:
        if entry.more is not None and entry.more.plan.exact:
            raise UsageError(_EXACT)
        return super()._all_or_none(entry, key, route, cost)

    def _made(self, tenant: TenantId, plan: Plan) -> LeasedTenant:
        entry = LeasedTenant(plan.tenant or UNLIMITED, self._turn_of(tenant), tenant, self._renewals.crew)
        entry.ledger = plan.ledger or plan.exact
        entry.more = self._more(plan)
        return entry

    def _more(self, plan: Plan) -> More | None:
        """Also where there is an exact limit and nothing else: the record is then not decided from alone."""
        if plan.plain and not plan.exact:
            return None
        return More(plan, self._leased, self.settings.most_keys)

    def _leased(self, limit: Limit, name: str) -> Leased:
        return Leased(limit, name, self._renewals.crew)

    def _ask(self, entry: LeasedTenant) -> None:
        self._renewals.want(entry)

    def _left(self, entry: LeasedTenant) -> None:
        """What it spent is told, what it holds given back."""
        if not entry.asking:
            self._ask(entry)

    def _prepared(self, entry: LeasedTenant, key: str | None, route: str | None, cost: float) -> bool:
        """Ask for all limits of a call that have no live lease, without charging. False when all have one, or
        when the authority is known to be away."""
        take_turn(entry.turn)
        try:
            now = self._now()
            bare = [
                bucket
                for _, bucket in applying(entry, key, route, now)
                if isinstance(bucket, Leased) and now >= bucket.until and not bucket.cut
            ]
            for bucket in bare:
                bucket.expect(cost)
        finally:
            entry.turn.append(None)
        if bare and not entry.asking:
            self._ask(entry)
        return bool(bare)
