"""A queue of RabbitMQ keeps the promises of a source, with the deaths that the broker itself wrote."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

aiormq = pytest.importorskip("aiormq", reason="pip install aiormq")

from aiormq.abc import AbstractChannel  # noqa: E402
from cut_wire import Wire  # noqa: E402
from pamqp.commands import Basic  # noqa: E402

from tenantry.brokers.rabbitmq import RabbitSource  # noqa: E402
from tenantry.brokers.rabbitmq import source as source_module  # noqa: E402
from tenantry.kernel.clock import SystemClock  # noqa: E402
from tenantry.kernel.errors import SourceUnavailable, UsageError  # noqa: E402
from tenantry.replay.connections import Connection  # noqa: E402
from tenantry.replay.model import Fetched, Membership, Position, SourceAddress  # noqa: E402
from tenantry.replay.ports import Source  # noqa: E402
from tenantry.testing.clock import ManualClock  # noqa: E402
from tenantry.testing.conformance.sources import (  # noqa: E402
    SourceConformance,
    fetched,
    payload_of,
    payloads,
    seen,
    to_the_end,
)

_names = count(1)
BEGINNING = Position("")


class RabbitWorld:
    """An exchange, a queue whose consumer rejects everything, and the queue where that ends up."""

    small_window = 4

    def __init__(self, url: str, wire: Wire, channel: AbstractChannel) -> None:
        number = next(_names)
        self.exchange, self.queue, self.dead = f"orders/{number}", f"work-{number}", f"dead-{number}"
        self.url, self.wire, self.channel = url, wire, channel
        self._count = 0

    async def made(self, **arguments: Any) -> "RabbitWorld":
        await self.channel.exchange_declare(self.exchange, exchange_type="topic", auto_delete=True)
        dies = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": self.dead}
        await self.channel.queue_declare(self.queue, arguments=dies, exclusive=True)
        await self.channel.queue_bind(self.queue, self.exchange, "#")
        await self.channel.queue_declare(self.dead, durable=True, arguments=arguments)
        return self

    async def put(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._count += 1
            await self.publish(payload_of(number), message_id=f"m{self._count}", headers={"Shape": "round"})
            await self.reject()

    async def publish(self, body: bytes, key: str = "order.created", **properties: Any) -> None:
        await self.channel.basic_publish(
            body, exchange=self.exchange, routing_key=key, properties=Basic.Properties(**properties)
        )

    async def reject(self) -> None:
        """The consumer takes the next message and wants none of it; waits until it lies with the dead."""
        before = await self.ready(self.dead)
        message = await self.channel.basic_get(self.queue)
        await self.channel.basic_reject(message.delivery_tag, requeue=False)
        while await self.ready(self.dead) == before:
            pass

    async def ready(self, queue: str) -> int:
        return (await self.channel.queue_declare(queue, passive=True)).message_count or 0

    async def put_broken(self) -> bool:
        await self.publish(b"{}", message_id="x" * 250)
        await self.reject()
        return True

    def source(self, *, small: bool = False, **options: str) -> RabbitSource:
        window = self.small_window if small else 1_000
        return self.made_source(self.dead, window=window, options=options)

    def made_source(
        self,
        queue: str,
        *,
        window: int = 1_000,
        options: dict[str, str] | None = None,
        clock: ManualClock | None = None,
    ) -> RabbitSource:
        address = SourceAddress("rabbitmq", queue, "mq", options or {})
        connection = Connection(name="mq", kind="rabbitmq", url=self.wire.through(self.url))
        return RabbitSource(connection, address, window=window, clock=clock)

    async def crash(self, source: Source) -> None:
        """Returns once the broker has noticed."""
        self.wire.cut()
        while (await self.channel.queue_declare(self.dead, passive=True)).consumer_count:
            pass

    def lost(self) -> Source:
        connection = Connection(name="mq", kind="rabbitmq", url="amqp://user:s3cret@127.0.0.1:1/")
        return RabbitSource(connection, SourceAddress("rabbitmq", self.dead))


@asynccontextmanager
async def opened_world(rabbitmq: str, **arguments: str) -> AsyncIterator[RabbitWorld]:
    port = urlsplit(rabbitmq).port
    assert port
    async with Wire(port) as wire:
        link = await aiormq.connect(rabbitmq)
        channel = await link.channel()
        world = await RabbitWorld(rabbitmq, wire, channel).made(**arguments)
        yield world
        await channel.queue_delete(world.dead)
        await link.close()


@pytest.fixture
async def world(rabbitmq: str) -> AsyncIterator[RabbitWorld]:
    async with opened_world(rabbitmq) as world:
        yield world


class TestQueue(SourceConformance):
    """On the broker."""


class TestQuorumQueue(SourceConformance):
    @pytest.fixture
    async def world(self, rabbitmq: str) -> AsyncIterator[RabbitWorld]:
        async with opened_world(rabbitmq, **{"x-queue-type": "quorum"}) as world:
            yield world


async def first(world: RabbitWorld, **options: str) -> Fetched:
    (entry,) = await world.source(**options).peek(1)
    return entry


async def test_a_message_tells_where_it_was_published_and_how_it_died(world: RabbitWorld) -> None:
    began = SystemClock().now()
    properties = {"correlation_id": "c", "content_encoding": "gzip", "content_type": "text/plain"}
    headers = {"Tries": 2, "deep": {"a": [1]}, "yes": True, "none": None}
    await world.publish(b"x", "a.b/c", message_id="m", headers=headers, **properties)
    await world.reject()
    message = (await first(world)).message
    assert message.target == f"amqp:mq/{world.exchange.replace('/', '%2F')}/a.b/c"
    assert (message.error_class, message.attempts) == ("rejected", 1)
    assert message.failure == f"rejected in the queue {world.queue}"
    assert message.failed_at is not None
    assert began - 2 <= message.failed_at <= SystemClock().now() + 2
    assert message.content_type == "text/plain"
    assert dict(message.headers) == {
        "tries": "2",
        "deep": '{"a": [1]}',
        "yes": "true",
        "amqp-message-id": "m",
        "amqp-correlation-id": "c",
        "amqp-content-encoding": "gzip",
        "tenantry-deaths": "1",
    }


async def test_a_message_can_go_back_to_the_one_queue_it_died_in(world: RabbitWorld) -> None:
    await world.put([1])
    assert (await first(world, target_from="queue")).message.target == f"amqp:mq//{world.queue}"


async def test_of_a_chain_of_deaths_the_first_says_where_to_and_the_last_says_when(
    world: RabbitWorld,
) -> None:
    await world.put([1])
    died_once = (await first(world)).message
    late = f"{world.dead}-late"
    await world.channel.queue_declare(
        late,
        exclusive=True,
        arguments={"x-message-ttl": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": world.dead},
    )
    moved = await world.channel.basic_get(world.dead)
    await world.channel.basic_publish(moved.body, routing_key=late, properties=moved.header.properties)
    await world.channel.basic_ack(moved.delivery_tag)
    while not await world.ready(world.dead):
        pass
    died_twice = (await first(world)).message
    assert died_twice.target == died_once.target
    assert (died_twice.error_class, died_twice.attempts) == ("expired", 1)
    assert died_twice.id != died_once.id


async def test_a_message_that_dies_again_is_another_entry_and_one_that_is_given_again_is_not(
    world: RabbitWorld,
) -> None:
    await world.put([1])
    before = (await first(world)).message
    assert (await first(world)).message.id == before.id
    back = await world.channel.basic_get(world.dead)
    await world.channel.basic_ack(back.delivery_tag)
    await world.publish(back.body, message_id="m1", headers=dict(before.headers))  # as a replay sends it
    await world.reject()
    again = (await first(world)).message
    assert again.id.split("@")[0] == before.id.split("@")[0]
    assert again.id != before.id
    assert again.id.endswith(".2")


async def test_a_message_without_an_id_is_a_fault_unless_something_else_names_it(world: RabbitWorld) -> None:
    await world.channel.basic_publish(b"1", routing_key=world.dead, properties=_bare(headers={"event": "e1"}))
    entry = await first(world)
    if not entry.message.headers.get("amqp-message-id"):
        assert "id_from" in entry.fault
    assert (await first(world, id_from="header:event")).message.id == "e1"
    by_body = (await first(world, id_from="body")).message.id
    assert by_body == (await first(world, id_from="body")).message.id
    assert "none at header:absent" in (await first(world, id_from="header:absent")).fault


@pytest.mark.parametrize(
    "options",
    [{"id_from": "headers"}, {"target_from": "sky"}, {"prefetch": "7"}],
    ids=["id", "target", "unknown"],
)
async def test_an_option_that_is_not_read_is_refused(world: RabbitWorld, options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"source\.options"):
        world.source(**options)


async def test_more_can_be_left_than_the_window_holds(world: RabbitWorld) -> None:
    await world.put(range(30))
    source = world.source(small=True)
    await source.open(Membership(), BEGINNING)
    for number in range(0, 30, 3):
        entries = await fetched(source, 3)
        assert seen(entries) == payloads(range(number, number + 3))
        await source.leave([entry.receipt for entry in entries[:2]])
        await source.acknowledge([entries[2].receipt])
    assert (await source.fetch(5, 0.1)).exhausted
    await source.close()
    assert await world.ready(world.dead) == 20


async def test_what_filters_leave_is_bounded_with_a_clear_error(
    world: RabbitWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MOST_LEFT", 3)
    await world.put(range(6))
    source = world.source()
    await source.open(Membership(), BEGINNING)
    entries = await fetched(source, 5)
    await source.leave([entry.receipt for entry in entries[:3]])
    with pytest.raises(SourceUnavailable, match="cannot be read past them"):
        await source.leave([entry.receipt for entry in entries[3:]])
    await source.close()
    assert await world.ready(world.dead) == 6


async def test_what_is_left_is_given_back_before_the_broker_s_patience_ends(world: RabbitWorld) -> None:
    await world.put(range(3))
    clock = ManualClock()
    source = world.made_source(world.dead, clock=clock)
    await source.open(Membership(), BEGINNING)
    (entry,) = await fetched(source, 1)
    await source.leave([entry.receipt])
    clock.advance(1_430)
    assert len(await fetched(source, 1)) == 1
    clock.advance(20)
    with pytest.raises(SourceUnavailable, match="consumer timeout"):
        await source.fetch(1, 0)
    await source.close()


async def test_a_channel_that_is_lost_while_nothing_is_in_hand_is_opened_again(world: RabbitWorld) -> None:
    await world.put(range(4))
    source = world.source()
    await source.open(Membership(), BEGINNING)
    entries = await fetched(source, 2)
    await source.acknowledge([entry.receipt for entry in entries])
    assert source._session is not None
    noticed = source._session.channel.closing
    await world.crash(source)
    await asyncio.wait([noticed])
    assert seen(await to_the_end(source)) == payloads(range(2, 4))
    await source.close()


async def test_a_channel_that_is_lost_with_messages_in_hand_is_told_and_they_come_again(
    world: RabbitWorld,
) -> None:
    await world.put(range(4))
    source = world.source()
    await source.open(Membership(), BEGINNING)
    entries = await fetched(source, 2)
    await world.crash(source)
    with pytest.raises(SourceUnavailable, match="'mq'"):
        await source.acknowledge([entry.receipt for entry in entries])
    with pytest.raises(SourceUnavailable, match="in the queue again"):
        await source.fetch(1, 0)
    await source.close()
    await source.open(Membership(), BEGINNING)
    assert sorted(seen(await to_the_end(source))) == payloads(range(4))
    await source.close()


async def test_a_queue_that_is_deleted_is_told(world: RabbitWorld) -> None:
    source = world.source()
    await source.open(Membership(), BEGINNING)
    await world.channel.queue_delete(world.dead)
    with pytest.raises(SourceUnavailable, match="no queue"):
        await source.fetch(1, 0)
    await source.close()


async def test_a_wrong_password_is_told_without_it(world: RabbitWorld) -> None:
    port = urlsplit(world.url).port
    connection = Connection(name="mq", kind="rabbitmq", url=f"amqp://guest:s3cret@127.0.0.1:{port}/")
    with pytest.raises(SourceUnavailable, match="'mq'") as raised:
        await RabbitSource(connection, SourceAddress("rabbitmq", world.dead)).survey()
    assert "s3cret" not in str(raised.value)


def _bare(**properties: Any) -> Basic.Properties:
    """Without the message id that the client would make."""
    return Basic.Properties(message_id=None, **properties)
