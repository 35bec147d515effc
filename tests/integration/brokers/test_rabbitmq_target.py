"""What an exchange of RabbitMQ makes of a message, told as an outcome; a tenant writes where it may."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

aiormq = pytest.importorskip("aiormq", reason="pip install aiormq")

from aiormq.abc import AbstractChannel  # noqa: E402
from cut_wire import Wire  # noqa: E402

from tenantry.brokers.rabbitmq import RabbitSender, RabbitSource  # noqa: E402
from tenantry.brokers.targets import BrokerTargets  # noqa: E402
from tenantry.config.model import TargetSettings  # noqa: E402
from tenantry.delivery.router import Router  # noqa: E402
from tenantry.kernel.tenant import TenantId  # noqa: E402
from tenantry.lanes.outcome import Outcome  # noqa: E402
from tenantry.replay.connections import Connection, Connections  # noqa: E402
from tenantry.replay.model import SourceAddress  # noqa: E402
from tenantry.testing.jobs import claimed_job  # noqa: E402

_names = count(1)


class Exchange:
    """An exchange of its own with one queue, bound to ``in.#``, and a node that writes to it."""

    def __init__(self, url: str, wire: Wire, channel: AbstractChannel) -> None:
        number = next(_names)
        self.name, self.queue = f"ex/{number}", f"in-{number}"
        self.url, self.wire, self.channel = url, wire, channel
        self.connection = connection_to(wire.through(url))
        self.targets = targets_of(self.connection)

    async def made(self, **arguments: Any) -> "Exchange":
        await self.channel.exchange_declare(self.name, exchange_type="topic", auto_delete=True)
        await self.channel.queue_declare(self.queue, arguments=arguments)
        await self.channel.queue_bind(self.queue, self.name, "in.#")
        return self

    def address(self, key: str = "in.a", exchange: str | None = None) -> str:
        return f"amqp:mq/{(exchange or self.name).replace('/', '%2F')}/{key}"

    async def send(
        self, target: str | None = None, *, timeout_for: float = 10, headers: Mapping[str, str] | None = None,
        payload: bytes = b"{}", **changes: Any,
    ) -> Outcome:  # fmt: skip
        job = claimed_job(target or self.address(), headers=headers or {}, payload=payload, **changes)
        return await Router(brokers=self.targets).execute(job, TargetSettings(timeout_for=timeout_for))

    async def received(self) -> Any:
        return await self.channel.basic_get(self.queue, no_ack=True)


def connection_to(url: str, *places: str) -> Connection:
    targets = {"acme": places or ("*",)}
    return Connection(name="mq", kind="rabbitmq", url=url, targets=targets)


def targets_of(connection: Connection) -> BrokerTargets:
    return BrokerTargets(Connections({"mq": connection}), {"rabbitmq": RabbitSender})


@pytest.fixture
async def exchange(rabbitmq: str) -> AsyncIterator[Exchange]:
    port = urlsplit(rabbitmq).port
    assert port
    async with Wire(port) as wire:
        link = await aiormq.connect(rabbitmq)
        exchange = await Exchange(rabbitmq, wire, await link.channel()).made()
        async with exchange.targets:
            yield exchange
        await exchange.channel.queue_delete(exchange.queue)
        await link.close()


async def test_a_confirmed_message_is_delivered_as_it_was(exchange: Exchange) -> None:
    headers = {
        "shape": "round",
        "tenantry-key": "k",
        "amqp-message-id": "m1",
        "amqp-content-encoding": "gzip",
    }
    outcome = await exchange.send(headers=headers, payload=b"\x1f\x8b", content_type="text/plain")
    assert (outcome.error_class, outcome.busy_for > 0) == ("ok", True)
    message = await exchange.received()
    properties = message.header.properties
    assert message.body == b"\x1f\x8b"
    assert (properties.message_id, properties.content_encoding) == ("m1", "gzip")
    assert (properties.content_type, properties.delivery_mode) == ("text/plain", 2)
    assert properties.headers == {"shape": "round", "tenantry-key": "k"}


async def test_a_message_without_an_id_has_the_job_s(exchange: Exchange) -> None:
    assert (await exchange.send()).succeeded
    assert (await exchange.received()).header.properties.message_id == claimed_job().id


async def test_a_message_that_is_read_and_sent_again_is_the_same_message(exchange: Exchange) -> None:
    first = {"shape": "round", "amqp-message-id": "m1", "amqp-correlation-id": "c"}
    await exchange.send(headers=first)
    source = RabbitSource(exchange.connection, SourceAddress("rabbitmq", exchange.queue))
    (entry,) = await source.peek(1)
    assert dict(entry.message.headers) == first


