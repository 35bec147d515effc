"""An exchange as a target: a message is delivered when the broker has confirmed it.

=======================================  =============================================
what the broker says                     outcome
=======================================  =============================================
ack                                      ok
returned (mandatory), 404 no exchange    unroutable
403 access refused                       not_permitted
406 precondition: too large              message_too_large
nack                                     broker_nack
connection refused, lost before confirm  broker_unreachable: it may or may not have it
=======================================  =============================================

Source: RabbitMQ, "Consumer Acknowledgements and Publisher Confirms"; AMQP 0-9-1, section 1.5 (reply codes).
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from tenantry.brokers.rabbitmq.link import client, closed, connected, foreign, is_ours, said, told_nobody
from tenantry.brokers.rabbitmq.reading import CARRIED, header_of
from tenantry.lanes.address import BrokerAddress
from tenantry.lanes.outcome import Outcome, excerpt_of
from tenantry.queue.model import ClaimedJob
from tenantry.replay.connections import Connection

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

MOST_CHANNELS = 500
"""At once, a connection: a broker allows 2,047 by default."""

_LARGEST_HEAD = (
    100_000  # bytes: a content header must fit a frame of 128 KiB, or the broker ends the connection
)
_LONGEST_PROPERTY = 255  # bytes of a short string


class RabbitSender:
    """Publishes through one connection, made at the first message and again after it was lost. A publish has
    its channel to itself: one that the broker ends (an exchange that is not there) takes no other with it,
    and a returned message is told by nothing but its channel."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._link: AbstractConnection | None = None
        self._linking = asyncio.Lock()
        self._places = asyncio.Semaphore(MOST_CHANNELS)
        self._idle: list[AbstractChannel] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def send(self, address: BrokerAddress, job: ClaimedJob) -> Outcome:
        head = _headers(job)
        if sum(len(name.encode()) + len(value.encode()) for name, value in head.items()) > _LARGEST_HEAD:
            return Outcome("message_too_large", excerpt=f"its headers have over {_LARGEST_HEAD:,} bytes")
        try:
            async with self._places:
                return await self._published(address, job, _properties(job, head))
        except foreign() as error:
            if is_ours(error):
                raise
            return self._failed(error)

    async def close(self) -> None:
        link, self._link = self._link, None
        self._idle.clear()
        if self._ending:
            await asyncio.wait(self._ending)
        if link is not None:
            await closed(link)

    async def _published(self, address: BrokerAddress, job: ClaimedJob, properties: Any) -> Outcome:
        channel = await self._channel()
        intact = False
        try:
            await channel.basic_publish(
                job.payload,
                exchange=address.exchange,
                routing_key=address.routing_key,
                properties=properties,
                mandatory=True,
            )
            intact = True
        except client().exceptions.DeliveryError:  # returned, or nack: the channel goes on
            intact = True
            raise
        finally:
            if intact and not channel.is_closed:
                self._idle.append(channel)
            elif not channel.is_closed:  # given up in the middle: its confirm would be taken for another's
                self._end(channel.close())
        return Outcome("ok")

    async def _channel(self) -> "AbstractChannel":
        while self._idle:
            channel = self._idle.pop()
            if not channel.is_closed:
                return channel
        link = await self._linked()
        return await link.channel(publisher_confirms=True, on_return_raises=True)

    async def _linked(self) -> "AbstractConnection":
        async with self._linking:
            if self._link is None or self._link.is_closed or self._link.closing.done():
                self._idle.clear()
                self._link = await connected(self._connection)
            return self._link

    def _end(self, closing: Coroutine[Any, Any, Any]) -> None:
        async def ended() -> None:
            with told_nobody():
                await closing

        task = asyncio.create_task(ended())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _failed(self, error: BaseException) -> Outcome:
        raised = client().exceptions
        said_so = excerpt_of(said(error, self._connection))
        for kind, cause in (
            (raised.PublishError, "unroutable"),
            (raised.DeliveryError, "broker_nack"),
            (raised.ChannelNotFoundEntity, "unroutable"),
            (raised.ChannelAccessRefused, "not_permitted"),
            (raised.ChannelPreconditionFailed, "message_too_large"),
        ):
            if isinstance(error, kind):
                return Outcome(cause, excerpt=said_so)
        return Outcome("broker_unreachable", excerpt=said_so)


def _headers(job: ClaimedJob) -> dict[str, str]:
    """All that are no properties: a name is a short string."""
    own = {header_of(name) for name in CARRIED}
    return {
        name: value
        for name, value in job.headers.items()
        if len(name.encode()) <= _LONGEST_PROPERTY and (name not in own or not _fits(value))
    }


def _properties(job: ClaimedJob, headers: Mapping[str, str]) -> Any:
    """Persistent; the properties that a source of ours had kept are put back."""
    from pamqp.commands import Basic

    kept = {name: job.headers.get(header_of(name), "") for name in CARRIED}
    texts: dict[str, Any] = {name: value for name, value in kept.items() if value and _fits(value)}
    return Basic.Properties(
        **({"message_id": str(job.id)} | texts),
        content_type=job.content_type if _fits(job.content_type) else None,
        delivery_mode=2,
        headers=dict(headers),
    )


def _fits(text: str) -> bool:
    return len(text.encode()) <= _LONGEST_PROPERTY
