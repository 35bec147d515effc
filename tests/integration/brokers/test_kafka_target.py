"""What a topic of Kafka makes of a message, told as an outcome."""

import asyncio
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from kafka_world import QUIET, Broker

from tenantry.brokers.kafka.replay_source import TopicSource
from tenantry.brokers.kafka.target import KafkaSender
from tenantry.brokers.targets import BrokerTargets
from tenantry.config.model import TargetSettings
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.outcome import Outcome
from tenantry.replay.connections import Connection, Connections
from tenantry.replay.model import SourceAddress
from tenantry.testing.jobs import claimed_job


def targets_of(bootstrap: str) -> BrokerTargets:
    connection = Connection(name="events", kind="kafka", url=bootstrap, targets={"acme": ("*",)})
    return BrokerTargets(Connections({"events": connection}), {"kafka": KafkaSender})


async def sent(targets: BrokerTargets, topic: str, *, timeout_for: float = 30, **changes: Any) -> Outcome:
    job = claimed_job(f"kafka:events/{topic}", **changes)
    return await targets.execute(job, TargetSettings(timeout_for=timeout_for))


def record(broker: Broker, topic: str, offset: int = 0) -> Any:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "look", **QUIET})
    consumer.assign([TopicPartition(topic, 0, offset)])
    try:
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        return message
    finally:
        consumer.close()


async def test_an_acknowledged_message_is_in_the_topic_as_it_was(broker: Broker) -> None:
    topic = broker.topic(1)
    headers = {"trace": "t", "tenantry-key": "k1"}
    async with targets_of(broker.bootstrap) as targets:
        outcome = await sent(targets, topic, headers=headers, payload=b"\x00", content_type="text/plain")
    assert outcome.error_class == "ok"
    message = record(broker, topic)
    assert (message.key(), message.value()) == (b"k1", b"\x00")
    assert dict(message.headers()) == {"trace": b"t", "content-type": b"text/plain"}


async def test_a_record_that_is_read_and_sent_again_is_the_same_record(broker: Broker) -> None:
    one, other = broker.topic(1), broker.topic(1)
    producer = broker.producer()
    producer.produce(one, b"v", b"\xff\x00", headers={"a": b"1", "content-type": b"text/plain"})
    producer.flush(30)
    connection = Connection(name="events", kind="kafka", url=broker.bootstrap)
    source = TopicSource(connection, TenantId("acme"), SourceAddress("kafka", one, "events"))
    (entry,) = await source.peek(1)
    async with targets_of(broker.bootstrap) as targets:
        message = entry.message
        await sent(targets, other, headers=message.headers, payload=message.payload)
    before, after = record(broker, one), record(broker, other)
    assert (after.key(), after.value()) == (before.key(), before.value())
    assert dict(after.headers()) == dict(before.headers())


async def test_many_at_once_are_each_told_their_own_end(broker: Broker) -> None:
    topic = broker.topic(1)
    async with targets_of(broker.bootstrap) as targets:
        outcomes = await asyncio.gather(
            *(sent(targets, topic) for _ in range(200)),
            sent(targets, topic, payload=bytes(1_000_001)),
        )
    assert [outcome.error_class for outcome in outcomes] == ["ok"] * 200 + ["message_too_large"]


async def test_a_topic_that_is_not_there_is_the_message_s_fault(broker: Broker) -> None:
    async with targets_of(broker.bootstrap) as targets:
        outcome = await sent(targets, f"{broker.topic(1)}-absent")
    assert outcome.error_class == "unroutable"


async def test_a_broker_that_is_not_there_is_the_target_s_fault() -> None:
    async with targets_of("127.0.0.1:1") as targets:
        outcome = await sent(targets, "orders", timeout_for=0.5)
        assert outcome.error_class == "timeout"
