"""A topic as the source of a replay: read by position, partition by partition, up to ends that were frozen.

A log is not changed by reading it, so a replay goes on at the offsets that its own store keeps. What it has
acknowledged is committed for a group as well, contiguously: the next replay of the topic begins there, and
whatever shows lag shows it. The client blocks and is used in one thread.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from tenantry.brokers.kafka.confluent import record_of
from tenantry.brokers.kafka.offsets import OffsetTracker
from tenantry.brokers.kafka.replay_reading import (
    Reading,
    Span,
    parsed_position,
    parsed_spans,
    position_text,
    spans_text,
)
from tenantry.kernel.errors import Closed, InvalidValue, MissingExtra, SourceUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.replay.connections import Connection
from tenantry.replay.model import Batch, Fetched, Membership, Position, SourceAddress, Traits

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

T = TypeVar("T")

GROUP_PREFIX = "tenantry-replay."
"""And the tenant's id: the group whose offsets say how far its replays have come."""

OURS = (
    "group.id",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "bootstrap.servers",
)
"""What a connection's options, otherwise librdkafka's own, may not say."""

_BATCH_BYTES = 16_777_216
_ASK_WITHIN: Seconds = 10.0


class TopicSource:
    """A session over the topic ``address.place`` for ``tenant``; see :class:`~tenantry.replay.ports.Source`.
    One task only.

    Raises :class:`InvalidValue`, :class:`UnknownKey` and :class:`MissingExtra`.
    """

    def __init__(self, connection: Connection, tenant: TenantId, address: SourceAddress) -> None:
        client()
        self._reading = Reading.of(connection.name, address.options)
        self._connection, self._topic, self._group = connection, address.place, GROUP_PREFIX + tenant
        if not address.place:
            raise InvalidValue("source.place", address.place, "the name of a topic")
        self._config = config_of(connection)
        self._thread: ThreadPoolExecutor | None = None
        self._session: _Session | None = None

    @property
    def traits(self) -> Traits:
        return Traits(counts=True, freezes=True, acknowledges=False)

    async def survey(self) -> Membership:
        """From where the group is, or the earliest record, to the ends. Offsets are counted, of which
        compaction and transactions leave some without a record."""
        spans = await self._once(self._spans)
        count = sum(max(0, span.end - span.start) for span in spans.values())
        return Membership(spans_text(spans), count, counted_exactly=False)

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """The oldest of each partition in turn, as the broker gives them."""
        return await self._once(lambda consumer: self._peeked(consumer, limit))

    async def arrived(self, membership: Membership) -> int | None:
        before = parsed_spans(membership.bound)
        now = await self._once(self._spans)
        return sum(span.end - before.get(each, Span(0, 0)).end for each, span in now.items())

    async def open(self, membership: Membership, after: Position) -> None:
        spans, offsets = parsed_spans(membership.bound), parsed_position(after)
        await self.close()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-replay")
        begin = {each: Span(offsets.get(each, span.start), span.end) for each, span in spans.items()}
        self._session = await self._in_thread(lambda: self._begun(begin))

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """Raises :class:`SourceUnavailable` while no broker can be reached."""
        session = self._opened()
        most = min(limit, self.traits.window)
        return await self._in_thread(lambda: session.fetched(most, wait_for))

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """Commits, for the group, what is acknowledged without a gap."""
        session = self._opened()
        await self._in_thread(lambda: session.finished(receipts))

    async def leave(self, receipts: Sequence[object]) -> None:
        """They stay, and the group's offset stays before them: the next replay begins there."""
        session = self._opened()
        await self._in_thread(lambda: session.stayed(receipts))

    async def close(self) -> None:
        session, self._session = self._session, None
        thread, self._thread = self._thread, None
        if thread is not None:
            if session is not None:
                await asyncio.get_running_loop().run_in_executor(thread, session.close)
            thread.shutdown(wait=False)

    def _opened(self) -> "_Session":
        if self._session is None:
            raise Closed("this session is not open")
        return self._session

    async def _in_thread(self, call: Callable[[], T]) -> T:
        assert self._thread is not None
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._told, call)

    async def _once(self, look: "Callable[[Consumer], T]") -> T:
        def looked() -> T:
            consumer = self._consumer({})
            try:
                return look(consumer)
            finally:
                consumer.close()

        return await asyncio.to_thread(self._told, looked)

    def _told(self, call: Callable[[], T]) -> T:
        """Ends the client's exceptions. No setting is in them."""
        try:
            return call()
        except client().KafkaException as failed:
            error = failed.args[0]
            said = f"{error.name()}: {error.str()}"
            raise SourceUnavailable(
                f"connection {self._connection.name!r}: Kafka said: {said[:200]}"
            ) from None

    def _consumer(self, more: Mapping[str, Any]) -> "Consumer":
        ours = {"group.id": self._group, "enable.auto.commit": False, "enable.auto.offset.store": False,
                "enable.partition.eof": True, "auto.offset.reset": "earliest"}  # fmt: skip
        found: Consumer = client().Consumer(
            {"isolation.level": "read_committed", **self._config, **ours, **more}
        )
        return found

    def _spans(self, consumer: "Consumer") -> dict[int, Span]:
        known = consumer.list_topics(self._topic, timeout=_ASK_WITHIN).topics.get(self._topic)
        if known is None or known.error is not None or not known.partitions:
            raise SourceUnavailable(
                f"connection {self._connection.name!r}: its login sees no topic {self._topic!r}"
            )
        places = [self._place(each) for each in sorted(known.partitions)]
        committed = {each.partition: each.offset for each in consumer.committed(places, timeout=_ASK_WITHIN)}
        spans: dict[int, Span] = {}
        for place in places:
            low, high = consumer.get_watermark_offsets(place, timeout=_ASK_WITHIN)
            start = committed[place.partition] if self._reading.beginning == "committed" else low
            spans[place.partition] = Span(min(max(low, start), high), high)
        return spans

    def _peeked(self, consumer: "Consumer", limit: int) -> list[Fetched]:
        session = _Session(consumer, self._reading, self._topic, self._spans(consumer))
        found: list[Fetched] = []
        quiet = 0
        while len(found) < limit and quiet < 10:
            batch = session.fetched(limit - len(found), 1.0)
            found += batch.messages
            quiet = 0 if batch.messages else quiet + 1
            if batch.exhausted:
                break
        return [Fetched(each.message, None, None, each.fault) for each in found]

    def _begun(self, begin: Mapping[int, Span]) -> "_Session":
        troubles: list[str] = []

        def trouble(error: "KafkaError") -> None:
            if error.code() == client().KafkaError._ALL_BROKERS_DOWN or error.fatal():
                troubles.append(f"{error.name()}: {error.str()}"[:200])

        consumer = self._consumer({"error_cb": trouble})
        return _Session(consumer, self._reading, self._topic, begin, troubles=troubles)

    def _place(self, partition: int, offset: int | None = None) -> Any:
        place = client().TopicPartition
        return place(self._topic, partition) if offset is None else place(self._topic, partition, offset)


