"""The pure part of the executor: who may submit, what starts next. Neither face adds a rule of its own."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Generic, NamedTuple, TypeVar

from tenantry.algorithms.fair_share import Charge, FairShare
from tenantry.config.ports import TenantDirectory
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import InvalidValue, UnknownTenant
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId, TierName, tenant_id
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.queue.model import JobClass

T = TypeVar("T")

TierLookup = Callable[[TenantId], Tier | None]
"""The tier of a tenant; None: there is no such tenant."""

DEFAULT_TIER = Tier(TierName("default"), bound=1_000)
"""For those who name no tiers: equal shares, no cap, at most 1,000 waiting."""

_KINDS = frozenset({""})
_LEAST_RETRY = 0.05
_MOST_RETRY = 60.0


class FlowKey(NamedTuple):
    tenant: TenantId
    lane: str
    job_class: JobClass


@dataclass(frozen=True, slots=True)
class Settings:
    """``slots``: most callables at once, >= 1. ``tiers``: a directory, a lookup, or one tier for everybody.
    ``floor`` in [0, 1] and ``quantum`` (slot-seconds > 0): see :class:`FairShare`. ``prior``: seconds, what
    a callable is expected to take before any was measured."""

    slots: int
    tiers: TenantDirectory | TierLookup | Tier = DEFAULT_TIER
    floor: float = 0.25
    quantum: float = 0.010
    prior: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.slots, int) or self.slots < 1:
            raise InvalidValue("slots", self.slots, "a whole number >= 1")
        if not 0.0 <= self.floor <= 1.0:
            raise InvalidValue("floor", self.floor, "a number in [0, 1]")
        if not 0.0 < self.quantum < inf:
            raise InvalidValue("quantum", self.quantum, "slot-seconds > 0")
        if not 0.0 < self.prior < inf:
            raise InvalidValue("prior", self.prior, "seconds > 0")

    def lookup(self) -> TierLookup:
        tiers = self.tiers
        if isinstance(tiers, Tier):
            return lambda _tenant: tiers
        return tiers if callable(tiers) else tiers.tier_of


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts since the start. ``waiting`` and ``running`` are now."""

    waiting: int
    running: int
    submitted: int
    refused: int
    finished: int
    cancelled: int


@dataclass(slots=True, eq=False)
class Entry(Generic[T]):
    """One accepted callable, from its submit to its end."""

    key: FlowKey
    item: T
    cost: float | None
    charge: Charge | None = None
    started_at: Instant = field(default=Instant(0.0))


@dataclass(slots=True)
class _Tenant:
    tier: Tier
    waiting: int = 0
    running: int = 0


