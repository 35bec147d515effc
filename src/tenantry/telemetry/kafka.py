"""What the Kafka consumer's events move. One :class:`~tenantry.telemetry.prometheus.Metrics` a consumer: each
measurement of lag replaces the one before."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tenantry.brokers.kafka import PartitionLag, Spot, events
from tenantry.kernel.events import Event
from tenantry.telemetry.meters import Meters

_LAG = (
    "kafka_records_unfinished",
    "kafka_records_unfetched",
    "kafka_records_unfinished_of_one",
    "kafka_oldest_age_seconds",
    "kafka_partition_paused",
)
_TENANT_LAG = ("tenant_kafka_records_unfinished", "tenant_kafka_oldest_age_seconds")


def _measured(meters: Meters, event: events.LagMeasured) -> None:
    _forget(meters)
    for part in event.partitions:
        _partition(meters, part)
    if meters.per_tenant:
        _tenants(meters, event.partitions)


def _partition(meters: Meters, part: PartitionLag) -> None:
    labels = (part.spot.topic, str(part.spot.partition))
    ages = [each.oldest_for for each in part.tenants if each.oldest_for is not None]
    meters.show("kafka_records_unfinished", part.unfinished, *labels)
    if part.unfetched is not None:
        meters.show("kafka_records_unfetched", part.unfetched, *labels)
    most = part.tenants[0].unfinished if part.tenants else 0
    meters.show("kafka_records_unfinished_of_one", most, *labels)
    meters.show("kafka_oldest_age_seconds", max(ages, default=0.0), *labels)
    meters.show("kafka_partition_paused", float(part.paused), *labels)


def _tenants(meters: Meters, partitions: Iterable[PartitionLag]) -> None:
    """Summed over partitions, and over those who share a label; the largest come first to a name of their
    own."""
    counts: dict[tuple[str, str], int] = {}
    ages: dict[tuple[str, str], float] = {}
    lags = (lag for part in partitions for lag in part.tenants)
    for lag in sorted(lags, key=lambda each: (-each.unfinished, each.tenant)):
        labels = (meters.named(lag.tenant), lag.spot.topic)
        counts[labels] = counts.get(labels, 0) + lag.unfinished
        ages[labels] = max(ages.get(labels, 0.0), lag.oldest_for or 0.0)
    for labels, count in counts.items():
        meters.show("tenant_kafka_records_unfinished", count, *labels)
        meters.show("tenant_kafka_oldest_age_seconds", ages[labels], *labels)


def _assigned(meters: Meters, event: events.PartitionsAssigned) -> None:
    _count_topics(meters, "kafka_partitions_assigned_total", event.spots)


def _revoked(meters: Meters, event: events.PartitionsRevoked) -> None:
    """What is another's must not be shown; what is left is shown again by the next measurement."""
    _forget(meters)
    meters.count("kafka_records_dropped_total", event.dropped)
    if event.lost:
        _count_topics(meters, "kafka_partitions_lost_total", event.spots)


def _paused(meters: Meters, event: events.PartitionsPaused) -> None:
    _count_topics(meters, "kafka_pauses_total", event.spots)


def _committed(meters: Meters, _event: events.OffsetsCommitted) -> None:
    meters.count("kafka_commits_total", 1)


def _complained(meters: Meters, event: events.BrokerComplained) -> None:
    meters.count("kafka_complaints_total", 1, event.code)


def _failed(meters: Meters, event: events.RecordFailed) -> None:
    meters.count("kafka_records_failed_total", 1, event.spot.topic)
    if event.tenant is not None:
        meters.count_tenant("tenant_kafka_records_failed_total", event.tenant, 1)


def _passed(meters: Meters, event: events.GatePassed) -> None:
    meters.count("kafka_gates_passed_total", 1, event.spot.topic)


def _window_over(meters: Meters, event: events.ReorderWindowOver) -> None:
    meters.count("kafka_reorder_windows_over_total", 1, event.spot.topic)
    meters.count("kafka_records_released_early_total", event.released, event.spot.topic)


def _count_topics(meters: Meters, name: str, spots: Iterable[Spot]) -> None:
    for spot in spots:
        meters.count(name, 1, spot.topic)


def _forget(meters: Meters) -> None:
    meters.forget(*_LAG, *(_TENANT_LAG if meters.per_tenant else ()))


HANDLERS: Mapping[type[Event], Callable[[Meters, Any], None]] = MappingProxyType(
    {
        events.LagMeasured: _measured,
        events.PartitionsAssigned: _assigned,
        events.PartitionsRevoked: _revoked,
        events.PartitionsPaused: _paused,
        events.OffsetsCommitted: _committed,
        events.BrokerComplained: _complained,
        events.RecordFailed: _failed,
        events.GatePassed: _passed,
        events.ReorderWindowOver: _window_over,
    }
)
