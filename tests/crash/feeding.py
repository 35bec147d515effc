"""A process that feeds one replay from a list of messages, window by window, until it is killed or through.

``feeding.py ADMIN_URL MESSAGES`` prints ``feeding`` before each window, ``through`` at the end.
"""

import asyncio
import sys

from tenantry.postgres.database import Database
from tenantry.postgres.hints import Hints
from tenantry.postgres.replay_store import PostgresReplayStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.replay.model import Lease, ReplayView
from tenantry.testing.conformance.replay_world import at, staged, window_of

LEASE_FOR, WINDOW = 1.0, 40


async def main(admin_url: str, count: int) -> None:
    urls = DatabaseUrls.derived(admin_url)
    async with await Database.open(urls, engine_connections=1, tenant_connections=1) as database:
        store = PostgresReplayStore(database, Hints(database))
        while not await feed(store, await _taken(store), count):
            pass  # on a slow machine a lease may run out: it is taken again
        print("through", flush=True)


async def feed(store: PostgresReplayStore, view: ReplayView, count: int) -> bool:
    """Whether it is through; else the lease was lost."""
    lease, position = Lease(view.id, view.token), int(view.position or 0)
    while position < count:
        end = min(position + WINDOW, count)
        messages = [staged(f"m{n}") for n in range(position, end)]
        print("feeding", flush=True)
        if not await store.feed(lease, window_of(*messages, position=at(str(end)), exhausted=end == count)):
            return False
        await store.keep("feeding", {lease.replay: lease.token}, LEASE_FOR)
        position = end
    return True


async def _taken(store: PostgresReplayStore) -> ReplayView:
    """Whoever had it last may have been killed: its lease runs out."""
    while True:
        for view in await store.take("feeding", LEASE_FOR, limit=1):
            return view
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
