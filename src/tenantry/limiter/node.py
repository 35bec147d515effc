"""A limiter that shares its limits with other nodes: the loop around :mod:`tenantry.limiter.renewal`.

Decisions never meet this loop. It wakes when something wants to be asked, sends all asks of one shard in one
call, one call a shard at a time (what comes meanwhile travels in the next), and goes on trying where no
answer comes. Beside it, once a second, it says that this node is there and learns how many there are."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from tenantry.algorithms.backoff import Backoff
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed, StoreUnavailable
from tenantry.kernel.events import EventSink, ignore
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.buckets import Leased
from tenantry.limiter.events import AuthorityFound, AuthorityLost, ExactDecided, LeasesExchanged
from tenantry.limiter.exchange import Answer, Charge, Decision
from tenantry.limiter.leasing import LeasingLimiter
from tenantry.limiter.local import Limiter, applying, check_cost
from tenantry.limiter.model import ALLOWED, Basis, Plan, Verdict
from tenantry.limiter.ports import Authority, PlanSource
from tenantry.limiter.renewal import Pending, Renewals
from tenantry.limiter.settings import LimiterSettings
from tenantry.limiter.tenants import LeasedTenant
from tenantry.limiter.turns import take_turn

HEARTBEAT: Final[Seconds] = 1.0
CLOSE_WITHIN: Final[Seconds] = 1.0
_BACKOFF: Final = Backoff(base=0.05, cap=1.0)


@dataclass(slots=True)
class _Shard:
    """One part of the authority, as this node meets it."""

    name: str
    waiting: list[Pending] = field(default_factory=list)
    call: asyncio.Task[None] | None = None
    failures: int = 0
    lost_at: Instant | None = None
    cut: set[TenantId] = field(default_factory=set)  # whose asks failed and have not been answered since


class SharedLimiter(LeasingLimiter):
    """A :class:`~tenantry.limiter.local.Limiter` whose limits hold over all nodes that share ``authority``.

    ``async with`` runs its loop among the caller's tasks; ``with limiter.in_thread()`` in a thread of its
    own, for programs without an event loop. ``try_acquire`` works from any thread, also before and after:
    then the conservative share decides. ``node`` names this process; it is made unique. Raises as
    :class:`Limiter`."""

    def __init__(
        self,
        plans: Plan | Mapping[str, Plan] | PlanSource,
        authority: Authority,
        *,
        settings: LimiterSettings | None = None,
        events: EventSink = ignore,
        clock: Clock | None = None,
        node: str = "node",
    ) -> None:
        chosen = clock or SystemClock()
        self._chance: Randomness = SystemRandomness()
        self.node = f"{node}-{self._chance.token(6).hex()}"
        super().__init__(plans, Renewals(self.node, chosen, settings), clock=chosen)
        self._renewals.crew.opening = authority.opening
        self._authority, self._events = authority, events
        self._shards: dict[str, _Shard] = {}
        self._waiters: dict[str, list[asyncio.Future[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._woken = asyncio.Event()
        self._told = False  # somebody has woken the loop, and it has not looked yet
        self._renewals.wake = self._wake

    @property
    def nodes(self) -> int:
        """How many nodes there were at the last contact; at least 1."""
        return self._renewals.crew.nodes

    async def start(self) -> None:
        """Begin to lease. Returns after the first heartbeat, answered or not."""
        if self._loop is not None:
            raise Closed("this limiter has been started already; make another one")
        self._loop = asyncio.get_running_loop()
        await self._heartbeat()
        self._tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._beat())]
        self._wake()

    async def close(self) -> None:
        """Tell what was spent, give back what is held, and leave; within about a second, store or no
        store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        calls = [shard.call for shard in self._shards.values() if shard.call is not None]
        if calls:
            _, hanging = await asyncio.wait(calls, timeout=CLOSE_WITHIN)
            for call in hanging:
                call.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN):
                await self._say_last_words()
                await self._authority.leave(self.node)
        self._tasks = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Run the loop in a thread while the block lasts. The authority must not be used elsewhere."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="tenantry-limiter", daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), loop).result()
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self.close(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def acquire(
        self,
        tenant: str,
        *,
        key: str | None = None,
        route: str | None = None,
        cost: float = 1,
        timeout: Seconds = 1.0,  # noqa: ASYNC109 - a verdict is given when it is over, nothing is cancelled
    ) -> Verdict:
        """Like :meth:`try_acquire`, but it waits up to ``timeout``: for the authority's first answer instead
        of deciding on the share, and for tokens that come in time. Exact limits are decided by the authority,
        without waiting for tokens; when it cannot be reached, by the conservative share. Raises
        :class:`Closed` before the start, and in another event loop."""
        if self._loop is not asyncio.get_running_loop():
            raise Closed(
                "acquire() waits in the event loop in which the limiter was started, and nowhere else"
            )
        entry = self._found(tenant)
        if entry is not None and entry.more is not None and entry.more.plan.exact:
            return await self._exact(entry, key, route, cost)
        deadline = self._now() + timeout
        if entry is not None and self._prepared(entry, key, route, cost):
            await self._answered_once(entry.tenant, timeout)
        while True:
            verdict = self.try_acquire(tenant, key=key, route=route, cost=cost)
            if verdict or self._now() + verdict.retry_after > deadline:
                return verdict
            await asyncio.sleep(verdict.retry_after)

    async def _exact(self, entry: LeasedTenant, key: str | None, route: str | None, cost: float) -> Verdict:
        check_cost(cost)
        began = self._now()
        buckets = self._buckets_of(entry, key, route)
        parts = tuple((bucket.name, bucket.limit) for bucket in buckets)
        charge = Charge(entry.tenant, self._chance.token(12).hex(), float(cost), parts)
        try:
            verdict = _verdict(await self._decided_by_authority(charge))
        except StoreUnavailable:
            for bucket in buckets:
                bucket.cut = True
            found = Limiter._all_or_none(self, entry, key, route, cost)
            if found is None:  # another plan came meanwhile
                return await self.acquire(entry.tenant, key=key, route=route, cost=cost)
            verdict = found
        self._events(ExactDecided(verdict.allowed, verdict.basis.value, self._now() - began))
        return verdict

    def _buckets_of(self, entry: LeasedTenant, key: str | None, route: str | None) -> list[Leased]:
        take_turn(entry.turn)
        try:
            found = applying(entry, key, route, self._now())
        finally:
            entry.turn.append(None)
        return [bucket for _, bucket in found if isinstance(bucket, Leased)]

    async def _decided_by_authority(self, charge: Charge) -> Decision:
        """Twice at most: the id makes sure that it charges once."""
        try:
            return await self._authority.decide(charge)
        except StoreUnavailable:
            return await self._authority.decide(charge)

    async def _answered_once(self, tenant: str, timeout: Seconds) -> None:  # noqa: ASYNC109
        assert self._loop is not None
        answer = self._loop.create_future()
        self._waiters.setdefault(tenant, []).append(answer)
        try:
            await asyncio.wait([answer], timeout=timeout)
        finally:
            others = [each for each in self._waiters.pop(tenant, ()) if each is not answer]
            if others:
                self._waiters[tenant] = others

    def _wake(self) -> None:
        """From any thread: there is something to send."""
        loop = self._loop
        if loop is not None and not self._told:
            self._told = True
            with suppress(RuntimeError):  # the loop has been closed: nobody sends any more
                loop.call_soon_threadsafe(self._woken.set)

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):  # leases that are half over are looked at, call or no call
                async with asyncio.timeout(self.settings.term / 8):
                    await self._woken.wait()
            self._woken.clear()
            self._told = False
            for pending in self._renewals.due():
                self._shard(pending).waiting.append(pending)
            for shard in self._shards.values():
                self._call(shard)
            await asyncio.sleep(self.settings.every)

    def _shard(self, pending: Pending) -> _Shard:
        name = self._authority.shard_of(pending.ask.tenant)
        return self._shards.setdefault(name, _Shard(name))

    def _call(self, shard: _Shard) -> None:
        if shard.waiting and shard.call is None:
            sent, shard.waiting = shard.waiting, []
            shard.call = asyncio.create_task(self._exchange(shard, sent))

    async def _exchange(self, shard: _Shard, sent: list[Pending]) -> None:
        began = self._now()
        try:
            answers = await self._authority.exchange([each.ask for each in sent])
            self._succeeded(shard, sent, list(answers), began)
            sent = []
        except StoreUnavailable as error:
            await self._failed(shard, sent, error)
        finally:  # however it ended, what has no answer is sent again
            shard.call = None
            self._send_again(sent)
            self._wake()

    async def _failed(self, shard: _Shard, sent: list[Pending], error: StoreUnavailable) -> None:
        for each in sent:
            self._renewals.failed(each)
        if shard.lost_at is None:
            shard.lost_at = self._now()
            self._events(AuthorityLost(shard.name, _reason(error), self.nodes))
        shard.failures += 1
        shard.cut.update(each.ask.tenant for each in sent)
        await asyncio.sleep(_BACKOFF.delay(shard.failures, self._chance.uniform(0.5, 1.0)))

    def _send_again(self, sent: list[Pending]) -> None:
        """Where a tenant is kept may have changed in the meantime."""
        for each in sent:
            again = self._renewals.again(each)
            self._shard(again).waiting.append(again)

    def _succeeded(self, shard: _Shard, sent: list[Pending], answers: list[Answer], began: Instant) -> None:
        for pending, answer in zip(sent, answers, strict=True):
            self._renewals.answered(pending, answer)
            for waiter in self._waiters.pop(pending.ask.tenant, ()):
                if not waiter.done():
                    waiter.set_result(None)
        shard.failures = 0
        self._found_again({each.ask.tenant for each in sent})
        self._events(_exchanged(shard.name, sent, answers, self._now() - began))

    def _found_again(self, answered: set[TenantId]) -> None:
        """A shard is found when all its tenants are answered again, by itself or by whoever has taken its
        place."""
        for shard in self._shards.values():
            if shard.lost_at is not None:
                shard.cut -= answered
                if not shard.cut:
                    self._events(AuthorityFound(shard.name, self._now() - shard.lost_at))
                    shard.lost_at = None

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            await self._heartbeat()
            if any(shard.waiting for shard in self._shards.values()):
                self._wake()

    async def _heartbeat(self) -> None:
        with suppress(StoreUnavailable):  # told where it matters: by the exchanges
            count = await self._authority.present(self.node, self.settings.gone_after)
            self._renewals.crew.nodes = max(1, count)

    async def _say_last_words(self) -> None:
        """First what is under way, whose answers may still bring leases; then everything is given back."""
        waiting = [each for shard in self._shards.values() for each in shard.waiting]
        await self._say([*waiting, *self._renewals.due()])
        await self._say(self._renewals.closing(list(self._tenants.values())))

    async def _say(self, words: list[Pending]) -> None:
        by_shard: dict[str, list[Pending]] = {}
        for each in words:
            by_shard.setdefault(self._authority.shard_of(each.ask.tenant), []).append(each)
        for sent in by_shard.values():
            answers = await self._authority.exchange([each.ask for each in sent])
            for pending, answer in zip(sent, answers, strict=True):
                self._renewals.answered(pending, answer)


def _verdict(decision: Decision) -> Verdict:
    if decision.allowed:
        return ALLOWED[Basis.EXACT]
    return Verdict(False, Basis.EXACT, decision.retry_after, decision.name.partition(":")[0])


def _reason(error: StoreUnavailable) -> str:
    return type(error.__cause__ or error).__name__


def _exchanged(shard: str, sent: list[Pending], answers: list[Answer], took_for: Seconds) -> LeasesExchanged:
    parts = [part for each in sent for part in each.ask.parts]
    grants = [grant for answer in answers for grant in answer.grants]
    spent, unleased = sum(part.spent for part in parts), sum(part.unleased for part in parts)
    return LeasesExchanged(
        shard=shard,
        asks=len(sent),
        granted=sum(grant.granted for grant in grants),
        spent=spent,
        unleased=unleased,
        refused=max(0.0, sum(part.demand for part in parts) - spent - unleased),
        owing=sum(grant.level < 0 and not grant.granted for grant in grants),
        took_for=took_for,
    )
