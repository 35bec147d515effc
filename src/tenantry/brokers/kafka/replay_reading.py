"""From a record to a message of a replay, and how far a topic was read. Pure."""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

from tenantry.brokers.kafka.model import Record
from tenantry.kernel.errors import InvalidValue
from tenantry.lanes.address import BrokerAddress, parse
from tenantry.lanes.model import Target
from tenantry.replay import fields
from tenantry.replay.fields import Unreadable
from tenantry.replay.model import Fetched, Message, Position

KEY_BASE64: Final = fields.KEY_HEADER + "-base64"
"""Under this name a key travels that is no UTF-8."""

OPTIONS = ("from", "error_class_header", "failure_header", "topic_header")
_FROM = ("committed", "earliest")

_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "error_class_header": ("kafka_dlt-exception-fqcn", "__connect.errors.exception.class.name"),
    "failure_header": ("kafka_dlt-exception-message", "__connect.errors.exception.message"),
    "topic_header": ("kafka_dlt-original-topic", "__connect.errors.topic"),
}
"""Where Spring for Apache Kafka and Kafka Connect write these."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``connection``: the name under which targets are addressed. ``headers``: where to look for a field."""

    connection: str
    beginning: str
    headers: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, connection: str, options: Mapping[str, str]) -> "Reading":
        """Raises :class:`InvalidValue`, and :class:`UnknownKey` for an option that is not read."""
        fields.refuse_unknown(options, OPTIONS)
        beginning = options.get("from", _FROM[0])
        if beginning not in _FROM:
            raise InvalidValue("source.options.from", beginning, " or ".join(_FROM))
        named = {
            name: (options[name].lower(),) if name in options else known for name, known in _KNOWN.items()
        }
        return cls(connection, beginning, named)

    def entry(self, record: Record, position: Position | None) -> Fetched:
        """The entry that a record is; its receipt is (partition, offset)."""
        receipt = (record.spot.partition, record.offset)
        name = id_of(record)
        try:
            return Fetched(self._message(record, name), receipt, position)
        except Unreadable as why:
            return fields.broken(name, record.value or b"", str(why), receipt=receipt, position=position)

    def _message(self, record: Record, name: str) -> Message:
        if record.value is None:
            raise Unreadable("it has no value: a tombstone is no message")
        headers = {key.lower(): _text(value) for key, value in record.headers}
        return Message(
            id=name,
            payload=fields.checked_size(record.value),
            content_type=fields.word(headers.get("content-type"), "content-type")
            or "application/octet-stream",
            target=self._target(self._found("topic_header", headers)),
            headers=headers | _key_header(record.key),
            failed_at=record.at,
            error_class=fields.word(self._found("error_class_header", headers), "error class"),
            failure=fields.word(self._found("failure_header", headers), "failure"),
        )

    def _found(self, field: str, headers: Mapping[str, str]) -> str:
        return next((headers[name] for name in self.headers[field] if headers.get(name)), "")

    def _target(self, topic: str) -> Target | None:
        try:
            return Target(str(parse(str(BrokerAddress("kafka", self.connection, topic))))) if topic else None
        except InvalidValue:
            return None


class Span(NamedTuple):
    """A partition's part of a membership: offsets in [start, end)."""

    start: int
    end: int


def spans_text(spans: Mapping[int, Span]) -> str:
    """A membership's bound."""
    return json.dumps({str(partition): list(span) for partition, span in sorted(spans.items())})


def parsed_spans(text: str) -> dict[int, Span]:
    """Raises :class:`InvalidValue`."""
    found = _parsed(text, "membership.bound")
    try:
        return {partition: Span(*map(int, span)) for partition, span in found.items()}
    except (TypeError, ValueError):
        raise InvalidValue("membership.bound", text, "what survey() gave for a topic") from None


def position_text(offsets: Mapping[int, int]) -> Position:
    """The offsets at which each partition goes on."""
    return Position(json.dumps({str(partition): offset for partition, offset in sorted(offsets.items())}))


def parsed_position(text: Position) -> dict[int, int]:
    """Raises :class:`InvalidValue`."""
    found = _parsed(text, "position") if text else {}
    if all(isinstance(offset, int) for offset in found.values()):
        return found
    raise InvalidValue("position", text, "the offset at which each partition goes on, as JSON")


def id_of(record: Record) -> str:
    """The record's place; its time too, since a topic that is made again counts from 0 again."""
    topic = record.spot.topic
    if len(topic) > 200:
        topic = sha256(topic.encode()).hexdigest()[:32]
    at = "" if record.at is None else f"@{record.at:.3f}"
    return f"{topic}/{record.spot.partition}/{record.offset}{at}"


def _parsed(text: str, path: str) -> dict[int, Any]:
    try:
        return {int(partition): value for partition, value in json.loads(text).items()}
    except (ValueError, AttributeError):
        raise InvalidValue(path, text, "a JSON object by partition") from None


def _key_header(key: bytes | None) -> dict[str, str]:
    if key is None:
        return {}
    try:
        return {fields.KEY_HEADER: key.decode()}
    except UnicodeDecodeError:
        return {KEY_BASE64: b64encode(key).decode()}


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace").replace("\x00", "\ufffd")
