"""What one claim costs the planner, by itself: take in what is new, plan, write the round.

Mode ``rounds``: a node of ``slots`` that this process plays. Each round fills all its slots; outside the
clock the claims are taken and settled, so that the next round finds them free. Says microseconds a claimed
job.
"""

import time
from statistics import median

import ours_run
import protocol
import uvloop

from tenantry.kernel.errors import InvariantBroken
from tenantry.lanes.model import Kind
from tenantry.postgres.planner_store import PostgresPlannerStore
from tenantry.postgres.worker_store import PostgresWorkerStore
from tenantry.queue.model import ClaimedJob, Ending, Node, NodeId, Settlement
from tenantry.queue.plan import PlannerMemory

WARM_UP = 5

Stores = tuple[PostgresPlannerStore, PostgresWorkerStore]


async def rounds(options: protocol.Options) -> None:
    async with ours_run.wired(options) as product:
        store = PostgresPlannerStore(product.database, product.hints)
        worker = PostgresWorkerStore(product.database, product.hints)
        node = await worker.register(NodeId("node"), "shared", options["slots"], {Kind("handler:noop")})
        term = await store.take_place("bench", 60.0)
        if term is None:
            raise InvariantBroken("the place of a fresh database is held")
        began = time.perf_counter()
        memory = PlannerMemory(await store.rebuild(term), product.directory, draw=lambda: 0.5)
        rebuilt_for = time.perf_counter() - began
        memory.set_nodes(await store.nodes(term))
        rounds = [await one_round(memory, (store, worker), term, node) for _ in range(options["rounds"])]
    costs, flows = zip(*rounds[WARM_UP:], strict=True)
    protocol.say(per_job=median(costs) * 1e6, flows=median(flows), rebuilt_for=rebuilt_for)


async def one_round(memory: PlannerMemory, stores: Stores, term: int, node: Node) -> tuple[float, int]:
    """Seconds of the planner a claimed job, and how many flows the jobs of the round came from."""
    store, worker = stores
    before = await store.round(term, (), {})
    began = time.perf_counter()
    memory.apply(before.changes, before.now)
    planned = memory.plan(before.now)
    written = await store.round(term, planned.claims, planned.heads)
    took = time.perf_counter() - began
    memory.apply(written.changes, written.now)
    if planned.jobs != node.slots:
        raise InvariantBroken(f"a round for {node.slots} free slots planned {planned.jobs} jobs")
    jobs = await worker.take(node, 15.0)
    await worker.settle(node, [settled(job) for job in jobs])
    return took / planned.jobs, len(planned.heads)


def settled(job: ClaimedJob) -> Settlement:
    return Settlement(job, Ending.DELIVERED, busy_for=0.001)


if __name__ == "__main__":
    protocol.main({"rounds": rounds}, run=uvloop.run)
