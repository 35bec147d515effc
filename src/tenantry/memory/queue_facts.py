"""What the books know about one job's surroundings."""

from collections import Counter
from math import inf

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane, kind_of
from tenantry.lanes.shaper_state import readable
from tenantry.memory.books import Books
from tenantry.memory.records import Job
from tenantry.queue.explain import Facts
from tenantry.queue.model import FlowId, JobState


def facts_of(books: Books, job: Job, pool: str) -> Facts:
    """The facts at this instant. O(tenants + deferred + held + the flow): for people who ask."""
    now, opened = books.now(), books.opened(job.flow)
    kind = kind_of(opened.target)
    nodes = [worker for worker in books.live_workers() if worker.pool == pool and not worker.draining]
    in_flight = Counter(held.flow for held in books.held())
    waiting = waiting_by_tenant(books, now)
    lane = Lane(opened.tenant, opened.target)
    lane_in_flight, kept = _lane_in_flight(books, job, in_flight), books.shapers.get(lane)
    return Facts(
        state=job.state(now),
        tenant=job.tenant,
        target=opened.target,
        kind=kind,
        now=now,
        due_at=job.deferred.due_at if job.deferred else None,
        attempts=job.number,
        ahead_in_flow=_ahead(job, now),
        flow_in_flight=in_flight[opened.flow],
        ordered=opened.ordered,
        lane_in_flight=lane_in_flight,
        lane_limit=None,
        tenant_in_flight=books.account(job.tenant).in_flight,
        tenant_waiting=waiting[job.tenant],
        pool_slots=sum(worker.slots for worker in nodes),
        pool_in_flight=sum(len(claim.held) for claim in books.claims.values() if claim.pool == pool),
        pool_slots_of_kind=sum(worker.slots for worker in nodes if kind in worker.kinds),
        tenants_waiting=sum(count > 0 for count in waiting.values()),
        orders=books.orders_over(lane),
        shaper=None if kept is None else readable(kept, in_flight=lane_in_flight, now=now),
        waiting=frozenset(tenant for tenant, count in waiting.items() if count > 0),
        planner_live=books.planner_lives(),
        pool_level=books.level_of(pool),
        pool=pool,
    )


def waiting_by_tenant(books: Books, now: Timestamp) -> Counter[TenantId]:
    """How many due jobs of each tenant nobody holds."""
    waiting = Counter({tenant: each.in_line for tenant, each in books.accounts.items()})
    waiting.subtract(job.tenant for job in books.deferred.values() if job.state(now) is JobState.DELAYED)
    return waiting


def _lane_in_flight(books: Books, job: Job, in_flight: Counter[FlowId]) -> int:
    lane = (job.tenant, job.flow.opened.target)
    flows = (books.flows[flow].opened for flow in in_flight)
    return sum(in_flight[flow.flow] for flow in flows if (flow.tenant, flow.target) == lane)


def _ahead(job: Job, now: Timestamp) -> int:
    waiting = (each for each in job.flow.jobs.values() if each.state(now) is JobState.WAITING)
    return 0 if job.end else sum(_before(each, job) for each in waiting)


def _before(one: Job, other: Job) -> bool:
    """Start order in a flow is submit order; what comes back stands behind all that was there by then."""
    if one.deferred is None and other.deferred is None:
        return one.seq < other.seq
    return _turn(one) < _turn(other)


def _turn(job: Job) -> tuple[float, int]:
    if job.deferred is None:
        return job.lined_up_at, job.seq
    keeps_its_place = job.deferred.first or (job.flow.opened.ordered and job.attempts > 0)
    return (-inf if keeps_its_place else job.deferred.due_at), job.seq
