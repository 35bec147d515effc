"""The public test target keeps its word, for clients that speak plain HTTP/1.1."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tenantry.kernel.errors import Closed, InvalidValue
from tenantry.testing.target import Target

GET = b"GET /a?x=1 HTTP/1.1\r\nHost: t\r\n\r\n"
POST = b"POST /b HTTP/1.1\r\nHost: t\r\nX-Name: one\r\nContent-Length: 3\r\n\r\nabc"


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with asyncio.timeout(20), Target() as target:
        yield target


async def said(target: Target, *pieces: bytes) -> bytes:
    """What the target says to ``pieces`` until it ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(target.url.rpartition(":")[2]))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def test_requests_on_one_connection_are_met_in_order_and_remembered(target: Target) -> None:
    target.at("/a").answers(200, body=b"first")
    target.at("/b").answers(404, {"X-Why": "gone"}, b"second")
    answer = await said(target, GET + POST)
    assert answer.index(b"first") < answer.index(b"HTTP/1.1 404 Not Found") < answer.index(b"second")
    assert target.connections == 1
    assert [request.path for request in target.received] == ["/a?x=1", "/b"]
    assert target.received[1].headers["x-name"] == "one"
    assert target.received[1].body == b"abc"
    assert dict(target.by_path) == {"/a": 1, "/b": 1}


async def test_a_request_may_come_in_pieces(target: Target) -> None:
    answer = await said(target, *(POST[at : at + 1] for at in range(len(POST))))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 0")
    assert target.received[0].body == b"abc"


async def test_statuses_come_in_turn_and_the_last_one_stays(target: Target) -> None:
    target.answers_in_turn(503, 200)
    statuses = (await said(target, GET * 3)).split(b"HTTP/1.1 ")[1:]
    assert [status[:3] for status in statuses] == [b"503", b"200", b"200"]


async def test_a_delay_holds_back_the_later_requests_of_its_connection_too(target: Target) -> None:
    target.answers(200, body=b"late").delays(0.01)
    assert (await said(target, GET + GET)).count(b"late") == 2


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"431"),
    ],
)
async def test_what_it_does_not_read_it_refuses_in_http(
    target: Target, request_bytes: bytes, status: bytes
) -> None:
    assert (await said(target, request_bytes)).startswith(b"HTTP/1.1 " + status)
    assert target.total == 0


async def test_waiting_for_a_count_ends_with_the_request_that_makes_it(target: Target) -> None:
    waiting = asyncio.create_task(target.received_count(2))
    await said(target, GET)
    assert not waiting.done()
    await said(target, GET)
    await waiting
    await target.received_count(1)


async def test_only_the_newest_requests_are_remembered() -> None:
    async with Target(remember=1) as target:
        await said(target, GET + POST)
        assert [request.path for request in target.received] == ["/b"]
        assert target.total == 2


async def test_a_target_without_a_place_says_how_to_give_it_one() -> None:
    target = await Target.start()
    await target.close()
    await target.close()
    with pytest.raises(Closed, match=r"Target\.start"):
        _ = target.url


def test_meaningless_stories_are_refused() -> None:
    with pytest.raises(InvalidValue, match="delays"):
        Target().delays(-1)
    with pytest.raises(InvalidValue, match="answers_in_turn"):
        Target().answers_in_turn()


async def test_a_body_that_trickles_arrives_whole_and_the_connection_goes_on(target: Target) -> None:
    target.at("/a").trickles(b"slow", 0.001)
    answer = await said(target, GET + GET)
    assert answer.count(b"slow") == 2
    assert target.connections == 1


async def test_under_load_some_are_served_some_wait_and_some_are_refused(target: Target) -> None:
    target.at("/a").serves(2, 0.01, line=2)
    answers = await asyncio.gather(*(said(target, GET) for _ in range(12)))
    statuses = sorted(answer.split(b" ")[1] for answer in answers)
    assert set(statuses) == {b"200", b"503"}
    assert statuses.count(b"200") >= 4


async def test_a_rate_limit_is_kept_over_the_wire_with_its_retry_after(target: Target) -> None:
    target.limits(0.001, burst=2)
    answer = await said(target, GET * 4)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.count(b"Retry-After: ") == 2
