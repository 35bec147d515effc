"""Both producers on a broker: partition, key and time arrive as they were placed; the consumer reads them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError
from confluent_kafka import KafkaException
from kafka_world import Broker, Running, Watched

from tenantry.brokers.kafka import AioPlacedProducer, KeyPartitioner, PlacedProducer
from tenantry.kernel.errors import InvalidValue
from tenantry.partition import Layout, Placement

PARTITIONS, CHANGE = 4, 1_700_000_000.0
PLACEMENT = Placement([Layout(PARTITIONS), Layout(PARTITIONS, spreads={"hot": 4}, effective_from=CHANGE)])
EVENTS = [
    (tenant, entity, CHANGE + 60 * number)
    for number in range(-5, 5)
    for tenant in ("hot", "a")
    for entity in ("order-1", "über-東京", "")
]


@asynccontextmanager
async def aiokafka(broker: Broker, **config: Any) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **config)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def arrived(broker: Broker, topic: str) -> list[tuple[str, str | None, int, float | None]]:
    watched = Watched()
    async with Running(broker.source(topic), watched):
        await watched.until(lambda: len(watched.handled) == len(EVENTS))
    return [(m.tenant, m.entity, m.record.spot.partition, m.record.at) for m in watched.handled]


def placed() -> list[tuple[str, str, int, float]]:
    return sorted((*event[:2], PLACEMENT.partition_for(*event), event[2]) for event in EVENTS)


async def test_what_aiokafka_sends_lies_where_it_was_placed_with_the_events_own_time(
    any_broker: Broker,
) -> None:
    topic = any_broker.topic(PARTITIONS)
    async with aiokafka(any_broker) as client:
        events = AioPlacedProducer(client, topic, PLACEMENT)
        for number, (tenant, entity, at) in enumerate(EVENTS):
            sent = await events.send_and_wait(b"%d" % number, tenant=tenant, entity=entity, at=at)
            assert sent.partition == PLACEMENT.partition_for(tenant, entity, at)
    assert sorted(await arrived(any_broker, topic)) == placed()  # type: ignore[type-var]


async def test_the_same_of_confluent_kafka(any_broker: Broker) -> None:
    topic, client = any_broker.topic(PARTITIONS), any_broker.producer()
    events = PlacedProducer(client, topic, PLACEMENT)
    for number, (tenant, entity, at) in enumerate(EVENTS):
        events.produce(b"%d" % number, tenant=tenant, entity=entity, at=at)
    assert client.flush(30) == 0
    assert sorted(await arrived(any_broker, topic)) == placed()  # type: ignore[type-var]


async def test_a_partitioner_places_what_aiokafka_sends_by_its_key_alone(broker: Broker) -> None:
    def read(key: bytes) -> tuple[str, str, float]:
        tenant, entity, at = key.decode().split("|")
        return tenant, entity, float(at)

    topic = broker.topic(PARTITIONS)
    async with aiokafka(broker, partitioner=KeyPartitioner(PLACEMENT, read)) as client:
        for tenant, entity, at in EVENTS:
            sent = await client.send_and_wait(topic, b"", key=f"{tenant}|{entity}|{at}".encode())
            assert sent.partition == PLACEMENT.partition_for(tenant, entity, at)


async def test_a_topic_with_fewer_partitions_than_the_layout_is_told_by_either_client(broker: Broker) -> None:
    topic, wide = broker.topic(1), Placement(Layout(8, pins={"a": [7]}))
    async with aiokafka(broker, partitioner=KeyPartitioner(wide, lambda key: ("a", "e", 0.0))) as client:
        with pytest.raises(InvalidValue, match="fewer partitions than the layout"):
            await client.send(topic, b"", key=b"a")
    async with aiokafka(broker) as client:
        with pytest.raises((AssertionError, KafkaTimeoutError), match="artition"):
            await AioPlacedProducer(client, topic, wide).send(b"", tenant="a", entity="e", at=CHANGE)
    with pytest.raises(KafkaException, match="partition"):
        producer, errors = broker.producer(), list[Any]()
        PlacedProducer(producer, topic, wide).produce(
            b"", tenant="a", entity="e", at=CHANGE, on_delivery=lambda error, _message: errors.append(error)
        )
        producer.flush(30)
        raise KafkaException(errors[0])
