"""A topic of Kafka keeps the promises of a source: on noida-db and on Tansu, or on the broker that
``KAFKA_BOOTSTRAP`` names."""

import os
from collections.abc import Iterator, Sequence

import pytest
from kafka_world import Broker, brokers

from tenantry.brokers.kafka.replay_source import TopicSource
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.kernel.tenant import TenantId
from tenantry.replay.connections import Connection
from tenantry.replay.model import Membership, Position, SourceAddress
from tenantry.replay.ports import Source
from tenantry.testing.conformance.sources import (
    SourceConformance,
    fetched,
    payload_of,
    payloads,
    seen,
    to_the_end,
)

ACME = TenantId("acme")
BEGINNING = Position("")
_KINDS = ("bootstrap",) if "KAFKA_BOOTSTRAP" in os.environ else ("noida", "tansu")  # noqa: TID251 - the tests' broker


@pytest.fixture(scope="session", params=_KINDS)
def topics_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with brokers(request.param) as broker:
        yield broker


class TopicWorld:
    """A topic of its own; of one partition, in which order means something."""

    small_window = 0

    def __init__(self, broker: Broker, partitions: int = 1) -> None:
        self.broker, self.topic = broker, broker.topic(partitions)
        self._producer = broker.producer()

    async def put(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.produce(payload_of(number), headers={"Shape": b"round"})

    async def put_broken(self) -> bool:
        self.produce(None)
        return True

    def produce(
        self,
        value: bytes | None,
        partition: int = 0,
        key: bytes | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        self._producer.produce(self.topic, value, key, partition, headers=headers or {})
        assert self._producer.flush(30) == 0

    def source(self, *, small: bool = False, tenant: TenantId = ACME, **options: str) -> Source:
        return self.made(self.topic, tenant, options)

    def made(self, topic: str, tenant: TenantId, options: dict[str, str]) -> TopicSource:
        connection = Connection(name="events", kind="kafka", url=self.broker.bootstrap)
        return TopicSource(connection, tenant, SourceAddress("kafka", topic, "events", options))

    async def crash(self, source: Source) -> None:
        """A reader leaves nothing behind."""

    def lost(self) -> Source:
        return self.made(f"{self.topic}-absent", ACME, {})


@pytest.fixture
def world(topics_broker: Broker) -> TopicWorld:
    return TopicWorld(topics_broker)


class TestTopic(SourceConformance):
    """On each broker."""


async def test_all_partitions_are_read_to_their_ends_and_a_position_holds_them_all(
    topics_broker: Broker,
) -> None:
    world = TopicWorld(topics_broker, partitions=3)
    for number in range(12):
        world.produce(payload_of(number), partition=number % 2)  # the third one is empty
    membership = await world.source().survey()
    assert membership.count == 12
    world.produce(payload_of(99), partition=2)
    source = world.source()
    await source.open(membership, BEGINNING)
    first = await fetched(source, 5)
    await source.close()
    assert first[-1].position
    await source.open(membership, first[-1].position)
    rest = await to_the_end(source)
    await source.close()
    assert sorted(seen(first + rest)) == sorted(payloads(range(12)))
    assert await world.source().arrived(membership) == 1


async def test_what_is_acknowledged_is_committed_without_a_gap_and_the_next_replay_begins_there(
    world: TopicWorld,
) -> None:
    await world.put(range(6))
    source = world.source()
    await source.open(await source.survey(), BEGINNING)
    entries = await fetched(source, 6)
    for done, count in ((entries[3:4], 6), (entries[:2], 4), (entries[4:], 4), (entries[2:3], 0)):
        await source.acknowledge([entry.receipt for entry in done])
        membership = await world.source().survey()
        assert membership.count == count
    await source.close()
    assert (await world.source(tenant=TenantId("other")).survey()).count == 6
    again = world.source(**{"from": "earliest"})
    await again.open(await again.survey(), BEGINNING)
    assert seen(await to_the_end(again)) == payloads(range(6))
    await again.close()


async def test_a_record_brings_key_headers_time_and_what_dead_letter_tools_wrote(world: TopicWorld) -> None:
    headers = {
        "Trace": b"t",
        "kafka_dlt-exception-fqcn": b"java.lang.Boom",
        "kafka_dlt-original-topic": b"orders",
    }
    world.produce(b"1", key=b"k1", headers=headers | {"kafka_dlt-exception-message": b"no\nluck"})
    world.produce(b"2", key=b"\xff", headers={"content-type": b"text/plain", "why": b"late"})
    first, second = (entry.message for entry in await world.source(error_class_header="Why").peek(2))
    assert (first.headers["tenantry-key"], first.headers["trace"]) == ("k1", "t")
    assert (first.target, first.failure) == ("kafka:events/orders", "no luck")
    assert (second.content_type, second.error_class, second.target) == ("text/plain", "late", None)
    assert second.headers["tenantry-key-base64"] == "/w=="
    assert first.failed_at is not None
    assert first.id.startswith(f"{world.topic}/0/0@")
    assert (await world.source().peek(1))[0].message.error_class == "java.lang.Boom"


@pytest.mark.parametrize("options", [{"from": "yesterday"}, {"group": "theirs"}], ids=["from", "group"])
def test_an_option_that_is_not_read_is_refused(world: TopicWorld, options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"source\.options"):
        world.source(**options)


def test_a_connection_may_not_say_what_is_ours() -> None:
    connection = Connection(name="events", kind="kafka", url="x:1", options={"group.id": "theirs"})
    with pytest.raises(InvalidValue, match=r"group\.id"):
        TopicSource(connection, ACME, SourceAddress("kafka", "t"))


@pytest.mark.parametrize("text", ["", "x", "[]", '{"0": 5}', '{"a": [0, 1]}'])
async def test_a_bound_that_is_none_is_refused(world: TopicWorld, text: str) -> None:
    with pytest.raises(InvalidValue, match=r"membership\.bound"):
        await world.source().open(Membership(text), BEGINNING)
