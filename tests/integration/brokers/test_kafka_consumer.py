"""The consumer on brokers that speak Kafka's protocol: order, loss, rebalance, crash, bounds, gates."""

import asyncio
from collections import Counter

import pytest
from kafka_world import Broker, Running, Watched

from tenantry.brokers.kafka import (
    ConsumerSettings,
    FairConsumer,
    Handling,
    HandlingFailed,
    Limits,
    Message,
    PlacedProducer,
    Record,
    entity_key,
)
from tenantry.brokers.kafka.events import PartitionsPaused, PartitionsResumed
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TierName
from tenantry.partition import Layout, Placement

AT = 1_700_000_000.0
PARTITIONS = 4
FOUR = Placement(Layout(PARTITIONS, spreads={"hot": 4}))
TENANTS = ("hot", "a", "b")


def produce(broker: Broker, topic: str, events: int, start: int = 0) -> None:
    """Events ``start`` and on of each tenant, over five entities each; the value is the event's number."""
    client = broker.producer()
    placed = PlacedProducer(client, topic, FOUR)
    for number in range(start, start + events):
        for tenant in TENANTS:
            placed.produce(b"%d" % number, tenant=tenant, entity=f"e{number % 5}", at=AT + number)
    assert client.flush(30) == 0


def rising_from(values: list[int], first: int, events: int) -> bool:
    """Each of an entity's events is there, first handled in order; repeats may lie anywhere."""
    seen = list(dict.fromkeys(values))
    return seen == list(range(first, events, 5))


async def test_every_event_is_handled_once_in_its_entitys_order(any_broker: Broker) -> None:
    topic = any_broker.topic(PARTITIONS)
    produce(any_broker, topic, 100)
    watched = Watched()
    async with Running(any_broker.source(topic), watched):
        await watched.until(lambda: len(watched.handled) >= 300)
    assert len(watched.handled) == 300
    assert watched.overlaps == 0
    for tenant in TENANTS:
        for first in range(5):
            assert watched.values(tenant, f"e{first}") == list(range(first, 100, 5))
    by_partition = Counter(each.record.spot.partition for each in watched.handled)
    assert any_broker.committed(topic, PARTITIONS) == [
        by_partition.get(each, -1001) for each in range(PARTITIONS)
    ]


async def test_plain_functions_are_handled_in_threads_and_in_order_too(broker: Broker) -> None:
    topic = broker.topic(PARTITIONS)
    produce(broker, topic, 50)
    watched, loop = Watched(), asyncio.get_running_loop()

    def handle(message: Message) -> None:
        loop.call_soon_threadsafe(watched.note, message)

    async with Running(broker.source(topic), watched, Handling(handle)):
        await watched.until(lambda: len(watched.handled) >= 150)
    assert all(rising_from(watched.values(t, f"e{n}"), n, 50) for t in TENANTS for n in range(5))


async def test_a_rebalance_in_mid_stream_loses_nothing_and_keeps_each_entitys_order(
    any_broker: Broker,
) -> None:
    topic = any_broker.topic(PARTITIONS)
    produce(any_broker, topic, 60)
    both = Watched()
    first, second = (Watched(handled=both.handled, changed=both.changed) for _ in range(2))
    settings = ConsumerSettings(commit_every=0.05, slots=2)
    async with Running(any_broker.source(topic), first, Handling(first.handle), settings):
        await first.until(lambda: len(both.handled) >= 60)
        async with Running(any_broker.source(topic), second, Handling(second.handle), settings):
            await both.until(
                lambda: bool(second.owned()) and len(first.owned() | second.owned()) == PARTITIONS
            )
            produce(any_broker, topic, 60, start=60)
            await both.until(lambda: _done(both, 120))
        produce(any_broker, topic, 60, start=120)  # what the second one had goes back to the first
        await both.until(lambda: _done(both, 180))
    assert first.overlaps == second.overlaps == 0


