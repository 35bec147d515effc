"""The only module that imports confluent-kafka: one group member, driven from one thread."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

from tenantry.brokers.kafka.backlog import Room
from tenantry.brokers.kafka.errors import BrokerFailed
from tenantry.brokers.kafka.model import Record, Spot
from tenantry.brokers.kafka.ports import Listener
from tenantry.brokers.kafka.reorder import Gate
from tenantry.config.validation import Described
from tenantry.kernel.errors import InvalidValue, MissingExtra
from tenantry.kernel.instant import Seconds, Timestamp

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

_OURS = {"enable.auto.commit": False, "enable.auto.offset.store": False}
_DEFAULTS = {"auto.offset.reset": "earliest", "queued.max.messages.kbytes": 16_384, "client.id": "tenantry"}
_ASK_WITHIN = 2.0  # seconds that a question about a gate may block the thread


class ConfluentSource:
    """A group member of librdkafka's.

    ``config``: its configuration; ``bootstrap.servers`` and ``group.id`` must be there. Committing is ours:
    ``enable.auto.commit`` and ``enable.auto.offset.store`` may not be true. Unless given, reading starts at
    the earliest record, and what librdkafka fetches ahead is 16 MiB at most. Raises :class:`InvalidValue`.
    """

    def __init__(self, config: Mapping[str, Any], topics: Sequence[str]) -> None:
        for name in ("bootstrap.servers", "group.id"):
            if not config.get(name):
                raise InvalidValue(f"config[{name!r}]", config.get(name), "text that is not empty")
        for name in _OURS:
            if config.get(name) not in {None, False, "false"}:
                raise InvalidValue(
                    f"config[{name!r}]", config[name], "False", "FairConsumer commits by itself."
                )
        if isinstance(topics, str) or not topics:
            raise InvalidValue("topics", topics, "a list of at least one topic")
        self._config, self._topics = {**_DEFAULTS, **config, **_OURS}, list(topics)
        self._batch: list[Record] = []
        self._client: Consumer
        self._listener: Listener

    def open(self, listener: Listener) -> None:
        """See :class:`~tenantry.brokers.kafka.ports.Source`, here and below."""
        try:
            from confluent_kafka import Consumer, KafkaException
        except ImportError as error:
            raise MissingExtra("kafka", "the Kafka consumer") from error
        self._listener = listener
        try:
            self._client = Consumer({**self._config, "error_cb": self._told})
        except KafkaException as refused:
            what = Described("a setting")  # others are passwords: none is told
            raise InvalidValue("config", what, "librdkafka's own", refused.args[0].str()) from refused
        self._client.subscribe(
            self._topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )

    def fetch(self, room: Room, wait: Seconds) -> list[Record]:
        """One poll a record: a rebalance then falls between two records, and is taken out of the batch."""
        self._batch, held = [], 0
        message = self._client.poll(wait)
        while message is not None:
            error = message.error()
            if error is None:
                record = record_of(message)
                self._batch.append(record)
                held += record.size
                if len(self._batch) >= room.records or held >= room.bytes:
                    break
            else:
                self._told(error)
            message = self._client.poll(0)
        return self._batch

    def pause(self, spots: Iterable[Spot]) -> None:
        """Drops what librdkafka fetched ahead of these, too."""
        self._client.pause([_place(spot) for spot in spots])

    def resume(self, spots: Iterable[Spot]) -> None:
        """From the first record that was not given out."""
        self._client.resume([_place(spot) for spot in spots])

    def commit(self, positions: Mapping[Spot, int]) -> bool:
        """One round trip."""
        offsets = [_place(spot, position) for spot, position in positions.items()]
        found = self._asked("commit", lambda: self._client.commit(offsets=offsets, asynchronous=False))
        refused = [each.error for each in found or () if each.error is not None]
        for error in refused:
            self._listener.complained(error.name(), "commit")
        return found is not None and not refused

    def ends(self, spots: Iterable[Spot]) -> dict[Spot, int]:
        """What the last answers to fetches said."""
        found: dict[Spot, int] = {}
        for spot in spots:
            marks = self._asked(
                "ends", partial(self._client.get_watermark_offsets, _place(spot), cached=True)
            )
            if marks is not None and marks[1] >= 0:
                found[spot] = marks[1]
        return found

    def passed(self, gates: Iterable[Gate]) -> list[Gate]:
        """By what the group committed, so that it holds whoever owns the partition."""
        return [gate for gate in gates if self._asked("passed", partial(self._is_past, gate))]

    def close(self) -> None:
        """Blocks until the group knows. Of a client that was never opened: does nothing."""
        if hasattr(self, "_client"):
            self._client.close()

    def _is_past(self, gate: Gate) -> bool:
        spot, millis = gate.spot, ceil(gate.until * 1000)
        [first] = self._client.offsets_for_times([_place(spot, millis)], timeout=_ASK_WITHIN)
        low, high = self._client.get_watermark_offsets(_place(spot), timeout=_ASK_WITHIN)
        [committed] = self._client.committed([_place(spot)], timeout=_ASK_WITHIN)
        needed = first.offset if first.offset >= 0 else high
        return needed <= low or committed.offset >= needed

    def _asked(self, doing: str, question: Callable[[], Any]) -> Any:
        """The answer, or None when there is none now: told, and asked again later."""
        from confluent_kafka import KafkaException

        try:
            return question()
        except KafkaException as failed:
            self._told(failed.args[0], doing)
            return None

    def _assigned(self, _client: "Consumer", places: "list[TopicPartition]") -> None:
        self._listener.assigned(_spots(places))

    def _revoked(self, _client: "Consumer", places: "list[TopicPartition]") -> None:
        spots = _spots(places)
        self._take_out(spots)
        positions = self._listener.revoked(spots)
        if positions:
            self.commit(positions)

    def _lost(self, _client: "Consumer", places: "list[TopicPartition]") -> None:
        spots = _spots(places)
        self._take_out(spots)
        self._listener.lost(spots)

    def _take_out(self, spots: list[Spot]) -> None:
        """Of this batch, before anybody sees it: the next owner begins at what is committed."""
        gone = set(spots)
        self._batch[:] = [record for record in self._batch if record.spot not in gone]

    def _told(self, error: "KafkaError", doing: str = "fetch") -> None:
        if error.fatal() or error.code() in _for_good():
            raise BrokerFailed(error.name(), error.str())
        self._listener.complained(error.name(), doing)


def _for_good() -> frozenset[int]:
    """What no retry mends."""
    from confluent_kafka import KafkaError

    denied = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED}
    return frozenset({*denied, KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})


def record_of(message: Any) -> Record:
    """The client's message, which is no error, as a record."""
    kind, millis = message.timestamp()
    at = Timestamp(millis / 1000) if kind else None
    spot = Spot(message.topic(), message.partition())
    headers = tuple(message.headers() or ())
    return Record(spot, message.offset(), message.key(), message.value(), at, headers)


def _place(spot: Spot, offset: int | None = None) -> "TopicPartition":
    from confluent_kafka import TopicPartition

    return TopicPartition(*spot) if offset is None else TopicPartition(*spot, offset)


def _spots(places: "Iterable[TopicPartition]") -> list[Spot]:
    return [Spot(place.topic, place.partition) for place in places]
