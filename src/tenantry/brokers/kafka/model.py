"""The records of this room. Frozen; made at the edge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId

RECORD_OVERHEAD = 200
"""Bytes that a held record costs beside its key, value and headers; roughly, on CPython."""


class Spot(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the broker gave it. ``at``: its timestamp, the event's own time; None where it has
    none."""

    spot: Spot
    offset: int
    key: bytes | None
    value: bytes | None
    at: Timestamp | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size(self) -> int:
        """What it counts for against bounds in bytes."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return RECORD_OVERHEAD + len(self.key or b"") + len(self.value or b"") + headers


class Identity(NamedTuple):
    """Whose a record is. ``entity``: within what order matters; None: within nothing."""

    tenant: TenantId
    entity: str | None


Identify = Callable[[Record], Identity]
"""Says whose a record is; raises :class:`~tenantry.kernel.errors.TenantryError`, or UnicodeDecodeError, when
it is nobody's."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a handler is given. ``attempt`` counts from 1 in this process; a redelivery starts anew."""

    record: Record
    tenant: TenantId
    entity: str | None
    attempt: int = 1
