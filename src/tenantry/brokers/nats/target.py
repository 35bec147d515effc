"""A subject as a target: a message is delivered when a stream has acknowledged it.

==========================================  =====================================================
what NATS says                              outcome
==========================================  =====================================================
acknowledged by a stream                    ok
no responders: no stream has the subject    unroutable
over the server's or the stream's size      message_too_large
the stream is full and refuses, and others  broker_nack
not connected, lost before the answer       broker_unreachable: a stream may or may not have it
==========================================  =====================================================

A login that may not publish there gets no answer from the server: the attempt is a ``timeout``.
"""

import asyncio
import json
from typing import Any, Final

from tenantry.brokers.nats.link import client, connected, foreign, said
from tenantry.lanes.address import BrokerAddress
from tenantry.lanes.outcome import Outcome, excerpt_of
from tenantry.queue.model import ClaimedJob
from tenantry.replay.connections import Connection

_TOO_LARGE: Final = 10054
"""JetStream's code for a message above the stream's bound."""

_PATIENCE = 900.0  # an attempt has its own end, which comes first


class NatsSender:
    """Publishes through one connection, made at the first message; the client makes it again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._link: Any = None
        self._linking = asyncio.Lock()

    async def send(self, address: BrokerAddress, job: ClaimedJob) -> Outcome:
        """No message id is given to JetStream: it would take a message that is sent again, on purpose, for
        one that it has."""
        raised = client().errors
        try:
            link = await self._linked()
            answer = await link.request(address.place, job.payload, timeout=_PATIENCE, headers=_headers(job))
        except raised.NoRespondersError:
            return Outcome("unroutable", excerpt=f"no stream has the subject {address.place}")
        except raised.MaxPayloadError:
            return Outcome("message_too_large", excerpt="larger than the server takes")
        except foreign() as error:
            return Outcome("broker_unreachable", excerpt=excerpt_of(said(error)))
        return _answered(answer.data)

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _linked(self) -> Any:
        async with self._linking:
            if self._link is None or self._link.is_closed:
                self._link = await connected(self._connection, again=True)
            if not self._link.is_connected:
                raise client().errors.ConnectionReconnectingError
            return self._link


def _answered(data: bytes) -> Outcome:
    """A stream answers in JSON; whoever else listens there is none."""
    try:
        found = json.loads(data)
        error = found.get("error")
        if error is None and "stream" in found:
            return Outcome("ok")
    except (ValueError, AttributeError):
        error = None
    if error is None:
        return Outcome("unroutable", excerpt="who answered is no stream")
    said_so = excerpt_of(str(error.get("description", "")))
    return Outcome(
        "message_too_large" if error.get("err_code") == _TOO_LARGE else "broker_nack", excerpt=said_so
    )


def _headers(job: ClaimedJob) -> dict[str, str]:
    """Those that can stand in NATS's block, less its own; the content type as one of them."""
    found = {"content-type": job.content_type}
    for name, value in job.headers.items():
        if name and not name.startswith("nats-") and _is_line(name) and ":" not in name and _is_line(value):
            found[name] = value
    return found


def _is_line(text: str) -> bool:
    return "\r" not in text and "\n" not in text