async def test_members_that_come_and_go_lose_nothing_keep_order_and_leak_no_slot(
    watchful_broker: Broker,
) -> None:
    """Two members come and go beside one that stays; handlers are given up in the middle of their work. The
    one that stays has all its slots at the end: two handlers run at once on two."""
    broker, both = watchful_broker, Watched()
    topic = broker.topic(PARTITIONS)
    abrupt = ConsumerSettings(commit_every=0.02, slots=2, finish_within=0.0, tiers=Tier(TierName("all")))
    stays, together = Watched(handled=both.handled, changed=both.changed), asyncio.Barrier(2)
    start = 0

    async def handle(message: Message) -> None:
        if message.tenant == "last":
            await together.wait()
        for _ in range(50):  # rounds of the loop, so that a rebalance finds some at work
            await asyncio.sleep(0)
        await stays.handle(message)

    async with Running(broker.source(topic), stays, Handling(handle), abrupt):
        for _ in range(2):
            comes = Watched(handled=both.handled, changed=both.changed)
            produce(broker, topic, 40, start=start)
            async with Running(broker.source(topic), comes, Handling(comes.handle), abrupt):
                await both.until(lambda: bool(comes.owned()))  # noqa: B023 - awaited here
                produce(broker, topic, 40, start=start + 40)
            start += 80
        await both.until(lambda: len(stays.owned()) == PARTITIONS and _done(both, start))
        client = broker.producer()
        for name in ("one", "two"):
            client.produce(topic, b"0", entity_key("last", name), partition=0)
        client.flush(30)
        await both.until(lambda: len({each.entity for each in both.handled if each.tenant == "last"}) == 2)
    assert stays.overlaps == 0


def _done(watched: Watched, events: int) -> bool:
    return all(rising_from(watched.values(t, f"e{n}"), n, events) for t in TENANTS for n in range(5))


async def test_what_is_not_finished_is_not_committed_and_comes_again(broker: Broker) -> None:
    topic = broker.topic(1)
    client = broker.producer()
    for number in range(10):
        client.produce(topic, b"%d" % number, entity_key("a", f"e{number}"), partition=0)
    client.flush(30)
    watched = Watched()

    async def stall_at_three(message: Message) -> None:
        if message.record.offset == 3:
            await asyncio.Event().wait()
        await watched.handle(message)

    settings = ConsumerSettings(commit_every=0.05, finish_within=0.0)
    async with Running(broker.source(topic), watched, Handling(stall_at_three), settings):
        await watched.until(lambda: len(watched.handled) == 9 and bool(watched.commits()))
    assert broker.committed(topic, 1) == [3]
    again = Watched()
    async with Running(broker.source(topic), again):
        await again.until(lambda: len(again.handled) == 7)
    assert sorted(each.record.offset for each in again.handled) == list(range(3, 10))


async def test_a_revocation_waits_for_what_runs_and_commits_it(broker: Broker) -> None:
    topic = broker.topic(1)
    client = broker.producer()
    client.produce(topic, b"0", entity_key("a", "e"), partition=0)
    client.flush(30)
    watched, began, may_end = Watched(), asyncio.Event(), asyncio.Event()

    async def handle(message: Message) -> None:
        began.set()
        await may_end.wait()
        await watched.handle(message)

    running = Running(broker.source(topic), watched, Handling(handle), ConsumerSettings(finish_within=30.0))
    async with running as consumer:
        await began.wait()
        consumer.stop()
        asyncio.get_running_loop().call_later(0.2, may_end.set)
    assert broker.committed(topic, 1) == [1]


async def test_a_failing_record_is_tried_again_then_put_aside_and_its_successors_go_on(
    broker: Broker,
) -> None:
    topic = broker.topic(1)
    client = broker.producer()
    client.produce(topic, b"0", b"\xffnobody", partition=0)
    for number in range(1, 4):
        client.produce(topic, b"%d" % number, entity_key("a", "e"), partition=0)
    client.flush(30)
    watched, attempts = Watched(), Counter[int]()
    aside: list[tuple[int, str]] = []

    async def handle(message: Message) -> None:
        attempts[message.record.offset] += 1
        if message.record.offset == 2:
            raise ValueError("poison")
        await watched.handle(message)

    def put_aside(record: Record, error: Exception) -> None:
        aside.append((record.offset, type(error).__name__))

    async with Running(broker.source(topic), watched, Handling(handle, on_failed=put_aside)):
        await watched.until(
            lambda: len(watched.handled) == 2 and {4} <= {c.get(0) for c in watched.commits()}
        )
    assert sorted(aside) == [(0, "InvalidValue"), (2, "ValueError")]
    assert attempts == {1: 1, 2: 3, 3: 1}


