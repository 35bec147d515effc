"""The tenant's side of the queue in memory."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.memory.books import Books
from tenantry.memory.queue_facts import facts_of
from tenantry.memory.records import Account, Bulk, Job, Key
from tenantry.queue.admission import (
    body_digest,
    check_listed,
    key_digest,
    key_reused,
    over_bound,
    over_stored,
    refuse_keys,
)
from tenantry.queue.changes import Deferred, Submitted
from tenantry.queue.explain import Facts
from tenantry.queue.lifecycle import JobEvent, allows
from tenantry.queue.model import Accepted, BulkSet, FlowId, JobId, JobState, JobView, NewJob


@dataclass(slots=True)
class _Sorted:
    """A batch, row by row: the keyed rows' digests, and which row answers a row that is not new."""

    keys: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)  # row: (key digest, body digest)
    known: dict[int, JobId] = field(default_factory=dict)  # row: the job submitted before this call
    twins: dict[int, int] = field(default_factory=dict)  # row: the earlier row with the same key

    def fresh(self, row: int) -> bool:
        return row not in self.known and row not in self.twins


class IntakeSide:
    """:class:`~tenantry.queue.ports.IntakeStore`."""

    _books: Books

    async def submit(
        self, tenant: TenantId, jobs: Sequence[NewJob], *, bound: int | None
    ) -> Accepted | Refusal:
        books = self._books
        books.forget_keys()
        account = books.account(tenant)
        rows = _sort(tenant, jobs, account)
        if isinstance(rows, Refusal):
            return rows
        wanted = sum(rows.fresh(row) for row in range(len(jobs)))
        if wanted and bound is not None and account.unended + wanted > bound:
            rate = account.drain_rate(books.now())
            return over_bound(bound=bound, unended=account.unended, wanted=wanted, drain_rate=rate)
        return self._store(tenant, jobs, rows)

    def _store(self, tenant: TenantId, jobs: Sequence[NewJob], rows: _Sorted) -> Accepted:
        books, account, now = self._books, self._books.account(tenant), self._books.now()
        ids: list[JobId] = []
        stored: list[Job] = []
        for row, new in enumerate(jobs):
            if not rows.fresh(row):
                ids.append(rows.known[row] if row in rows.known else ids[rows.twins[row]])
                continue
            job = books.append(tenant, new, now=now)
            if row in rows.keys:
                job.key, body = rows.keys[row]
                account.keys[job.key] = Key(body, job.id)
            ids.append(job.id)
            stored.append(job)
        announce(books, stored, now)
        return Accepted(tuple(ids), frozenset(rows.known) | frozenset(rows.twins))

    async def submit_bulk(self, tenant: TenantId, jobs: Sequence[NewJob], *, most: int) -> BulkSet | Refusal:
        refuse_keys(jobs)
        if not jobs:
            raise InvalidValue("jobs", list(jobs), "at least one job")
        account = self._books.account(tenant)
        stored = sum(len(bulk.waiting) for bulk in account.feeding)
        if stored + len(jobs) > most:
            return over_stored(most=most, stored=stored, wanted=len(jobs))
        bulk = Bulk(self._books.new_id(), tenant, self._books.now(), len(jobs), deque(jobs))
        account.bulks[bulk.id] = bulk
        account.feeding.append(bulk)
        return _bulk_view(bulk)

    async def bulk(self, tenant: TenantId, bulk_id: str) -> BulkSet | None:
        bulk = self._books.look(tenant).bulks.get(bulk_id)
        return None if bulk is None else _bulk_view(bulk)

    async def job(self, tenant: TenantId, job: JobId) -> JobView | None:
        found = self._books.job(tenant, job)
        return None if found is None else _view(found, self._books.now())

    async def states(self, tenant: TenantId, jobs: Collection[JobId]) -> Mapping[JobId, JobState]:
        known, now = self._books.look(tenant).jobs, self._books.now()
        return {job: known[job].state(now) for job in jobs if job in known}

    async def jobs(self, tenant: TenantId, *, state: JobState | None, limit: int) -> list[JobView]:
        check_listed(limit)
        now = self._books.now()
        views: list[JobView] = []
        for job in reversed(self._books.look(tenant).jobs.values()):
            if len(views) == limit:
                break
            if state is None or job.state(now) is state:
                views.append(_view(job, now))
        return views

    async def cancel(self, tenant: TenantId, job: JobId) -> JobState | None:
        found = self._books.job(tenant, job)
        if found is None:
            return None
        if allows(found.state(self._books.now()), JobEvent.CANCELLED):
            self._books.cancel(found)
        return found.state(self._books.now())

    async def facts(self, tenant: TenantId, job: JobId, *, pool: str) -> Facts | None:
        found = self._books.job(tenant, job)
        return None if found is None else facts_of(self._books, found, pool)


def announce(books: Books, jobs: Sequence[Job], now: Timestamp) -> None:
    """Tell the planner of appended jobs: a change a run of one cost in a flow, then those that wait outside.

    A delay counts from acceptance, which for a job of a set was when the set was stored.
    """
    runs: dict[FlowId, list[Submitted]] = {}
    deferred: list[Deferred] = []
    for job in jobs:
        run = runs.setdefault(job.flow.opened.flow, [])
        if run and run[-1].cost == job.new.cost:
            run[-1] = replace(run[-1], count=run[-1].count + 1)
        else:
            run.append(Submitted(job.flow.opened.flow, job.seq, 1, job.new.cost))
        accepted_at = job.bulk.created_at if job.bulk else job.submitted_at
        due_at = Timestamp(accepted_at + job.new.delay_for)
        if due_at > now:
            deferred.append(books.postpone(job, due_at))
    books.tell(*chain.from_iterable(runs.values()), *deferred)


def _sort(tenant: TenantId, jobs: Sequence[NewJob], account: Account) -> _Sorted | Refusal:
    rows = _Sorted()
    first: dict[bytes, int] = {}
    for row, job in enumerate(jobs):
        if job.idempotency_key is None:
            continue
        key, body = rows.keys[row] = key_digest(tenant, job.idempotency_key), body_digest(job)
        known, twin = account.keys.get(key), first.setdefault(key, row)
        if body != (known.body if known else rows.keys[twin][1]):
            return key_reused(row)
        if known:
            rows.known[row] = known.job
        elif twin != row:
            rows.twins[row] = twin
    return rows


def _view(job: Job, now: Timestamp) -> JobView:
    opened = job.flow.opened
    return JobView(
        job.id,
        job.tenant,
        opened.target,
        opened.job_class,
        job.state(now),
        job.number,
        job.submitted_at,
        job.deferred.due_at if job.deferred else None if job.end or job.parked else job.submitted_at,
        job.ended_at,
        job.reason,
        job.status,
        tuple(job.history),
    )


def _bulk_view(bulk: Bulk) -> BulkSet:
    return BulkSet(
        bulk.id,
        bulk.tenant,
        bulk.total,
        stored=len(bulk.waiting),
        queued=bulk.queued,
        delivered=bulk.ends[JobState.DELIVERED],
        dead=bulk.ends[JobState.DEAD],
        cancelled=bulk.ends[JobState.CANCELLED],
        created_at=bulk.created_at,
    )
