"""How a window is staged in memory: judged, then written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenantry.kernel.instant import Timestamp
from tenantry.memory.queue_replays import feed as feed_queue
from tenantry.memory.queue_replays import revive
from tenantry.memory.records import Job, Parked
from tenantry.memory.replay_books import ReplayBooks
from tenantry.memory.replay_records import Fed, Run, Seen
from tenantry.queue.model import (
    JobClass,
    JobState,
    NewJob,
    ParkReason,
    ReplayedJob,
    ReplayTerms,
    Seq,
)
from tenantry.replay.dedup import GENERATION, fate_of
from tenantry.replay.model import (
    Fate,
    FedWindow,
    Hold,
    Known,
    MessageKey,
    OnUnknown,
    ReplaySpec,
    Staged,
    Window,
)
from tenantry.replay.quotas import day_of, over_a_day, over_keys, start_of

_TAKEN = frozenset({Fate.STAGED, Fate.PARKED})


def terms_of(replay: str, spec: ReplaySpec) -> ReplayTerms:
    """What the queue must know of a replay."""
    return ReplayTerms(replay, spec.park_after, hold_unknown=spec.on_unknown is OnUnknown.HOLD)


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that is staged or parked, and what was known of its key."""

    staged: Staged
    fate: Fate
    seen: Seen | None


@dataclass(slots=True)
class Judge:
    """A window while it is judged, message by message."""

    books: ReplayBooks
    run: Run
    window: Window
    fates: list[Fate] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    keys: set[MessageKey] = field(default_factory=set)
    hold: Hold | None = None

    def judge(self, staged: Staged) -> None:
        self.fates.append(self._fate(staged))

    def _fate(self, staged: Staged) -> Fate:
        if self.hold is not None:
            return Fate.QUOTA
        seen = self.books.known(self.run.tenant, staged.key, self.window.lifetime_for)
        record = seen.record if seen else None
        fate = fate_of(record, self.run.id, self.run.spec, unsendable=bool(staged.broken))
        if fate not in _TAKEN:
            return fate
        if staged.message.letter is not None and not self._is_dead(staged):
            return Fate.GONE
        if staged.key in self.keys:
            return Fate.AGAIN
        self.hold = self._over(new=seen is None)
        if self.hold is not None:
            return Fate.QUOTA
        self.keys.add(staged.key)
        self.taken.append(Taken(staged, fate, seen))
        return fate

    def _is_dead(self, staged: Staged) -> bool:
        job = self.books.queue.job(self.run.tenant, staged.job)
        return job is not None and job.end is JobState.DEAD

    def _over(self, *, new: bool) -> Hold | None:
        """The quota that one message more would pass."""
        quotas, tenure = self.window.quotas, self.books.tenure(self.run.tenant)
        a_day, keys = quotas.replayed_a_day, quotas.dedup_keys
        if a_day is not None and tenure.replayed + len(self.taken) >= a_day:
            return over_a_day(a_day, start_of(tenure.day + 1))
        stored = self.books.stored(self.run.tenant, self.window.lifetime_for)
        fresh = sum(each.seen is None for each in self.taken)
        if new and keys is not None and sum(stored.values()) + fresh >= keys:
            oldest = start_of(min(stored, default=tenure.day))
            return over_keys(keys, Timestamp(oldest + GENERATION + self.window.lifetime_for))
        return None


def feed(books: ReplayBooks, run: Run, window: Window) -> FedWindow:
    """Stage the window."""
    books.take_up(run)
    judged = Judge(books, run, window)
    for staged in window.messages:
        judged.judge(staged)
    _write(judged)
    return FedWindow(tuple(judged.fates), judged.hold)


def _write(judged: Judge) -> None:
    books, run, window = judged.books, judged.run, judged.window
    tally, tenure = run.tally, books.tenure(run.tenant)
    tenure.lifetime_for = window.lifetime_for
    tenure.replayed += len(judged.taken)
    tally.duplicate += judged.fates.count(Fate.DUPLICATE)
    tally.seen_failing += sum(each.seen is not None and each.seen.failings > 0 for each in judged.taken)
    staged = [each.staged for each in judged.taken if each.fate is Fate.STAGED]
    put_aside = [each.staged for each in judged.taken if each.fate is Fate.PARKED]
    for each in judged.taken:
        seen = _remember(books, run, each)
        run.fed[each.staged.job] = Fed(seen, each.staged.key, each.staged.origin, each.fate is Fate.PARKED)
    if staged:
        feed_queue(books.queue, run.tenant, terms_of(run.id, run.spec), _jobs(staged))
    for message in put_aside:
        _park(books, run, message)
    tally.unended += len(staged)
    tally.parked += len(put_aside)
    if judged.hold is None:  # one that a quota cut short is offered again
        tally.left += window.left
        run.position = run.position if window.position is None else window.position
        run.exhausted = run.exhausted or window.exhausted


def _remember(books: ReplayBooks, run: Run, taken: Taken) -> Seen:
    tenure, now, seen = books.tenure(run.tenant), books.now(), taken.seen
    if seen is None:
        seen = Seen(now, Known.STAGED, run.id)
        tenure.generations.setdefault(day_of(now), {})[taken.staged.key] = seen
        tenure.stored[day_of(now)] += 1
    seen.replay = run.id
    seen.mark(Known.STAGED if taken.fate is Fate.STAGED else Known.FAILED)
    seen.failings += bool(taken.staged.broken)
    return seen


def _jobs(staged: Sequence[Staged]) -> list[ReplayedJob]:
    return [
        ReplayedJob(
            each.job,
            each.target,
            each.payload,
            each.message.content_type,
            each.headers,
            max(0, each.message.attempts),
        )
        for each in staged
    ]


def _park(books: ReplayBooks, run: Run, staged: Staged) -> None:
    """Put a message aside that never was in line in this replay."""
    queue, now = books.queue, books.now()
    rule = (staged.park_rule or "broken") if staged.broken else "unknown"
    new = NewJob(staged.target, staged.payload, JobClass.REPLAY, content_type=staged.message.content_type)
    flow = queue.flow(run.tenant, new, replay=run.id)
    job = queue.job(run.tenant, staged.job)
    if job is None:
        prior = max(0, staged.message.attempts)
        job = Job(staged.job, run.tenant, flow, Seq(0), new, now, prior=prior)
    else:
        revive(queue, job)
    job.new, job.headers, job.flow = new, staged.headers, flow
    job.parked = Parked(run.id, ParkReason(rule), "", staged.message.error_class, now)
    job.reason = staged.broken or UNKNOWN_REASON
    queue.account(run.tenant).jobs[job.id] = job


UNKNOWN_REASON = "unknown: a replay before this one lost its worker, and it may have been delivered"
