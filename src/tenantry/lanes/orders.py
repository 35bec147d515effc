"""What a person orders of lanes: pause and resume, a ceiling and its lifting, a reset. Pure.

A scope covers lanes that are there and lanes that come later. Orders of different scopes do not undo each
other: a lane is paused while any order that covers it says so, and its ceiling is the lowest that covers it.

=========  ======================================================================================
action     means for each lane of its scope
=========  ======================================================================================
pause      nothing starts; jobs are accepted up to the tenant's bound. Stands until it is resumed
resume     ends the pause of exactly this scope
ceiling    at most so many in flight, in each lane. Stands until it is lifted
lift       ends the ceiling of exactly this scope
reset      the shaper forgets what it learned and starts at 1. Done once; nothing of it stands
=========  ======================================================================================
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp, as_datetime
from tenantry.kernel.tenant import TenantId, identifier, tenant_id
from tenantry.lanes.model import Lane, Target

MOST_ORDERS: Final = 1_000
"""Of one answer."""

LARGEST_CEILING: Final = 1_000_000
LONGEST_REASON: Final = 500
LONGEST_TARGET: Final = 2_048


class Action(StrEnum):
    """What can be ordered; the values are public."""

    PAUSE = "pause"
    RESUME = "resume"
    CEILING = "ceiling"
    LIFT = "lift"
    RESET = "reset"


STANDING: Final = frozenset({Action.PAUSE, Action.CEILING})
"""The orders that stand until another ends them."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which lanes: those of ``tenant``, those to ``target``, or with both the one lane.

    Raises :class:`~tenantry.kernel.errors.InvalidValue` for a scope of neither, and for a name that no tenant
    and no target can have."""

    tenant: TenantId | None = None
    target: Target | None = None

    def __post_init__(self) -> None:
        if self.tenant is None and self.target is None:
            raise InvalidValue("scope", "neither", "a tenant, a target, or both for one lane")
        if self.tenant is not None:
            tenant_id(self.tenant)
        if self.target is not None:
            _check_target(self.target)

    def covers(self, lane: Lane) -> bool:
        return self.tenant in (None, lane.tenant) and self.target in (None, lane.target)

    def __str__(self) -> str:
        if self.target is None:
            return f"every lane of {self.tenant}"
        return f"every lane to {self.target}" if self.tenant is None else f"{self.tenant} to {self.target}"


def scopes_over(lane: Lane) -> tuple[Scope, Scope, Scope]:
    """The three scopes that cover ``lane``, the narrowest first. Pure, O(1)."""
    return Scope(lane.tenant, lane.target), Scope(target=lane.target), Scope(tenant=lane.tenant)


@dataclass(frozen=True, slots=True)
class Order:
    """An order as a person gives it. ``reason``: one line, 1 to 500 characters; tenants see it where it stops
    their jobs. ``by``: who, 1 to 255 bytes. ``ceiling``: 1 to 1,000,000 with CEILING, else None.

    Raises :class:`~tenantry.kernel.errors.InvalidValue` naming the field."""

    action: Action
    scope: Scope
    reason: str
    by: str
    ceiling: int | None = None

    def __post_init__(self) -> None:
        _check_reason(self.reason)
        identifier(self.by, path="by")
        _check_ceiling(self.action, self.ceiling)


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """An order that was given: ``number`` rises from order to order, ``at`` is the store's time."""

    number: int
    order: Order
    at: Timestamp

    def __str__(self) -> str:
        """Who since when and why, as it stands beside whatever the order does."""
        since = as_datetime(self.at).strftime("%Y-%m-%d %H:%M:%SZ")
        return f"by {self.order.by} since {since}: {self.order.reason}"


def checked_limit(limit: int) -> int:
    """How many orders one answer may hold: 1 to 1,000. Raises :class:`InvalidValue`. Pure."""
    if not 1 <= limit <= MOST_ORDERS:
        raise InvalidValue("limit", limit, f"a whole number from 1 to {MOST_ORDERS:,}")
    return limit


def narrowest_first(records: Iterable[OrderRecord]) -> tuple[OrderRecord, ...]:
    """Pauses before ceilings, an order on one lane before one on a target before one on a tenant. Pure."""
    return tuple(sorted(records, key=_rank))


def pauses(records: Iterable[OrderRecord]) -> tuple[OrderRecord, ...]:
    """Those that pause. Pure."""
    return tuple(each for each in records if each.order.action is Action.PAUSE)


def lowest_ceiling(records: Iterable[OrderRecord]) -> OrderRecord | None:
    """The one that bounds a lane under all of ``records``; None where none does. Pure."""
    ceilings = [(each.order.ceiling, each.number, each) for each in records if each.order.ceiling is not None]
    return min(ceilings)[2] if ceilings else None


def _rank(record: OrderRecord) -> tuple[bool, bool, bool]:
    order = record.order
    return order.action is not Action.PAUSE, order.scope.target is None, order.scope.tenant is None


def _check_target(target: str) -> None:
    try:
        fits = 1 <= len(target.encode()) <= LONGEST_TARGET and "\x00" not in target
    except UnicodeEncodeError:  # a lone surrogate cannot be stored
        fits = False
    if not fits:
        raise InvalidValue("target", target, f"text of 1 to {LONGEST_TARGET:,} bytes without NUL")


def _check_reason(reason: object) -> None:
    if not isinstance(reason, str) or not 1 <= len(reason.strip()) <= LONGEST_REASON:
        hint = "Say why: whoever finds the order standing must know whether it may end."
        raise InvalidValue("reason", reason, f"text of 1 to {LONGEST_REASON} characters", hint)
    if not reason.isprintable():
        raise InvalidValue("reason", reason, "one line of printable text")


def _check_ceiling(action: Action, ceiling: object) -> None:
    if action is not Action.CEILING:
        if ceiling is not None:
            raise InvalidValue("ceiling", ceiling, f"nothing with the action {action.value}")
    elif not isinstance(ceiling, int) or isinstance(ceiling, bool) or not 1 <= ceiling <= LARGEST_CEILING:
        hint = "To let nothing start, pause instead."
        raise InvalidValue("ceiling", ceiling, f"a whole number from 1 to {LARGEST_CEILING:,}", hint)
