"""Decisions, each of them local: a look-up, a turn, one sum.

:class:`Limiter` by itself is its own authority: its buckets are the limits, refilled by its clock. Given a
:class:`~tenantry.limiter.renewal.Renewals` it spends leases, and what it lacks is asked for behind its back.
"""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.kernel.instant import Instant
from tenantry.kernel.tenant import TenantId, tenant_id
from tenantry.limiter.buckets import Leased, Refilled
from tenantry.limiter.model import ALLOWED, MOST, Basis, Limit, Plan, Standing, Verdict
from tenantry.limiter.plans import as_source
from tenantry.limiter.ports import PlanSource
from tenantry.limiter.settings import LimiterSettings
from tenantry.limiter.tenants import LOOKED_AT, UNLIMITED, Bucket, LeasedTenant, More, OwnTenant
from tenantry.limiter.turns import stripes, take_turn, wait_for_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenantry.limiter.renewal import Renewals

Tenant = OwnTenant | LeasedTenant

_UNLIMITED = ALLOWED[Basis.UNLIMITED]
_EXACT = "a limit of this tenant is exact: the authority decides, so await limiter.acquire(...)"
_SWEPT = 2  # records looked at for each new one: the sweep outruns the growth


class Limiter:
    """Says whether a call may go on. Safe to call from any thread and any task; it never waits.

    ``plans``: one :class:`Plan` for everybody, a mapping from tenants, or a
    :class:`~tenantry.limiter.ports.PlanSource`. A tenant without a plan has no limit. ``renewals``: where
    leases come from; without them this process alone is the authority. Raises :class:`InvalidValue` for
    settings or plans that are none."""

    def __init__(
        self,
        plans: "Plan | Mapping[str, Plan] | PlanSource",
        *,
        clock: Clock | None = None,
        settings: LimiterSettings | None = None,
        renewals: "Renewals | None" = None,
    ) -> None:
        self.settings = settings or (LimiterSettings() if renewals is None else renewals.crew.settings)
        self.clock = clock or SystemClock()
        self._now: Callable[[], Instant] = self.clock.monotonic
        self._renewals = renewals
        self._tenants: dict[str, Any] = {}
        self._ring: list[str] = []  # the same tenants, in the order in which the sweep's hand meets them
        self._hand = 0
        self._turns = stripes()
        self._admission = Lock()
        self._plans = as_source(plans)
        self._plans.subscribe(self._plan_changed)

    def __len__(self) -> int:
        """How many tenants have live buckets."""
        return len(self._tenants)

    def try_acquire(
        self, tenant: str, *, key: str | None = None, route: str | None = None, cost: float = 1
    ) -> Verdict:
        """Charge ``cost`` tokens to every limit that applies, or refuse and charge nothing. Never waits.
        O(1).

        ``key``: whose calls its plan counts by themselves; ``route``: by the name that its plan gives it.
        ``cost``: in (0, 1e12]. Raises :class:`InvalidValue`, and :class:`UsageError` where a limit is exact:
        then the authority decides, and only :meth:`LimiterNode.acquire` can wait for it.
        """
        entry = self._tenants.get(tenant)
        if entry is None or entry.more is not None or not 0 < cost <= MOST:
            return self._decided(tenant, key, route, cost)
        turn = entry.turn
        try:
            turn.pop()
        except IndexError:
            wait_for_turn(turn)
        try:
            now = self._now()
            verdict: Verdict = entry.allowed(now)
            waits: float = entry.wait_for(cost, now)
            wants: bool = entry.wanting(now) if waits else entry.spend(cost, now)
            gone = entry.more is not None
            if gone and not waits:
                entry.give_back(cost, now)
        finally:
            turn.append(None)
        if gone:
            return self._decided(tenant, key, route, cost)
        if wants and not entry.asking:
            self._ask(entry)
        return Verdict(False, verdict.basis, waits, "tenant") if waits else verdict

    def give_back(
        self, tenant: str, *, key: str | None = None, route: str | None = None, cost: float = 1
    ) -> None:
        """Undo an allowed call that did not take place: never above what the limits hold. O(1)."""
        entry = self._tenants.get(tenant)
        if entry is None:
            return
        take_turn(entry.turn)
        try:
            now = self._now()
            for _, bucket in applying(entry, key, route, now):
                bucket.give_back(cost, now)
        finally:
            entry.turn.append(None)

    def standings(self, tenant: str, *, key: str | None = None, route: str | None = None) -> list[Standing]:
        """How much of each limit that applies is left, as this node knows it; nothing is charged. O(1)."""
        entry = self._found(tenant)
        if entry is None:
            return []
        take_turn(entry.turn)
        try:
            now = self._now()
            return [_standing(scope, bucket, now) for scope, bucket in applying(entry, key, route, now)]
        finally:
            entry.turn.append(None)

    def plan_of(self, tenant: str) -> Plan | None:
        """The tenant's plan. Raises :class:`InvalidValue` for what is no tenant."""
        return self._plans.plan_of(tenant_id(tenant))

    def _decided(self, tenant: str, key: str | None, route: str | None, cost: float) -> Verdict:
        """The way of the new, of several limits, and of those who meet a record that is just leaving."""
        check_cost(cost)
        while True:
            entry = self._found(tenant)
            if entry is None:
                return _UNLIMITED
            if self._renewals is not None and entry.more is not None and entry.more.plan.exact:
                raise UsageError(_EXACT)
            verdict = self._all_or_none(entry, key, route, cost)
            if verdict is not None:
                return verdict

    def _all_or_none(self, entry: Any, key: str | None, route: str | None, cost: float) -> Verdict | None:
        """The verdict over all limits of a call; None when the record has left the table meanwhile."""
        turn = entry.turn
        take_turn(turn)
        try:
            if entry.more is not None and entry.more.gone:
                return None
            now = self._now()
            verdict, wants = _over_all(applying(entry, key, route, now), cost, now)
        finally:
            turn.append(None)
        if wants and not entry.asking:
            self._ask(entry)
        return verdict

    def _found(self, tenant: str) -> Any:
        """The tenant's record, made where it is new; None without a plan."""
        entry = self._tenants.get(tenant)
        if entry is not None:
            return entry
        who = tenant_id(tenant)
        plan = self._plans.plan_of(who)
        if plan is None or (plan.tenant is None and plan.plain):
            return None
        with self._admission:
            entry = self._tenants.get(who)
            if entry is None:
                self._sweep()
                entry = self._tenants[who] = self._made(who, plan)
                self._ring.append(who)
        return entry

    def _made(self, tenant: TenantId, plan: Plan) -> Tenant:
        turn = self._turns[hash(tenant) % len(self._turns)]
        limit = plan.tenant or UNLIMITED
        if self._renewals is None:
            own = OwnTenant(limit, turn)
            own.more = None if plan.plain else More(plan, _refilled, self.settings.most_keys)
            return own
        leased = LeasedTenant(limit, turn, tenant, self._renewals.crew)
        leased.ledger = plan.ledger or plan.exact
        leased.more = self._more(plan)
        return leased

    def _more(self, plan: Plan) -> More | None:
        if plan.plain and not (plan.exact and self._renewals is not None):
            return None
        crew = self._renewals.crew if self._renewals is not None else None
        make = (lambda limit, name: Leased(limit, name, crew)) if crew else _refilled
        return More(plan, make, self.settings.most_keys)

    def _sweep(self) -> None:
        """Look at the next few records, as a clock's hand goes round, and drop those that say nothing; past
        the bound, drop one whatever it says. The caller holds the admission lock."""
        for _ in range(min(_SWEPT, len(self._ring))):
            self._hand %= len(self._ring)
            if not self._dropped(self._hand, idle_only=True):
                self._hand += 1
        if len(self._ring) >= self.settings.most_tenants:
            self._drop_nearest_to_full()

    def _drop_nearest_to_full(self) -> None:
        now, size = self._now(), len(self._ring)
        places = [(self._hand + step) % size for step in range(min(LOOKED_AT, size))]
        self._dropped(
            min(places, key=lambda place: self._tenants[self._ring[place]].lacking_for(now)), idle_only=False
        )
        self._hand += 1

    def _dropped(self, place: int, *, idle_only: bool) -> bool:
        tenant = self._ring[place]
        entry = self._tenants[tenant]
        take_turn(entry.turn)
        try:
            now = self._now()
            if idle_only and not _idle(entry, now):
                return False
            del self._tenants[tenant]
            entry.more = entry.more or More(Plan(entry.limit), _refilled, 1)
            entry.more.gone = True  # whoever has found it already looks again
        finally:
            entry.turn.append(None)
        if self._renewals is not None and not entry.asking:
            self._ask(entry)  # what it spent is told, what it holds given back
        self._ring[place] = self._ring[-1]
        self._ring.pop()
        return True

    def _plan_changed(self, tenant: TenantId | None) -> None:
        """Act on another plan of one tenant, or of all, before this returns."""
        with self._admission:
            for each in [tenant] if tenant is not None else [TenantId(known) for known in self._tenants]:
                entry = self._tenants.get(each)
                if entry is not None:
                    self._replan(each, entry, self._plans.plan_of(each))

    def _replan(self, tenant: TenantId, entry: Any, plan: Plan | None) -> None:
        if plan is None or (plan.tenant is None and plan.plain):
            self._dropped(self._ring.index(tenant), idle_only=False)
            return
        take_turn(entry.turn)
        try:
            now = self._now()
            entry.replan(plan.tenant or UNLIMITED, now)
            if entry.more is None:
                entry.more = self._more(plan)
            else:
                entry.more.replan(plan, now)
        finally:
            entry.turn.append(None)

    def _prepared(self, entry: Any, key: str | None, route: str | None, cost: float) -> bool:
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

    def _ask(self, entry: LeasedTenant) -> None:
        assert self._renewals is not None
        self._renewals.want(entry)


