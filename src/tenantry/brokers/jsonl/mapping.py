"""From one line to a message, by a declared mapping. Pure."""

import binascii
from base64 import b64decode
from collections import abc
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

import msgspec

from tenantry.kernel.errors import InvalidValue
from tenantry.replay import fields
from tenantry.replay.fields import Unreadable
from tenantry.replay.json_path import MISSING, Steps, find, parse
from tenantry.replay.model import Fetched, Message, Position
from tenantry.replay.repairs import UNREAD

DEFAULTS: Final[abc.Mapping[str, str]] = {
    "id_field": "$.id",
    "payload_field": "$.payload",
    "target_field": "$.target",
    "headers_field": "$.headers",
    "error_class_field": "$.error_class",
    "failure_field": "$.failure",
    "failed_at_field": "$.failed_at",
    "attempts_field": "$.attempts",
    "content_type_field": "$.content_type",
}
"""The options that name a place in the line, and where they look if nothing is said."""

CONTENT_TYPES: Final[abc.Mapping[str, str]] = {
    "json": "application/json",
    "text": "text/plain; charset=utf-8",
    "base64": "application/octet-stream",
}
"""How a payload may be written, and what its content type is where the line does not say."""

OPTIONS = (*DEFAULTS, "payload_as")


@dataclass(frozen=True, slots=True)
class Mapping:
    """Where in a line each field stands. ``payload_as``: ``json``, the value's own bytes; ``text``, a
    string's characters in UTF-8; ``base64``, what a string decodes to."""

    places: abc.Mapping[str, Steps]
    payload_as: str = "json"

    @classmethod
    def of(cls, options: abc.Mapping[str, str]) -> Self:
        """From a source's options. Raises :class:`InvalidValue`, and for an option that is not read
        :class:`UnknownKey`."""
        fields.refuse_unknown(options, OPTIONS)
        places = {
            name: parse(options.get(name, default), path=f"source.options.{name}")
            for name, default in DEFAULTS.items()
        }
        payload_as = options.get("payload_as", "json")
        if payload_as not in CONTENT_TYPES:
            raise InvalidValue("source.options.payload_as", payload_as, " or ".join(CONTENT_TYPES))
        return cls(places, payload_as)

    def entry(self, line: bytes, name: str, position: Position | None) -> Fetched:
        """The entry that ``line`` is. ``name``: what it is called where it has no id. Of a line that is no
        message its target and its payload are kept where these can be read; else the line. O(length)."""
        try:
            return Fetched(self._message(line), None, position)
        except Unreadable as why:
            found = unread(line, name, str(why), position)
            return replace(found, message=self._salvaged(line, found.message))

    def _salvaged(self, line: bytes, kept: Message) -> Message:
        """For people to repair: a bad time of its failure costs a message neither target nor payload."""
        with suppress(Unreadable):
            found = find(_decoded(line), self.places["target_field"])
            kept = replace(kept, target=None if found is MISSING else fields.target_text(found, "target"))
        with suppress(Unreadable):
            payload = fields.checked_size(self._payload(line, _decoded(line)))
            kept = replace(kept, payload=payload, content_type=CONTENT_TYPES[self.payload_as])
        return kept

    def _message(self, line: bytes) -> Message:
        value = _decoded(line)

        def at(name: str) -> object:
            found = find(value, self.places[f"{name}_field"])
            return None if found is MISSING else found

        payload = fields.checked_size(self._payload(line, value))
        return Message(
            id=fields.id_text(at("id"), "id"),
            payload=payload,
            content_type=fields.word(at("content_type"), "content_type") or CONTENT_TYPES[self.payload_as],
            target=fields.target_text(at("target"), "target"),
            headers=fields.header_texts(at("headers"), "headers"),
            failed_at=fields.instant(at("failed_at"), "failed_at"),
            attempts=fields.count(at("attempts"), "attempts"),
            error_class=fields.word(at("error_class"), "error_class"),
            failure=fields.word(at("failure"), "failure"),
        )

    def _payload(self, line: bytes, value: object) -> bytes:
        steps = self.places["payload_field"]
        found = find(value, steps)
        if found is MISSING:
            raise Unreadable("payload: there is nothing at payload_field")
        if self.payload_as == "json":
            return _bytes_at(line, steps)
        if not isinstance(found, str):
            raise Unreadable(f"payload: it is no string, which {self.payload_as} needs")
        return found.encode() if self.payload_as == "text" else _from_base64(found)


def unread(line: bytes, name: str, why: str, position: Position | None) -> Fetched:
    """The entry of a line that is no message: of it the line is kept, and marked as such. Pure."""
    found = fields.broken(name, line, why, position=position)
    return replace(found, message=replace(found.message, content_type=UNREAD))


def _decoded(line: bytes) -> object:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"it is no JSON: {str(error)[:120]}") from None


def _bytes_at(line: bytes, steps: Steps) -> bytes:
    """The value's bytes as they stand in the line, so that no number changes how it is written."""
    raw = line.strip()
    for step in steps:
        if isinstance(step, str):
            raw = bytes(msgspec.json.decode(raw, type=dict[str, msgspec.Raw])[step])
        else:
            raw = bytes(msgspec.json.decode(raw, type=list[msgspec.Raw])[step])
    return raw


def _from_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable("payload: it is no base64") from None
