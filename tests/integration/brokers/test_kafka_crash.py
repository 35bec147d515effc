"""A consumer is killed with work in flight: the next one loses nothing and keeps each entity's order."""

import asyncio
import signal
import sys
from pathlib import Path

from kafka_world import Broker, Running, Watched

from tenantry.brokers.kafka import PlacedProducer
from tenantry.partition import Layout, Placement

PARTITIONS, EVENTS = 4, 60
PLACEMENT = Placement(Layout(PARTITIONS, spreads={"hot": 4}))
TENANTS = ("hot", "a", "b")


async def test_kill_minus_nine_repeats_some_events_and_loses_none(
    watchful_broker: Broker, tmp_path: Path
) -> None:
    broker, log = watchful_broker, tmp_path / "handled"
    topic = broker.topic(PARTITIONS)
    log.touch()
    client = broker.producer()
    placed = PlacedProducer(client, topic, PLACEMENT)
    for number in range(EVENTS):
        for tenant in TENANTS:
            placed.produce(b"%d" % number, tenant=tenant, entity=f"e{number % 5}", at=1.7e9 + number)
    assert client.flush(30) == 0
    member = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).with_name("kafka_member.py")), broker.bootstrap, topic, str(log),
        "70" )  # fmt: skip
    async with asyncio.timeout(40):
        while sum(max(0, at) for at in await asyncio.to_thread(broker.committed, topic, PARTITIONS)) < 40:
            assert member.returncode is None
    member.send_signal(signal.SIGKILL)
    await member.wait()
    before = [line.split() for line in log.read_text().splitlines()]
    begun = broker.committed(topic, PARTITIONS)
    after = Watched()
    async with Running(broker.source(topic), after):  # once the dead member's session has ended
        left = EVENTS * len(TENANTS) - sum(max(0, at) for at in begun)
        await after.until(lambda: len(after.handled) >= left)
    for tenant in TENANTS:
        for first in range(5):
            theirs = [int(value) for who, entity, value in before if (who, entity) == (tenant, f"e{first}")]
            ours = after.values(tenant, f"e{first}")
            wanted = list(range(first, EVENTS, 5))
            assert theirs == wanted[: len(theirs)]  # in order as far as it came
            assert ours == wanted[len(wanted) - len(ours) :]  # in order, to the end
            assert len(theirs) + len(ours) >= len(wanted)  # nothing between them
    assert after.overlaps == 0
