"""Tenantry: a standby planner and a worker in each process, wired as the product wires them.

On by default and left on: outcomes, leases and their renewal, heartbeats, reclaim, metrics (Prometheus),
admission with rates and bounds. ``batch`` is the slots of a worker.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import protocol
import uvloop

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.delivery.handlers import Handlers
from tenantry.delivery.router import Router
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.memory.directory import MemoryDirectory
from tenantry.memory.rate_gate import MemoryRateGate
from tenantry.postgres.database import Database, connect_once
from tenantry.postgres.hints import Hints
from tenantry.postgres.intake_store import PostgresIntakeStore
from tenantry.postgres.migrate import migrate
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.urls import DatabaseUrls
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.events import PlannerElected, RoundPlanned
from tenantry.queue.intake import Admission
from tenantry.queue.model import Accepted, ClaimedJob, NewJob, NodeId
from tenantry.queue.planner import Planner
from tenantry.queue.surroundings import Surroundings
from tenantry.queue.worker import Worker, WorkerSettings
from tenantry.telemetry.prometheus import Metrics
from tenantry.telemetry.sinks import fan_out

NOOP = Target("handler:noop")
SMALL = TenantId("small")

# The rows that submits would have left, in the order of arrival: job k is tenant k mod m's.
# $1 jobs, $2 tenants, $3 payload.
LOAD = (
    """INSERT INTO tenantry.lanes (tenant_id, target)
       SELECT 't' || i, 'handler:noop' FROM generate_series(0, $2 - 1) i""",
    """INSERT INTO tenantry.flows (lane_id, tenant_id, job_class)
       SELECT lane_id, tenant_id, 0 FROM tenantry.lanes""",
    """INSERT INTO tenantry.tails (flow_id, tenant_id, tail)
       SELECT flow_id, tenant_id, ($1 - substr(tenant_id, 2)::integer + $2 - 1) / $2 FROM tenantry.flows""",
    "INSERT INTO tenantry.load (tenant_id, accepted) SELECT tenant_id, tail FROM tenantry.tails",
    """INSERT INTO tenantry.jobs (flow_id, seq, job_id, tenant_id, payload, content_type)
       SELECT f.flow_id, k / $2 + 1, uuidv7(), f.tenant_id, $3::bytea, 'application/json'
         FROM generate_series(0, $1 - 1) k
         JOIN tenantry.flows f ON f.tenant_id = 't' || (k % $2)
        ORDER BY k""",
)


@dataclass(frozen=True, slots=True)
class Wired:
    """One process of the product."""

    database: Database
    hints: Hints
    directory: MemoryDirectory
    clock: SystemClock
    randomness: SystemRandomness

    def admission(self) -> Admission:
        store = PostgresIntakeStore(self.database, self.hints, self.clock, self.randomness)
        gate = MemoryRateGate(self.directory, self.clock)
        return Admission(store, self.directory, gate, randomness=self.randomness, events=Metrics())


def directory_of(tenants: int) -> MemoryDirectory:
    """Equal tenants ``t0`` … and ``small``, with no bound and no cap: neither is what is measured."""
    tier = Tier(TierName("bench"))
    names = [*(TenantId(f"t{n}") for n in range(tenants)), SMALL]
    return MemoryDirectory(
        Registry(tiers=(tier,), tenants=tuple(TenantDocument(n, tier.name) for n in names))
    )


@asynccontextmanager
async def wired(options: protocol.Options) -> AsyncIterator[Wired]:
    async with await Database.open(DatabaseUrls.derived(options["url"])) as database:
        hints = Hints(database)
        await hints.listen()
        directory = directory_of(options.get("tenants", 10))
        yield Wired(database, hints, directory, SystemClock(), SystemRandomness())
        await hints.close()


async def install(options: protocol.Options) -> None:
    await migrate(options["url"])


async def load(options: protocol.Options) -> None:
    connection = await connect_once(options["url"])
    values = {"$1": str(options["jobs"]), "$2": str(options["tenants"]), "$3": f"'{protocol.PLAIN}'"}
    for statement in LOAD:
        for name, value in values.items():
            statement = statement.replace(name, value)  # noqa: PLW2901 - utility: no plan to keep
        await connection.execute(statement)
    await connection.close()


class Rounds:
    """Adds up what the planner of this process did."""

    def __init__(self) -> None:
        self.picks, self.rounds, self.took = 0, 0, 0.0

    def __call__(self, event: Event) -> None:
        if isinstance(event, RoundPlanned):
            self.picks += event.picks
            self.rounds += 1
            self.took += event.took_for
        elif isinstance(event, PlannerElected):
            protocol.say(elected=True, term=event.term)


async def work(options: protocol.Options) -> None:
    tally, rounds, handlers = protocol.Tally(), Rounds(), Handlers(threads=1)

    @handlers.register("noop")
    async def noop(job: ClaimedJob) -> None:
        tally.ran(job.payload)

    async with wired(options) as product:
        name = f"node-{os.getpid()}"
        events = fan_out(Metrics(), rounds)
        around = Surroundings(product.directory, product.clock, product.randomness, events)
        planner = Planner(PostgresPlannerStore(product.database, product.hints), around, holder=name)
        worker = Worker(
            PostgresWorkerStore(product.database, product.hints), Router(handlers), around, node=NodeId(name),
            settings=WorkerSettings(slots=options["batch"]),
        )  # fmt: skip

        async def serve() -> None:
            await asyncio.gather(planner.run(), worker.run())

        await protocol.work(tally, serve)
        protocol.say(picks=rounds.picks, rounds=rounds.rounds, took=rounds.took, closed=True)


async def enqueue(options: protocol.Options) -> None:
    async with wired(options) as product:
        admission, turn = product.admission(), iter(range(1 << 60))

        async def one(batch: int) -> None:
            tenant = TenantId(f"t{next(turn) % 10}")
            job = NewJob(NOOP, protocol.PLAIN.encode())
            answer = await admission.submit(tenant, [job] * batch)
            if not isinstance(answer, Accepted):
                raise TypeError(f"refused: {answer}")

        await protocol.enqueue(options, one)


async def trickle(options: protocol.Options) -> None:
    async with wired(options) as product:
        admission = product.admission()

        async def one(payload: str) -> None:
            await admission.submit(SMALL, [NewJob(NOOP, payload.encode())])

        await protocol.trickle(options, one)


if __name__ == "__main__":
    protocol.main(
        {"install": install, "load": load, "work": work, "enqueue": enqueue, "trickle": trickle},
        run=uvloop.run,
    )
