"""Plans of a million tenants in a few flat arrays, and the simple forms that a limiter takes.

A dict of a million ids is over 100 MB before the first plan is stored. Here an id is its bytes in one blob, a
plan a number into a list of the distinct ones (tenants of one tier share theirs), and a place is found by
open addressing: hash, then the next free slot. About 30 bytes a tenant, its id included."""

from array import array
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId, tenant_id
from tenantry.limiter.model import Plan
from tenantry.limiter.ports import PlanListener, PlanSource

_EMPTY: Final = 0  # in a slot: nothing here; else a tenant's number + 1
_NO_PLAN: Final = 0xFFFFFFFF
_FULLEST: Final = 0.75  # of the slots, at most; beyond it probes grow long


class Plans:
    """Which tenant has which plan. Safe to use from any thread; look-ups take no lock.

    ``plans``: pairs to begin with, or a mapping. ``default``: of tenants that are not among them; None for no
    limit. Raises :class:`InvalidValue` for an id that is none, or what is no plan.
    """

    def __init__(
        self, plans: Mapping[str, Plan] | Iterable[tuple[str, Plan]] = (), *, default: Plan | None = None
    ) -> None:
        self._default = default
        self._listeners: list[PlanListener] = []
        self._writing = Lock()
        self._table = _Table(1 << 10)
        self._distinct: list[Plan] = []
        self._numbers: dict[int, int] = {}  # by the identity of a plan that is kept alive in _distinct
        for tenant, plan in plans.items() if isinstance(plans, Mapping) else plans:
            self._put(tenant_id(tenant), plan)

    def __len__(self) -> int:
        """How many tenants have had a plan."""
        return self._table.count

    def plan_of(self, tenant: TenantId) -> Plan | None:
        """The tenant's plan, else the default. O(length of the id)."""
        number = self._table.get(tenant.encode())
        return self._default if number == _NO_PLAN else self._distinct[number]

    def put(self, tenant: str, plan: Plan | None) -> None:
        """Give a tenant a plan; None gives it the default. Limiters act on it before this returns. O(1).

        Tenants that share a plan should be given the same object: it is stored once.
        """
        who = tenant_id(tenant)
        self._put(who, plan)
        for listener in self._listeners:
            listener(who)

    def subscribe(self, listener: PlanListener) -> None:
        self._listeners.append(listener)

    def _put(self, tenant: TenantId, plan: Plan | None) -> None:
        with self._writing:
            number = _NO_PLAN if plan is None else self._number_of(plan)
            if self._table.count + 1 > _FULLEST * self._table.size:
                self._table = self._table.grown()
            self._table.put(tenant.encode(), number)

    def _number_of(self, plan: Plan) -> int:
        number = self._numbers.get(id(plan))
        if number is None:
            if not isinstance(plan, Plan):
                raise InvalidValue("plan", plan, "a Plan, or None for the default")
            number = self._numbers[id(plan)] = len(self._distinct)
            self._distinct.append(plan)
        return number


class _Table:
    """Ids to numbers by open addressing. A reader sees each write whole: the slot is written last."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self.slots = array("I", bytes(4 * size))
        self.ids, self.ends, self.numbers = bytearray(), array("I", [0]), array("I")

    def get(self, key: bytes) -> int:
        at = self._slot(key)
        return _NO_PLAN if self.slots[at] == _EMPTY else self.numbers[self.slots[at] - 1]

    def put(self, key: bytes, number: int) -> None:
        at = self._slot(key)
        if self.slots[at] != _EMPTY:
            self.numbers[self.slots[at] - 1] = number
            return
        self.ids += key
        self.ends.append(len(self.ids))
        self.numbers.append(number)
        self.count += 1
        self.slots[at] = self.count

    def grown(self) -> "_Table":
        larger = _Table(2 * self.size)
        larger.ids, larger.ends, larger.numbers, larger.count = (
            self.ids,
            self.ends,
            self.numbers,
            self.count,
        )
        for place in range(self.count):
            larger.slots[larger._slot(self._id(place))] = place + 1
        return larger

    def _slot(self, key: bytes) -> int:
        """Where ``key`` is, or the free slot where it would be."""
        mask = self.size - 1
        at = hash(key) & mask
        while (place := self.slots[at]) != _EMPTY and self._id(place - 1) != key:
            at = (at + 1) & mask
        return at

    def _id(self, place: int) -> bytes:
        return bytes(self.ids[self.ends[place] : self.ends[place + 1]])


class _Everybody:
    """One plan for every tenant."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def plan_of(self, tenant: TenantId) -> Plan | None:
        return self._plan

    def subscribe(self, listener: PlanListener) -> None:
        """It never changes."""


def as_source(plans: Plan | Mapping[str, Plan] | PlanSource) -> PlanSource:
    """Whatever a limiter is given, as a source. Raises :class:`InvalidValue`."""
    if isinstance(plans, Plan):
        return _Everybody(plans)
    if isinstance(plans, Mapping):
        return Plans(plans.items())
    if hasattr(plans, "plan_of") and hasattr(plans, "subscribe"):
        return plans
    accepted = "a Plan, a mapping from tenants to plans, or an object with plan_of and subscribe"
    raise InvalidValue("plans", plans, accepted)
