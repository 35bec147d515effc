"""One connection to RabbitMQ, and where its client's exceptions end."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tenantry.kernel.errors import MissingExtra, SourceUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.replay.connections import Connection

if TYPE_CHECKING:
    from aiormq.abc import AbstractConnection

CONNECT_WITHIN: Seconds = 10.0
ANSWER_WITHIN: Seconds = 30.0
CLOSE_WITHIN: Seconds = 5.0


def client() -> Any:
    """The module ``aiormq``. Raises :class:`MissingExtra`."""
    try:
        import aiormq
    except ImportError:
        raise MissingExtra("rabbitmq", "RabbitMQ") from None
    return aiormq


def foreign() -> tuple[type[BaseException], ...]:
    """What the client raises: also RuntimeError for a channel that is closed, ValueError for a URL, and
    CancelledError for a call that was under way when its channel closed."""
    return (client().exceptions.AMQPError, OSError, RuntimeError, ValueError, asyncio.CancelledError)


async def connected(connection: Connection) -> "AbstractConnection":
    """A connection. Raises what :func:`foreign` names."""
    async with asyncio.timeout(CONNECT_WITHIN):
        link: AbstractConnection = await client().connect(connection.url)
    return link


async def closed(link: "AbstractConnection") -> None:
    """Closes, waiting a little; whatever the other side makes of it."""
    with told_nobody():
        async with asyncio.timeout(CLOSE_WITHIN):
            await link.close()


@asynccontextmanager
async def linked(connection: Connection) -> "AsyncIterator[AbstractConnection]":
    """A connection for one look. Raises :class:`SourceUnavailable`."""
    with translated(connection):
        link = await connected(connection)
        try:
            yield link
        finally:
            await closed(link)


@contextmanager
def translated(connection: Connection) -> Iterator[None]:
    """Raises :class:`SourceUnavailable` for what the client raises; our own cancellation passes."""
    try:
        yield
    except foreign() as error:
        if is_ours(error):
            raise
        raise SourceUnavailable(f"connection {connection.name!r}: {said(error, connection)}") from None


@contextmanager
def told_nobody() -> Iterator[None]:
    """For what ends anyway."""
    try:
        yield
    except foreign() as error:
        if is_ours(error):
            raise


def said(error: BaseException, connection: Connection) -> str:
    """The client's words, at most 200 characters, without the password."""
    if isinstance(error, TimeoutError):
        return "RabbitMQ did not answer in time"
    if isinstance(error, asyncio.CancelledError):
        return "the connection to RabbitMQ was lost"
    if isinstance(error, ValueError):
        return "its URL is none; expected amqp://user:password@host:port/vhost"
    text = " ".join(str(error).split()) or type(error).__name__
    password = urlsplit(connection.url).password or ""
    for secret in {connection.url, password, unquote(password)} - {""}:
        text = text.replace(secret, "…")
    return f"RabbitMQ said: {text[:200]}"


def is_ours(error: BaseException) -> bool:
    """Whether it is the cancellation of the task itself, which must pass."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
