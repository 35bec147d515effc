"""What the consumer tells. No event holds a key or a value."""

from dataclasses import dataclass

from tenantry.brokers.kafka.lag import PartitionLag
from tenantry.brokers.kafka.model import Spot
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId


@dataclass(frozen=True, slots=True)
class PartitionsAssigned(Event):
    """The broker gave these partitions to this consumer."""

    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class PartitionsRevoked(Event):
    """These were taken away. ``dropped`` records had not finished and go to the next owner; ``lost``: without
    a chance to commit."""

    spots: tuple[Spot, ...]
    dropped: int
    lost: bool


@dataclass(frozen=True, slots=True)
class PartitionsPaused(Event):
    """A bound was reached: these are not fetched until what is held of them has fallen."""

    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class PartitionsResumed(Event):
    """These are fetched again."""

    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class OffsetsCommitted(Event):
    """The broker has these positions."""

    positions: tuple[tuple[Spot, int], ...]


@dataclass(frozen=True, slots=True)
class BrokerComplained(Event):
    """A fault that the client gets over by itself, or a commit that is tried again. ``code``: its name."""

    code: str
    doing: str


@dataclass(frozen=True, slots=True)
class RecordFailed(Event):
    """All attempts failed. ``tenant``: None where the record is nobody's."""

    spot: Spot
    offset: int
    tenant: TenantId | None
    error_class: str


@dataclass(frozen=True, slots=True)
class GatePassed(Event):
    """The partition ``spot`` has passed ``until``; ``released`` records that waited for it go on."""

    spot: Spot
    until: Timestamp
    released: int


@dataclass(frozen=True, slots=True)
class ReorderWindowOver(Event):
    """The partition ``spot`` had not passed ``until`` in time; ``released`` records go on, perhaps too
    early."""

    spot: Spot
    until: Timestamp
    released: int


@dataclass(frozen=True, slots=True)
class LagMeasured(Event):
    """The lag of every owned partition, by tenant; every ``report_every``."""

    partitions: tuple[PartitionLag, ...]
