"""One consumer beside a slow tenant, for ``make bench NAME=partition``: ``SYSTEM BOOTSTRAP SLOW SECONDS``.

Prints, as JSON, the 99th percentile in milliseconds of the time from a record's production to the end of its
handling, over the tenants that are not slow. ``SLOW`` is 1 when the slow tenant is there, 0 for idle. What a
system is stands in ``benchmarks/partition/slow.py``. ``produce`` as SYSTEM is the producer, a process of its
own: its records carry the system-wide monotonic clock.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

OTHERS, RATE, COST = 10, 25, 0.002
"""Tenants that are not slow; records a second of each; seconds that handling one takes."""
SLOW_RATE, SLOW_COST = 200, 0.1
"""The slow tenant asks for 20 slots of the 16."""
SLOTS, BOUND, GRACE = 16, 1_000, 2.0
WARM_WITHIN = 30.0
SLOW, WARM = "slow", "warm"


class Waits:
    """How long records of the others took, and who is still awaited."""

    def __init__(self, expected: int) -> None:
        self.expected, self.took = expected, list[float]()
        self.warm = False

    def ended(self, tenant: str, value: bytes) -> None:
        if tenant == WARM:
            self.warm = True
        elif tenant != SLOW:
            self.took.append(time.monotonic() - float(value))

    def p99(self, began: float, seconds: float) -> float:
        """In milliseconds. Records that were not handled by now are taken for the last ones, and count with
        what those have waited so far: a lower bound."""
        done, now = len(self.took), time.monotonic()
        left = [now - began - seconds * number / self.expected for number in range(done, self.expected)]
        waits = sorted([*self.took, *left])
        return 1e3 * waits[-(-len(waits) * 99 // 100) - 1]


def cost_of(tenant: str) -> float:
    return SLOW_COST if tenant == SLOW else COST


def produce(bootstrap: str, topic: str, slow: bool, seconds: float) -> None:
    """Everybody's records at even distances, sent as they are due."""
    client = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "log_level": 0})
    due = [(n / RATE + other / RATE / OTHERS, f"tenant-{other}")
           for other in range(OTHERS) for n in range(int(RATE * seconds))]  # fmt: skip
    if slow:
        due += [(n / SLOW_RATE, SLOW) for n in range(int(SLOW_RATE * seconds))]
    began = time.monotonic()
    for number, (at, tenant) in enumerate(sorted(due)):
        time.sleep(max(0.0, began + at - time.monotonic()))
        client.produce(topic, repr(time.monotonic()).encode(), f"{tenant}\x1fe{number}".encode(), 0)
        client.poll(0)
    client.flush(10)


class Load:
    """The topic, and the producer's process once the consumer is warm."""

    def __init__(self, bootstrap: str, slow: bool, seconds: float) -> None:
        self.bootstrap, self.slow, self.seconds = bootstrap, slow, seconds
        self.topic = f"bench-{os.getpid()}"
        self.waits = Waits(OTHERS * int(RATE * seconds))
        self.process: subprocess.Popen[bytes] | None = None
        self.made, self.began = time.monotonic(), 0.0
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        for made in admin.create_topics([NewTopic(self.topic, 1, 1)]).values():
            made.result(30)
        client = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        client.produce(self.topic, b"0", f"{WARM}\x1f".encode(), 0)
        client.flush(10)

    def config(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap, "group.id": self.topic, "session.timeout.ms": 6000,
                "auto.offset.reset": "earliest", "log_level": 0}  # fmt: skip

    def goes_on(self) -> bool:
        """Called over and over; starts the producer, and ends the run."""
        if not self.waits.warm:
            if time.monotonic() - self.made > WARM_WITHIN:
                raise SystemExit(f"nothing was consumed within {WARM_WITHIN:.0f} s")
            return True
        if self.process is None:
            words = [self.bootstrap, str(int(self.slow)), str(self.seconds), self.topic]
            self.process = subprocess.Popen([sys.executable, __file__, "produce", *words])
            self.began = time.monotonic()
        late = time.monotonic() - self.began > self.seconds + GRACE
        return len(self.waits.took) < self.waits.expected and not late

    def result(self) -> float:
        p99 = self.waits.p99(self.began, self.seconds)
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        return p99


def polled(load: Load, take: Callable[[str, bytes], None]) -> float:
    """A consumer as the client's documentation has it."""
    client = Consumer(load.config())
    client.subscribe([load.topic])
    while load.goes_on():
        message = client.poll(0.05)
        if message is not None and message.error() is None:
            take(message.key().decode().partition("\x1f")[0], message.value())
    found = load.result()
    client.close()
    return found


def plain(load: Load) -> float:
    """One record after the other, in the partition's order."""

    def take(tenant: str, value: bytes) -> None:
        time.sleep(cost_of(tenant))
        load.waits.ended(tenant, value)

    return polled(load, take)


def pool(load: Load) -> float:
    """As many threads as ours has slots, first come, first served; as much held as ours may hold."""
    room = BoundedSemaphore(BOUND)

    def work(tenant: str, value: bytes) -> None:
        time.sleep(cost_of(tenant))
        load.waits.ended(tenant, value)
        room.release()

    with ThreadPoolExecutor(SLOTS) as threads:

        def take(tenant: str, value: bytes) -> None:
            while load.goes_on() and not room.acquire(timeout=0.05):
                pass
            threads.submit(work, tenant, value)

        found = polled(load, take)
        threads.shutdown(wait=False, cancel_futures=True)
    return found


async def fair(load: Load, cap: float) -> float:
    from tenantry.brokers.kafka import ConfluentSource, ConsumerSettings, FairConsumer, Handling, Message
    from tenantry.config.tiers import Tier
    from tenantry.kernel.tenant import TierName

    async def handle(message: Message) -> None:
        await asyncio.sleep(cost_of(message.tenant))
        load.waits.ended(message.tenant, message.record.value or b"")

    settings = ConsumerSettings(slots=SLOTS, tiers=Tier(TierName("all"), cap=cap), finish_within=0.0)
    consumer = FairConsumer(ConfluentSource(load.config(), [load.topic]), Handling(handle), settings)
    running = asyncio.ensure_future(consumer.run())
    while load.goes_on() and not running.done():
        await asyncio.wait([running], timeout=0.05)
    found = load.result()
    consumer.stop()
    await running
    return found


def main(system: str, bootstrap: str, slow: str, seconds: str, *topic: str) -> None:
    if system == "produce":
        produce(bootstrap, topic[0], slow == "1", float(seconds))
        return
    load = Load(bootstrap, slow == "1", float(seconds))
    systems: dict[str, Callable[[], float]] = {
        "ours": lambda: asyncio.run(fair(load, 0.5)),
        "no cap": lambda: asyncio.run(fair(load, 1.0)),
        "plain": lambda: plain(load),
        "pool": lambda: pool(load),
    }
    print(json.dumps(systems[system]()))


if __name__ == "__main__":
    main(*sys.argv[1:])
