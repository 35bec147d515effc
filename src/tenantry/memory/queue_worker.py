"""A worker's side of the queue in memory."""

from collections.abc import Collection, Sequence

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.model import Kind
from tenantry.lanes.outcome import MESSAGE_FAULTS, Outcome
from tenantry.memory.books import Books
from tenantry.memory.queue_replays import park
from tenantry.memory.records import Claim, Job, Parked, Worker
from tenantry.queue.changes import Deferred, Heard, NodesChanged
from tenantry.queue.lifecycle import (
    LOST_EXCERPT,
    MOST_ATTEMPTS,
    NODE_FRESH_FOR,
    UNKNOWN_REASON,
    WORKER_LOST,
    JobEvent,
    after,
)
from tenantry.queue.model import (
    Attempt,
    Burial,
    ClaimedJob,
    ClaimId,
    Ending,
    EndKind,
    JobState,
    NameHeld,
    Node,
    NodeId,
    ParkReason,
    Presence,
    Reclaimed,
    ReplayEnd,
    ReplayTerms,
    Settlement,
)
from tenantry.queue.settling import (
    END_KINDS,
    LOST_FINGERPRINT,
    checked_parking,
    error_class_of,
    summaries_of,
)


class WorkerSide:
    """:class:`~tenantry.queue.ports.WorkerStore`, but for ``wait``."""

    _books: Books

    async def register(self, node: NodeId, pool: str, slots: int, kinds: Collection[Kind]) -> Node | NameHeld:
        books = self._books
        before = books.workers.get(node)
        if before is not None and before.lives(books.now()):
            frees_in = before.seen_at + NODE_FRESH_FOR - books.now()
            return NameHeld(node, before.incarnation, before.seen_at, frees_in, before.draining)
        incarnation = before.incarnation + 1 if before else 1
        worker = Worker(node, incarnation, pool, slots, frozenset(kinds), books.now())
        books.workers[node] = worker
        books.tell(NodesChanged())
        return Node(node, incarnation, pool, slots, worker.kinds)

    async def heartbeat(self, node: Node, *, draining: bool) -> Presence:
        worker = self._current(node)
        if worker is None:
            known = self._books.workers.get(node.id)
            later = known is not None and known.incarnation > node.incarnation
            return Presence.SUPERSEDED if later else Presence.FORGOTTEN
        appeared = not worker.lives(self._books.now())
        worker.seen_at = self._books.now()
        if appeared or worker.draining != draining:
            worker.draining = draining
            self._books.tell(NodesChanged())
        return Presence.PRESENT

    async def take(self, node: Node, lease_for: Seconds) -> list[ClaimedJob]:
        now = self._books.now()
        taken: list[ClaimedJob] = []
        for claim in self._books.claims.values():
            if _belongs(claim, node) and claim.taken_at is None and now < claim.expires_at:
                claim.taken_at, claim.expires_at = now, Timestamp(now + lease_for)
                taken += [_claimed(claim, job, self._terms(job)) for job in claim.held.values()]
        return taken

    async def renew(self, node: Node, claims: Collection[ClaimId], lease_for: Seconds) -> set[ClaimId]:
        now = self._books.now()
        kept: set[ClaimId] = set()
        for claim_id in claims:
            claim = self._books.claims.get(claim_id)
            if claim and _belongs(claim, node) and claim.taken_at is not None and now < claim.expires_at:
                claim.expires_at = Timestamp(now + lease_for)
                kept.add(claim_id)
        return kept

    async def settle(self, node: Node, settlements: Sequence[Settlement]) -> int:
        for each in settlements:
            if each.ending is Ending.PARKED:
                checked_parking(each)  # before anything is written
        settled = [each for each in settlements if self._settle(node, each)]
        if len(settled) == len(
            settlements
        ):  # an old token says nothing, so not of the target either (law K2)
            self._books.tell(*(Heard(flow, summary) for flow, summary in summaries_of(settled).items()))
        return len(settled)

    async def reclaim(self, *, limit: int) -> Reclaimed:
        now = self._books.now()
        expired = [claim for claim in self._books.claims.values() if claim.expires_at <= now]
        jobs = [job for claim in expired[:limit] for job in claim.held.values()]
        for job in jobs:
            self._take_back(job, now)
        dead = (Burial(job.id, job.tenant, job.reason) for job in jobs if job.end is JobState.DEAD)
        return Reclaimed(len(jobs), tuple(dead))

    async def leave(self, node: Node) -> None:
        worker = self._current(node)
        if worker is not None and not worker.left:
            worker.left = True
            self._books.tell(NodesChanged())

    def _current(self, node: Node) -> Worker | None:
        worker = self._books.workers.get(node.id)
        return worker if worker and worker.incarnation == node.incarnation else None

    def _settle(self, node: Node, settlement: Settlement) -> bool:
        """False, and nothing changed, when claim, token, owner or job are not as named (K2)."""
        named = settlement.job
        claim = self._books.claims.get(named.claim)
        if claim is None or not _belongs(claim, node) or claim.token != named.token:
            return False
        job = claim.held.get((named.flow, named.seq))
        if job is None or claim.taken_at is None:
            return False
        deferred = self._record(job, settlement)
        self._books.leave_claim(job, settlement.busy_for, deferred)
        return True

    def _terms(self, job: Job) -> ReplayTerms | None:
        if job.replay is None:
            return None
        known = self._books.replays.get(job.replay)
        return known.terms if known else ReplayTerms(job.replay)

    def _record(self, job: Job, settlement: Settlement) -> Deferred | None:
        books, now = self._books, self._books.now()
        if settlement.ending is Ending.RELEASED:
            after(JobState.RUNNING, JobEvent.RELEASED)
            return books.postpone(job, now, first=True)
        if settlement.ending is Ending.DELIVERED or settlement.failure is not None:
            job.attempts += 1
        if settlement.failure is not None:
            job.history.append(settlement.failure)
        if job.replay is not None:
            books.ends.append(_end_of(job, settlement, job.replay))
        if settlement.ending is Ending.RETRY:
            after(JobState.RUNNING, JobEvent.FAILED)
            return books.postpone(job, Timestamp(now + settlement.retry_for))
        if settlement.ending is Ending.PARKED:
            park(books, job, _parked(settlement, now), reason=settlement.reason, status=settlement.status)
            return None
        event = JobEvent.SUCCEEDED if settlement.ending is Ending.DELIVERED else JobEvent.EXHAUSTED
        books.end(job, event, reason=settlement.reason, status=settlement.status)
        return None

    def _take_back(self, job: Job, now: Timestamp) -> None:
        books = self._books
        if job.claim is None:
            raise InvariantBroken(f"job {job.id} is held by a claim that it does not know")
        taken_at = books.claims[job.claim].taken_at
        if taken_at is None:
            books.leave_claim(job, 0.0, books.postpone(job, now, first=True))
            return
        job.attempts += 1
        lost = Attempt(job.number, now, max(0.0, now - taken_at), None, WORKER_LOST, LOST_EXCERPT)
        job.history.append(lost)
        terms = self._terms(job)
        if terms is not None:
            books.ends.append(_lost_end(job, terms, lost.busy_for))
        if terms is not None and terms.hold_unknown:
            kept = Parked(terms.id, ParkReason.UNKNOWN, LOST_FINGERPRINT, WORKER_LOST, now)
            park(books, job, kept, reason=UNKNOWN_REASON)
            books.leave_claim(job, None, None)
        elif job.attempts >= MOST_ATTEMPTS:
            reason = f"{WORKER_LOST} after {job.number} attempts: its last worker was lost too"
            books.end(job, JobEvent.EXHAUSTED, reason=reason)
            books.leave_claim(job, None, None)
        else:
            after(JobState.RUNNING, JobEvent.RECLAIMED)
            books.leave_claim(job, None, books.postpone(job, now))


