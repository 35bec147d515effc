"""A group member in a process of its own: appends each handled record to a file, until it is killed.

``python kafka_member.py BOOTSTRAP TOPIC FILE SLOW_AFTER``: from the record of that count on it handles none.
"""

import asyncio
import sys
from pathlib import Path

from tenantry.brokers.kafka import ConfluentSource, ConsumerSettings, FairConsumer, Handling, Message


async def main(bootstrap: str, topic: str, path: str, most: str) -> None:
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{topic}-group",
        "session.timeout.ms": 6000,
        "log_level": 0,
    }
    handled = 0
    with Path(path).open("a", buffering=1) as lines:  # noqa: ASYNC230 - before anything else runs

        async def handle(message: Message) -> None:
            nonlocal handled
            handled += 1
            if handled > int(most):
                await asyncio.Event().wait()
            lines.write(f"{message.tenant} {message.entity} {(message.record.value or b'').decode()}\n")

        source = ConfluentSource(config, [topic])
        await FairConsumer(source, Handling(handle), ConsumerSettings(commit_every=0.02)).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
