"""The operator's and the feeder's side of the queue in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Lane
from tenantry.lanes.orders import STANDING, Action, Order, OrderRecord, checked_limit
from tenantry.lanes.table import LaneFacts, LaneQuery
from tenantry.memory.books import Books
from tenantry.memory.queue_audit import faults
from tenantry.memory.queue_intake import announce
from tenantry.memory.queue_lanes import lanes_of
from tenantry.memory.records import Account, Job
from tenantry.queue.model import Fed, JobState, StandingLevel


class OperatorSide:
    """:class:`~tenantry.queue.ports.OperatorStore`."""

    _books: Books

    async def order(self, order: Order) -> OrderRecord:
        books = self._books
        record = OrderRecord(len(books.order_log) + 1, order, books.now())
        books.order_log.append(record)
        ended = {Action.RESUME: Action.PAUSE, Action.LIFT: Action.CEILING}.get(order.action)
        if order.action in STANDING:
            books.orders[order.action, order.scope] = record
        elif ended is not None:
            books.orders.pop((ended, order.scope), None)
        if order.action is Action.RESET:
            for lane in [each for each in books.shapers if order.scope.covers(each)]:
                del books.shapers[lane]
        if order.scope.tenant is not None and order.scope.target is not None:
            books.lanes[Lane(order.scope.tenant, order.scope.target)] = None
        books.tell(books.ordered(order.scope, reset=order.action is Action.RESET))
        return record

    async def orders(self, *, limit: int) -> list[OrderRecord]:
        newest = sorted(self._books.orders.values(), key=lambda each: -each.number)
        return newest[: checked_limit(limit)]

    async def order_log(self, *, limit: int, before: int | None = None) -> list[OrderRecord]:
        log = self._books.order_log if before is None else self._books.order_log[: max(0, before - 1)]
        return log[: -checked_limit(limit) - 1 : -1]

    async def lanes(self, query: LaneQuery) -> list[LaneFacts]:
        return lanes_of(self._books, query)

    async def counts(self) -> Mapping[JobState, int]:
        books = self._books
        now = books.now()
        counts = Counter(job.state(now) for job in books.ended.values())
        outside = Counter(job.state(now) for job in books.deferred.values())
        running = sum(len(claim.held) for claim in books.claims.values())
        unended = sum(account.unended + account.replayed for account in books.accounts.values())
        counts[JobState.PARKED] = sum(1 for _ in books.parked())
        counts[JobState.DELAYED] = outside[JobState.DELAYED]
        counts[JobState.RUNNING] = running
        counts[JobState.WAITING] = unended - running - outside[JobState.DELAYED]
        return {state: counts[state] for state in JobState}

    async def levels(self) -> Sequence[StandingLevel]:
        return self._books.fresh_levels()

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
