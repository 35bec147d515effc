"""Reading a body: of the right type, at most so long, and in time. The bytes mean nothing here yet."""

import asyncio
from collections.abc import AsyncIterator, Collection

from starlette.requests import ClientDisconnect

from tenantry.kernel.instant import Seconds
from tenantry.web.calls import JSON, AnyCall
from tenantry.web.problems import Refused, refused, refused_with

NDJSON = "application/x-ndjson"
CLOSE = {"connection": "close"}
"""The rest of the body will not be read, so the connection cannot be used again."""

SLOWEST = 16_384
"""Bytes a second: who sends at least this is given time, beyond the first ``read_for`` seconds."""


def media_type(call: AnyCall, accepted: Collection[str] = (JSON,)) -> str:
    """The type of the body, one of ``accepted``, without parameters. Raises :class:`Refused` (415, 400)."""
    _check_encoding(call)
    values = call.header(b"content-type")
    if len(values) > 1:
        raise refused_with("malformed-request", "There is more than one Content-Type header.", CLOSE)
    name, _, parameters = (values[0] if values else b"").decode("latin-1").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").casefold()
    if name.strip().casefold() in accepted and charset in ("", "charset=utf-8"):
        return name.strip().casefold()
    raise _unsupported(f"The Content-Type must be {' or '.join(accepted)}, in UTF-8.", accepted)


async def read(call: AnyCall, limit: int) -> bytes:
    """The whole body, at most ``limit`` bytes. Raises :class:`Refused`: 413 as soon as it is known to be
    longer, 408 when it does not arrive in time."""
    return b"".join([chunk async for chunk in chunks(call, limit)])


async def chunks(call: AnyCall, limit: int) -> AsyncIterator[bytes]:
    """The body as it arrives, at most ``limit`` bytes in all. Raises as :func:`read`."""
    _check_announced(call, limit)
    began, total, more = call.services.clock.monotonic(), 0, True
    while more:
        spent = call.services.clock.monotonic() - began
        chunk, more = await _within(call, call.services.limits.read_for + total / SLOWEST - spent)
        total += len(chunk)
        if total > limit:
            raise _too_large(limit)
        yield chunk


async def _within(call: AnyCall, remaining: Seconds) -> tuple[bytes, bool]:
    try:
        async with asyncio.timeout(remaining):
            return await _next(call)
    except TimeoutError:
        raise refused_with("request-timeout", "The body did not arrive in time.", CLOSE) from None


async def _next(call: AnyCall) -> tuple[bytes, bool]:
    message = await call.receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message.get("body", b""), message.get("more_body", False)


def _check_announced(call: AnyCall, limit: int) -> None:
    """Refuse by the announced length, before a byte is read (and before ``100 Continue`` is sent)."""
    lengths = set(call.header(b"content-length"))
    if len(lengths) > 1 or any(not length.isdigit() for length in lengths):
        raise refused_with("malformed-request", "The Content-Length header is not one number.", CLOSE)
    if any(len(length) > 18 or int(length) > limit for length in lengths):
        raise _too_large(limit)


def _too_large(limit: int) -> Refused:
    detail = f"The body is longer than the {limit:,} bytes that are read here."
    return refused_with("body-too-large", detail, CLOSE, limit=limit)


def _check_encoding(call: AnyCall) -> None:
    encodings = [value.strip().lower() for value in call.header(b"content-encoding")]
    if any(encoding not in (b"", b"identity") for encoding in encodings):
        raise _unsupported("Send the body without Content-Encoding: it is not decompressed.", ())


def _unsupported(detail: str, accepted: Collection[str]) -> Refused:
    headers = {**CLOSE, "accept-post": ", ".join(accepted)} if accepted else CLOSE
    return refused_with("unsupported-media-type", detail, headers)


def nothing_expected(call: AnyCall) -> None:
    """For a method that takes no body. Raises :class:`Refused` (400) when one was announced."""
    announced = [length for length in call.header(b"content-length") if length.strip(b"0")]
    if announced or call.header(b"transfer-encoding"):
        raise refused("malformed-request", "This request takes no body.")
