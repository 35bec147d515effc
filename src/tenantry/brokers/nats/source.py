"""A stream as a source, read by sequence."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tenantry.brokers.nats.link import (
    ANSWER_WITHIN,
    check,
    client,
    connected,
    content_type_of,
    header_texts,
    linked,
    translated,
)
from tenantry.kernel.errors import Closed, InvalidValue, SourceUnavailable
from tenantry.kernel.instant import Seconds, as_timestamp
from tenantry.lanes.address import BrokerAddress, parse
from tenantry.lanes.model import Target
from tenantry.replay import fields
from tenantry.replay.connections import Connection
from tenantry.replay.fields import Unreadable
from tenantry.replay.model import Batch, Fetched, Membership, Message, Position, SourceAddress, Traits

OPTIONS = ("done", "subject_header", "error_class_header", "failure_header")
_DONE = ("keep", "delete")
_EVERYTHING: Final = ">"
_NO_MESSAGE: Final = 10037
"""JetStream's code for a sequence behind which there is nothing."""

_AT_ONCE = 64
"""Most requests under way at once."""

_BATCH_BYTES = 16_777_216


class _Refused(Exception):
    """The API answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.code = error.get("err_code")
        super().__init__(str(error.get("description", "an error without a description")))


class StreamSource:
    """A session over the stream ``address.place``, which is ``STREAM`` or ``STREAM/SUBJECT``; see
    :class:`~tenantry.replay.ports.Source`. One task only.

    ``window``: most messages in hand at once, where they are deleted. Raises :class:`InvalidValue`,
    :class:`UnknownKey` and :class:`MissingExtra`.
    """

    def __init__(self, connection: Connection, address: SourceAddress, *, window: int = 10_000) -> None:
        client()
        check(connection)
        fields.refuse_unknown(address.options, OPTIONS)
        self._stream, _, subject = address.place.partition("/")
        self._subject = subject or _EVERYTHING
        if not self._stream or any(mark in self._stream for mark in " .*>\t\r\n\\") or " " in subject:
            raise InvalidValue("source.place", address.place, "STREAM, or STREAM/SUBJECT")
        done = address.options.get("done", "keep")
        if done not in _DONE:
            raise InvalidValue("source.options.done", done, " or ".join(_DONE))
        self._connection, self._window, self._keeps = connection, window, done == "keep"
        self._reading = _Reading(connection.name, self._stream, address.options)
        self._link: Any = None
        self._next, self._end, self._dense = 1, 0, _AT_ONCE
        self._held: set[object] = set()

    @property
    def traits(self) -> Traits:
        return Traits(counts=True, freezes=True, acknowledges=not self._keeps, window=self._window)

    async def survey(self) -> Membership:
        async with linked(self._connection) as link:
            state = await self._state(link)
        return Membership(str(state["last_seq"]), self._count(state))

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """The first ones."""
        async with linked(self._connection) as link:
            state = await self._state(link)
            found: list[Fetched] = []
            at = 1
            while len(found) < limit:
                more = await self._from(link, at, min(limit - len(found), _AT_ONCE))
                if not more or more[0]["seq"] > state["last_seq"]:
                    break
                found += [self._reading.entry(each, None) for each in more]
                at = more[-1]["seq"] + 1
        return found[:limit]

    async def arrived(self, membership: Membership) -> int | None:
        """Sequences behind the end; None where the source is one subject of its stream."""
        if self._subject != _EVERYTHING:
            return None
        end = _sequence(membership.bound, "membership.bound")
        async with linked(self._connection) as link:
            return max(0, int((await self._state(link))["last_seq"]) - end)

    async def open(self, membership: Membership, after: Position) -> None:
        self._end = _sequence(membership.bound, "membership.bound")
        self._next = _sequence(after, "position") + 1 if after else 1
        self._held.clear()
        with translated(self._connection):
            self._link = await connected(self._connection, again=False)
            await self._state(self._link)

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """The next messages. A stream never has to be waited for."""
        if self._link is None:
            raise Closed("this session is not open")
        most = min(limit, self._window - len(self._held))
        if most < 1:
            return Batch(())
        found: list[Fetched] = []
        size, at = 0, self._next
        with translated(self._connection):
            while len(found) < most and size < _BATCH_BYTES and at <= self._end:
                more = await self._from(self._link, at, min(most - len(found), self._dense))
                within = [each for each in more if each["seq"] <= self._end][: most - len(found)]
                at = within[-1]["seq"] + 1 if within else self._end + 1
                found += [self._entry(each) for each in within]
                size += sum(len(each.get("data", "")) for each in within)
        self._next = at  # once nothing can be cut off any more
        if not self._keeps:
            self._held.update(entry.receipt for entry in found)
        return Batch(tuple(found), exhausted=not found)

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """Deletes them; of a stream that is kept: nothing."""
        if self._keeps or not receipts:
            return
        if self._link is None:
            raise Closed("this session is not open")
        with translated(self._connection):
            for at in range(0, len(receipts), _AT_ONCE):
                await asyncio.gather(*(self._delete(each) for each in receipts[at : at + _AT_ONCE]))
        self._held.difference_update(receipts)

    async def leave(self, receipts: Sequence[object]) -> None:
        """They stay; this session has passed them."""
        self._held.difference_update(receipts)

    async def close(self) -> None:
        link, self._link = self._link, None
        self._held.clear()
        if link is not None:
            await link.close()

    def _entry(self, stored: Mapping[str, Any]) -> Fetched:
        return self._reading.entry(stored, Position(str(stored["seq"])) if self._keeps else None)

    def _count(self, state: Mapping[str, Any]) -> int:
        if self._subject == _EVERYTHING:
            return int(state["messages"])
        return sum((state.get("subjects") or {}).values())

    async def _state(self, link: Any) -> Mapping[str, Any]:
        asked = {} if self._subject == _EVERYTHING else {"subjects_filter": self._subject}
        try:
            state: Mapping[str, Any] = (await self._asked(link, "INFO", asked))["state"]
        except _Refused as refused:
            raise SourceUnavailable(f"the stream {self._stream}: {refused}") from None
        return state

    async def _from(self, link: Any, sequence: int, most: int) -> list[Mapping[str, Any]]:
        """Messages from ``sequence`` on, in order, without a gap between those that exist: of each of the
        next sequences the message there, or the next one. Where a stream has holes fewer are asked for."""
        asked = [self._message(link, sequence + n) for n in range(most)]
        answers = {each["seq"]: each for each in await asyncio.gather(*asked) if each is not None}
        self._dense = max(1, min(_AT_ONCE, 2 * len(answers)))
        return [answers[each] for each in sorted(answers)]

    async def _message(self, link: Any, sequence: int) -> Mapping[str, Any] | None:
        try:
            answer = await self._asked(link, "MSG.GET", {"seq": sequence, "next_by_subj": self._subject})
        except _Refused as refused:
            if refused.code == _NO_MESSAGE:
                return None
            raise SourceUnavailable(f"the stream {self._stream}: {refused}") from None
        message: Mapping[str, Any] = answer["message"]
        return message

    async def _delete(self, sequence: object) -> None:
        try:
            await self._asked(self._link, "MSG.DELETE", {"seq": sequence, "no_erase": True})
        except _Refused as refused:
            if "no message found" not in str(refused):  # else it is gone already
                raise SourceUnavailable(f"the stream {self._stream}: {refused}") from None

    async def _asked(self, link: Any, what: str, body: Mapping[str, object]) -> Mapping[str, Any]:
        verb, _, rest = what.partition(".")
        subject = f"$JS.API.STREAM.{verb}{'.' + rest if rest else ''}.{self._stream}"
        answer = await link.request(subject, json.dumps(body).encode(), timeout=ANSWER_WITHIN)
        found: Mapping[str, Any] = json.loads(answer.data)
        if "error" in found:
            raise _Refused(found["error"])
        return found


@dataclass(frozen=True, slots=True)
class _Reading:
    """From a stored message to an entry. Pure."""

    connection: str
    stream: str
    options: Mapping[str, str]

    def entry(self, stored: Mapping[str, Any], position: Position | None) -> Fetched:
        name = f"{self.stream}/{stored['seq']}@{stored['time']}"[:255]
        payload = b64decode(stored.get("data", ""))
        try:
            return Fetched(self._message(stored, name, payload), stored["seq"], position)
        except Unreadable as why:
            return fields.broken(name, payload, str(why), receipt=stored["seq"], position=position)

    def _message(self, stored: Mapping[str, Any], name: str, payload: bytes) -> Message:
        headers = header_texts(b64decode(stored.get("hdrs", "")))
        return Message(
            id=name,
            payload=fields.checked_size(payload),
            content_type=content_type_of(headers),
            target=self._target(self._found("subject_header", headers)),
            headers={key: value for key, value in headers.items() if not key.startswith("nats-")},
            failed_at=as_timestamp(datetime.fromisoformat(_six_digits(stored["time"]))),
            error_class=fields.word(self._found("error_class_header", headers), "error class"),
            failure=fields.word(self._found("failure_header", headers), "failure"),
        )

    def _found(self, option: str, headers: Mapping[str, str]) -> str:
        return headers.get(self.options.get(option, "").lower(), "")

    def _target(self, subject: str) -> Target | None:
        try:
            return (
                Target(str(parse(str(BrokerAddress("nats", self.connection, subject))))) if subject else None
            )
        except InvalidValue:
            return None


def _six_digits(text: str) -> str:
    """Go writes nanoseconds, without zeros at their end; Python reads up to six digits."""
    whole, dot, rest = text.rstrip("Z").partition(".")
    return f"{whole}.{rest[:6].ljust(6, '0')}+00:00" if dot else f"{whole}+00:00"


def _sequence(text: str, path: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    raise InvalidValue(path, text, "a sequence of the stream")
