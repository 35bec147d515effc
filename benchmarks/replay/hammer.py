"""A tenant that hammers a narrow range of its keys: ``python -m benchmarks.replay.hammer URL``, a process of
its own. It works while its standard input says ``on``, and rests while it says ``off``."""

import asyncio
import sys

import uvloop

from benchmarks.replay.dedup import HOT, WINDOW, Offer
from tenantry.kernel.randomness import SeededRandomness
from tenantry.postgres.database import Database
from tenantry.postgres.urls import DatabaseUrls

RANGE = 5_000


async def hammer(url: str) -> None:
    """Offer windows over a narrow range of keys, as fast as they are judged, while standard input says on."""
    loop, words = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    on = asyncio.Event()
    async with await Database.open(DatabaseUrls.derived(url), engine_connections=1) as database:
        offer, chance = await Offer.begun(database, HOT), SeededRandomness(3)
        hitting = asyncio.create_task(_hit(offer, chance, on))
        while word := await words.readline():
            (on.set if word == b"on\n" else on.clear)()
        hitting.cancel()


async def _hit(offer: Offer, chance: SeededRandomness, on: asyncio.Event) -> None:
    while True:
        await on.wait()
        await offer.windows(chance, RANGE, WINDOW, 1)


if __name__ == "__main__":
    uvloop.run(hammer(sys.argv[1]))
