"""One connection of a test target: requests in, the manner in which they are met out."""

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from typing import cast

from tenantry.kernel.instant import Seconds

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 64 * 1024 * 1024
FLOOD = b"x" * 65_536

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Received:
    """One request. Header names are in lower case; of a repeated header the last value is kept."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Then(Enum):
    """What follows the bytes of an answer."""

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"
    HANG = "hang"
    FLOOD = "flood"
    TRICKLE = "trickle"


@dataclass(frozen=True, slots=True)
class Manner:
    """How one request is met: ``wait_for`` seconds, the ``raw`` bytes, ``then``. ``body`` and ``every``: what
    trickles, a byte at a time with so many seconds between two."""

    raw: bytes
    then: Then = Then.KEEP
    wait_for: Seconds = 0.0
    body: bytes = b""
    every: Seconds = 0.0

    def after(self, seconds: Seconds) -> "Manner":
        return replace(self, wait_for=seconds)


def answer(status: int = 200, headers: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
    """An HTTP/1.1 answer as bytes. ``headers`` go out as given and may replace Content-Length. Pure."""
    fields = {"Content-Length": str(len(body)), **(headers or {})}
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Refused(Exception):
    """The request is not one that a test target reads; ``raw`` is the answer, then the connection closes."""

    def __init__(self, status: int) -> None:
        self.raw = answer(status, {"Connection": "close"})
        super().__init__(status)


def take_request(buffer: bytearray) -> Received | None:
    """The first whole request, removed from ``buffer``; None while it is incomplete. Raises
    :class:`Refused`."""
    if buffer and not chr(buffer[0]).isalpha():
        raise Refused(400)  # a TLS greeting, for one: it would wait for ever
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > HEAD_LIMIT:
            raise Refused(431)
        return None
    method, path, headers = _read_head(buffer[:end].decode("latin-1"))
    stop = end + 4 + _body_length(headers)
    if len(buffer) < stop:
        return None
    body = bytes(buffer[end + 4 : stop])
    del buffer[:stop]
    return Received(method, path, headers, body)


def _read_head(head: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise Refused(400)
    pairs = (line.partition(":") for line in lines)
    return words[0], words[1], {name.lower(): value.strip() for name, _, value in pairs}


def _body_length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise Refused(411)
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise Refused(400)
    if int(text) > BODY_LIMIT:
        raise Refused(413)
    return int(text)


class Connection(asyncio.Protocol):
    """One client. ``meets`` decides the manner of each request; ``open_`` holds the connections that live."""

    def __init__(self, meets: Callable[[Received], Manner], open_: "set[Connection]") -> None:
        self._meets, self._open = meets, open_
        self._buffer = bytearray()
        self._busy = self._paused = self._flooding = False
        self._owed = self._leaving = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit from it
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._busy, self._flooding = True, False
        self._open.discard(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._serve()

    def eof_received(self) -> bool:
        """A client that has said all it wants to say still gets the answer that it waits for."""
        self._leaving = True
        return self._owed

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._flood()

    def drop(self) -> None:
        """Ends the connection at once."""
        self._transport.abort()

    def _serve(self) -> None:
        """Requests one after the other, in the order in which they came."""
        try:
            while not self._busy and (request := take_request(self._buffer)) is not None:
                self._meet(self._meets(request))
        except Refused as refused:
            self._end(Manner(refused.raw, Then.CLOSE))

    def _meet(self, manner: Manner) -> None:
        if not manner.wait_for:
            self._end(manner)
            return
        self._busy = self._owed = True
        asyncio.get_running_loop().call_later(manner.wait_for, self._late, manner)

    def _late(self, manner: Manner) -> None:
        self._owed = False
        if self._transport.is_closing():
            return
        self._end(manner)
        self._serve()
        if self._leaving and not self._owed:
            self._transport.close()

    def _end(self, manner: Manner) -> None:
        self._busy = manner.then is not Then.KEEP
        self._transport.write(manner.raw)
        if manner.then is Then.CLOSE:
            self._transport.close()
        elif manner.then is Then.RESET:
            self._reset()
        elif manner.then is Then.FLOOD:
            self._flooding = True
            self._flood()
        elif manner.then is Then.TRICKLE:
            self._trickle(manner.body, manner.every)

    def _trickle(self, body: bytes, every: Seconds) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(body[:1])
        self._owed = len(body) > 1
        if self._owed:
            asyncio.get_running_loop().call_later(every, self._trickle, body[1:], every)
            return
        self._busy = False
        self._serve()
        if self._leaving and not self._owed:
            self._transport.close()

    def _reset(self) -> None:
        # to close a socket that lingers for no time sends RST instead of FIN
        connection: socket.socket = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _flood(self) -> None:
        while self._flooding and not self._paused and not self._transport.is_closing():
            self._transport.write(FLOOD)
