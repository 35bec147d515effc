"""What rows say of lanes: orders over them, and what their shapers learned."""

import json
from datetime import datetime
from typing import Any

from tenantry.kernel.instant import Timestamp, as_timestamp
from tenantry.lanes.orders import Action, Order, OrderRecord, Scope
from tenantry.lanes.shaper import ShaperState
from tenantry.lanes.shaper_state import readable


def record(row: Any, at: Timestamp) -> OrderRecord:
    """One row, a mapping by column, given at ``at``."""
    scope = Scope(row["tenant_id"] or None, row["target"] or None)
    order = Order(Action(row["action"]), scope, row["reason"], row["ordered_by"], row["ceiling"])
    return OrderRecord(row["order_id"], order, at)


def records(rows: str) -> tuple[OrderRecord, ...]:
    """What ``tenantry.orders_over`` answers."""
    return tuple(record(row, _moment(row["ordered_at"])) for row in json.loads(rows))


def shaper_of(kept: str | None, *, in_flight: int, now: Timestamp) -> ShaperState | None:
    """A shaper's state as it was kept; None where there is none that this version can read."""
    return None if kept is None else readable(json.loads(kept), in_flight=in_flight, now=now)


def _moment(text: str) -> Timestamp:
    return as_timestamp(datetime.fromisoformat(text))