def _belongs(claim: Claim, node: Node) -> bool:
    return (claim.node, claim.incarnation) == (node.id, node.incarnation)


def _parked(settlement: Settlement, now: Timestamp) -> Parked:
    replay, why = checked_parking(settlement)
    return Parked(replay, why, settlement.fingerprint, error_class_of(settlement), now)


def _end_of(job: Job, settlement: Settlement, replay: str) -> ReplayEnd:
    return ReplayEnd(
        replay,
        job.tenant,
        job.id,
        END_KINDS[settlement.ending],
        job.number,
        error_class_of(settlement),
        settlement.status,
        settlement.fingerprint,
        settlement.busy_for,
    )


def _lost_end(job: Job, terms: ReplayTerms, busy_for: Seconds) -> ReplayEnd:
    kind = EndKind.DEAD if job.attempts >= MOST_ATTEMPTS else EndKind.UNKNOWN
    if terms.hold_unknown:
        kind = EndKind.PARKED
    return ReplayEnd(
        terms.id, job.tenant, job.id, kind, job.number, WORKER_LOST, None, LOST_FINGERPRINT, busy_for
    )


def _faults(job: Job) -> int:
    """Attempts of this replay that failed by the message's fault."""
    return sum(each.number > job.prior and each.error_class in MESSAGE_FAULTS for each in job.history)


def _last(job: Job) -> Outcome | None:
    """How the last attempt that counted ended."""
    told = next((each for each in job.history if each.number == job.number), None)
    if told is None or not job.attempts:
        return None
    return Outcome(told.error_class, told.status, excerpt=told.excerpt)


def _claimed(claim: Claim, job: Job, terms: ReplayTerms | None) -> ClaimedJob:
    opened = job.flow.opened
    return ClaimedJob(
        claim.id,
        claim.token,
        opened.flow,
        job.seq,
        job.id,
        job.tenant,
        opened.target,
        opened.job_class,
        job.attempts + 1,
        job.new.payload,
        job.new.content_type,
        job.submitted_at,
        opened.ordered,
        max(0.0, claim.claimed_at - max(job.lined_up_at, job.due_at or job.lined_up_at)),
        job.headers,
        terms,
        job.prior,
        0 if terms is None else _faults(job),
        _last(job),
    )
