"""A queue of SQS keeps the promises of a source: on ministack, an emulator, or on ``SQS_ENDPOINT``."""

from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import pytest

pytest.importorskip("aiobotocore", reason="pip install aiobotocore")

from tenantry.brokers.sqs import SqsSource, link, reading
from tenantry.brokers.sqs import source as source_module
from tenantry.kernel.errors import InvalidValue, SourceUnavailable, UsageError
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

_names = count(1)
BEGINNING = Position("")
OPTIONS = {"region": "eu-central-1", "access_key_id": "test", "secret_access_key": "s3cret"}


def connection_to(url: str, **more: str) -> Connection:
    return Connection(name="eu", kind="sqs", url=url, options=OPTIONS | more, targets={"acme": ("*",)})


class SqsWorld:
    """A queue of its own."""

    small_window = 4

    def __init__(self, url: str, client: Any) -> None:
        self.url, self.client, self.queue = url, client, f"dead-{next(_names)}"
        self.queue_url = ""

    async def made(self, name: str = "", **attributes: str) -> "SqsWorld":
        self.queue = name or self.queue
        answer = await self.client.create_queue(QueueName=self.queue, Attributes=attributes)
        self.queue_url = answer["QueueUrl"]
        return self

    async def put(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.send(
                payload_of(number).decode(), {"Shape": {"DataType": "String", "StringValue": "round"}}
            )

    async def send(self, body: str, attributes: dict[str, Any] | None = None, **more: str) -> None:
        await self.client.send_message(
            QueueUrl=self.queue_url, MessageBody=body, MessageAttributes=attributes or {}, **more
        )

    async def put_broken(self) -> bool:
        await self.send("{}", {reading.PACKED: {"DataType": "String", "StringValue": "no json"}})
        return True

    def source(self, *, small: bool = False, hidden_for: int = 60) -> SqsSource:
        connection = connection_to(self.url, visibility_timeout=str(hidden_for))
        window = self.small_window if small else 1_000
        return SqsSource(connection, SourceAddress("sqs", self.queue, "eu"), window=window)

    async def crash(self, source: Source) -> None:
        """Its messages stay hidden until their time is over, which is now."""
        assert isinstance(source, SqsSource)
        held = [str(receipt) for receipt in source._in_hand]
        await source._opened.aclose()
        await source._show(self.client, self.queue_url, held)

    def lost(self) -> Source:
        return SqsSource(connection_to(self.url), SourceAddress("sqs", "absent", "eu"))


@pytest.fixture
async def client(sqs_endpoint: str) -> AsyncIterator[Any]:
    async with link.opened(connection_to(sqs_endpoint)) as client:
        yield client


@pytest.fixture
async def world(sqs_endpoint: str, client: Any) -> SqsWorld:
    return await SqsWorld(sqs_endpoint, client).made()


class TestQueue(SourceConformance):
    """On the emulator, which keeps the order of a standard queue; SQS itself does not promise it."""


class TestFifoQueue(SourceConformance):
    @pytest.fixture
    async def world(self, sqs_endpoint: str, client: Any) -> "FifoWorld":
        world = FifoWorld(sqs_endpoint, client)
        await world.made(f"{world.queue}.fifo", FifoQueue="true")
        return world


class FifoWorld(SqsWorld):
    async def send(self, body: str, attributes: dict[str, Any] | None = None, **more: str) -> None:
        number = str(next(_names))
        await super().send(body, attributes, MessageGroupId=f"g{number}", MessageDeduplicationId=number)


async def test_a_message_brings_its_attributes_and_its_group(sqs_endpoint: str, client: Any) -> None:
    world = await FifoWorld(sqs_endpoint, client).made("attributes.fifo", FifoQueue="true")
    attributes = {
        "Number": {"DataType": "Number", "StringValue": "7"},
        "Raw": {"DataType": "Binary", "BinaryValue": b"\xff"},
        "content-type": {"DataType": "String", "StringValue": "text/plain"},
    }
    await world.send("x", attributes)
    (message,) = (entry.message for entry in await world.source().peek(1))
    assert message.content_type == "text/plain"
    assert message.headers[reading.GROUP].startswith("g")
    assert (message.headers["number"], message.headers["sqs-binary-raw"]) == ("7", "/w==")


async def test_what_is_left_beyond_its_time_is_hidden_again_and_not_given_out(world: SqsWorld) -> None:
    await world.put(range(3))
    source = world.source(hidden_for=1)
    await source.open(Membership(), BEGINNING)
    entries = await fetched(source, 3)
    await source.leave([entry.receipt for entry in entries])
    before = dict(source._left)
    while source._left == before:  # until they are there again, and got other receipts
        assert (await source.fetch(10, 4)).messages == ()
    await source.close()
    assert len(await world.source().peek(3)) == 3


async def test_what_filters_leave_is_bounded_with_a_clear_error(
    world: SqsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "MOST_LEFT", 1)
    await world.put(range(2))
    source = world.source()
    await source.open(Membership(), BEGINNING)
    with pytest.raises(SourceUnavailable, match="cannot be read past them"):
        await source.leave([entry.receipt for entry in await fetched(source, 2)])
    await source.close()


async def test_many_are_received_and_deleted_at_once(world: SqsWorld) -> None:
    await world.put(range(120))
    source = world.source()
    await source.open(Membership(), BEGINNING)
    assert sorted(seen(await to_the_end(source, limit=100))) == sorted(payloads(range(120)))
    await source.close()
    assert (await world.source().survey()).count == 0


def test_the_queue_that_a_message_died_for_is_its_target() -> None:
    stored = {
        "MessageId": "m", "ReceiptHandle": "r", "Body": "{}",
        "Attributes": {"DeadLetterQueueSourceArn": "arn:aws:sqs:eu-central-1:123456789012:orders.fifo"},
    }  # fmt: skip
    assert reading.entry(stored, "eu").message.target == "sqs:eu/orders.fifo"


@pytest.mark.parametrize(
    ("url", "options", "path"),
    [
        ("http://h/", {"region": ""}, "region"),
        ("https://sqs.eu-west-1.amazonaws.com", {"visibility_timeout": "0"}, "visibility_timeout"),
        ("https://sqs.eu-west-1.amazonaws.com", {"profile": "x"}, "options"),
    ],
)
def test_a_connection_that_is_not_sound_is_refused(url: str, options: dict[str, str], path: str) -> None:
    connection = Connection(name="eu", kind="sqs", url=url, options=options)
    with pytest.raises(UsageError, match=path):
        SqsSource(connection, SourceAddress("sqs", "q"))


@pytest.mark.parametrize("place", ["", "a/b", "https://sqs/q", "q" * 81])
def test_a_place_that_is_no_queue_is_refused(place: str) -> None:
    with pytest.raises(InvalidValue, match=r"source\.place"):
        SqsSource(connection_to("http://h"), SourceAddress("sqs", place))


async def test_an_endpoint_that_is_not_there_is_told_without_secrets() -> None:
    for url in ("http://127.0.0.1:1", "s3cret"):
        with pytest.raises(SourceUnavailable, match="'eu'") as raised:
            await SqsSource(connection_to(url), SourceAddress("sqs", "q", "eu")).survey()
        assert "s3cret" not in str(raised.value)
