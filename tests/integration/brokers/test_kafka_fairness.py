"""One slow tenant in a partition, in events that happen beside it: no clock is read."""

import asyncio

import pytest
from kafka_world import Broker, Running, Watched

from tenantry.brokers.kafka import ConsumerSettings, Handling, Message, entity_key
from tenantry.kernel.tenant import TenantId


async def test_a_tenant_whose_handler_never_ends_delays_no_other_of_its_partition(broker: Broker) -> None:
    """200 records of one that hangs lie before 50 of each of two others. With the cap of the tier it holds
    half of the slots; a plain consumer of the partition would never reach the others."""
    from tenantry.config.tiers import Tier
    from tenantry.kernel.tenant import TierName

    topic = broker.topic(1)
    client = broker.producer()
    for number in range(200):
        client.produce(topic, b"%d" % number, entity_key("slow", f"e{number}"), partition=0)
    for number in range(50):
        for tenant in ("a", "b"):
            client.produce(topic, b"%d" % number, entity_key(tenant, f"e{number % 5}"), partition=0)
    client.flush(30)
    watched = Watched()

    async def handle(message: Message) -> None:
        if message.tenant == "slow":
            await asyncio.Event().wait()
        await watched.handle(message)

    settings = ConsumerSettings(slots=8, tiers=Tier(TierName("half"), cap=0.5), finish_within=0.0)
    async with Running(broker.source(topic), watched, Handling(handle), settings):
        await watched.until(lambda: len(watched.handled) == 100)
    assert broker.committed(topic, 1)[0] <= 0  # the first record is the slow one's, and is not finished
    for tenant in ("a", "b"):
        for first in range(5):
            assert watched.values(tenant, f"e{first}") == list(range(first, 50, 5))


@pytest.mark.parametrize("hanging", [0, 200])
async def test_beside_a_tenant_that_hangs_the_others_start_at_once_as_on_an_idle_partition(
    broker: Broker, hanging: int
) -> None:
    """In each of 20 rounds four others have a record each, and none of the four ends before all run: so none
    waits for a slot. With the default tier the one that hangs holds four of the eight slots and no more."""
    topic, client, watched = broker.topic(1), broker.producer(), Watched()
    for number in range(hanging):
        client.produce(topic, b"", entity_key("slow", f"e{number}"), partition=0)
    together = asyncio.Barrier(4)

    async def handle(message: Message) -> None:
        if message.tenant == "slow":
            await asyncio.Event().wait()
        await together.wait()
        watched.note(message)

    settings = ConsumerSettings(slots=8, finish_within=0.0)
    async with Running(broker.source(topic), watched, Handling(handle), settings) as consumer:
        await watched.until(lambda: bool(watched.owned()))
        for done in range(0, 80, 4):
            for tenant in ("a", "b", "c", "d"):
                client.produce(topic, b"", entity_key(tenant, "e"), partition=0)
            client.flush(30)
            await watched.until(lambda done=done: len(watched.handled) == done + 4)
        waiting = {each.tenant: each.unfinished for each in consumer.lag()[0].tenants}
        assert waiting.get(TenantId("slow"), 0) == hanging


async def test_others_wait_for_at_most_their_share_of_what_a_backlogged_tenant_ends(broker: Broker) -> None:
    """How many of the flood's records end between the fetch of another tenant's record and its end: with
    equal shares about one for one, where the order of the partition would make it 300."""
    topic = broker.topic(1)
    client = broker.producer()
    for number in range(300):
        client.produce(topic, b"%d" % number, entity_key("flood", f"e{number}"), partition=0)
    for number in range(20):
        client.produce(topic, b"%d" % number, entity_key("small", f"e{number}"), partition=0)
    client.flush(30)
    watched, gate = Watched(), asyncio.Event()

    async def handle(message: Message) -> None:
        await gate.wait()
        watched.note(message)

    settings = ConsumerSettings(slots=1, report_every=0.05)
    async with Running(broker.source(topic), watched, Handling(handle), settings) as consumer:
        await watched.until(lambda: sum(each.unfinished for each in consumer.lag()) == 320)
        gate.set()
        await watched.until(lambda: len(watched.handled) == 320)
    tenants = [message.tenant for message in watched.handled]
    last_of_small = len(tenants) - 1 - tenants[::-1].index("small")
    assert tenants[:last_of_small].count("flood") <= 60