class ExecutorCore(Generic[T]):
    """Bounded lines of ``T`` before a number of slots, served by the one rule. No I/O, no clock, no locks.

    The faces ask :meth:`next` after each submit, each end, and at :meth:`next_timer`.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._tier_of = settings, settings.lookup()
        self._rule = FairShare(floor=settings.floor, quantum=settings.quantum, prior=settings.prior)
        self._rule.set_slots(settings.slots, _KINDS)
        self._lines: dict[FlowKey, deque[Entry[T]]] = {}
        self._tenants: dict[TenantId, _Tenant] = {}
        self._running: set[Entry[T]] = set()
        self._took = settings.prior  # seconds that one takes, of late
        self._submitted = self._refused = self._finished = self._cancelled = 0

    @property
    def quantum(self) -> float:
        return self._settings.quantum

    @property
    def idle(self) -> bool:
        return not self._running and not self._waiting

    @property
    def _waiting(self) -> int:
        return self._submitted - self._cancelled - self._finished - len(self._running)

    def has_room(self, tenant: TenantId) -> bool:
        """Whether one more of the tenant's would be accepted. Raises InvalidValue and UnknownTenant."""
        known = self._known(tenant_id(tenant))
        return known.tier.bound is None or known.waiting < known.tier.bound

    def submit(self, key: FlowKey, item: T, *, cost: Seconds | None) -> Entry[T] | Refusal:
        """Accept ``item``, or refuse it by the tenant's bound. O(log lanes)."""
        if cost is not None and not 0.0 < cost < inf:
            raise InvalidValue("cost", cost, "slot-seconds > 0, or None")
        if not self.has_room(key.tenant):
            self._refused += 1
            return self._over(key.tenant)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = deque()
            self._rule.open_flow(key, tenant=key.tenant, lane=key[:2], rank=int(key.job_class))
        entry = Entry(key, item, cost)
        line.append(entry)
        self._tenants[key.tenant].waiting += 1
        self._submitted += 1
        self._rule.add(key, cost=cost)
        return entry

    def next(self, now: Instant) -> list[Entry[T]]:
        """What is to be started now, in order. The slots are taken."""
        started: list[Entry[T]] = []
        for pick in self._rule.plan({_KINDS: self._settings.slots - len(self._running)}, now):
            for _ in range(pick.count):
                entry = self._lines[pick.flow].popleft()  # type: ignore[index]  # flows are named by FlowKey
                entry.charge, entry.started_at = pick.charge, now
                tenant = self._tenants[entry.key.tenant]
                tenant.waiting -= 1
                tenant.running += 1
                self._running.add(entry)
                started.append(entry)
        return started

    def end(self, entry: Entry[T], now: Instant) -> None:
        """A started entry gave its slot back."""
        if entry.charge is None or entry not in self._running:
            return
        self._running.discard(entry)
        self._tenants[entry.key.tenant].running -= 1
        self._finished += 1
        busy_for = now - entry.started_at
        self._took += 0.1 * (busy_for - self._took)
        self._rule.settle(entry.charge, busy_for, now)

    def cancel(self, entry: Entry[T]) -> bool:
        """Take a waiting entry out. False: it has started or ended. O(line)."""
        line = self._lines[entry.key]
        if entry.charge is not None or entry not in line:
            return False
        line.remove(entry)
        self._tenants[entry.key.tenant].waiting -= 1
        self._cancelled += 1
        self._rule.withdraw(entry.key)
        return True

    def waiting(self) -> list[Entry[T]]:
        return [entry for line in self._lines.values() for entry in line]

    def running(self) -> list[Entry[T]]:
        return list(self._running)

    def next_timer(self) -> Seconds | None:
        """When :meth:`next` may have something without a submit or an end: a dispatch rate frees."""
        return self._rule.next_timer()

    def deficit(self, tenant: TenantId) -> Seconds:
        """The deficit counter: slot-seconds of credit (> 0, at most a quantum while active) or debt (< 0)."""
        return self._rule.deficit(tenant) if tenant in self._tenants else 0.0

    def active(self) -> Iterable[TenantId]:
        """The active list: the tenants that may start something as soon as a slot is free."""
        return [tenant for tenant in self._tenants if self._rule.eligible(tenant)]

    def stats(self) -> Stats:
        return Stats(
            self._waiting, len(self._running), self._submitted, self._refused, self._finished, self._cancelled
        )

    def _known(self, tenant: TenantId) -> _Tenant:
        """The tenant by its present tier: a changed one acts on the backlog."""
        tier = self._tier_of(tenant)
        if tier is None:
            raise UnknownTenant(tenant)
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = _Tenant(tier)
        elif found.tier == tier:
            return found
        found.tier = tier
        self._rule.set_tenant(tenant, weight=tier.weight, cap=tier.cap, rate=tier.dispatch_rate)
        return found

    def _over(self, name: TenantId) -> Refusal:
        """Come back when about a tenth of what waits has started."""
        tenant = self._tenants[name]
        part = self._rule.share(name) or 1.0 / len(self._tenants)
        wait = self._took * tenant.waiting / (part * self._settings.slots) / 10
        detail = f"{name} has {tenant.waiting} waiting, the bound of its tier {tenant.tier.name!r}"
        return Refusal(Rule.BOUND, detail, min(_MOST_RETRY, max(_LEAST_RETRY, wait)))
