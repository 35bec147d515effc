"""Decisions, each of them local: a look-up, a turn, one sum.

A :class:`Limiter` is its own authority: its buckets are the limits, refilled by its clock. Those that lease
are in :mod:`tenantry.limiter.leasing`."""

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Instant
from tenantry.kernel.tenant import TenantId, tenant_id
from tenantry.limiter.buckets import Refilled
from tenantry.limiter.model import ALLOWED, MOST, Basis, Limit, Plan, Standing, Verdict
from tenantry.limiter.plans import as_source
from tenantry.limiter.ports import PlanSource
from tenantry.limiter.settings import LimiterSettings
from tenantry.limiter.tenants import LOOKED_AT, UNLIMITED, Bucket, More, OwnTenant
from tenantry.limiter.turns import Turn, stripes, take_turn, wait_for_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNLIMITED, _PASSED = ALLOWED[Basis.UNLIMITED], ALLOWED[Basis.OWN]
_SWEPT = 2  # records looked at for each new one: the sweep outruns the growth


class Limiter:
    """Says whether a call may go on. Safe to call from any thread and any task; it never waits.

    ``plans``: one :class:`Plan` for everybody, a mapping from tenants, or a
    :class:`~tenantry.limiter.ports.PlanSource`. A tenant without a plan has no limit. Raises
    :class:`InvalidValue` for plans that are none.
    """

    def __init__(
        self,
        plans: "Plan | Mapping[str, Plan] | PlanSource",
        *,
        clock: Clock | None = None,
        settings: LimiterSettings | None = None,
    ) -> None:
        self.settings = settings or LimiterSettings()
        self.clock = clock or SystemClock()
        self._now: Callable[[], Instant] = self.clock.monotonic
        self._tenants: dict[str, Any] = {}
        self._to_sweep: deque[str] = deque()  # those that this round of the sweep has yet to look at
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
        ``cost``: in (0, 1e12]. Raises :class:`InvalidValue`; and, for a limiter that leases,
        :class:`UsageError` where a limit is exact: then the authority decides, and ``acquire`` waits for it.
        """
        entry = self._tenants.get(tenant)
        if entry is None or not 0 < cost <= MOST:
            return self._decided(tenant, key, route, cost)
        if entry.more is not None:
            return self._several(entry, key, route, cost) or self._decided(tenant, key, route, cost)
        turn = entry.turn
        try:
            turn.pop()
        except IndexError:
            wait_for_turn(turn)
        try:
            if entry.more is None:  # else it has left the table since it was found, or has another plan
                # Refilled.wait_for and .spend, written out: three calls take as long as the decision.
                now, limit, full_at = self._now(), entry.limit, entry.full_at
                full_at = (full_at if full_at > now else now) + cost * limit.interval
                if full_at - now <= limit.passes_within:
                    entry.full_at = full_at
                    return _PASSED
                return Verdict(False, Basis.OWN, entry.wait_for(cost, now), "tenant")
        finally:
            turn.append(None)
        return self._decided(tenant, key, route, cost)  # type: ignore[unreachable]  # other threads write it

    def _several(self, entry: Any, key: str | None, route: str | None, cost: float) -> Verdict | None:
        """All limits of a call whose buckets are there pass together, or nothing is charged and the long way
        says why (None)."""
        more, turn = entry.more, entry.turn
        try:
            turn.pop()
        except IndexError:
            wait_for_turn(turn)
        try:
            now = self._now()
            found = more.paths.get((key, route)) or more.paths.get(more.limited_names(key, route), ())
            for bucket in found:
                limit, full_at = bucket.limit, bucket.full_at
                full_at = (full_at if full_at > now else now) + cost * limit.interval
                if full_at - now > limit.passes_within:
                    for charged in found[: found.index(bucket)]:
                        charged.give_back(cost, now)
                    return None
                bucket.full_at = full_at
            return _PASSED if found else None
        finally:
            turn.append(None)

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
            found = applying(entry, key, route, now)
            if entry.more is not None and isinstance(entry, OwnTenant):
                entry.more.remember(key, route, found)
            verdict, wants = _over_all(found, cost, now)
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
        return entry

    def _made(self, tenant: TenantId, plan: Plan) -> Any:
        own = OwnTenant(plan.tenant or UNLIMITED, self._turn_of(tenant))
        own.more = self._more(plan)
        return own

    def _turn_of(self, tenant: TenantId) -> Turn:
        return self._turns[hash(tenant) % len(self._turns)]

    def _more(self, plan: Plan) -> More | None:
        return None if plan.plain else More(plan, refilled_bucket, self.settings.most_keys)

    def _ask(self, entry: Any) -> None:
        """An own bucket wants nothing of anybody."""

    def _left(self, entry: Any) -> None:
        """A record has left the table."""

    def _sweep(self) -> None:
        """Look at the next few records and drop those that say nothing; past the bound, drop the one nearest
        to full, whatever it says. The caller holds the admission lock."""
        for tenant in self._next_to_sweep(_SWEPT):
            self._dropped(tenant, idle_only=True)
        if len(self._tenants) >= self.settings.most_tenants:
            now = self._now()
            looked_at = self._next_to_sweep(LOOKED_AT)
            nearest = min(looked_at, key=lambda each: float(self._tenants[each].lacking_for(now)))
            self._dropped(nearest, idle_only=False)

    def _next_to_sweep(self, most: int) -> list[str]:
        """Tenants that have a record, a few at a time, round after round."""
        found: list[str] = []
        while len(found) < min(most, len(self._tenants)):
            if not self._to_sweep:
                self._to_sweep = deque(self._tenants)
            tenant = self._to_sweep.popleft()
            if tenant in self._tenants:
                found.append(tenant)
        return found

    def _dropped(self, tenant: str, *, idle_only: bool) -> bool:
        """The caller holds the admission lock."""
        entry = self._tenants.get(tenant)
        if entry is None:
            return False
        take_turn(entry.turn)
        try:
            now = self._now()
            if idle_only and not _idle(entry, now):
                return False
            del self._tenants[tenant]
            entry.more = entry.more or More(Plan(entry.limit), refilled_bucket, 1)
            entry.more.leave()  # whoever has found it already looks again
        finally:
            entry.turn.append(None)
        self._left(entry)
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
            self._dropped(tenant, idle_only=False)
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


def refilled_bucket(limit: Limit, name: str) -> Bucket:
    """A bucket of a limiter that is its own authority; it needs no name."""
    return Refilled(limit)
