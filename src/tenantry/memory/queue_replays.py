"""Where replays meet the queue in memory: fed, paused, withdrawn, parked."""

from collections.abc import Sequence

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.memory.books import Books
from tenantry.memory.records import Flow, Job, Parked, Replay
from tenantry.queue.changes import FlowPaused, Submitted, Withdrawn
from tenantry.queue.lifecycle import RETURNED_REASON, JobEvent, after
from tenantry.queue.model import (
    FlowId,
    JobClass,
    JobId,
    JobState,
    NewJob,
    ReplayedJob,
    ReplayEnd,
    ReplayTerms,
    Seq,
)


class ReplaySide:
    """:class:`~tenantry.queue.ports.ReplayFlows`."""

    _books: Books

    async def feed_replay(self, tenant: TenantId, terms: ReplayTerms, jobs: Sequence[ReplayedJob]) -> None:
        feed(self._books, tenant, terms, jobs)

    async def pause_replay(self, tenant: TenantId, replay: str, *, paused: bool) -> None:
        pause(self._books, tenant, replay, paused=paused)

    async def withdraw_replay(self, tenant: TenantId, replay: str, *, limit: int) -> list[JobId]:
        return withdraw(self._books, tenant, replay, limit)

    async def take_ends(self, replay: str, *, limit: int) -> list[ReplayEnd]:
        books = self._books
        taken = [end for end in books.ends if end.replay == replay][:limit]
        known = set(map(id, taken))
        books.ends = [end for end in books.ends if id(end) not in known]
        return taken


def feed(books: Books, tenant: TenantId, terms: ReplayTerms, jobs: Sequence[ReplayedJob]) -> None:
    """As :meth:`~tenantry.queue.ports.ReplayFlows.feed_replay`. Checks everything before it writes."""
    known = books.account(tenant).jobs
    if len({job.id for job in jobs}) < len(jobs):
        raise InvariantBroken("a job is fed twice in one call")
    for job in jobs:
        found = known.get(job.id)
        if found is not None and found.state(books.now()) not in {JobState.DEAD, JobState.PARKED}:
            raise InvariantBroken(f"job {job.id} is fed and is {found.state(books.now())}")
    replay = books.replays.setdefault(terms.id, Replay(tenant, terms))
    replay.terms = terms
    runs: dict[FlowId, Submitted] = {}
    for job in jobs:
        flow = books.flow(tenant, NewJob(job.target, job.payload, JobClass.REPLAY), replay=terms.id)
        placed = _placed(books, tenant, flow, job)
        run = runs.setdefault(flow.opened.flow, Submitted(flow.opened.flow, placed.seq, 0))
        runs[flow.opened.flow] = Submitted(run.flow, run.first, run.count + 1)
    books.tell(*runs.values())


def pause(books: Books, tenant: TenantId, replay: str, *, paused: bool) -> None:
    """As :meth:`~tenantry.queue.ports.ReplayFlows.pause_replay`."""
    if (found := books.replays.get(replay)) is None or found.tenant != tenant:
        return
    found.paused = paused
    for flow in _flows(books, tenant, replay):
        flow.paused = paused
        books.tell(FlowPaused(flow.opened.flow, paused))


def withdraw(books: Books, tenant: TenantId, replay: str, limit: int) -> list[JobId]:
    """As :meth:`~tenantry.queue.ports.ReplayFlows.withdraw_replay`."""
    jobs = [job for flow in _flows(books, tenant, replay) for job in flow.jobs.values() if job.claim is None]
    taken = jobs[:limit]
    for job in taken:
        books.end(job, JobEvent.RETURNED, reason=RETURNED_REASON)
        books.tell(Withdrawn(*job.place))
    return [job.id for job in taken]


def park(books: Books, job: Job, kept: Parked, *, reason: str, status: int | None = None) -> None:
    """Put a running job aside: no end (law K1). The caller takes it out of its claim."""
    after(JobState.RUNNING, JobEvent.PARKED)
    books.out_of_line(job)
    job.parked, job.reason, job.status = kept, reason, status


def revive(books: Books, job: Job) -> None:
    """A dead letter or a parked job is neither any more; its attempts were made before this replay."""
    if job.end is not None:
        del books.ended[job.id]
        if job.bulk is not None:
            job.bulk.ends[job.end] -= 1
            job.bulk.queued += 1
    else:
        after(JobState.PARKED, JobEvent.SENT_BACK)
    job.end = job.ended_at = job.parked = job.due_at = job.key = job.status = None
    job.prior, job.attempts, job.reason = job.number, 0, ""


def _placed(books: Books, tenant: TenantId, flow: Flow, fed: ReplayedJob) -> Job:
    now, account = books.now(), books.account(tenant)
    new = NewJob(fed.target, fed.payload, JobClass.REPLAY, content_type=fed.content_type)
    job = account.jobs.get(fed.id)
    if job is None:
        job = Job(fed.id, tenant, flow, Seq(0), new, now, prior=fed.prior)
    else:
        revive(books, job)
    job.new, job.headers, job.fed_at = new, fed.headers, Timestamp(now)
    books.line_up(job, flow)
    account.replayed += 1
    return job


def _flows(books: Books, tenant: TenantId, replay: str) -> list[Flow]:
    flows = books.flows.values()
    return [flow for flow in flows if (flow.opened.tenant, flow.opened.replay) == (tenant, replay)]
