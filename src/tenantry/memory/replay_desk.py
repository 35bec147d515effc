"""The side of people in memory."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.memory.queue_replays import feed as feed_queue
from tenantry.memory.queue_replays import pause
from tenantry.memory.records import Job
from tenantry.memory.records import Replay as QueuedReplay
from tenantry.memory.replay_books import ReplayBooks
from tenantry.memory.replay_feed import terms_of
from tenantry.memory.replay_records import Run
from tenantry.queue.admission import check_listed
from tenantry.queue.model import JobId, ReplayedJob
from tenantry.replay.dedup import LIFETIME
from tenantry.replay.lifecycle import ENDED, PLAN_KEPT_FOR, ReplayEvent, after, ordered
from tenantry.replay.model import (
    HoldRule,
    Known,
    Membership,
    MessageKey,
    ParkedMessage,
    Quotas,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
)
from tenantry.replay.quotas import over_running
from tenantry.replay.repairs import Repair


class MemoryReplayDesk:
    """Implements :class:`tenantry.replay.ports.ReplayDesk`. One event loop."""

    def __init__(self, books: ReplayBooks) -> None:
        self._books = books

    async def plan(self, spec: ReplaySpec, membership: Membership, report: str) -> ReplayView:
        id_ = ReplayId(self._books.queue.new_id())
        run = self._books.runs[id_] = Run(id_, spec, membership, report, self._books.now())
        return self._books.view(run)

    async def replay(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        run = self._books.run_of(tenant, replay)
        return None if run is None else self._books.view(run)

    async def replays(
        self, tenant: TenantId | None, *, states: Collection[ReplayState] | None, limit: int
    ) -> list[ReplayView]:
        check_listed(limit)
        meant = [
            run
            for run in self._books.runs.values()
            if tenant in {None, run.tenant} and (states is None or run.state in states)
        ]
        newest = sorted(meant, key=lambda run: run.id, reverse=True)
        return [self._books.view(run) for run in newest[:limit]]

    async def start(self, tenant: TenantId, replay: ReplayId, quotas: Quotas) -> ReplayView | None:
        books, run = self._books, self._orderable(tenant, replay, ReplayEvent.STARTED)
        if run is None or books.now() >= run.created_at + PLAN_KEPT_FOR:
            return None
        run.started_at = books.now()
        run.state, run.hold = after(run.state, ReplayEvent.QUEUED), over_running(quotas.replays)
        books.queue.replays[run.id] = QueuedReplay(tenant, terms_of(run.id, run.spec))
        books.tenure(tenant).most_running = quotas.replays
        books.place(tenant)
        return books.view(run)

    async def pause(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        return self._order(tenant, replay, ReplayEvent.PAUSED, paused=True)

    async def resume(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        run = self._orderable(tenant, replay, ReplayEvent.RESUMED)
        if run is None or run.placed:
            return self._order(tenant, replay, ReplayEvent.RESUMED, paused=False)
        self._order(tenant, replay, ReplayEvent.QUEUED, paused=False)
        run.hold = over_running(self._books.tenure(tenant).most_running)
        self._books.place(tenant)
        return self._books.view(run)

    async def proceed(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        run = self._books.run_of(tenant, replay)
        if run is None or run.hold is None or run.hold.rule is HoldRule.CONCURRENCY:
            return None
        run.sampled = run.sampled or run.hold.rule is HoldRule.SAMPLE
        self._books.take_up(run)
        run.alike.clear()
        run.delivered.clear()
        goes_on = False if run.hold.stops else None
        return self._order(tenant, replay, ReplayEvent.CONTINUED, paused=goes_on)

    async def rebudget(self, tenant: TenantId, replay: ReplayId, spec: ReplaySpec) -> ReplayView | None:
        run = self._books.run_of(tenant, replay)
        if run is None:
            return None
        if replace(spec, budget=run.spec.budget) != run.spec:
            raise InvalidValue("spec", spec, "the replay's own spec with another budget")
        if run.state in ENDED:
            return None
        run.spec = spec
        return self._books.view(run)

    async def cancel(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        run = self._books.run_of(tenant, replay)
        planned = run is not None and run.state is ReplayState.PLANNED
        view = self._order(tenant, replay, ReplayEvent.CANCELLED, paused=True)
        if run is not None and planned:
            run.ended_at = self._books.now()
            view = self._books.view(run)
        return view

    async def known(self, tenant: TenantId, keys: Collection[MessageKey]) -> Mapping[MessageKey, Known]:
        tenure = self._books.tenures.get(tenant)
        lifetime = tenure.lifetime_for if tenure else LIFETIME
        found = {key: self._books.known(tenant, key, lifetime) for key in keys}
        return {key: seen.state for key, seen in found.items() if seen is not None}

    async def used(self, tenant: TenantId) -> Quotas:
        tenure = self._books.tenure(tenant)
        stored = self._books.stored(tenant, tenure.lifetime_for)
        return Quotas(tenure.replayed, sum(stored.values()), self._books.placed(tenant))

    async def parked(
        self, tenant: TenantId, replay: ReplayId | None, *, limit: int, after: JobId | None = None
    ) -> list[ParkedMessage]:
        check_listed(limit)
        jobs = sorted(self._books.queue.look(tenant).jobs.values(), key=lambda job: job.id)
        meant = (_parked(job) for job in jobs if after is None or job.id > after)
        there = [each for each in meant if each is not None and replay in {None, each.replay}]
        return there[:limit]

    async def send_back(self, tenant: TenantId, job: JobId, repair: Repair) -> bool:
        books, found = self._books, self._books.queue.job(tenant, job)
        aside = _parked(found) if found is not None else None
        run = books.run_of(tenant, aside.replay) if aside else None
        if aside is None or run is None or run.state is ReplayState.CANCELLING:
            return False
        books.take_up(run)
        fed = run.fed[job]
        known = books.known(tenant, fed.key, books.tenure(tenant).lifetime_for)
        taken = known is not None and known.state in {Known.STAGED, Known.DELIVERED}
        if taken and known is not None and known.replay != run.id:
            return False
        body = aside.payload if repair.payload is None else repair.payload
        kept = aside.headers if repair.headers is None else repair.headers
        goes_to, of_type = repair.target or aside.target, repair.content_type or aside.content_type
        line = ReplayedJob(job, goes_to, body, of_type, kept)
        feed_queue(books.queue, tenant, terms_of(run.id, run.spec), [line])
        fed.parked, fed.seen.replay, fed.seen.state = False, run.id, Known.STAGED
        run.tally.parked -= 1
        run.tally.unended += 1
        if run.state in ENDED:
            self._revive(run)
        return True

    async def drop(self, tenant: TenantId, job: JobId) -> bool:
        found = self._books.queue.job(tenant, job)
        if found is None or found.parked is None:
            return False
        self._books.queue.cancel(found)
        return True

    # ---------------------------------------------------------------------------------------------------

    def _order(
        self, tenant: TenantId, replay: ReplayId, event: ReplayEvent, *, paused: bool | None
    ) -> ReplayView | None:
        run = self._orderable(tenant, replay, event)
        if run is None:
            return None
        run.state, run.hold = after(run.state, event), None
        if paused is not None:
            pause(self._books.queue, tenant, replay, paused=paused)
        return self._books.view(run)

    def _orderable(self, tenant: TenantId, replay: ReplayId, event: ReplayEvent) -> Run | None:
        run = self._books.run_of(tenant, replay)
        return run if run is not None and run.state in ordered(event) else None

    def _revive(self, run: Run) -> None:
        """Until what was sent back is through."""
        run.state, run.ended_at, run.exhausted = after(run.state, ReplayEvent.SENT_BACK), None, True
        pause(self._books.queue, run.tenant, run.id, paused=False)


def _parked(job: Job) -> ParkedMessage | None:
    if job.parked is None:
        return None
    return ParkedMessage(
        job=job.id,
        tenant=job.tenant,
        replay=ReplayId(job.parked.replay),
        target=job.new.target,
        payload=job.new.payload,
        content_type=job.new.content_type,
        headers=job.headers,
        rule=job.parked.why,
        reason=job.reason,
        fingerprint=job.parked.fingerprint,
        attempts=job.number,
        parked_at=job.parked.at,
    )
