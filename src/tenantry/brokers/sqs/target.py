"""A queue of SQS as a target: a message is delivered when SQS has answered with its id.

==========================================  ==================================================
what SQS says                               outcome
==========================================  ==================================================
a message id                                ok
no such queue                               unroutable
access denied, a signature or key refused   not_permitted
too long                                    message_too_large
characters that it does not take            unsuitable
throttled, over a limit, 5xx                broker_nack
no connection, no answer                    broker_unreachable: SQS may or may not have it
==========================================  ==================================================

Source: Amazon SQS API reference, SendMessage, "Errors" and "Common Errors".
"""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from tenantry.brokers.sqs import link, reading
from tenantry.lanes.address import BrokerAddress
from tenantry.lanes.outcome import Outcome, excerpt_of
from tenantry.queue.model import ClaimedJob
from tenantry.replay.connections import Connection

_FIFO = ".fifo"
_DENIED = ("AccessDenied", "InvalidAccessKeyId", "InvalidClientTokenId", "SignatureDoesNotMatch",
           "UnrecognizedClient", "InvalidSecurity", "ExpiredToken", "MissingAuthenticationToken")  # fmt: skip
_TOO_LONG = ("too long", "longer than", "must be shorter", "size")


class SqsSender:
    """Sends through one client, made at the first message."""

    def __init__(self, connection: Connection) -> None:
        link.check(connection)
        self._connection = connection
        self._opened = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._client: Any = None
        self._urls: dict[str, str] = {}

    async def send(self, address: BrokerAddress, job: ClaimedJob) -> Outcome:
        text = _text(job.payload)
        if text is None:
            return Outcome("unsuitable", excerpt="SQS takes UTF-8 text without control characters, not empty")
        try:
            client = await self._ready()
            await client.send_message(
                QueueUrl=await self._url(client, address.place),
                MessageBody=text,
                MessageAttributes=reading.attributes_of(job.headers, job.content_type),
                **_fifo(address.place, job),
            )
        except link.foreign() as error:
            return _failed(error)
        return Outcome("ok")

    async def close(self) -> None:
        self._client = None
        await self._opened.aclose()

    async def _ready(self) -> Any:
        async with self._opening:
            if self._client is None:
                self._client = await self._opened.enter_async_context(link.opened(self._connection))
            return self._client

    async def _url(self, client: Any, queue: str) -> str:
        if queue not in self._urls:
            self._urls[queue] = (await client.get_queue_url(QueueName=queue))["QueueUrl"]
        return self._urls[queue]


def _fifo(queue: str, job: ClaimedJob) -> dict[str, str]:
    """The group that the message was in, else the job's own. An attempt's id is SQS's for telling repeats
    apart: one of the job would have SQS take a later replay of it for a repeat, and say nothing."""
    if not queue.endswith(_FIFO):
        return {}
    group = job.headers.get(reading.GROUP, "")
    return {
        "MessageGroupId": group
        if 0 < len(group) <= 128 and group.isascii() and group.isprintable()
        else job.id,
        "MessageDeduplicationId": f"{job.id}-{job.claim}-{job.token}",
    }


def _text(payload: bytes) -> str | None:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return None
    return text if reading.fits(text) else None


def _failed(error: BaseException) -> Outcome:
    said, code = excerpt_of(link.said(error)), link.code_of(error)
    if not code:
        return Outcome("broker_unreachable", excerpt=said)
    if code.endswith(("NonExistentQueue", "QueueDoesNotExist")):
        return Outcome("unroutable", excerpt=said)
    if code.removesuffix("Exception").startswith(_DENIED):
        return Outcome("not_permitted", excerpt=said)
    if code == "InvalidMessageContents":
        return Outcome("unsuitable", excerpt=said)
    if code.startswith(("InvalidParameterValue", "MessageTooLong")) and any(
        part in said for part in _TOO_LONG
    ):
        return Outcome("message_too_large", excerpt=said)
    return Outcome("unsuitable" if code.startswith("Invalid") else "broker_nack", excerpt=said)