async def test_nobody_bound_and_no_exchange_are_the_message_s_fault_and_harm_no_other(
    exchange: Exchange,
) -> None:
    outcomes = await asyncio.gather(
        *(exchange.send(headers={"amqp-message-id": "same"}) for _ in range(30)),
        *(exchange.send(exchange.address("out"), headers={"amqp-message-id": "same"}) for _ in range(30)),
        *(exchange.send(exchange.address("in.a", "absent")) for _ in range(10)),
        exchange.send(f"amqp:mq//{exchange.queue}"),
        exchange.send("amqp:mq//absent"),
    )
    classes = [outcome.error_class for outcome in outcomes]
    assert classes == ["ok"] * 30 + ["unroutable"] * 40 + ["ok", "unroutable"]


async def test_a_full_queue_that_refuses_is_the_target_s_fault(exchange: Exchange) -> None:
    full = f"{exchange.queue}-full"
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    await exchange.channel.queue_declare(full, exclusive=True, arguments=arguments)
    classes = [(await exchange.send(f"amqp:mq//{full}")).error_class for _ in range(3)]
    assert classes == ["ok", "broker_nack", "broker_nack"]


async def test_what_may_not_be_written_to_and_what_is_too_large_are_the_message_s_fault(
    exchange: Exchange,
) -> None:
    internal = f"{exchange.name}-internal"
    await exchange.channel.exchange_declare(internal, internal=True, auto_delete=True)
    assert (await exchange.send(exchange.address("a", internal))).error_class == "not_permitted"
    assert (await exchange.send(payload=bytes(2_000_001))).error_class == "message_too_large"
    assert (await exchange.send(headers={"big": "x" * 100_001})).error_class == "message_too_large"
    assert (await exchange.send(headers={"x" * 300: "left out", "big": "x" * 90_000})).succeeded
    await exchange.channel.exchange_delete(internal)


async def test_a_connection_that_is_lost_before_the_confirm_is_the_target_s_fault_and_the_next_is_made(
    exchange: Exchange,
) -> None:
    assert (await exchange.send()).succeeded
    exchange.wire.hold_answers()
    unanswered = asyncio.create_task(exchange.send(payload=b"unknown"))
    await exchange.received()
    while (await exchange.received()).body != b"unknown":
        pass
    exchange.wire.cut()
    assert (await unanswered).error_class == "broker_unreachable"
    assert (await exchange.send()).succeeded


async def test_a_broker_that_does_not_confirm_in_time_is_the_target_s_fault(exchange: Exchange) -> None:
    assert (await exchange.send()).succeeded
    exchange.wire.hold_answers()
    assert (await exchange.send(timeout_for=0.2)).error_class == "timeout"
    sender = exchange.targets._senders["mq"]
    assert isinstance(sender, RabbitSender)
    assert sender._link is not None
    noticed = sender._link.closing
    exchange.wire.cut()
    await asyncio.wait([noticed])
    assert (await exchange.send()).succeeded


@pytest.mark.parametrize("url", ["amqp://u:s3cret@127.0.0.1:1/", "s3cret", "amqp://guest:s3cret@{host}/"])
async def test_a_broker_that_cannot_be_reached_is_told_without_the_password(
    exchange: Exchange, url: str
) -> None:
    host = urlsplit(exchange.url).netloc.rpartition("@")[2]
    exchange.targets = targets_of(connection_to(url.format(host=host)))
    outcome = await exchange.send()
    assert outcome.error_class == "broker_unreachable"
    assert "s3cret" not in outcome.excerpt
    assert outcome.excerpt


async def test_a_tenant_writes_only_where_the_operator_lets_it(exchange: Exchange) -> None:
    place = exchange.address("in.").removeprefix("amqp:mq/")
    exchange.targets = targets_of(connection_to(exchange.connection.url, place + "*"))
    async with exchange.targets:
        assert (await exchange.send()).succeeded
        assert (await exchange.send(exchange.address("out"))).error_class == "address_not_allowed"
        other = await exchange.send(tenant=TenantId("other"))
        assert other.error_class == "address_not_allowed"
        assert (await exchange.send("amqp:nowhere/x/y")).error_class == "unknown_connection"
        assert (await exchange.send("kafka:mq/x")).error_class == "unknown_connection"
        assert (await exchange.send("amqp:mq/x")).error_class == "invalid_url"


async def test_a_node_announces_the_connections_that_it_may_write_to(exchange: Exchange) -> None:
    assert Router(brokers=exchange.targets).kinds == {"amqp:mq"}
    closed = Connection(name="mq", kind="rabbitmq", url=exchange.url, sources={"acme": ("*",)})
    assert targets_of(closed).kinds == frozenset()
    outcome = await Router().execute(claimed_job(exchange.address()), TargetSettings())
    assert outcome.error_class == "unknown_connection"
