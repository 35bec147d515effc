"""From a delivery to a message, and what RabbitMQ says of its deaths. Pure.

Source: RabbitMQ, "Dead Letter Exchanges", section "Effects on Messages"; AMQP 0-9-1, section 4.2.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp, as_timestamp
from tenantry.lanes.address import amqp_address, parse
from tenantry.lanes.model import Target
from tenantry.replay import fields
from tenantry.replay.fields import Unreadable
from tenantry.replay.model import Fetched, Message

PREFIX: Final = "amqp-"
CARRIED: Final = ("message_id", "correlation_id", "reply_to", "message_type", "app_id", "content_encoding")
"""Texts among a message's properties; each travels as a header, ``amqp-message-id`` and so on."""

DEATHS: Final = "tenantry-deaths"
"""The header that says how often a message had died when it was read: it goes with it to the target."""

_DEATHS = "x-death"
_BROKER_S = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count")
_FAILED = frozenset({"rejected", "delivery_limit"})

OPTIONS = ("id_from", "target_from")


class Delivery(Protocol):
    """What is read of aiormq's delivered message."""

    @property
    def body(self) -> bytes: ...

    @property
    def header(self) -> Any: ...

    @property
    def delivery(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """``connection``: the name under which targets are addressed. ``id_from``: ``message_id``,
    ``header:NAME`` or ``body``. ``target_from``: ``exchange``, to where it was published first, or ``queue``,
    to the queue in which it died first."""

    connection: str
    id_from: str = "message_id"
    target_from: str = "exchange"

    @classmethod
    def of(cls, connection: str, options: Mapping[str, str]) -> "Reading":
        """Raises :class:`InvalidValue`, and :class:`UnknownKey` for an option that is not read."""
        fields.refuse_unknown(options, OPTIONS)
        reading = cls(connection, **options)
        id_from, target_from = reading.id_from, reading.target_from
        if id_from not in {"message_id", "body"} and not id_from.removeprefix("header:") != id_from:
            raise InvalidValue("source.options.id_from", id_from, "message_id, header:NAME or body")
        if target_from not in {"exchange", "queue"}:
            raise InvalidValue("source.options.target_from", target_from, "exchange or queue")
        return reading

    def entry(self, delivery: Delivery, receipt: object) -> Fetched:
        """The entry that a delivery is."""
        try:
            return Fetched(self._message(delivery), receipt)
        except Unreadable as why:
            name = f"sha256:{_digest(delivery)}"
            return fields.broken(name, delivery.body, str(why), receipt=receipt)

    def _message(self, delivery: Delivery) -> Message:
        properties = delivery.header.properties
        headers = properties.headers or {}
        deaths = deaths_of(headers)
        reason, at = (deaths[0].reason, deaths[0].at) if deaths else ("", None)
        return Message(
            id=self._id(delivery, headers, deaths),
            payload=fields.checked_size(delivery.body),
            content_type=fields.word(properties.content_type, "content_type") or "application/octet-stream",
            target=self._target(headers, deaths),
            headers=_texts(properties, headers) | ({DEATHS: str(_died(headers, deaths))} if deaths else {}),
            failed_at=at,
            attempts=sum(death.count for death in deaths if death.reason in _FAILED),
            error_class=reason,
            failure=f"{reason} in the queue {deaths[0].queue}"[:500] if deaths else "",
        )

    def _id(self, delivery: Delivery, headers: Mapping[str, Any], deaths: "list[Death]") -> str:
        """A message that dies again after a replay is another entry: else the store, which knows it as
        delivered, would have it thrown away. The broker's times have whole seconds, so deaths are counted,
        those before a replay too."""
        if self.id_from == "body":
            name: object = _digest(delivery)
        elif self.id_from == "message_id":
            name = delivery.header.properties.message_id
        else:
            name = headers.get(self.id_from.removeprefix("header:"))
        if not name:
            raise Unreadable(f"id: it has none at {self.id_from}; see the option id_from")
        name = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
        if not deaths:
            return fields.id_text(name, self.id_from)
        return fields.id_text(f"{name}@{deaths[0].at or 0:.0f}.{_died(headers, deaths)}", self.id_from)

    def _target(self, headers: Mapping[str, Any], deaths: "list[Death]") -> Target | None:
        first = first_of(headers, deaths)
        if first is None:
            return None
        exchange, key = (
            ("", first.queue) if self.target_from == "queue" else (first.exchange, first.routing_key)
        )
        text = str(amqp_address(self.connection, exchange, key))
        try:
            return Target(str(parse(text, path="x-death")))
        except InvalidValue:
            return None  # nobody can be sent to there: the replay needs a target of its own


@dataclass(frozen=True, slots=True)
class Death:
    """One line of ``x-death``: in this queue, for this reason, so often, last at that time."""

    queue: str
    reason: str
    count: int
    at: Timestamp | None
    exchange: str
    routing_key: str


def deaths_of(headers: Mapping[str, Any]) -> list[Death]:
    """The latest first, as the broker keeps them; what is none is left out: the header can be anybody's."""
    lines = headers.get(_DEATHS)
    return [_death(line) for line in lines if isinstance(line, dict)] if isinstance(lines, list) else []


def first_of(headers: Mapping[str, Any], deaths: list[Death]) -> Death | None:
    """The death that began it: in a chain of queues the one that the broker names, else the oldest."""
    queue, reason = headers.get("x-first-death-queue"), headers.get("x-first-death-reason")
    named = [death for death in deaths if (death.queue, death.reason) == (queue, reason)]
    return named[0] if named else deaths[-1] if deaths else None


def _died(headers: Mapping[str, Any], deaths: list[Death]) -> int:
    before = _text(headers.get(DEATHS))
    known = int(before) if before.isascii() and before.isdigit() and len(before) < 10 else 0
    return known + sum(death.count for death in deaths)


def _death(line: Mapping[str, Any]) -> Death:
    keys, at, count = line.get("routing-keys"), line.get("time"), line.get("count")
    key = keys[0] if isinstance(keys, list) and keys else ""
    return Death(
        queue=_text(line.get("queue")),
        reason=_text(line.get("reason")),
        count=count if isinstance(count, int) and count >= 0 else 0,
        at=as_timestamp(at) if isinstance(at, datetime) and at.tzinfo else None,
        exchange=_text(line.get("exchange")),
        routing_key=_text(key),
    )


def _texts(properties: Any, headers: Mapping[str, Any]) -> dict[str, str]:
    found = {
        name.lower(): _text(value)
        for name, value in headers.items()
        if value is not None and not name.startswith(_BROKER_S)
    }
    for name in CARRIED:
        if value := getattr(properties, name):
            found[header_of(name)] = _text(value)
    return found


def header_of(name: str) -> str:
    """The header under which a property travels: ``amqp-message-id``."""
    return PREFIX + name.replace("_", "-")


def _text(value: object) -> str:
    """Tables and arrays as JSON, times as ISO 8601, bytes as UTF-8."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text.replace("\x00", "\ufffd")


def _digest(delivery: Delivery) -> str:
    parts = (str(delivery.delivery.exchange), str(delivery.delivery.routing_key))
    return hashlib.sha256("\x00".join(parts).encode() + b"\x00" + delivery.body).hexdigest()[:32]
