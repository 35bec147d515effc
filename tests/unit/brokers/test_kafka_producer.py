"""Producers place by tenant, entity and the event's own time, and the record carries that time."""

from typing import Any

import pytest

from tenantry.brokers.kafka import AioPlacedProducer, KeyPartitioner, PlacedProducer, entity_key
from tenantry.brokers.kafka.confluent import ConfluentSource
from tenantry.kernel.errors import InvalidValue
from tenantry.partition import Layout, Placement

CHANGE = 1_700_000_000.0
PLACEMENT = Placement(
    [Layout(32, spreads={"tenant-A": 4}), Layout(32, spreads={"tenant-A": 8}, effective_from=CHANGE)]
)


class Taker:
    """Takes what a client's producer would be given."""

    def __init__(self) -> None:
        self.taken: list[tuple[Any, ...]] = []

    def produce(self, topic: str, value: bytes, key: bytes, partition: int, **more: Any) -> None:
        self.taken.append((topic, value, key, partition, more))

    async def send(self, topic: str, value: bytes, **more: Any) -> None:
        self.taken.append((topic, value, more))


def test_the_documents_events_go_where_it_says() -> None:
    taker = Taker()
    producer = PlacedProducer(taker, "t", PLACEMENT)
    placed = [producer.produce(b"", tenant="tenant-A", entity=f"msg-{n}", at=CHANGE - 1e7) for n in range(5)]
    placed += [producer.produce(b"", tenant="tenant-A", entity=f"msg-{n}", at=CHANGE + 1e7) for n in range(5)]
    assert placed == [0, 7, 29, 25, 25, 16, 7, 29, 25, 25]
    assert taker.taken[0] == ("t", b"", b"tenant-A\x1fmsg-0", 0, {"timestamp": 1_690_000_000_000})


def test_a_time_between_two_milliseconds_places_as_the_millisecond_that_is_kept() -> None:
    taker = Taker()
    partition = PlacedProducer(taker, "t", PLACEMENT).produce(
        b"", tenant="tenant-A", entity="msg-0", at=CHANGE - 4e-4
    )
    assert (
        partition == PLACEMENT.partition_for("tenant-A", "msg-0", taker.taken[0][4]["timestamp"] / 1000) == 0
    )


async def test_aiokafka_is_given_partition_and_time() -> None:
    taker = Taker()
    await AioPlacedProducer(taker, "t", PLACEMENT).send(b"v", tenant="tenant-A", entity="msg-0", at=CHANGE)
    key = entity_key("tenant-A", "msg-0")
    assert taker.taken == [("t", b"v", {"key": key, "partition": 16, "timestamp_ms": 1_700_000_000_000})]


@pytest.mark.parametrize("at", [1_700_000_000_000.0, -1.0, float("nan"), True])
def test_a_time_that_is_not_in_seconds_is_refused(at: float) -> None:
    with pytest.raises(InvalidValue, match="seconds since 1970"):
        PlacedProducer(Taker(), "t", PLACEMENT).produce(b"", tenant="a", entity="e", at=at)


def test_nobody_else_may_say_the_partition() -> None:
    with pytest.raises(InvalidValue, match="tenant, entity and at decide"):
        PlacedProducer(Taker(), "t", PLACEMENT).produce(b"", tenant="a", entity="e", at=1.0, partition=3)


def test_a_partitioner_reads_all_three_from_the_key() -> None:
    def read(key: bytes) -> tuple[str, str, float]:
        tenant, entity, at = key.decode().split("|")
        return tenant, entity, float(at)

    partitioner = KeyPartitioner(PLACEMENT, read)
    assert partitioner(b"tenant-A|msg-0|1690000000", range(32), range(32)) == 0
    assert partitioner(b"tenant-A|msg-0|1710000000", range(32), range(32)) == 16
    with pytest.raises(InvalidValue, match="fewer partitions"):
        partitioner(b"tenant-A|msg-0|1710000000", range(8), range(8))
    with pytest.raises(InvalidValue, match="a key that names"):
        partitioner(None, range(32), range(32))


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"group.id": "g"}, r"bootstrap\.servers"),
        ({"bootstrap.servers": "b", "group.id": "g", "enable.auto.commit": True}, "commits by itself"),
    ],
)
def test_a_configuration_that_would_lose_events_is_refused(config: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidValue, match=match):
        ConfluentSource(config, ["t"])


@pytest.mark.parametrize("entity", [None, 17, b"e"])
def test_an_entity_that_is_no_text_is_refused_and_not_written_as_its_name(entity: object) -> None:
    with pytest.raises(InvalidValue, match="entity"):
        PlacedProducer(Taker(), "t", PLACEMENT).produce(b"", tenant="a", entity=entity, at=1.0)  # type: ignore[arg-type]
