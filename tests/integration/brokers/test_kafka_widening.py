"""Across a widening: the earlier partition in another process, a bound full of records that wait for it."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import kafka_widening
from kafka_widening import BEFORE, PLACEMENT, TENANTS, WIDENED, moved
from kafka_world import Broker, Running, Watched

from tenantry.brokers.kafka import (
    ConsumerSettings,
    Handling,
    Limits,
    Message,
    PlacedProducer,
    entity_key,
    gates_of,
)
from tenantry.brokers.kafka.events import GatePassed, PartitionsPaused, ReorderWindowOver

EARLIER, LATER = range(10), range(10, 20)


async def test_records_wait_for_the_earlier_partition_though_another_process_has_it(
    broker: Broker, tmp_path: Path
) -> None:
    topic, log = broker.topic(2), tmp_path / "handled"
    log.touch()
    words = [sys.executable, kafka_widening.__file__, broker.bootstrap, topic, str(log)]
    member = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE)
    assert member.stdin is not None and member.stdout is not None
    watched, before_mine = Watched(), list[str]()

    async def handle(message: Message) -> None:
        if message.tenant != TENANTS[message.record.spot.partition]:
            before_mine.append(log.read_text())  # what the other process had handled by now
        watched.note(message)

    assert await member.stdout.readline() == b"2\n"
    handling = Handling(handle, gates=gates_of(PLACEMENT))
    settings = ConsumerSettings(commit_every=0.02, report_every=0.05, hold_for=3600.0)
    async with Running(broker.source(topic), watched, handling, settings) as consumer:
        await watched.until(lambda: len(watched.owned()) == 1)
        assert await member.stdout.readline() == b"1\n"
        mine = next(iter(watched.owned()))
        _produce(broker, topic)
        # the tenant that is at home here goes on; the one that came waits, with all its records fetched
        await watched.until(
            lambda: len(watched.handled) == 10 and sum(each.unfinished for each in consumer.lag()) == 10
        )
        assert {message.tenant for message in watched.handled} == {TENANTS[mine]}
        assert before_mine == []
        member.stdin.write(b"go\n")
        await watched.until(lambda: len(watched.handled) == 20)
    theirs, entity = 1 - mine, moved(1 - mine)
    assert watched.values(TENANTS[theirs], entity) == list(LATER)
    expected = [f"{TENANTS[theirs]} {entity} {number}" for number in EARLIER]
    assert [line for line in before_mine[0].splitlines() if line in expected] == expected
    member.stdin.close()
    assert await member.wait() == 0


async def test_a_bound_that_fills_with_waiting_records_does_not_stop_what_they_wait_for(
    broker: Broker,
) -> None:
    """Records that wait fill the bound over all partitions. Were the earlier partition paused as well, its
    records would not be fetched, and they would wait until their window is over: here an hour."""
    topic, tenant, entity = broker.topic(2), TENANTS[0], moved(0)
    client = broker.producer()
    placed = PlacedProducer(client, topic, PLACEMENT)
    watched, may_end = Watched(), asyncio.Event()

    async def handle(message: Message) -> None:
        if message.entity == "first":
            await may_end.wait()
        watched.note(message)

    handling = Handling(handle, gates=gates_of(PLACEMENT))
    settings = ConsumerSettings(
        limits=Limits(records=8), commit_every=0.02, report_every=0.05, hold_for=3600.0
    )
    client.produce(topic, b"0", entity_key(tenant, "first"), 0, timestamp=int(BEFORE * 1000))
    for number in LATER:
        placed.produce(b"%d" % number, tenant=tenant, entity=entity, at=WIDENED + number)
    client.flush(30)
    async with Running(broker.source(topic), watched, handling, settings):
        await watched.until(lambda: any(isinstance(event, PartitionsPaused) for event in watched.events))
        for number in EARLIER:
            placed.produce(b"%d" % number, tenant=tenant, entity=entity, at=BEFORE + number)
        client.flush(30)
        await watched.until(lambda: len(watched.handled) == 10)  # though the bound is full
        may_end.set()
        await watched.until(lambda: len(watched.handled) == 21)
    assert watched.values(tenant, entity) == [*EARLIER, *LATER]
    assert any(isinstance(event, GatePassed) for event in watched.events)
    assert not any(isinstance(event, ReorderWindowOver) for event in watched.events)


def _produce(broker: Broker, topic: str) -> None:
    client = broker.producer()
    placed = PlacedProducer(client, topic, PLACEMENT)
    for numbers, start in ((EARLIER, BEFORE), (LATER, WIDENED)):
        for number in numbers:
            for home, tenant in enumerate(TENANTS):
                placed.produce(b"%d" % number, tenant=tenant, entity=moved(home), at=start + number)
    client.flush(30)
