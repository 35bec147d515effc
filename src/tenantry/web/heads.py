"""How long and how large the head of a request may be.

Until its head is whole a request costs a connection and its bytes, and no rule of the API has seen it. So the
protocol itself sets the limits: a client that dribbles a head, or never ends one, is answered and cut off.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tenantry.kernel.instant import Seconds


@dataclass(frozen=True, slots=True)
class HeadLimits:
    """``bytes``: of the target and all headers together. ``within``: seconds from the connection, or from the
    first byte after an answer, to the head's end."""

    bytes: int = 65_536
    within: Seconds = 10.0


HEAD_LIMITS = HeadLimits()


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol under :class:`HeadLimits`: 431 for a head too large, 408 for one too slow."""

    def __init__(self, limits: HeadLimits, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._in_body = self._too_large = False
        self._pending = self._size = 0  # bytes that came since the last head; what this head has so far
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if not self._in_body:
            self._pending += len(data)
            self._watch()
        super().data_received(data)
        if not self._in_body and self._pending > self._limits.bytes and not self.transport.is_closing():
            self._refuse(b"431 Request Header Fields Too Large", b"The request's head is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._watch()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._size += len(name) + len(value) + 4

    def on_headers_complete(self) -> None:
        self._unwatch()
        self._too_large = self._size > self._limits.bytes
        if self._too_large:
            raise ValueError("a head too large")  # the parser stops, and send_400_response answers
        self._in_body, self._pending, self._size = True, 0, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if self._too_large:
            self._refuse(b"431 Request Header Fields Too Large", b"The request's head is too large.")
        else:
            super().send_400_response(msg)

    def _watch(self) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self._limits.within, self._run_out)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _run_out(self) -> None:
        """An answer that is being given is not cut off by the slow head of the next request behind it."""
        self._late = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._watch()
        else:
            self._refuse(b"408 Request Timeout", b"The request's head did not arrive in time.")

    def _refuse(self, status: bytes, why: bytes) -> None:
        head = (
            b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
            b"content-length: %d\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head % (status, len(why)) + why)
        self.transport.close()
