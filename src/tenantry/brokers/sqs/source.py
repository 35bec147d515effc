"""A queue as a source: received, held invisible, deleted once staged."""

import asyncio
import math
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from tenantry.brokers.sqs import link, reading
from tenantry.kernel.errors import Closed, InvalidValue, SourceUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.lanes.address import parse
from tenantry.replay import fields
from tenantry.replay.connections import Connection
from tenantry.replay.model import Batch, Fetched, Membership, Position, SourceAddress, Traits

VISIBILITY: Seconds = 300.0
_PEEK_FOR = 30
"""Seconds after which a message comes back that was looked at, should we not be there to show it again."""

_SHARE = 0.8
"""Of the visibility timeout, how long a message may be in hand."""

MOST_LEFT = 10_000
_LONGEST_POLL = 20


class SqsSource:
    """A session over the queue named ``address.place``; see :class:`~tenantry.replay.ports.Source`. One task
    only.

    The connection's option ``visibility_timeout`` is how long, in seconds, what we receive is hidden from
    others. ``window``: most messages in hand. Raises :class:`InvalidValue`, :class:`UnknownKey` and
    :class:`MissingExtra`.
    """

    def __init__(self, connection: Connection, address: SourceAddress, *, window: int = 1_000) -> None:
        link.session()
        link.check(connection)
        fields.refuse_unknown(address.options, ())
        parse(f"sqs:x/{address.place}", path="source.place")
        self._connection, self._queue, self._window = connection, address.place, window
        self._hidden_for = _seconds(connection.options.get("visibility_timeout"))
        self._opened = AsyncExitStack()
        self._client: Any = None
        self._url = ""
        self._in_hand: dict[object, str] = {}  # receipt: message id
        self._left: dict[str, str] = {}  # message id: the last receipt

    @property
    def traits(self) -> Traits:
        return Traits(
            counts=True,
            freezes=False,
            acknowledges=True,
            window=self._window,
            acknowledge_within=_SHARE * self._hidden_for,
        )

    async def survey(self) -> Membership:
        """SQS's own estimate of what is visible."""
        with link.translated(self._connection):
            async with link.opened(self._connection) as client:
                visible, _ = await self._counts(client, await self._found(client))
        return Membership(count=visible, counted_exactly=False)

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """Any of them: hidden for a moment, looked at, and shown again. It counts as receiving them."""
        found: list[dict[str, Any]] = []
        with link.translated(self._connection):
            async with link.opened(self._connection) as client:
                url = await self._found(client)
                while len(found) < limit:
                    more = await self._received(
                        client, url, limit - len(found), wait_for=0, hidden_for=_PEEK_FOR
                    )
                    if not more:
                        break
                    found += more
                await self._show(client, url, [each["ReceiptHandle"] for each in found])
        return [reading.entry(each, self._connection.name) for each in found]

    async def arrived(self, membership: Membership) -> int | None:
        """A queue does not tell."""
        return None

    async def open(self, membership: Membership, after: Position) -> None:
        if after:
            raise InvalidValue("position", after, "'': a queue has no positions")
        await self.close()
        with link.translated(self._connection):
            self._client = await self._opened.enter_async_context(link.opened(self._connection))
            self._url = await self._found(self._client)

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """SQS waits whole seconds. Exhausted: none is visible, and none is hidden but what we hold, as far as
        SQS knows."""
        client = self._session()
        most = min(limit, self._window - len(self._in_hand))
        if most < 1:
            return Batch(())
        with link.translated(self._connection):
            received = await self._taken(client, most, 0)
            if not received:
                visible, hidden = await self._counts(client, self._url)
                if visible == 0 and hidden <= len(self._in_hand) + len(self._left):
                    return Batch((), exhausted=True)
                received = await self._taken(client, most, wait_for)
        found = [each for each in received if not self._is_left(each)]
        self._in_hand.update((each["ReceiptHandle"], each["MessageId"]) for each in found)
        return Batch(tuple(reading.entry(each, self._connection.name) for each in found))

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """Deletes them. Raises :class:`SourceUnavailable` where SQS did not delete all: those come again."""
        client = self._session()

        async def deleted(entries: list[dict[str, Any]]) -> Any:
            return await client.delete_message_batch(QueueUrl=self._url, Entries=entries)

        entries = [{"Id": str(n), "ReceiptHandle": receipt} for n, receipt in enumerate(receipts)]
        with link.translated(self._connection):
            failed = await link.in_batches(entries, deleted)
        for receipt in receipts:
            self._in_hand.pop(receipt, None)
        if failed:
            why = failed[0].get("Message") or failed[0].get("Code")
            raise SourceUnavailable(f"SQS did not delete {len(failed)} of {len(receipts)} messages: {why}")

    async def leave(self, receipts: Sequence[object]) -> None:
        """Stay hidden until the session closes; one that comes again by then is hidden again. Raises
        :class:`SourceUnavailable` beyond :data:`MOST_LEFT`."""
        self._session()
        for receipt in receipts:
            message = self._in_hand.pop(receipt, None)
            if message is not None:
                self._left[message] = str(receipt)
        if len(self._left) > MOST_LEFT:
            raise SourceUnavailable(
                f"more than {MOST_LEFT:,} messages of the queue {self._queue} are not meant by the filters; "
                "a queue cannot be read past them. Move them to a queue of their own, or widen the filters"
            )

    async def close(self) -> None:
        client, self._client = self._client, None
        held = [str(receipt) for receipt in self._in_hand] + list(self._left.values())
        self._in_hand.clear()
        self._left.clear()
        if client is not None:
            try:
                await self._show(client, self._url, held)
            except link.foreign():
                self._url = ""  # they come back by themselves
            await self._opened.aclose()

    def _session(self) -> Any:
        if self._client is None:
            raise Closed("this session is not open")
        return self._client

    def _is_left(self, received: dict[str, Any]) -> bool:
        if received["MessageId"] not in self._left:
            return False
        self._left[received["MessageId"]] = received["ReceiptHandle"]
        return True

    async def _found(self, client: Any) -> str:
        url: str = (await client.get_queue_url(QueueName=self._queue))["QueueUrl"]
        return url

    async def _counts(self, client: Any, url: str) -> tuple[int, int]:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = (await client.get_queue_attributes(QueueUrl=url, AttributeNames=names))["Attributes"]
        visible, hidden = (int(found.get(name, 0)) for name in names)
        return visible, hidden

    async def _taken(self, client: Any, most: int, wait_for: Seconds) -> list[dict[str, Any]]:
        return await self._received(
            client, self._url, most, wait_for=wait_for, hidden_for=math.ceil(self._hidden_for)
        )

    async def _received(
        self, client: Any, url: str, most: int, *, wait_for: Seconds, hidden_for: int
    ) -> list[dict[str, Any]]:
        """One call that waits; where it is full, and more is wanted, others beside it."""

        async def one(number: int, wait: int) -> list[dict[str, Any]]:
            answer = await client.receive_message(
                QueueUrl=url, MaxNumberOfMessages=number, WaitTimeSeconds=wait, VisibilityTimeout=hidden_for,
                MessageAttributeNames=["All"], AttributeNames=["All"],
            )  # fmt: skip
            found: list[dict[str, Any]] = answer.get("Messages", [])
            return found

        first = await one(min(most, link.BATCH), min(_LONGEST_POLL, math.ceil(wait_for)))
        left = min(most - link.BATCH, link.BATCH * 10)
        if len(first) < link.BATCH or left < 1:
            return first
        sizes = [min(link.BATCH, left - at) for at in range(0, left, link.BATCH)]
        rest = await asyncio.gather(*(one(size, 0) for size in sizes))
        return first + [each for part in rest for each in part]

    async def _show(self, client: Any, url: str, receipts: list[str]) -> None:
        async def shown(entries: list[dict[str, Any]]) -> Any:
            return await client.change_message_visibility_batch(QueueUrl=url, Entries=entries)

        entries = [
            {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
            for n, receipt in enumerate(receipts)
        ]
        await link.in_batches(entries, shown)


def _seconds(text: str | None) -> Seconds:
    if text is None:
        return VISIBILITY
    if text.isascii() and text.isdigit() and 1 <= int(text) <= 43_200:
        return float(text)
    raise InvalidValue("connections.options.visibility_timeout", text, "whole seconds from 1 to 43200")
