"""Rows of the log of orders as orders."""

import json
from datetime import datetime
from typing import Any

from tenantry.kernel.instant import Timestamp, as_timestamp
from tenantry.lanes.orders import Action, Order, OrderRecord, Scope


def record(row: Any, at: Timestamp) -> OrderRecord:
    """One row, a mapping by column, given at ``at``."""
    scope = Scope(row["tenant_id"] or None, row["target"] or None)
    order = Order(Action(row["action"]), scope, row["reason"], row["ordered_by"], row["ceiling"])
    return OrderRecord(row["order_id"], order, at)


def records(rows: str) -> tuple[OrderRecord, ...]:
    """What ``tenantry.orders_over`` answers."""
    return tuple(record(row, _moment(row["ordered_at"])) for row in json.loads(rows))


def _moment(text: str) -> Timestamp:
    return as_timestamp(datetime.fromisoformat(text))