def check_cost(cost: float) -> None:
    """Raises :class:`InvalidValue` for a cost that is none."""
    if not 0 < cost <= MOST:
        raise InvalidValue("cost", cost, f"tokens in (0, {MOST:g}]")


def _over_all(found: "list[tuple[str, Bucket]]", cost: float, now: Instant) -> tuple[Verdict, bool]:
    """The verdict over all limits of a call, and whether something should be asked for. The caller holds the
    turn; nothing is charged unless all have room."""
    longest, scope, basis = 0.0, "", Basis.UNLIMITED
    for name, bucket in found:
        waits = bucket.wait_for(cost, now)
        if waits > longest:
            longest, scope, basis = waits, name, bucket.allowed(now).basis
    if longest:
        return Verdict(False, basis, longest, scope), any(bucket.wanting(now) for _, bucket in found)
    wants = False
    verdict = _UNLIMITED
    for _, bucket in found:
        verdict = bucket.allowed(now)
        wants = bucket.spend(cost, now) or wants
    return verdict, wants


def applying(entry: Any, key: str | None, route: str | None, now: Instant) -> "list[tuple[str, Bucket]]":
    """The buckets of one call with the scopes of their limits. The caller holds the turn."""
    more = entry.more
    return [("tenant", entry)] if more is None else more.applying(entry, key, route, now)


def _standing(scope: str, bucket: Bucket, now: Instant) -> Standing:
    limit = bucket.limit
    remaining = min(bucket.remaining(now) + 1e-9, limit.capacity)
    whole = int(remaining)
    full_in = (limit.capacity - remaining) * limit.interval
    more_in = min(full_in, (whole + 1 - remaining) * limit.interval)
    return Standing(scope, limit, whole, more_in, full_in)


def _idle(entry: Any, now: Instant) -> bool:
    return entry.idle(now) and (entry.more is None or entry.more.idle(now))


def _refilled(limit: Limit, name: str) -> Bucket:
    return Refilled(limit)
