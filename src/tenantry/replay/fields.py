"""From what a source has to the fields of a message: the same rules for every kind of source. Pure.

A value that is not what its field may be makes the entry *broken* (:class:`Unreadable`): it is parked with
the reason, for a mapping that silently reads nothing would feed messages without their target or their age.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from math import isfinite
from types import MappingProxyType

from tenantry.config import rules
from tenantry.kernel.errors import InvalidValue, UnknownKey
from tenantry.kernel.instant import Timestamp, as_timestamp
from tenantry.kernel.tenant import identifier
from tenantry.lanes import address
from tenantry.lanes.model import Target
from tenantry.lanes.outcome import excerpt_of
from tenantry.replay.model import Fetched, Message, Position

KEY_HEADER = "tenantry-key"
"""Under this name a broker's message key travels."""

LARGEST_PAYLOAD = 1_048_576
"""Bytes: what a job may carry by default. A larger message is broken."""

KEPT_OF_BROKEN = 65_536
"""Bytes that are kept of an entry that is no message, for people to look at."""

_LATEST = 253_402_300_800.0  # the year 10000: later times are milliseconds taken for seconds


class Unreadable(Exception):
    """This entry cannot be a message; the text says why, for people."""


def refuse_unknown(options: Mapping[str, str], known: Collection[str]) -> None:
    """Raises :class:`UnknownKey` for an option that the adapter does not read."""
    for key in options:
        if key not in known:
            raise UnknownKey("source.options", key, tuple(known))


def broken(
    entry: str, raw: bytes, why: str, *, receipt: object = None, position: Position | None = None
) -> Fetched:
    """An entry that is no message. ``entry``: what it is called, the same at every reading."""
    message = Message(id=entry, payload=raw[:KEPT_OF_BROKEN], content_type="application/octet-stream")
    return Fetched(message, receipt, position, why)


def checked_size(payload: bytes) -> bytes:
    """Raises :class:`Unreadable` for a payload that no job may carry."""
    if len(payload) > LARGEST_PAYLOAD:
        raise Unreadable(f"its payload has {len(payload):,} bytes; at most {LARGEST_PAYLOAD:,} can be fed")
    return payload


def id_text(value: object, what: str) -> str:
    """The message's id. A whole number is its digits. Raises :class:`Unreadable`."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        return identifier(value, path=what)
    except InvalidValue as refused:
        raise Unreadable(f"{what}: it has no usable id; expected {refused.accepted}, or a number") from None


def target_text(value: object, what: str) -> Target | None:
    """Where it was to go; nothing where the source says nothing. Raises :class:`Unreadable`."""
    if value is None or value == "":
        return None
    try:
        text = rules.target(what, value)
        return Target(str(address.parse(text, path=what)) if address.scheme_of(text) else text)
    except InvalidValue as refused:
        raise Unreadable(f"{what}: it is no target; expected {refused.accepted}") from None


def header_texts(value: object, what: str) -> Mapping[str, str]:
    """Names in lower case to texts; numbers and booleans as JSON writes them, nulls left out. Raises
    :class:`Unreadable`."""
    if value is None:
        return MappingProxyType({})
    if not isinstance(value, dict):
        raise Unreadable(f"{what}: headers are an object of names and texts, and this is none")
    return MappingProxyType(
        {name.lower(): _header(each, name, what) for name, each in value.items() if each is not None}
    )


def instant(value: object, what: str) -> Timestamp | None:
    """Seconds since 1970, or RFC 3339 text with its zone. Raises :class:`Unreadable`."""
    if value is None:
        return None
    if isinstance(value, str):
        return _from_text(value, what)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and isfinite(value) and 0 <= value < _LATEST:  # type: ignore[arg-type, operator]
        return Timestamp(float(value))  # type: ignore[arg-type]
    raise Unreadable(f"{what}: {_said(value)} is no time; expected RFC 3339 text, or seconds since 1970")


def count(value: object, what: str) -> int:
    """How often it was tried. Raises :class:`Unreadable`."""
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31:
        return value
    raise Unreadable(f"{what}: {_said(value)} is no count; expected a whole number from 0")


def word(value: object, what: str) -> str:
    """Text for people and for filters, at most 500 printable characters. Raises :class:`Unreadable`."""
    if value is None:
        return ""
    if isinstance(value, str):
        return excerpt_of(value)
    raise Unreadable(f"{what}: {_said(value)} is no text")


def _header(value: object, name: str, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str) and "\x00" not in value:
        return value
    raise Unreadable(f"{what}: the header {_said(name)} is no text")


def _from_text(value: str, what: str) -> Timestamp:
    try:
        return as_timestamp(datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        raise Unreadable(f"{what}: {_said(value)} is no time; expected RFC 3339 with a zone") from None


def _said(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
