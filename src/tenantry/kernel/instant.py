"""Types of time. Monotonic and wall time are different types, so that a checker refuses to mix them."""

from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", float)
"""Seconds on this process's monotonic clock. Compared and subtracted, never stored or sent."""

Timestamp = NewType("Timestamp", float)
"""Seconds since 1970-01-01T00:00:00Z on the clock of the authority that wrote it (law K4)."""

Seconds = float
"""A duration in seconds."""


def as_datetime(at: Timestamp) -> datetime:
    """``at`` as an aware UTC datetime, for people and for columns of time."""
    return datetime.fromtimestamp(at, UTC)


def as_timestamp(at: datetime) -> Timestamp:
    """An aware datetime as a timestamp. Raises ValueError for a naive one: its zone would be a guess."""
    if at.tzinfo is None:
        raise ValueError("a naive datetime names no instant; give it a time zone")
    return Timestamp(at.timestamp())
