"""A queue as a source: one consumer with manual acknowledgement.

A queue gives each message to one consumer and takes it back when the channel ends. So what is in hand is the
broker's until it is acknowledged, what is left is held unacknowledged until the session ends, and a session
whose channel is lost has nothing in hand any more.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenantry.brokers.rabbitmq.link import (
    ANSWER_WITHIN,
    closed,
    connected,
    foreign,
    is_ours,
    linked,
    translated,
)
from tenantry.brokers.rabbitmq.reading import Reading
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed, InvalidValue, SourceUnavailable
from tenantry.kernel.instant import Instant, Seconds
from tenantry.replay import fields
from tenantry.replay.connections import Connection
from tenantry.replay.model import Batch, Fetched, Membership, Position, SourceAddress, Traits

if TYPE_CHECKING:
    from aiormq.abc import AbstractChannel, AbstractConnection

CONNECTION_OPTIONS = ("consumer_timeout",)
CONSUMER_TIMEOUT: Seconds = 1_800.0
"""RabbitMQ's own default: a delivery that is not acknowledged for so long ends its channel."""

_SHARE = 0.8
"""Of the consumer timeout, how long we hold anything."""

MOST_LEFT = 10_000
"""Messages that one session may hold because they are not meant."""

_SETTLE: Seconds = 0.05
"""How long a delivery may take from the channel into our hands."""


class RabbitSource:
    """A session over the queue ``address.place``; see :class:`~tenantry.replay.ports.Source`. One task only.

    The options are :data:`~tenantry.brokers.rabbitmq.reading.OPTIONS`; the connection's ``consumer_timeout``
    is the broker's, in seconds, where it is not the default. ``window``: most messages in hand, which is also
    the prefetch. Raises :class:`InvalidValue` and :class:`UnknownKey`.
    """

    def __init__(
        self,
        connection: Connection,
        address: SourceAddress,
        *,
        window: int = 1_000,
        clock: Clock | None = None,
    ) -> None:
        fields.refuse_unknown(connection.options, CONNECTION_OPTIONS)
        if not 1 <= len(address.place.encode()) <= 255:
            raise InvalidValue("source.place", address.place, "the name of a queue")
        self._connection, self._queue, self._window = connection, address.place, window
        self._reading = Reading.of(connection.name, address.options)
        self._patience = _SHARE * _seconds(connection.options.get("consumer_timeout"))
        self._clock = clock or SystemClock()
        self._session: _Session | None = None

    @property
    def traits(self) -> Traits:
        return Traits(
            counts=True,
            freezes=False,
            acknowledges=True,
            window=self._window,
            acknowledge_within=self._patience,
        )

    async def survey(self) -> Membership:
        """The messages that are ready; those in other consumers' hands are not counted."""
        async with linked(self._connection) as link:
            channel = await link.channel(publisher_confirms=False)
            return Membership(count=await _ready(channel, self._queue), counted_exactly=False)

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """The first ones: taken, looked at, and put back, in a classic queue where they were. The broker
        marks them as redelivered, and a quorum queue counts it towards its delivery limit."""
        found: list[Fetched] = []
        async with linked(self._connection) as link:
            channel = await link.channel(publisher_confirms=False)
            for _ in range(limit):
                message = await channel.basic_get(self._queue, timeout=ANSWER_WITHIN)
                if message.delivery_tag is None:
                    break
                found.append(self._reading.entry(message, None))
            await channel.close()  # gives them back before it is answered
        return found

    async def arrived(self, membership: Membership) -> int | None:
        """A queue does not tell."""
        return None

    async def open(self, membership: Membership, after: Position) -> None:
        if after:
            raise InvalidValue("position", after, "'': a queue has no positions")
        with translated(self._connection):
            self._session = await _Session.begun(self._connection, self._queue, self._window)

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """What the broker gave. Exhausted: the queue has no ready message, and none is on its way to us.

        Raises :class:`SourceUnavailable` where the channel was lost with messages in hand, or what was left
        has been held for too long: the broker has them again, or is about to. Begin a new session then.
        """
        session = self._opened()
        self._check_left(session)
        most = min(limit, self._window - len(session.in_hand))
        if most < 1:
            return Batch(())
        with translated(self._connection):
            try:
                return await self._looked(session, most, wait_for)
            except foreign() as error:
                if is_ours(error) or session.in_hand or session.left:
                    raise
            session = self._session = await self._again(session)
            return await self._looked(session, most, wait_for)

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """Returns once the broker has dropped them. Raises :class:`SourceUnavailable` where they are not ours
        any more."""
        session = self._opened()
        self._check_held(session, receipts)
        with translated(self._connection):
            for tag in receipts:
                await session.channel.basic_ack(_tag(tag), wait=False)
            if receipts:
                await session.channel.basic_qos(prefetch_count=self._window, timeout=ANSWER_WITHIN)
        session.in_hand.difference_update(receipts)

    async def leave(self, receipts: Sequence[object]) -> None:
        """Held until the session closes: a queue cannot be read past a message. Raises
        :class:`SourceUnavailable` beyond :data:`MOST_LEFT`."""
        session = self._opened()
        self._check_held(session, receipts)
        session.in_hand.difference_update(receipts)
        session.left_since = session.left_since if session.left else self._clock.monotonic()
        session.left += len(receipts)
        if session.left > MOST_LEFT:
            raise SourceUnavailable(
                f"more than {MOST_LEFT:,} messages of the queue {self._queue} are not meant by the filters; "
                "a queue cannot be read past them. Move them to a queue of their own, or widen the filters"
            )
        with translated(self._connection):
            await session.make_room(len(receipts))

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await closed(session.link)  # its channel ends with it: all that it holds is the queue's again

    def _entries(self, deliveries: "list[Any]") -> tuple[Fetched, ...]:
        return tuple(self._reading.entry(each, each.delivery_tag) for each in deliveries)

    def _opened(self) -> "_Session":
        if self._session is None:
            raise Closed("this session is not open")
        return self._session

    async def _looked(self, session: "_Session", most: int, wait_for: Seconds) -> Batch:
        found = await session.taken(most, wait_for)
        if found or await _ready(session.channel, self._queue):
            return Batch(self._entries(found))
        # The answer may overtake a delivery; a second one cannot, but for the way to our hands.
        await _ready(session.channel, self._queue)
        found = await session.taken(most, _SETTLE)
        return Batch(self._entries(found), exhausted=not found)

    async def _again(self, session: "_Session") -> "_Session":
        """A channel that ended while nothing of it was in hand is no loss: the broker has it all again."""
        await closed(session.link)
        return await _Session.begun(self._connection, self._queue, self._window)

    def _check_held(self, session: "_Session", receipts: Sequence[object]) -> None:
        if session.lost or not session.in_hand.issuperset(receipts):
            raise SourceUnavailable(
                f"connection {self._connection.name!r}: these messages are not in hand any more; they are "
                "in the queue again"
            )

    def _check_left(self, session: "_Session") -> None:
        if session.left and self._clock.monotonic() - session.left_since > self._patience:
            raise SourceUnavailable(
                f"messages of the queue {self._queue} that are not meant have been held for "
                f"{self._patience:.0f} s, close to the broker's consumer timeout: they are given back"
            )


