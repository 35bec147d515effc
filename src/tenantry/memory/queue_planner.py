"""The planner's side of the queue in memory."""

from collections.abc import Mapping, Sequence

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.model import Lane
from tenantry.lanes.plain import Plain
from tenantry.memory.books import Books
from tenantry.memory.records import Claim, Flow, Job, Place, PlannersPlace, Worker
from tenantry.queue.changes import ClaimPlan, FlowStanding, Left, LiveNode, Round, Standing, Withdrawn
from tenantry.queue.lifecycle import START_LEASE
from tenantry.queue.model import ClaimId, FlowId, PoolLevel


class PlannerSide:
    """:class:`~tenantry.queue.ports.PlannerStore`, but for ``wait``."""

    _books: Books

    async def take_place(self, holder: str, lease_for: Seconds) -> int | None:
        books = self._books
        if books.planner_lives():
            return None
        books.changes.clear()
        books.told.clear()
        expires_at = Timestamp(books.now() + lease_for)
        books.place = PlannersPlace(books.place.term + 1, expires_at, holder)
        return books.place.term

    async def keep_place(self, term: int, lease_for: Seconds) -> None:
        self._books.hold_place(term)
        self._books.place.expires_at = Timestamp(self._books.now() + lease_for)

    async def leave_place(self, term: int) -> None:
        self._books.hold_place(term)
        self._books.place.expires_at = self._books.now()

    async def rebuild(self, term: int) -> Standing:
        books = self._books
        books.hold_place(term)
        books.changes.clear()
        flows = [flow for flow in books.flows.values() if flow.jobs or flow.head <= flow.tail]
        books.told = {flow.opened.flow for flow in flows}
        return Standing(
            now=books.now(),
            flows=tuple(_standing(books, flow) for flow in flows),
            deferred=tuple(job.deferred for job in books.deferred.values() if job.deferred),
            held=tuple(books.held()),
            withdrawn=tuple(Withdrawn(flow.opened.flow, seq) for flow in flows for seq in sorted(flow.gone)),
            nodes=self._live_nodes(),
            orders=tuple(books.ordered(scope) for scope in {scope for _, scope in books.orders}),
            levels=tuple(each.level for each in books.fresh_levels()),
        )

    async def round(self, term: int, claims: Sequence[ClaimPlan], heads: Mapping[FlowId, int]) -> Round:
        books = self._books
        books.hold_place(term)
        _check_heads(books, heads)
        found = _find(books, claims)  # everything is checked before anything is written
        for claim in claims:
            self._write(claim, found)
        for flow, head in heads.items():
            _move_head(books.flows[flow], head)
        changes = tuple(books.changes)
        books.changes.clear()
        return Round(books.now(), changes)

    async def keep_shapers(self, term: int, states: Mapping[Lane, Sequence[Plain]]) -> None:
        self._books.hold_place(term)
        self._books.shapers.update(states)

    async def keep_levels(self, term: int, levels: Sequence[PoolLevel], fresh_for: Seconds) -> None:
        self._books.hold_place(term)
        self._books.keep_levels(levels, fresh_for)

    async def held(self, term: int) -> frozenset[Place]:
        self._books.hold_place(term)
        return frozenset((held.flow, held.seq) for held in self._books.held())

    async def nodes(self, term: int) -> tuple[LiveNode, ...]:
        self._books.hold_place(term)
        return self._live_nodes()

    def _live_nodes(self) -> tuple[LiveNode, ...]:
        return tuple(_live(worker) for worker in self._books.live_workers())

    def _write(self, plan: ClaimPlan, found: Mapping[Place, Job | None]) -> None:
        books, now = self._books, self._books.now()
        worker = books.workers.get(plan.node)
        pool = worker.pool if worker else None
        number = books.number()
        expires_at = Timestamp(now + START_LEASE)
        claim = Claim(ClaimId(number), number, plan.node, plan.incarnation, pool, now, expires_at, {})
        for flow, seq, attempts in zip(plan.flows, plan.seqs, plan.attempts, strict=True):
            job = found[flow, seq]
            if job is None:
                books.tell(Left(((flow, seq),)))
            else:
                books.claim(job, claim, attempts)
        if claim.held:
            books.claims[claim.id] = claim
            books.claims_signal(plan.node).set()


def _find(books: Books, claims: Sequence[ClaimPlan]) -> dict[Place, Job | None]:
    """The job at each place, None where it has ended meanwhile. Raises :class:`InvariantBroken` for a place
    that was never given, is in a claim, or is named twice."""
    found: dict[Place, Job | None] = {}
    for plan in claims:
        if not len(plan.flows) == len(plan.seqs) == len(plan.attempts):
            raise InvariantBroken(f"the arrays of a claim for node {plan.node} differ in length")
        for position, place in enumerate(zip(plan.flows, plan.seqs, strict=True)):
            if place in found:
                raise InvariantBroken(f"flow {place[0]} seq {place[1]} is claimed twice in one round")
            job = found[place] = _job_at(books, place)
            if job is not None and (job.deferred is not None) is not (position in plan.returned):
                raise InvariantBroken(f"flow {place[0]} seq {place[1]}: `returned` names what was deferred")
    return found


def _job_at(books: Books, place: Place) -> Job | None:
    flow = books.flows.get(place[0])
    if flow is None or not 1 <= place[1] <= flow.tail:
        raise InvariantBroken(f"flow {place[0]} has no seq {place[1]}")
    job = flow.jobs.get(place[1])
    if job is not None and job.claim is not None:
        raise InvariantBroken(f"flow {place[0]} seq {place[1]} is in claim {job.claim} already")
    return job


def _check_heads(books: Books, heads: Mapping[FlowId, int]) -> None:
    for flow_id, head in heads.items():
        flow = books.flows.get(flow_id)
        if flow is None or not flow.head <= head <= flow.tail + 1:
            raise InvariantBroken(f"flow {flow_id}: the head cannot move to {head}")


def _move_head(flow: Flow, head: int) -> None:
    flow.head = head
    if flow.gone:
        flow.gone = {seq for seq in flow.gone if seq >= head}


def _standing(books: Books, flow: Flow) -> FlowStanding:
    in_line = (job for seq, job in flow.jobs.items() if seq >= flow.head)
    waiting = (job for job in in_line if job.claim is None and job.deferred is None)
    first = next(waiting, None)
    return FlowStanding(books.opened(flow), flow.tail, first.lined_up_at if first else None)


def _live(worker: Worker) -> LiveNode:
    slots = 0 if worker.draining else worker.slots
    return LiveNode(worker.id, worker.incarnation, worker.pool, slots, worker.kinds)