class _Session:
    """One consumer over the spans, in one thread."""

    def __init__(
        self,
        consumer: "Consumer",
        reading: Reading,
        topic: str,
        spans: Mapping[int, Span],
        *,
        troubles: list[str] | None = None,
    ) -> None:
        self._consumer, self._reading, self._topic = consumer, reading, topic
        self._ends = {partition: span.end for partition, span in spans.items()}
        self._next = {partition: span.start for partition, span in spans.items()}
        self._left = {partition for partition, span in spans.items() if span.start < span.end}
        self._trackers = {partition: OffsetTracker() for partition in spans}
        self._committed: dict[int, int] = {}
        self._stuck: dict[int, int] = {}  # behind what was left no commit moves: tracked no further than here
        self._troubles = [] if troubles is None else troubles
        place = client().TopicPartition
        consumer.assign([place(topic, each, self._next[each]) for each in sorted(self._left)])

    def fetched(self, most: int, wait_for: Seconds) -> Batch:
        found: list[Fetched] = []
        size, wait = 0, wait_for
        while self._left and len(found) < most and size < _BATCH_BYTES:
            message = self._consumer.poll(wait)
            if message is None:
                break
            if message.error() is not None:
                self._heard(message)
                continue
            wait = 0.0
            entry = self._taken(message)
            if entry is not None:
                found.append(entry)
                size += len(entry.message.payload)
        if not found and self._troubles:
            raise SourceUnavailable(f"Kafka said: {self._troubles.pop()}")
        self._troubles.clear()
        return Batch(tuple(found), exhausted=not self._left)

    def finished(self, receipts: Sequence[object]) -> None:
        for receipt in receipts:
            if isinstance(receipt, tuple):
                partition, offset = receipt
                if offset <= self._stuck.get(partition, offset):
                    self._trackers[partition].finished(offset)
        positions = {
            partition: tracker.position
            for partition, tracker in self._trackers.items()
            if tracker.position is not None and tracker.position > self._committed.get(partition, -1)
        }
        if positions:
            place = client().TopicPartition
            offsets = [place(self._topic, each, offset) for each, offset in positions.items()]
            self._consumer.commit(offsets=offsets, asynchronous=False)
            self._committed |= positions

    def stayed(self, receipts: Sequence[object]) -> None:
        for receipt in receipts:
            if isinstance(receipt, tuple) and receipt[0] not in self._stuck:
                self._stuck[receipt[0]] = self._trackers[receipt[0]].last or 0

    def close(self) -> None:
        self._consumer.close()

    def _taken(self, message: Any) -> Fetched | None:
        partition, offset = message.partition(), message.offset()
        if partition not in self._left:
            return None  # behind the end
        if offset >= self._ends[partition]:
            self._done(partition)
            return None
        self._next[partition] = offset + 1
        if partition not in self._stuck:
            self._trackers[partition].fetched(offset)
        if self._next[partition] >= self._ends[partition]:
            self._done(partition)
        return self._reading.entry(record_of(message), position_text(self._next))

    def _heard(self, message: Any) -> None:
        """The end of a partition's log is behind that of the span: its last offsets hold no record."""
        error = message.error()
        if error.code() == client().KafkaError._PARTITION_EOF:
            if message.offset() >= self._ends.get(message.partition(), 0):
                self._done(message.partition())
        elif not error.retriable():
            raise client().KafkaException(error)

    def _done(self, partition: int) -> None:
        self._left.discard(partition)
        self._consumer.pause([client().TopicPartition(self._topic, partition)])


def client() -> Any:
    """The module ``confluent_kafka``. Raises :class:`MissingExtra`."""
    try:
        import confluent_kafka
    except ImportError:
        raise MissingExtra("kafka", "Kafka") from None
    return confluent_kafka


def config_of(connection: Connection) -> dict[str, Any]:
    """librdkafka's configuration. Raises :class:`InvalidValue` for what is ours to decide."""
    for name in OURS:
        if name in connection.options:
            raise InvalidValue(f"connections.{connection.name}.options", name, "librdkafka's other settings")
    return {
        "bootstrap.servers": connection.url,
        "client.id": "tenantry",
        "log_level": 0,
        **connection.options,
    }
