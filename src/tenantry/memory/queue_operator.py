"""The operator's and the feeder's side of the queue in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane, Target
from tenantry.memory.books import Books
from tenantry.memory.queue_audit import faults
from tenantry.memory.queue_intake import announce
from tenantry.memory.records import Account, Job
from tenantry.queue.changes import LaneChanged
from tenantry.queue.model import Fed, JobState


class OperatorSide:
    """:class:`~tenantry.queue.ports.OperatorStore`."""

    _books: Books

    async def set_paused(self, tenant: TenantId, target: Target, *, paused: bool) -> None:
        lane = Lane(tenant, target)
        if (lane in self._books.lanes_paused) is paused:
            return
        if paused:
            self._books.lanes_paused.add(lane)
        else:
            self._books.lanes_paused.discard(lane)
        self._books.tell(LaneChanged(tenant, target, paused))

    async def counts(self) -> Mapping[JobState, int]:
        books = self._books
        now = books.now()
        counts = Counter(job.state(now) for job in books.ended)
        outside = Counter(job.state(now) for job in books.deferred.values())
        running = sum(len(claim.held) for claim in books.claims.values())
        unended = sum(account.unended for account in books.accounts.values())
        counts[JobState.DELAYED] = outside[JobState.DELAYED]
        counts[JobState.RUNNING] = running
        counts[JobState.WAITING] = unended - running - outside[JobState.DELAYED]
        return {state: counts[state] for state in JobState}

    async def audit(self) -> Sequence[str]:
        return tuple(faults(self._books))


class FeederSide:
    """:class:`~tenantry.queue.ports.FeederStore`. An inbox exists in databases only: nothing can be submitted
    inside another transaction here."""

    _books: Books

    async def feed(self, tenant: TenantId, *, bound: int | None, limit: int) -> Fed:
        account = self._books.look(tenant)
        room = limit if bound is None else min(limit, bound - account.unended)
        return Fed(self._feed(tenant, account, room))

    async def stored_tenants(self) -> list[TenantId]:
        return [tenant for tenant, account in self._books.accounts.items() if account.feeding]

    async def tidy(self, *, keep_days: int) -> None:
        self._books.forget_keys()
        self._books.forget_ends(Timestamp(self._books.now() - keep_days * 86_400.0))

    def _feed(self, tenant: TenantId, account: Account, room: int) -> int:
        books, fed = self._books, list[Job]()
        while account.feeding and len(fed) < room:
            bulk = account.feeding[0]
            new = bulk.waiting.popleft()
            fed.append(books.append(tenant, new, now=books.now(), bulk=bulk))
            if not bulk.waiting:
                account.feeding.popleft()
        announce(books, fed, books.now())
        return len(fed)
