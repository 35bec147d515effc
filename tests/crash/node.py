"""One node of a crash test, as a process of its own: planner and worker on a database's URL.

Run as ``python tests/crash/node.py ADMIN_URL NAME SLOTS``; prints "ready" once it serves. Its jobs do nothing
for a few milliseconds, so that a kill finds some in every state.
"""

import asyncio
import sys

import uvloop

from tenantry.config.model import TargetSettings
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SystemRandomness
from tenantry.lanes.model import Kind
from tenantry.lanes.outcome import Outcome
from tenantry.postgres.database import Database
from tenantry.postgres.directory import PostgresDirectory
from tenantry.postgres.hints import Hints
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.events import NodeJoined
from tenantry.queue.model import ClaimedJob, NodeId
from tenantry.queue.planner import Planner, PlannerSettings
from tenantry.queue.surroundings import Surroundings
from tenantry.queue.worker import Worker, WorkerSettings

PLANNER = PlannerSettings(place_for=2.0, stand_by_for=0.1)


class Brief:
    """Runs a job for a few milliseconds."""

    kinds = frozenset({Kind("handler:brief")})

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        await asyncio.sleep(0.002 + job.seq % 7 / 1_000)
        return Outcome("ok", busy_for=0.005)


def told(event: Event) -> None:
    if isinstance(event, NodeJoined):
        print("ready", flush=True)


async def main(admin_url: str, name: str, slots: int) -> None:
    clock, randomness = SystemClock(), SystemRandomness()
    async with await Database.open(DatabaseUrls.derived(admin_url), engine_connections=4) as database:
        hints, directory = Hints(database), PostgresDirectory(database)
        await hints.listen()
        await directory.refresh()
        store = PostgresPlannerStore(database, hints)
        around = Surroundings(directory, clock, randomness, told)
        planner = Planner(store, around, holder=name, settings=PLANNER)
        worker = Worker(
            PostgresWorkerStore(database, hints),
            Brief(),
            around,
            node=NodeId(name),
            settings=WorkerSettings(slots=slots, lease_for=3.0, reclaim_every=0.3),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(planner.run())
            group.create_task(worker.run())


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
