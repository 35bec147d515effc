"""How one attempt ended, and whose fault it was.

The table :data:`CAUSES` is the whole classification. A *target* fault (no answer in time, a refused
connection, 5xx, 429) says how much the target can take: it will feed the lane's shaper and breaker. A
*message* fault (other 4xx, a redirect, a refused address) says something about this one job: it moves
neither. *Ours* says something about this installation: it is for the operator, and blames neither.

Source of the statuses: Standard Webhooks 1.0.0, "Delivery success and failure".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds

EXCERPT_LIMIT = 500
"""Characters of an answer that are kept with a failed attempt."""


class Fault(StrEnum):
    """Whom a failed attempt speaks about."""

    NONE = "none"
    TARGET = "target"
    MESSAGE = "message"
    OURS = "ours"


@dataclass(frozen=True, slots=True)
class Cause:
    """One row of the table. ``final``: another attempt cannot help, so the job is dead at once."""

    fault: Fault
    meaning: str
    final: bool = False


_TARGET, _MESSAGE, _OURS = Fault.TARGET, Fault.MESSAGE, Fault.OURS

CAUSES: Mapping[str, Cause] = MappingProxyType(
    {
        "ok": Cause(Fault.NONE, "the target answered 2xx, or the handler returned"),
        # no answer
        "timeout": Cause(_TARGET, "no answer within the target's timeout"),
        "connect_timeout": Cause(_TARGET, "no connection within the connect share of the timeout"),
        "refused": Cause(_TARGET, "the target refused the connection"),
        "unreachable": Cause(_TARGET, "no route to the target"),
        "reset": Cause(_TARGET, "the target closed the connection before it answered"),
        "dns": Cause(_TARGET, "the target's name did not resolve"),
        "tls": Cause(_TARGET, "the TLS handshake or the target's certificate failed"),
        "protocol": Cause(_TARGET, "the answer was not HTTP, or its head was too large"),
        # an answer
        "http_3xx": Cause(_MESSAGE, "the target redirected; redirects are not followed, update its URL"),
        "http_400": Cause(_MESSAGE, "the target answered 400 Bad Request"),
        "http_401": Cause(_MESSAGE, "the target answered 401 Unauthorized"),
        "http_403": Cause(_MESSAGE, "the target answered 403 Forbidden"),
        "http_404": Cause(_MESSAGE, "the target answered 404 Not Found"),
        "http_410": Cause(_MESSAGE, "the target answered 410 Gone: it wants no more of these", final=True),
        "http_413": Cause(_MESSAGE, "the target answered 413 Content Too Large"),
        "http_422": Cause(_MESSAGE, "the target answered 422 Unprocessable Content"),
        "http_429": Cause(_TARGET, "the target answered 429 Too Many Requests"),
        "http_4xx": Cause(_MESSAGE, "the target answered with another 4xx"),
        "http_500": Cause(_TARGET, "the target answered 500 Internal Server Error"),
        "http_502": Cause(_TARGET, "the target answered 502 Bad Gateway"),
        "http_503": Cause(_TARGET, "the target answered 503 Service Unavailable"),
        "http_504": Cause(_TARGET, "the target answered 504 Gateway Timeout"),
        "http_5xx": Cause(_TARGET, "the target answered with another 5xx"),
        # refused before a byte was sent
        "address_not_allowed": Cause(
            _MESSAGE, "the operator does not allow the target's address", final=True
        ),
        "invalid_url": Cause(
            _MESSAGE, "the target is no URL or address that may be delivered to", final=True
        ),
        "invalid_content_type": Cause(_MESSAGE, "the content type cannot stand in a header", final=True),
        # brokers
        "broker_unreachable": Cause(
            _TARGET, "the broker could not be reached, or was lost before it confirmed the message"
        ),
        "broker_nack": Cause(_TARGET, "the broker could not keep the message, or asked for less"),
        "unroutable": Cause(_MESSAGE, "the broker has no exchange, queue or topic for the address"),
        "not_permitted": Cause(_MESSAGE, "the broker's permissions do not allow writing there"),
        "message_too_large": Cause(_MESSAGE, "the broker takes no message so large", final=True),
        "unsuitable": Cause(_MESSAGE, "the broker cannot carry such a message", final=True),
        # handlers
        "handler_error": Cause(_MESSAGE, "the handler raised an exception"),
        "retry_later": Cause(_TARGET, "the handler asked to be called again later"),
        "rejected": Cause(_MESSAGE, "the handler rejected the job", final=True),
        # the installation
        "unknown_handler": Cause(_OURS, "no handler of that name is registered on this node"),
        "unknown_connection": Cause(_OURS, "this node has no broker connection of that name"),
        "unknown_target": Cause(_OURS, "the tenant document names no URL for this target"),
        "invalid_secret": Cause(_OURS, "the target's signing secret is not whsec_ and base64"),
        "worker_lost": Cause(_OURS, "the workers that ran it were lost before they could say how it ended"),
        "exhausted": Cause(_OURS, "this node is out of file descriptors, ports or memory"),
        "internal": Cause(_OURS, "a fault inside the delivery itself"),
    }
)
"""Every error class there is: a closed set, safe as a metric label and in a dead letter's reason."""

MESSAGE_FAULTS = tuple(name for name, cause in CAUSES.items() if cause.fault is Fault.MESSAGE)
"""The error classes that speak about the message."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended. Raises :class:`InvariantBroken` for a class that :data:`CAUSES` lacks.

    ``status``: what an HTTP target answered. ``retry_after``: seconds the target asked for, finite and
    >= 0. ``excerpt``: printable, at most 500 characters (see :func:`excerpt_of`). ``busy_for``: seconds
    from the start of the attempt to its end, >= 0.
    """

    error_class: str
    status: int | None = None
    retry_after: Seconds | None = None
    excerpt: str = ""
    busy_for: Seconds = 0.0

    def __post_init__(self) -> None:
        if self.error_class not in CAUSES:
            raise InvariantBroken(f"error class {self.error_class!r} is not in lanes.outcome.CAUSES")

    @property
    def fault(self) -> Fault:
        return CAUSES[self.error_class].fault

    @property
    def succeeded(self) -> bool:
        return self.fault is Fault.NONE

    def lasting(self, busy_for: Seconds) -> "Outcome":
        """The same outcome with the time it took; less than nothing counts as nothing."""
        return Outcome(self.error_class, self.status, self.retry_after, self.excerpt, max(0.0, busy_for))


def class_of_status(status: int) -> str:
    """The error class of a final HTTP status. Pure, O(1). Statuses outside 200 to 599 are not HTTP's."""
    if 200 <= status <= 299:
        return "ok"
    exact = f"http_{status}"
    if exact in CAUSES:
        return exact
    return f"http_{status // 100}xx" if 300 <= status <= 599 else "protocol"


def excerpt_of(answer: bytes | str) -> str:
    """The start of an answer, fit for a log line, a table cell and a PostgreSQL text column. Pure.

    Bytes are read as UTF-8 with replacement; runs of white space and unprintable characters (NUL, escape
    sequences, lone surrogates) become one space; at most :data:`EXCERPT_LIMIT` characters remain.
    """
    head = answer[: EXCERPT_LIMIT * 4]
    text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
    visible = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(visible.split())[:EXCERPT_LIMIT].rstrip()
