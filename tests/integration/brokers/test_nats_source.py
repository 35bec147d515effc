"""A stream of NATS JetStream keeps the promises of a source, kept or emptied, of any retention."""

from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any

import pytest

nats = pytest.importorskip("nats", reason="pip install nats-py")

from nats.js.api import RetentionPolicy, StreamConfig  # noqa: E402

from tenantry.brokers.nats import StreamSource  # noqa: E402
from tenantry.kernel.errors import InvalidValue, SourceUnavailable, UsageError  # noqa: E402
from tenantry.replay.connections import Connection  # noqa: E402
from tenantry.replay.model import Position, SourceAddress  # noqa: E402
from tenantry.replay.ports import Source  # noqa: E402
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


class StreamWorld:
    """A stream of its own, with another tenant's subject in it."""

    small_window = 4

    def __init__(self, url: str, link: Any, done: str) -> None:
        self.url, self.stream, self._options = url, f"DEAD{next(_names)}", {"done": done}
        self.js = link.jetstream()

    async def made(self, **config: Any) -> "StreamWorld":
        await self.js.add_stream(StreamConfig(name=self.stream, subjects=[f"{self.stream}.>"], **config))
        return self

    async def put(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            await self.publish("acme", payload_of(number), {"Shape": "round"})

    async def publish(self, subject: str, payload: bytes, headers: dict[str, str] | None = None) -> None:
        await self.js.publish(f"{self.stream}.{subject}", payload, headers=headers)

    async def put_broken(self) -> bool:
        """A server takes no more than can be fed."""
        return False

    def source(self, *, small: bool = False, place: str = "", **options: str) -> StreamSource:
        connection = Connection(name="core", kind="nats", url=self.url)
        address = SourceAddress("nats", self.stream + place, "core", self._options | options)
        return StreamSource(connection, address, window=self.small_window if small else 10_000)

    async def crash(self, source: Source) -> None:
        assert isinstance(source, StreamSource)
        source._link._transport.close()

    def lost(self) -> Source:
        connection = Connection(name="core", kind="nats", url=self.url.replace("//", "//user:s3cret@"))
        return StreamSource(connection, SourceAddress("nats", "ABSENT"))


@pytest.fixture
async def link(nats_url: str) -> AsyncIterator[Any]:
    link = await nats.connect(nats_url)
    yield link
    await link.close()


class TestKeptStream(SourceConformance):
    @pytest.fixture
    async def world(self, nats_url: str, link: Any) -> StreamWorld:
        return await StreamWorld(nats_url, link, "keep").made()


class TestStreamOfWhichMessagesAreDeleted(SourceConformance):
    @pytest.fixture
    async def world(self, nats_url: str, link: Any) -> StreamWorld:
        return await StreamWorld(nats_url, link, "delete").made()


class TestWorkQueue(SourceConformance):
    @pytest.fixture
    async def world(self, nats_url: str, link: Any) -> StreamWorld:
        return await StreamWorld(nats_url, link, "delete").made(retention=RetentionPolicy.WORK_QUEUE)


@pytest.fixture
async def world(nats_url: str, link: Any) -> StreamWorld:
    return await StreamWorld(nats_url, link, "keep").made()


async def test_holes_of_any_size_are_passed(world: StreamWorld) -> None:
    await world.put(range(300))
    for sequence in [1, 3, 5, *range(20, 290), 300]:
        await world.js.delete_msg(world.stream, sequence)
    source = world.source()
    await source.open(await source.survey(), BEGINNING)
    gone = {0, 2, 4, *range(19, 289), 299}
    assert seen(await to_the_end(source)) == payloads([n for n in range(300) if n not in gone])
    await source.close()


async def test_one_subject_of_a_stream_is_read_alone(world: StreamWorld) -> None:
    for number in range(10):
        await world.publish("acme.x" if number % 3 else "other.x", payload_of(number))
    source = world.source(place=f"/{world.stream}.acme.>")
    membership = await source.survey()
    assert membership.count == 6
    await source.open(membership, BEGINNING)
    assert seen(await to_the_end(source)) == payloads([n for n in range(10) if n % 3])
    assert await source.arrived(membership) is None
    await source.close()


async def test_a_message_tells_when_it_came_and_what_its_headers_say(world: StreamWorld) -> None:
    headers = {
        "Nats-Msg-Id": "m",
        "Was-For": "orders.new",
        "Why": "boom",
        "Said": "no",
        "content-type": "text/plain",
    }
    await world.publish("acme", b"x", headers)
    asked = {"subject_header": "Was-For", "error_class_header": "why", "failure_header": "said"}
    (message,) = (entry.message for entry in await world.source(**asked).peek(1))
    assert message.target == "nats:core/orders.new"
    assert (message.error_class, message.failure, message.content_type) == ("boom", "no", "text/plain")
    assert set(message.headers) == {"was-for", "why", "said", "content-type"}
    assert message.failed_at is not None
    assert message.id.startswith(f"{world.stream}/1@2")


async def test_a_stream_that_forbids_deleting_says_so(nats_url: str, link: Any) -> None:
    world = await StreamWorld(nats_url, link, "delete").made(deny_delete=True)
    await world.put([1])
    source = world.source()
    await source.open(await source.survey(), BEGINNING)
    (entry,) = await fetched(source, 1)
    with pytest.raises(SourceUnavailable, match="delete"):
        await source.acknowledge([entry.receipt])
    await source.close()


@pytest.mark.parametrize("place", ["", "A B", "A.B", "*", "/x"])
def test_a_place_that_is_no_stream_is_refused(place: str) -> None:
    with pytest.raises(InvalidValue, match=r"source\.place"):
        StreamSource(Connection(name="c", kind="nats", url="nats://h"), SourceAddress("nats", place))


@pytest.mark.parametrize("options", [{"done": "burn"}, {"durable": "x"}], ids=["done", "unknown"])
async def test_an_option_that_is_not_read_is_refused(world: StreamWorld, options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"source\.options"):
        world.source(**options)
