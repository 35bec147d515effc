"""pgqueuer: asyncpg on uvloop, a pool a process, ``batch_size`` as given, everything else as it comes.

On by default and left on: the log of outcomes, heartbeats, the statistics' aggregation, LISTEN. Durability
is its default (``durable``). ``max_concurrent_tasks`` is left open, as by default: a batch is fetched
without waiting for the last one, which is its fastest way with jobs that do nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import protocol
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries


@asynccontextmanager
async def pooled(options: protocol.Options) -> AsyncIterator[asyncpg.Pool]:
    async with asyncpg.create_pool(options["url"], min_size=2, max_size=8) as pool:
        yield pool


async def install(options: protocol.Options) -> None:
    async with pooled(options) as pool:
        queries = Queries.from_asyncpg_pool(pool)
        await queries.install()
        await queries.optimize_autovacuum()  # `pgq autovac`, which its documentation advises


async def load(options: protocol.Options) -> None:
    async with pooled(options) as pool:
        queries = Queries.from_asyncpg_pool(pool)
        for batch in protocol.in_batches(options["jobs"], 10_000):
            await queries.enqueue(["noop"] * batch, [protocol.PLAIN.encode()] * batch, [0] * batch)


async def work(options: protocol.Options) -> None:
    tally = protocol.Tally()
    async with pooled(options) as pool:
        queuer = PgQueuer.from_asyncpg_pool(pool)

        @queuer.entrypoint("noop")
        async def noop(job: Job) -> None:
            tally.ran(job.payload or b"")

        await protocol.work(tally, lambda: queuer.run(batch_size=options["batch"]))


async def enqueue(options: protocol.Options) -> None:
    async with pooled(options) as pool:
        queries = Queries.from_asyncpg_pool(pool)
        payload = protocol.PLAIN.encode()

        async def one(batch: int) -> None:
            await queries.enqueue(["noop"] * batch, [payload] * batch, [0] * batch)

        await protocol.enqueue(options, one)


async def trickle(options: protocol.Options) -> None:
    async with pooled(options) as pool:
        queries = Queries.from_asyncpg_pool(pool)

        async def one(payload: str) -> None:
            await queries.enqueue("noop", payload.encode())

        await protocol.trickle(options, one)


if __name__ == "__main__":
    protocol.main(
        {"install": install, "load": load, "work": work, "enqueue": enqueue, "trickle": trickle},
        run=uvloop.run,
    )
