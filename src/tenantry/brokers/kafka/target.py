"""A topic as a target: a message is delivered when all in-sync replicas have it.

==========================================  ==============================================
what Kafka says                             outcome
==========================================  ==============================================
acknowledged by all                         ok
no such topic or partition                  unroutable
not authorised                              not_permitted
too large, for the producer or the topic    message_too_large
not enough replicas, over a quota, others   broker_nack
not reached in time, connection lost        broker_unreachable: it may or may not have it
==========================================  ==============================================

Source: Kafka's protocol guide, "Error Codes"; librdkafka's INTRODUCTION, "Idempotent Producer".
"""

import asyncio
import threading
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from tenantry.brokers.kafka.replay_reading import KEY_BASE64
from tenantry.brokers.kafka.replay_source import client, config_of
from tenantry.kernel.instant import Seconds
from tenantry.lanes.address import BrokerAddress
from tenantry.lanes.outcome import Outcome, excerpt_of
from tenantry.queue.model import ClaimedJob
from tenantry.replay.connections import Connection
from tenantry.replay.fields import KEY_HEADER

_CAUSES: Final[Mapping[str, str]] = {
    "UNKNOWN_TOPIC_OR_PART": "unroutable",
    "_UNKNOWN_TOPIC": "unroutable",
    "_UNKNOWN_PARTITION": "unroutable",
    "TOPIC_EXCEPTION": "unroutable",
    "TOPIC_AUTHORIZATION_FAILED": "not_permitted",
    "CLUSTER_AUTHORIZATION_FAILED": "not_permitted",
    "MSG_SIZE_TOO_LARGE": "message_too_large",
    "RECORD_LIST_TOO_LARGE": "message_too_large",
    "INVALID_MSG_SIZE": "message_too_large",
    "_MSG_TIMED_OUT": "broker_unreachable",
    "_TIMED_OUT": "broker_unreachable",
    "_TRANSPORT": "broker_unreachable",
    "_ALL_BROKERS_DOWN": "broker_unreachable",
    "_RESOLVE": "broker_unreachable",
    "_AUTHENTICATION": "broker_unreachable",
    "_SSL": "broker_unreachable",
    "_PURGE_QUEUE": "broker_unreachable",
    "_PURGE_INFLIGHT": "broker_unreachable",
}
"""By librdkafka's name of an error; the others are the broker's refusals."""

_OURS: Final[Mapping[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,
    "delivery.timeout.ms": 30_000,
    "topic.metadata.propagation.max.ms": 3_000,  # so long a topic that nobody knows is waited for
    "allow.auto.create.topics": False,
}
_POLL: Seconds = 0.1
_CLOSE_WITHIN: Seconds = 1.0


class KafkaSender:
    """Produces through one client, made at the first message. Its reports come in a thread of their own."""

    def __init__(self, connection: Connection) -> None:
        self._config = {**config_of(connection), **_OURS}
        self._producer: Any = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    async def send(self, address: BrokerAddress, job: ClaimedJob) -> Outcome:
        """Where it is cancelled the client may still deliver the message, for up to 30 s."""
        kafka = client()
        reported: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            self._begun().produce(
                address.place,
                job.payload,
                _key(job.headers),
                headers=_headers(job),
                on_delivery=_reporter(reported),
            )
        except BufferError:
            return Outcome("broker_nack", excerpt="the producer's queue is full")
        except kafka.KafkaException as refused:
            return _failed(refused.args[0])
        error = await reported
        return Outcome("ok") if error is None else _failed(error)

    async def close(self) -> None:
        """What was not confirmed by then may or may not be in the topic."""
        if self._thread is not None:
            self._stopping.set()
            await asyncio.to_thread(self._ended, self._thread)

    def _begun(self) -> Any:
        if self._producer is None:
            self._producer = client().Producer(self._config)
            self._thread = threading.Thread(target=self._poll, name="kafka-reports", daemon=True)
            self._thread.start()
        return self._producer

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(_POLL)

    def _ended(self, thread: threading.Thread) -> None:
        thread.join()
        self._producer.flush(_CLOSE_WITHIN)
        self._producer.purge()
        self._producer.flush(_CLOSE_WITHIN)


def _reporter(reported: "asyncio.Future[Any]") -> Any:
    loop = reported.get_loop()

    def report(error: Any, _message: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(told, error)

    def told(error: Any) -> None:
        if not reported.done():
            reported.set_result(error)

    return report


def _failed(error: Any) -> Outcome:
    name = error.name()
    return Outcome(_CAUSES.get(name, "broker_nack"), excerpt=excerpt_of(f"{name}: {error.str()}"))


def _key(headers: Mapping[str, str]) -> bytes | None:
    if KEY_HEADER in headers:
        return headers[KEY_HEADER].encode()
    encoded = headers.get(KEY_BASE64)
    return None if encoded is None else b64decode(encoded)


def _headers(job: ClaimedJob) -> list[tuple[str, bytes]]:
    """All but the key; the content type as its own header."""
    kept = [
        (name, value.encode()) for name, value in job.headers.items() if name not in {KEY_HEADER, KEY_BASE64}
    ]
    named = any(name == "content-type" for name, _ in kept)
    return kept if named else [*kept, ("content-type", job.content_type.encode())]
