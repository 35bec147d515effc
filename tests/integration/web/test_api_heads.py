"""Heads of requests that are too large or never whole, over raw sockets."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.types import Receive, Scope, Send

from tenantry.web.heads import HeadLimits
from tenantry.web.server import HttpServer

LIMITS = HeadLimits(bytes=4_096, within=0.2)
GET = b"GET / HTTP/1.1\r\nhost: x\r\n"
SOON = 10.0


@pytest.fixture
async def server() -> AsyncIterator[HttpServer]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/slow":
            await asyncio.sleep(3 * LIMITS.within)  # an answer that takes longer than a head may
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with HttpServer(app, heads=LIMITS) as made:
        yield made


async def exchange(server: HttpServer, *pieces: bytes) -> bytes:
    """What comes back until the server closes."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        async with asyncio.timeout(SOON):
            for piece in pieces:
                writer.write(piece)
            return await reader.read()
    except ConnectionResetError:  # it closed while we wrote
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("sent", [b"", b"G", GET, GET + b"a: b\r\n", b"\r\n\r\n"])
async def test_a_head_that_is_not_whole_in_time_is_answered_and_cut_off(
    server: HttpServer, sent: bytes
) -> None:
    answer = await exchange(server, sent)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer


async def test_dribbling_a_head_does_not_make_it_last(server: HttpServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(GET)

    async def dribble() -> None:
        while True:
            writer.write(b"a: b\r\n")
            await asyncio.sleep(LIMITS.within / 20)  # the story's beat, not a wait for anything

    dribbling = asyncio.create_task(dribble())
    try:
        async with asyncio.timeout(SOON):
            assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
    finally:
        dribbling.cancel()
        writer.close()


async def test_a_second_head_on_one_connection_has_its_own_time(server: HttpServer) -> None:
    answer = await exchange(server, GET + b"\r\n", GET)
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert b"HTTP/1.1 408 " in answer


async def test_an_answer_that_is_slow_is_not_cut_off_by_a_slow_head_behind_it(server: HttpServer) -> None:
    answer = await exchange(server, b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n", b"G")
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert b"HTTP/1.1 408 " in answer


@pytest.mark.parametrize(
    "head",
    [
        GET + b"a: " + b"x" * 5_000,
        GET + b"a: " + b"x" * 5_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 5_000,
        GET + b"a: b\r\n" * 800 + b"\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\na: " + b"x" * 5_000 + b"\r\n\r\nabc",
    ],
    ids=["one header, not whole", "one header, whole", "the target", "many headers", "with a body"],
)
async def test_a_head_that_is_too_large_is_answered_and_cut_off(server: HttpServer, head: bytes) -> None:
    answer = await exchange(server, head)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_megabyte_of_header_is_cut_off_under_the_limits_that_ship() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("never asked")

    async with HttpServer(app) as made:
        answer = await exchange(made, GET + b"a: " + b"x" * 1_048_576)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")  # nothing, where it closed while we wrote
    assert HeadLimits() == HeadLimits(bytes=65_536, within=10.0), "the figures of docs/api.md"


async def test_a_large_body_behind_a_small_head_is_no_head(server: HttpServer) -> None:
    body = b"x" * 50_000
    head = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 50000\r\n\r\n"
    assert (await exchange(server, head + body)).startswith(b"HTTP/1.1 204 ")
    assert (await exchange(server, head, body[:9], body[9:])).startswith(b"HTTP/1.1 204 ")
