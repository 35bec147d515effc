"""procrastinate: its psycopg connector, ``concurrency`` as given, everything else as it comes.

On by default and left on: finished jobs are kept (``delete_jobs="never"``), events by trigger, heartbeats,
LISTEN. It has no batch: it fetches one job a statement, so ``concurrency`` stands for the batch.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import procrastinate
import protocol
import uvloop

LOAD = """
INSERT INTO procrastinate_jobs (queue_name, task_name, args)
SELECT 'default', 'noop', jsonb_build_object('payload', %(payload)s::text)
  FROM generate_series(1, %(jobs)s::integer)
"""


@asynccontextmanager
async def opened(options: protocol.Options, tally: protocol.Tally) -> AsyncIterator[procrastinate.App]:
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    connector = procrastinate.PsycopgConnector(conninfo=options["url"], min_size=2, max_size=10)
    app = procrastinate.App(connector=connector)

    @app.task(name="noop", queue="default")
    async def noop(payload: str) -> None:
        tally.ran(payload)

    async with app.open_async():
        yield app


async def install(options: protocol.Options) -> None:
    async with opened(options, protocol.Tally()) as app:
        await app.schema_manager.apply_schema_async()


async def load(options: protocol.Options) -> None:
    """By SQL: its own ``batch_defer`` takes minutes for a million. Each row fires its trigger as usual."""
    async with opened(options, protocol.Tally()) as app:
        await app.connector.execute_query_async(LOAD, payload=protocol.PLAIN, jobs=options["jobs"])


async def work(options: protocol.Options) -> None:
    tally = protocol.Tally()
    async with opened(options, tally) as app:

        async def serve() -> None:
            await app.run_worker_async(concurrency=options["batch"], install_signal_handlers=False)

        await protocol.work(tally, serve)


async def enqueue(options: protocol.Options) -> None:
    async with opened(options, protocol.Tally()) as app:
        task = app.tasks["noop"]

        async def one(batch: int) -> None:
            if batch == 1:
                await task.defer_async(payload=protocol.PLAIN)
            else:
                await task.batch_defer_async(*[{"payload": protocol.PLAIN}] * batch)

        await protocol.enqueue(options, one)


async def trickle(options: protocol.Options) -> None:
    async with opened(options, protocol.Tally()) as app:

        async def one(payload: str) -> None:
            await app.tasks["noop"].defer_async(payload=payload)

        await protocol.trickle(options, one)


if __name__ == "__main__":
    protocol.main(
        {"install": install, "load": load, "work": work, "enqueue": enqueue, "trickle": trickle},
        run=uvloop.run,
    )
