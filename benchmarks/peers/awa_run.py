"""awa-pg: its Python worker on the Rust engine, on queue storage, no extra binary.

``migrate`` leaves a database on the older engine, hence ``install_queue_storage``. ``max_workers`` is the
batch; more claimers or larger claims made it no faster here. Many jobs are enqueued by
``enqueue_many_copy``, as its documentation advises.
On by default and left on: heartbeats, the deadline, the maintenance leader, completed jobs kept for a while.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import awa
import protocol
import uvloop


@dataclass
class Noop:
    payload: str


@asynccontextmanager
async def opened(options: protocol.Options) -> AsyncIterator[awa.AsyncClient]:
    url = options["url"].replace(
        "@/", "@localhost/"
    )  # its URLs must name a host; the socket's directory wins
    async with awa.AsyncClient(url, max_connections=10) as client:
        yield client


async def install(options: protocol.Options) -> None:
    async with opened(options) as client:
        await client.migrate()
        await client.install_queue_storage()  # the engine that its documentation describes and measures


async def load(options: protocol.Options) -> None:
    async with opened(options) as client:
        for batch in protocol.in_batches(options["jobs"], 10_000):
            await client.enqueue_many_copy([Noop(protocol.PLAIN)] * batch)


async def work(options: protocol.Options) -> None:
    tally = protocol.Tally()
    async with opened(options) as client:

        @client.task(Noop)
        async def noop(job: Any) -> None:
            tally.ran(job.args.payload)

        async def serve() -> None:
            queue = {"name": "default", "max_workers": options["batch"], **options.get("queue", {})}
            await client.start([queue])
            await protocol.asyncio.Event().wait()

        await protocol.work(tally, serve)
        await client.shutdown()


async def enqueue(options: protocol.Options) -> None:
    async with opened(options) as client:

        async def one(batch: int) -> None:
            if batch == 1:
                await client.insert(Noop(protocol.PLAIN))
            else:
                await client.enqueue_many_copy([Noop(protocol.PLAIN)] * batch)

        await protocol.enqueue(options, one)


async def trickle(options: protocol.Options) -> None:
    async with opened(options) as client:

        async def one(payload: str) -> None:
            await client.insert(Noop(payload))

        await protocol.trickle(options, one)


if __name__ == "__main__":
    protocol.main(
        {"install": install, "load": load, "work": work, "enqueue": enqueue, "trickle": trickle},
        run=uvloop.run,
    )
