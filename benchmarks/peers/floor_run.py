"""The floor: what two statements by hand do, with no retries, leases, outcomes or fairness (design A).

``SELECT … FOR UPDATE SKIP LOCKED LIMIT batch``, the no-op, ``DELETE``, COMMIT: one connection a process.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import protocol
import uvloop

INSTALL = """
CREATE TABLE floor_jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload bytea NOT NULL)
WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000)
"""
LOAD = "INSERT INTO floor_jobs (payload) SELECT $2::bytea FROM generate_series(1, $1::integer)"
PICK = "SELECT id, payload FROM floor_jobs ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED"
END = "DELETE FROM floor_jobs WHERE id = ANY ($1::bigint[])"


@asynccontextmanager
async def connected(options: protocol.Options) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(options["url"])
    yield connection
    await connection.close()


async def install(options: protocol.Options) -> None:
    async with connected(options) as connection:
        await connection.execute(INSTALL)


async def load(options: protocol.Options) -> None:
    async with connected(options) as connection:
        await connection.execute(LOAD, options["jobs"], protocol.PLAIN.encode())


async def work(options: protocol.Options) -> None:
    tally = protocol.Tally()
    async with connected(options) as connection:
        await protocol.work(tally, lambda: serve(connection, options["batch"], tally))


async def serve(connection: Any, batch: int, tally: protocol.Tally) -> None:
    while True:
        async with connection.transaction():
            rows = await connection.fetch(PICK, batch)
            for row in rows:
                tally.ran(row["payload"])
            await connection.execute(END, [row["id"] for row in rows])
        if not rows:
            await asyncio.sleep(0.01)


async def enqueue(options: protocol.Options) -> None:
    async with asyncpg.create_pool(options["url"], min_size=1, max_size=8) as pool:
        payload = protocol.PLAIN.encode()
        statement = "INSERT INTO floor_jobs (payload) SELECT unnest($1::bytea[])"

        async def one(batch: int) -> None:
            await pool.execute(statement, [payload] * batch)

        await protocol.enqueue(options, one)


async def trickle(options: protocol.Options) -> None:
    async with connected(options) as connection:

        async def one(payload: str) -> None:
            await connection.execute("INSERT INTO floor_jobs (payload) VALUES ($1)", payload.encode())

        await protocol.trickle(options, one)


if __name__ == "__main__":
    protocol.main(
        {"install": install, "load": load, "work": work, "enqueue": enqueue, "trickle": trickle},
        run=uvloop.run,
    )
