"""Targets that are places in a message broker: one grammar, one parser. Pure.

::

    amqp:CONNECTION/EXCHANGE/ROUTING_KEY     amqp:mq/orders/order.created; amqp:mq//acme.orders is a queue
    kafka:CONNECTION/TOPIC                   kafka:events/orders
    sqs:CONNECTION/QUEUE                     sqs:eu/orders, sqs:eu/orders.fifo
    nats:CONNECTION/SUBJECT                  nats:core/orders.created

CONNECTION is one of the operator's (:mod:`tenantry.replay.connections`), with the alphabet of tenants' ids;
it alone knows where the broker is, and who may write to it. What follows is the broker's own name of the
place. An empty EXCHANGE is AMQP's default one, whose routing key is a queue's name. In EXCHANGE, and only
there, ``%2F`` stands for ``/`` and ``%25`` for ``%``. A lane is one text, so each place has one text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import tenant_id

FORMS: Final[Mapping[str, str]] = {
    "amqp": "amqp:CONNECTION/EXCHANGE/ROUTING_KEY",
    "kafka": "kafka:CONNECTION/TOPIC",
    "sqs": "sqs:CONNECTION/QUEUE",
    "nats": "nats:CONNECTION/SUBJECT",
}
"""The schemes, and how an address of each is written."""

_LONGEST = 255  # bytes: what a target's text may have
_PLACES: Final[Mapping[str, re.Pattern[str]]] = {
    # an exchange without bare "%", then a routing key; neither may be empty where the other is
    "amqp": re.compile(r"(?:(?:[^/%]|%2F|%25)+/.*|/.+)", re.DOTALL),
    "kafka": re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}"),
    "sqs": re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo"),
    "nats": re.compile(r"[^\s.*>\x00-\x1f]+(?:\.[^\s.*>\x00-\x1f]+)*"),
}


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """One place. ``place``: all behind the connection, as it stands in the text: what an operator's list is
    compared with."""

    scheme: str
    connection: str
    place: str

    @property
    def exchange(self) -> str:
        """AMQP's, decoded; '' is the default one."""
        return self.place.partition("/")[0].replace("%2F", "/").replace("%25", "%")

    @property
    def routing_key(self) -> str:
        """AMQP's."""
        return self.place.partition("/")[2]

    def __str__(self) -> str:
        return f"{self.scheme}:{self.connection}/{self.place}"


def scheme_of(text: str) -> str | None:
    """The scheme, where ``text`` is meant to be an address of a broker. O(1)."""
    scheme, colon, _ = text.partition(":")
    return scheme if colon and scheme in FORMS else None


def parse(text: str, *, path: str = "target") -> BrokerAddress:
    """The address. Raises :class:`InvalidValue`, naming ``path`` and how one is written. O(length)."""
    scheme = scheme_of(text)
    if scheme is None:
        raise InvalidValue(path, text, " or ".join(FORMS.values()))
    connection, slash, place = text[len(scheme) + 1 :].partition("/")
    sound = slash and len(text.encode("utf-8", "replace")) <= _LONGEST and place.isprintable()
    if not (sound and _PLACES[scheme].fullmatch(place) and _is_name(connection)):
        raise InvalidValue(path, text, FORMS[scheme], "See docs/replay-sources.md for what each part may be.")
    return BrokerAddress(scheme, connection, place)


def amqp_address(connection: str, exchange: str, routing_key: str) -> BrokerAddress:
    """The place that an exchange and a routing key name. It may be none: parse its text to know."""
    escaped = exchange.replace("%", "%25").replace("/", "%2F")
    return BrokerAddress("amqp", connection, f"{escaped}/{routing_key}")


def _is_name(text: str) -> bool:
    try:
        tenant_id(text)
    except InvalidValue:
        return False
    return True