class _Session:
    """One channel with one consumer at a time. ``in_hand``: delivery tags that were fetched. ``left``: how
    many are held and not meant, since ``left_since``."""

    def __init__(self, link: "AbstractConnection", channel: "AbstractChannel", queue: str) -> None:
        self.link, self.channel, self._queue = link, channel, queue
        self.in_hand: set[object] = set()
        self.left, self.left_since = 0, Instant(0.0)
        self._line: asyncio.Queue[Any] = asyncio.Queue()
        self._consumer, self._window, self._left_of_it = "", 0, 0

    @classmethod
    async def begun(cls, connection: Connection, queue: str, window: int) -> "_Session":
        link = await connected(connection)
        try:
            channel = await link.channel(publisher_confirms=False)
            session = cls(link, channel, queue)
            session._window = window
            await channel.basic_qos(prefetch_count=window, timeout=ANSWER_WITHIN)
            await session._consume()
        except BaseException:
            await closed(link)
            raise
        channel.closing.add_done_callback(session._ended)
        return session

    @property
    def lost(self) -> bool:
        return self.channel.is_closed or self.channel.closing.done()

    async def taken(self, most: int, wait_for: Seconds) -> "list[Any]":
        """Up to ``most`` deliveries, after at most ``wait_for`` if there is none."""
        if self.lost:
            raise ConnectionError("the channel was lost; what was in hand is in the queue again")
        found: list[Any] = []
        try:
            async with asyncio.timeout(wait_for):
                found.append(await self._line.get())
        except TimeoutError:
            return []
        while len(found) < most and not self._line.empty():
            found.append(self._line.get_nowait())
        if self.lost:
            raise ConnectionError("the channel was lost; what was in hand is in the queue again")
        self.in_hand.update(each.delivery_tag for each in found)
        return found

    async def make_room(self, more: int) -> None:
        """What is left takes room of the consumer's prefetch: another consumer goes on behind it."""
        self._left_of_it += more
        if 2 * self._left_of_it >= self._window:
            await self.channel.basic_cancel(self._consumer, timeout=ANSWER_WITHIN)
            await self._consume()

    async def _consume(self) -> None:
        self._left_of_it = 0
        answer = await self.channel.basic_consume(self._queue, self._line.put, timeout=ANSWER_WITHIN)
        self._consumer = answer.consumer_tag or ""

    def _ended(self, closing: "asyncio.Future[Any]") -> None:
        """Wakes who waits for a delivery. What was not fetched is not ours any more."""
        if not closing.cancelled():
            closing.exception()  # known; else it is reported as never retrieved
        while not self._line.empty():
            self._line.get_nowait()
        self._line.put_nowait(None)


async def _ready(channel: "AbstractChannel", queue: str) -> int:
    answer = await channel.queue_declare(queue, passive=True, timeout=ANSWER_WITHIN)
    return answer.message_count or 0


def _seconds(text: str | None) -> Seconds:
    if text is None:
        return CONSUMER_TIMEOUT
    if text.isascii() and text.isdigit() and int(text) > 0:
        return float(text)
    raise InvalidValue("connections.options.consumer_timeout", text, "whole seconds, as the broker has it")


def _tag(receipt: object) -> int:
    assert isinstance(receipt, int)
    return receipt
