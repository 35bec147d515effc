"""One client of SQS, and where its exceptions end."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from tenantry.kernel.errors import InvalidValue, MissingExtra, SourceUnavailable, UnknownKey
from tenantry.replay.connections import Connection

CONNECTION_OPTIONS = ("region", "access_key_id", "secret_access_key", "session_token", "visibility_timeout")
BATCH: Final = 10
"""Messages that one call can receive, delete or show."""

_CALLS = 20
"""Calls under way at once."""


@cache
def session() -> Any:
    """The process's session of ``aiobotocore``: it keeps the service's description, which takes long to
    read. Raises :class:`MissingExtra`."""
    try:
        from aiobotocore.session import get_session
    except ImportError:
        raise MissingExtra("sqs", "SQS") from None
    return get_session()


def foreign() -> tuple[type[BaseException], ...]:
    """What the client raises; ValueError for an endpoint that is none."""
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError, OSError, ValueError)


def check(connection: Connection) -> None:
    """Raises :class:`UnknownKey` for an option that is not read, :class:`InvalidValue` without a region."""
    for name in connection.options:
        if name not in CONNECTION_OPTIONS:
            raise UnknownKey(f"connections.{connection.name}.options", name, CONNECTION_OPTIONS)
    region_of(connection)


def region_of(connection: Connection) -> str:
    """The option ``region``, else that of an endpoint of Amazon's."""
    labels = (urlsplit(connection.url).hostname or "").split(".")
    region = connection.options.get("region") or (labels[1] if labels[0] == "sqs" and len(labels) > 2 else "")
    if not region:
        path = f"connections.{connection.name}.options.region"
        raise InvalidValue(path, "", "the region, where the endpoint is not https://sqs.REGION.amazonaws.com")
    return region


@asynccontextmanager
async def opened(connection: Connection) -> AsyncIterator[Any]:
    """A client. Credentials that the connection does not name are looked up as AWS's tools do."""
    from aiobotocore.config import AioConfig

    options = connection.options
    config = AioConfig(
        max_pool_connections=2 * _CALLS,
        connect_timeout=5,
        read_timeout=30,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    async with session().create_client(
        "sqs",
        endpoint_url=connection.url,
        region_name=region_of(connection),
        aws_access_key_id=options.get("access_key_id"),
        aws_secret_access_key=options.get("secret_access_key"),
        aws_session_token=options.get("session_token"),
        config=config,
    ) as client:
        yield client


class translated:
    """A context manager that raises :class:`SourceUnavailable` for what the client raises."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, foreign()):
            raise SourceUnavailable(f"connection {self._connection.name!r}: {said(error)}") from None


def said(error: BaseException) -> str:
    """The service's words, at most 200 characters. The client puts no secret into its errors; an endpoint
    that is none is not shown."""
    if isinstance(error, ValueError):
        return "its URL is no endpoint; expected https://sqs.REGION.amazonaws.com"
    code = code_of(error)
    text = " ".join(str(error).split()) or type(error).__name__
    return f"SQS said: {code + ': ' if code else ''}{text[:200]}"


def code_of(error: BaseException) -> str:
    """The service's name of the fault, or ''."""
    response = getattr(error, "response", None)
    found: Mapping[str, Any] = response.get("Error", {}) if isinstance(response, dict) else {}
    return str(found.get("Code", ""))


async def in_batches(entries: "list[dict[str, Any]]", call: Any) -> list[dict[str, Any]]:
    """``call(entries)`` for each ten of them, several at once. Returns those that failed, as SQS tells."""
    limit = asyncio.Semaphore(_CALLS)

    async def one(part: "list[dict[str, Any]]") -> list[dict[str, Any]]:
        async with limit:
            answer = await call(part)
            failed: list[dict[str, Any]] = answer.get("Failed", [])
            return failed

    parts = [entries[at : at + BATCH] for at in range(0, len(entries), BATCH)]
    return [each for failed in await asyncio.gather(*map(one, parts)) for each in failed]
