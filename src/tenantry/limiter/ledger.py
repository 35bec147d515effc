"""The ledger: what was granted and what became of it, by tenant, limit and UTC day; and how it is held
against an access log.

Of each line ``granted = spent + returned + lapsed + held``, where ``held`` is what live leases hold. What was
used is ``spent + late + unleased + exact``. The authority books; its clock says which day it is (law K4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Booking

EPOCH: Final = date(1970, 1, 1)
"""From it an authority that counts days counts them."""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One limit's day. ``name``: ``tenant``, ``key:…`` or ``route:…``. Amounts in tokens, as in
    :class:`~tenantry.limiter.exchange.Booking`."""

    tenant: TenantId
    day: date
    name: str
    booking: Booking

    @property
    def used(self) -> float:
        """What calls that went on have cost."""
        booking = self.booking
        return booking.spent + booking.late + booking.unleased + booking.exact

    @property
    def held(self) -> float:
        """What leases held when it was read, if the line is of one day with all its leases."""
        booking = self.booking
        return booking.granted - booking.spent - booking.returned - booking.lapsed


@dataclass(frozen=True, slots=True)
class Difference:
    """One tenant's day: what the ledger says was used, what the log says went on."""

    tenant: TenantId
    ledger: float
    log: float

    @property
    def off(self) -> float:
        """Log less ledger: > 0 where calls went on that nobody booked."""
        return self.log - self.ledger

    def within(self, part: float, tokens: float) -> bool:
        """Whether it is off by at most ``part`` of the ledger plus ``tokens``."""
        return abs(self.off) <= part * self.ledger + tokens


def added(one: Booking, other: Booking) -> Booking:
    """The sum. Pure."""
    return Booking(*(a + b for a, b in zip(one, other, strict=True)))


def reconciled(ledger: Mapping[TenantId, float], log: Mapping[TenantId, float]) -> tuple[Difference, ...]:
    """What the ledger says was used against what a log counted, tokens of one day: every tenant of either, in
    order. Pure, O(n log n)."""
    tenants = sorted(ledger.keys() | log.keys())
    return tuple(Difference(each, ledger.get(each, 0.0), log.get(each, 0.0)) for each in tenants)
