"""Two tenants, at home in one of two partitions each, that are widened over both at one time.

Whoever owns one partition is given, after the widening, records of a tenant whose earlier ones lie in the
other. Run as a program, ``python kafka_widening.py BOOTSTRAP TOPIC FILE``, it is a member of the group that
handles nothing before it reads a line and ends with its input. It appends what it handled to the file and
prints how many partitions it is given.
"""

import asyncio
import sys
from pathlib import Path

from tenantry.brokers.kafka import (
    ConfluentSource,
    ConsumerSettings,
    FairConsumer,
    Handling,
    Message,
    gates_of,
)
from tenantry.brokers.kafka.events import PartitionsAssigned
from tenantry.kernel.events import Event
from tenantry.partition import Layout, Placement

BEFORE, WIDENED = 1_700_000_000.0, 1_700_000_100.0
_HOME = Placement(Layout(2))
TENANTS = [next(f"t{n}" for n in range(99) if _HOME.partition_for(f"t{n}", "", 0) == p) for p in range(2)]
"""By the partition in which each is at home."""
PLACEMENT = Placement([Layout(2), Layout(2, spreads=dict.fromkeys(TENANTS, 2), effective_from=WIDENED)])


def moved(home: int) -> str:
    """An entity of the tenant at home in ``home`` that goes to the other partition."""
    place = PLACEMENT.partition_for
    return next(f"e{n}" for n in range(99) if place(TENANTS[home], f"e{n}", WIDENED) != home)


async def main(bootstrap: str, topic: str, path: str) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{topic}-group",
        "session.timeout.ms": 6000,
        "log_level": 0,
    }
    may_handle = asyncio.Event()

    def tell(event: Event) -> None:
        if isinstance(event, PartitionsAssigned):
            print(len(event.spots), flush=True)

    with Path(path).open("a", buffering=1) as lines:  # noqa: ASYNC230 - before anything else runs

        async def handle(message: Message) -> None:
            await may_handle.wait()
            lines.write(f"{message.tenant} {message.entity} {(message.record.value or b'').decode()}\n")

        consumer = FairConsumer(
            ConfluentSource(config, [topic]),
            Handling(handle, gates=gates_of(PLACEMENT)),
            ConsumerSettings(commit_every=0.02),
            emit=tell,
        )
        running = asyncio.ensure_future(consumer.run())
        await asyncio.to_thread(sys.stdin.readline)
        may_handle.set()
        await asyncio.to_thread(sys.stdin.readline)
        consumer.stop()
        await running


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
