"""One connection to NATS, and where its client's exceptions end."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from tenantry.kernel.errors import InvalidValue, MissingExtra, SourceUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.replay import fields
from tenantry.replay.connections import Connection

CONNECTION_OPTIONS = ("user_credentials",)
CONNECT_WITHIN: Seconds = 5.0
ANSWER_WITHIN: Seconds = 10.0

_SECRET = re.compile(r"(?<=//)[^/@\s]*@")


def client() -> Any:
    """The module ``nats``. Raises :class:`MissingExtra`."""
    try:
        import nats
        import nats.errors
        import nats.js.errors
    except ImportError:
        raise MissingExtra("nats", "NATS") from None
    return nats


def foreign() -> tuple[type[BaseException], ...]:
    """What the client raises; ValueError for a URL."""
    return (client().errors.Error, OSError, ValueError)


def check(connection: Connection) -> None:
    """Raises :class:`UnknownKey` for an option that is not read."""
    for name in connection.options:
        if name not in CONNECTION_OPTIONS:
            raise InvalidValue(
                f"connections.{connection.name}.options", name, " or ".join(CONNECTION_OPTIONS)
            )


async def connected(connection: Connection, *, again: bool) -> Any:
    """A connection; ``again``: made again whenever it is lost. Raises what :func:`foreign` names."""
    async with asyncio.timeout(CONNECT_WITHIN):
        return await client().connect(
            [each.strip() for each in connection.url.split(",")],
            allow_reconnect=again,
            max_reconnect_attempts=-1 if again else 0,
            reconnect_time_wait=0.2,
            connect_timeout=CONNECT_WITHIN,
            error_cb=_unheard,
            name="tenantry",
            user_credentials=connection.options.get("user_credentials"),
        )


@asynccontextmanager
async def linked(connection: Connection) -> AsyncIterator[Any]:
    """A connection for one look. Raises :class:`SourceUnavailable`."""
    with translated(connection):
        link = await connected(connection, again=False)
        try:
            yield link
        finally:
            await link.close()


@contextmanager
def translated(connection: Connection) -> Iterator[None]:
    """Raises :class:`SourceUnavailable` for what the client raises."""
    try:
        yield
    except foreign() as error:
        raise SourceUnavailable(f"connection {connection.name!r}: {said(error)}") from None


def said(error: BaseException) -> str:
    """The client's words, at most 200 characters, without user and password."""
    if isinstance(error, TimeoutError):
        return "NATS did not answer in time"
    if isinstance(error, ValueError):
        return "its URL is none; expected nats://user:password@host:port"
    text = " ".join(str(error).split()) or type(error).__name__
    return f"NATS said: {_SECRET.sub('…@', text)[:200]}"


async def _unheard(_error: Exception) -> None:
    """The calls that fail of it tell."""


def header_texts(block: bytes) -> dict[str, str]:
    """NATS's header block: a version line, then a line a header. Names in lower case; a name that stands
    twice has its values with a comma between."""
    found: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon and name.strip():
            key = name.strip().lower()
            text = value.strip().replace("\x00", "\ufffd")
            found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def content_type_of(headers: dict[str, str]) -> str:
    return fields.word(headers.get("content-type"), "content-type") or "application/octet-stream"
