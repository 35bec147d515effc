"""The replays' books in memory, over the queue's: every move is one call without an await, so on one event
loop each is a transaction. What the queue tells of a replay's jobs is taken up whenever anybody looks."""

from collections.abc import Iterable

from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.outcome import MESSAGE_FAULTS
from tenantry.memory.queue_store import MemoryQueueStore
from tenantry.memory.replay_records import Fed, Run, Seen, Tenure
from tenantry.queue.lifecycle import WORKER_LOST
from tenantry.queue.model import EndKind, ReplayEnd
from tenantry.replay.dedup import GENERATION
from tenantry.replay.lifecycle import LIVE
from tenantry.replay.model import (
    Counts,
    HoldRule,
    Known,
    Lease,
    MessageKey,
    ReplayId,
    ReplayState,
    ReplayView,
)
from tenantry.replay.quotas import day_of, start_of


class ReplayBooks:
    """All of it, and the moves. One event loop; ``queue``: where the replays' jobs stand."""

    def __init__(self, queue: MemoryQueueStore) -> None:
        self.queue = queue._books  # one room, two files
        self.runs: dict[ReplayId, Run] = {}
        self.tenures: dict[TenantId, Tenure] = {}

    def now(self) -> Timestamp:
        return self.queue.now()

    def run_of(self, tenant: TenantId, replay: ReplayId) -> Run | None:
        run = self.runs.get(replay)
        return run if run is not None and run.tenant == tenant else None

    def led(self, lease: Lease) -> Run | None:
        """The replay, while the lease on it holds."""
        run = self.runs.get(lease.replay)
        holds = run is not None and run.token == lease.token and self.now() < run.lease_until
        return run if holds else None

    # -- counts and ends -------------------------------------------------------------------------------

    def view(self, run: Run) -> ReplayView:
        return run.view(self.counts(run), self.now())

    def counts(self, run: Run) -> Counts:
        self.take_up(run)
        held = (job for claim in self.queue.claims.values() for job in claim.held.values())
        return run.tally.counts(sum(job.replay == run.id for job in held))

    def take_up(self, run: Run) -> None:
        """What was told of its jobs since."""
        ends = self.queue.ends
        self.queue.ends = [end for end in ends if end.replay != run.id]
        for end in ends:
            fed = run.fed.get(end.job) if end.replay == run.id else None
            if fed is not None:
                self._hear(run, fed, end)
        run.forget_rare_classes()

    def _hear(self, run: Run, fed: Fed, end: ReplayEnd) -> None:
        tally = run.tally
        if end.error_class == WORKER_LOST:
            tally.unknown += not fed.unknown
            fed.unknown = True
        elif end.error_class:
            tally.failures += 1
        if end.error_class in MESSAGE_FAULTS:
            tally.message_faults += 1
            if end.fingerprint:
                run.alike[fed.origin, end.fingerprint] += 1
                run.examples[fed.origin, end.fingerprint] = end.job
        if end.kind not in {EndKind.FAILED, EndKind.UNKNOWN}:
            self._ended(run, fed, end)

    def _ended(self, run: Run, fed: Fed, end: ReplayEnd) -> None:
        tally, kind = run.tally, end.kind
        tally.unended -= not fed.parked
        tally.delivered += kind is EndKind.DELIVERED
        tally.dead += kind is EndKind.DEAD
        tally.parked += kind in {EndKind.PARKED, EndKind.CANCELLED} and not fed.parked
        tally.dropped += kind is EndKind.CANCELLED
        if kind is EndKind.DELIVERED:
            run.delivered[fed.origin] += 1
        failed = Known.UNKNOWN if fed.unknown else Known.FAILED
        if fed.seen.replay == run.id:
            fed.seen.mark(Known.DELIVERED if kind is EndKind.DELIVERED else failed)
            fed.seen.failings += kind in {EndKind.DEAD, EndKind.PARKED}
        fed.parked = kind is EndKind.PARKED
        if not fed.parked:
            del run.fed[end.job]

    # -- tenants ---------------------------------------------------------------------------------------

    def tenure(self, tenant: TenantId) -> Tenure:
        """The tenant's; the count of its day begins anew with the day."""
        tenure, today = self.tenures.setdefault(tenant, Tenure()), day_of(self.now())
        if tenure.day < today:
            tenure.day, tenure.replayed = today, 0
        return tenure

    def known(self, tenant: TenantId, key: MessageKey, lifetime_for: Seconds) -> Seen | None:
        """What is known of a key whose first sight is less than ``lifetime_for`` ago."""
        generations, since = self.tenure(tenant).generations, self.now() - lifetime_for
        for day in sorted(generations, reverse=True):
            seen = generations[day].get(key)
            if seen is not None and seen.seen_at > since:
                return seen
        return None

    def stored(self, tenant: TenantId, lifetime_for: Seconds) -> dict[int, int]:
        """How many keys are stored, by generation, of those that can hold a living one."""
        now, tenure = self.now(), self.tenure(tenant)
        return {
            day: keys
            for day, keys in tenure.stored.items()
            if start_of(day) + GENERATION + lifetime_for > now
        }

    def drop_generations(self) -> None:
        for tenant, tenure in self.tenures.items():
            for day in tenure.generations.keys() - self.stored(tenant, tenure.lifetime_for):
                del tenure.generations[day], tenure.stored[day]

    # -- places ----------------------------------------------------------------------------------------

    def placed(self, tenant: TenantId) -> int:
        """How many replays of the tenant have a place."""
        return sum(run.placed and run.state in LIVE for run in self._of(tenant))

    def place(self, tenant: TenantId) -> None:
        """Give places to replays that wait for one, in the order of their starts."""
        most = self.tenure(tenant).most_running
        waiting = [
            run for run in self._of(tenant) if run.hold is not None and run.hold.rule is HoldRule.CONCURRENCY
        ]
        for run in sorted(waiting, key=lambda each: (each.started_at or 0.0, each.id)):
            if most is not None and self.placed(tenant) >= most:
                return
            run.state, run.hold, run.placed = ReplayState.RUNNING, None, True

    def _of(self, tenant: TenantId) -> Iterable[Run]:
        return [run for run in self.runs.values() if run.tenant == tenant]