async def test_without_anyone_to_take_it_aside_the_consumer_stops_before_the_record(broker: Broker) -> None:
    topic = broker.topic(1)
    client = broker.producer()
    for number in range(3):
        client.produce(topic, b"%d" % number, entity_key("a", "e"), partition=0)
    client.flush(30)

    def handle(message: Message) -> None:
        if message.record.offset == 1:
            raise ValueError("poison")

    running = Running(broker.source(topic), Watched(), Handling(handle), ConsumerSettings(attempts=1))
    with pytest.raises(HandlingFailed, match="@1 could not be handled") as failed:
        await running.consumer.run()
    assert isinstance(failed.value.__cause__, ValueError)
    assert broker.committed(topic, 1) == [1]


async def test_what_is_held_stays_in_its_bound_and_a_paused_partition_comes_back(broker: Broker) -> None:
    topic = broker.topic(PARTITIONS)
    produce(broker, topic, 200)
    watched = Watched()
    limits = Limits(records_per_partition=20, records=50)
    settings = ConsumerSettings(limits=limits, commit_every=0.05)
    most = 0

    async def handle(message: Message) -> None:
        nonlocal most
        most = max(most, sum(each.unfinished for each in consumer.lag()))
        assert all(each.unfinished <= 20 for each in consumer.lag())
        await watched.handle(message)

    async with Running(broker.source(topic), watched, Handling(handle), settings) as consumer:
        await watched.until(lambda: len(watched.handled) == 600)
    assert 20 <= most <= 50
    assert any(isinstance(event, PartitionsPaused) for event in watched.events)
    assert any(isinstance(event, PartitionsResumed) for event in watched.events)


async def test_lag_names_the_tenant_who_has_it(broker: Broker) -> None:
    topic = broker.topic(1)
    client = broker.producer()
    for number in range(12):
        tenant = "slow" if number % 3 else "quick"
        client.produce(topic, b"%d" % number, entity_key(tenant, f"e{number}"), partition=0, timestamp=1_000)
    client.flush(30)
    watched = Watched()

    async def handle(message: Message) -> None:
        if message.tenant == "slow":
            await asyncio.Event().wait()
        await watched.handle(message)

    settings = ConsumerSettings(slots=4, finish_within=0.0, commit_every=0.05, report_every=0.05)
    async with Running(broker.source(topic), watched, Handling(handle), settings) as consumer:
        await watched.until(lambda: len(watched.handled) >= 1 and consumer.lag()[0].unfetched == 0)
        [lag] = consumer.lag()
    assert lag.tenants[0].tenant == "slow"
    assert lag.tenants[0].unfinished == 8
    assert (lag.tenants[0].oldest_for or 0.0) > 1e9


async def test_across_a_widening_the_new_partition_waits_for_the_old_one(broker: Broker) -> None:
    from tenantry.brokers.kafka import gates_of
    from tenantry.brokers.kafka.events import GatePassed

    widened = AT + 100
    placement = Placement([Layout(2), Layout(2, spreads={"hot": 2}, effective_from=widened)])
    entity = next(
        f"e{n}"
        for n in range(100)
        if placement.partition_for("hot", f"e{n}", AT) != placement.partition_for("hot", f"e{n}", widened)
    )
    topic = broker.topic(2)
    client = broker.producer()
    placed = PlacedProducer(client, topic, placement)
    for number in range(20):
        placed.produce(b"%d" % number, tenant="hot", entity=entity, at=AT + 90 + number)
    client.flush(30)
    watched, seen_new, old = Watched(), asyncio.Event(), placement.partition_for("hot", entity, AT)

    async def handle(message: Message) -> None:
        if message.record.offset == 0 and message.record.spot.partition == old:
            await seen_new.wait()  # the old partition is slow: the new one has long been fetched
        await watched.handle(message)

    settings = ConsumerSettings(commit_every=0.05, report_every=0.05)
    handling = Handling(handle, gates=gates_of(placement))
    async with Running(broker.source(topic), watched, handling, settings) as consumer:
        await watched.until(lambda: sum(each.unfinished for each in consumer.lag()) == 20)
        assert not watched.handled
        seen_new.set()
        await watched.until(lambda: len(watched.handled) == 20)
    assert watched.values("hot", entity) == list(range(20))
    assert any(isinstance(event, GatePassed) and event.released for event in watched.events)


async def test_a_configuration_that_the_client_refuses_is_told_without_its_values(broker: Broker) -> None:
    source = broker.source("t", **{"nonsense.key": "secret"})
    with pytest.raises(InvalidValue, match=r"No such configuration property: .nonsense\.key") as refused:
        await FairConsumer(source, Handling(print)).run()
    assert "secret" not in str(refused.value)
