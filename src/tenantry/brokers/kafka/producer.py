"""Producers that place each event by its tenant, its entity and its own time.

A client is the user's own; nothing here imports one. The partition is named explicitly and the record's
timestamp is the event's time, so that consumers and replays see what placed it. A retry, by the client or by
the user, that keeps the time keeps the partition.
"""

from collections.abc import Callable, Iterable, Sequence
from math import floor, isfinite
from typing import Any, NamedTuple

from tenantry.brokers.kafka.identity import entity_key
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.partition import Placement

_DAY_ONE_AFTER = 253_402_300_800.0  # the year 10000: later times are milliseconds taken for seconds


class Placed(NamedTuple):
    """Where an event goes, and with what."""

    partition: int
    key: bytes
    millis: int


def place(placement: Placement, tenant: str, entity: str, at: float) -> Placed:
    """Where the event ``entity`` of ``tenant`` at ``at`` goes.

    ``entity``: whose events stay in order, else the message's own id. ``at``: the event's own time, seconds
    since 1970 in [0, 253402300800); cut to milliseconds *before* it places, since that is what Kafka keeps.
    Raises :class:`InvalidValue`.
    """
    millis = _millis(at)
    return Placed(placement.partition_for(tenant, entity, millis / 1000), entity_key(tenant, entity), millis)


class PlacedProducer:
    """Over a ``confluent_kafka.Producer``; as safe between threads as that is."""

    def __init__(self, producer: Any, topic: str, placement: Placement) -> None:
        self._producer, self._topic, self._placement = producer, topic, placement

    def produce(
        self, value: bytes | None, *, tenant: str, entity: str, at: float | Timestamp, **more: Any
    ) -> int:
        """Hand one event to the producer and return its partition. See :func:`place`.

        ``more``: ``headers``, ``on_delivery``. Raises :class:`InvalidValue`, and what ``Producer.produce``
        does (BufferError when its queue is full: poll, then call again with the same time).
        """
        partition, key, millis = place(self._placement, tenant, entity, at)
        _refuse_placing(more)
        self._producer.produce(self._topic, value, key, partition, timestamp=millis, **more)
        return partition


class AioPlacedProducer:
    """Over a started ``aiokafka.AIOKafkaProducer``; for its event loop."""

    def __init__(self, producer: Any, topic: str, placement: Placement) -> None:
        self._producer, self._topic, self._placement = producer, topic, placement

    async def send(
        self, value: bytes | None, *, tenant: str, entity: str, at: float | Timestamp, **more: Any
    ) -> Any:
        """Queue one event; returns aiokafka's future of its metadata. ``more``: ``headers``."""
        partition, key, millis = place(self._placement, tenant, entity, at)
        _refuse_placing(more)
        return await self._producer.send(
            self._topic, value, key=key, partition=partition, timestamp_ms=millis, **more
        )

    async def send_and_wait(
        self, value: bytes | None, *, tenant: str, entity: str, at: float | Timestamp, **more: Any
    ) -> Any:
        """As :meth:`send`, and waits until the broker has it; returns the metadata."""
        return await (await self.send(value, tenant=tenant, entity=entity, at=at, **more))


class KeyPartitioner:
    """An aiokafka ``partitioner`` for code that calls ``send`` itself.

    aiokafka gives a partitioner the key and nothing else, so ``read`` must find tenant, entity *and* the
    event's time in it. For a placement of one layout any constant time does. Where the time is not in the key
    use :class:`AioPlacedProducer`.
    """

    def __init__(self, placement: Placement, read: Callable[[bytes], tuple[str, str, float]]) -> None:
        self._placement, self._read = placement, read

    def __call__(self, key: bytes | None, all_partitions: Sequence[int], available: Iterable[int]) -> int:
        """The partition of ``key``, available or not: another one would break the order.

        Raises :class:`InvalidValue` for no key, or for a partition that the topic does not have.
        """
        if key is None:
            raise InvalidValue("key", key, "a key that names tenant, entity and time")
        tenant, entity, at = self._read(key)
        partition = self._placement.partition_for(tenant, entity, at)
        if partition not in all_partitions:
            hint = "The topic has fewer partitions than the layout: add them before its effective_from."
            raise InvalidValue("partition", partition, f"one of the topic's {len(all_partitions)}", hint)
        return partition


def _millis(at: float) -> int:
    if (
        isinstance(at, (int, float))
        and not isinstance(at, bool)
        and isfinite(at)
        and 0 <= at < _DAY_ONE_AFTER
    ):
        return floor(at * 1000 + 1e-4)  # 1.001 * 1000 is 1000.9999999999999
    hint = "Divide milliseconds by 1,000."
    raise InvalidValue("at", at, "the event's own time: seconds since 1970-01-01T00:00:00Z", hint)


def _refuse_placing(more: dict[str, Any]) -> None:
    for name in ("partition", "timestamp", "timestamp_ms", "key"):
        if name in more:
            raise InvalidValue(name, more[name], "nothing: tenant, entity and at decide it")
