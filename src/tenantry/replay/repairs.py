"""As what a parked message goes back into its line, and why some cannot. Pure.

A message is sent back whole or not at all: one that still lacks its target, or of which only the entry is
kept that no message could be read from, would die at once, and under the name of a target that nobody has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from tenantry.config import rules
from tenantry.config.validation import Described
from tenantry.kernel.errors import InvalidValue
from tenantry.lanes import address
from tenantry.lanes.model import Target
from tenantry.queue.admission import DEFAULT_LIMITS
from tenantry.replay.edits import checked_headers
from tenantry.replay.model import ParkedMessage

NOWHERE: Final = Target("unknown")
"""Stands for the target of a message of which nobody says where it was to go."""

UNREAD: Final = "application/vnd.tenantry.unread"
"""The content type of what was kept of an entry that no message could be read from."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What the message is given; None leaves what it has."""

    payload: bytes | None = None
    headers: Mapping[str, str] | None = None
    target: Target | None = None
    content_type: str | None = None


AS_IT_IS: Final = Repair()


def checked_repair(repair: Repair) -> Repair:
    """What people gave, as it is stored. Raises :class:`~tenantry.kernel.errors.InvalidValue` for a payload
    that no job may have, for headers that are none, and for a target that is none."""
    if repair.payload is not None and len(repair.payload) > DEFAULT_LIMITS.payload:
        told, most = f"{len(repair.payload):,} bytes", f"at most {DEFAULT_LIMITS.payload:,} bytes"
        raise InvalidValue("payload", told, most, "Send a reference to large bodies.")
    given = None if repair.headers is None else checked_headers(repair.headers, path="headers")
    target = None if repair.target is None else _checked_target(repair.target)
    return replace(repair, headers=given, target=target)


def fitting(message: ParkedMessage, repair: Repair) -> Repair:
    """``repair`` with what follows from it for ``message``. Raises
    :class:`~tenantry.kernel.errors.InvalidValue` for a message that cannot be sent even so, saying what to
    give it."""
    hint = f"It is parked because: {message.reason}"
    if message.content_type == UNREAD:
        if repair.payload is None:
            told = Described("the entry as it lay in its source")
            raise InvalidValue("payload", told, "the message's own payload, given with it", hint)
        repair = replace(repair, content_type=_type_of(repair.payload))
    if message.target == NOWHERE and repair.target is None:
        raise InvalidValue(
            "target", Described("no target"), "where the message is to go, given with it", hint
        )
    return repair


def _checked_target(target: Target) -> Target:
    text = rules.target("target", target)
    if text == NOWHERE:
        raise InvalidValue("target", text, "where the message is to go")
    return Target(str(address.parse(text)) if address.scheme_of(text) else text)


def _type_of(payload: bytes) -> str:
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "application/octet-stream"
    return "application/json"
