"""The coordinator's side of replays in memory."""

from collections.abc import Collection, Mapping

from tenantry.kernel.errors import InvalidValue, InvariantBroken
from tenantry.kernel.instant import Seconds
from tenantry.memory.queue_replays import pause, withdraw
from tenantry.memory.replay_books import ReplayBooks
from tenantry.memory.replay_feed import feed
from tenantry.memory.replay_records import Run
from tenantry.queue.admission import check_listed
from tenantry.queue.model import JobState
from tenantry.replay.lifecycle import ENDED, LIVE, PLAN_KEPT_FOR, moved_from
from tenantry.replay.model import (
    ClassFailure,
    Counts,
    FedWindow,
    Hold,
    HoldRule,
    Known,
    Lease,
    Quotas,
    ReplayId,
    ReplayState,
    ReplayView,
    Window,
)


class MemoryReplayStore:
    """Implements :class:`tenantry.replay.ports.ReplayStore`. One event loop."""

    def __init__(self, books: ReplayBooks) -> None:
        self._books = books

    async def take(self, holder: str, lease_for: Seconds, *, limit: int) -> list[ReplayView]:
        books, now = self._books, self._books.now()
        alone = [run for run in books.runs.values() if run.state in LIVE and run.lease_until <= now]
        taken = sorted(alone, key=lambda run: run.lease_until)[:limit]
        for run in taken:
            run.holder, run.token, run.lease_until = holder, run.token + 1, now + lease_for
        return [books.view(run) for run in taken]

    async def keep(
        self, holder: str, leases: Mapping[ReplayId, int], lease_for: Seconds
    ) -> Mapping[ReplayId, ReplayView]:
        kept = [run for run in self._held(holder, leases) if run.state in LIVE]
        for run in kept:
            run.lease_until = self._books.now() + lease_for
        return {run.id: self._books.view(run) for run in kept}

    async def release(self, holder: str, leases: Mapping[ReplayId, int]) -> None:
        for run in self._held(holder, leases):
            run.holder, run.lease_until = "", float("-inf")

    async def feed(self, lease: Lease, window: Window) -> FedWindow | None:
        run = self._books.led(lease)
        if run is None or run.state is not ReplayState.RUNNING:
            return None
        return feed(self._books, run, window)

    async def fold(self, lease: Lease) -> bool | None:
        run = self._books.led(lease)
        if run is None:
            return None
        self._books.take_up(run)
        return False

    async def failures(self, replay: ReplayId, *, limit: int) -> list[ClassFailure]:
        check_listed(limit)
        run = self._books.runs.get(replay)
        return [] if run is None else run.failures()[:limit]

    async def counts(self, replays: Collection[ReplayId]) -> Mapping[ReplayId, Counts]:
        runs = self._books.runs
        return {replay: self._books.counts(runs[replay]) for replay in replays if replay in runs}

    async def move(
        self,
        lease: Lease,
        state: ReplayState,
        *,
        seen: ReplayState | None = None,
        hold: Hold | None = None,
        running_for: Seconds,
        progress: str,
    ) -> ReplayView | None:
        if (state is ReplayState.HELD) is (hold is None):
            raise InvalidValue("hold", hold, "a hold where the state is held, and none where it is not")
        books, run = self._books, self._books.led(lease)
        if run is None or run.state not in moved_from(state) or seen not in {None, run.state}:
            return None
        waits = run.hold is not None and run.hold.rule is HoldRule.CONCURRENCY
        if waits and state is not ReplayState.HELD:
            return None
        unended = books.counts(run).unended
        if state in ENDED and unended:
            raise InvariantBroken(f"replay {run.id} has {unended} messages under way and cannot end")
        stopped, run.state, run.hold = _stops(run.hold), state, run.hold if waits else hold
        if _stops(run.hold) is not stopped:
            pause(books.queue, run.tenant, run.id, paused=not stopped)
        run.running_for, run.progress = running_for, progress
        if state in ENDED:
            self._end(run)
        return books.view(run)

    async def admit(self, lease: Lease, quotas: Quotas) -> ReplayView | None:
        books, run = self._books, self._books.led(lease)
        if run is None:
            return None
        books.tenure(run.tenant).most_running = quotas.replays
        books.place(run.tenant)
        return books.view(run)

    async def return_waiting(self, lease: Lease, *, limit: int) -> int | None:
        books, run = self._books, self._books.led(lease)
        if run is None or run.state is not ReplayState.CANCELLING:
            return None
        books.take_up(run)
        gone = withdraw(books.queue, run.tenant, run.id, limit)
        for job in gone:
            fed = run.fed.pop(job)
            fed.seen.mark(Known.UNKNOWN if fed.unknown else Known.FAILED)
        run.tally.returned += len(gone)
        run.tally.unended -= len(gone)
        return len(gone)

    async def tidy(self, *, now_kept_for: Seconds) -> None:
        books, now = self._books, self._books.now()
        books.drop_generations()
        for run in list(books.runs.values()):
            old = run.ended_at is not None and run.ended_at < now - now_kept_for
            unused = run.state is ReplayState.PLANNED and run.created_at < now - PLAN_KEPT_FOR
            if (old or unused) and not self._has_parked(run):
                del books.runs[run.id]

    # ---------------------------------------------------------------------------------------------------

    def _held(self, holder: str, leases: Mapping[ReplayId, int]) -> list[Run]:
        led = (self._books.led(Lease(replay, token)) for replay, token in leases.items())
        return [run for run in led if run is not None and run.holder == holder]

    def _end(self, run: Run) -> None:
        placed, run.placed = run.placed, False
        run.ended_at, run.holder, run.lease_until = self._books.now(), "", float("-inf")
        if placed:
            self._books.place(run.tenant)

    def _has_parked(self, run: Run) -> bool:
        jobs, now = self._books.queue.look(run.tenant).jobs, self._books.now()
        known = (jobs[job] for job in run.fed if job in jobs)
        return any(job.state(now) is JobState.PARKED for job in known)


def _stops(hold: Hold | None) -> bool:
    return hold is not None and hold.stops
