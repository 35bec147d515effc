"""Nodes that share an authority: what happens when it is slow, away, answers nothing, or is asked twice."""

import asyncio
from collections.abc import Sequence

import pytest

from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import Closed, StoreUnavailable, UsageError
from tenantry.kernel.events import Event
from tenantry.kernel.tenant import TenantId
from tenantry.limiter import Basis, Limit, LimiterSettings, Plan, Plans, SharedLimiter
from tenantry.limiter.events import AuthorityFound, AuthorityLost, ExactDecided, LeasesExchanged
from tenantry.limiter.exchange import Answer, Ask, Booking, Charge, Decision
from tenantry.limiter.ledger import added
from tenantry.memory.lease_authority import MemoryLeaseAuthority

ACME = TenantId("acme")
PLAN = Plan(Limit(100, 100), ledger=True)


class Unsteady(MemoryLeaseAuthority):
    """An authority that can be away, or do its work and lose its answers."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.away, self.mute, self.calls = False, False, 0

    async def exchange(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        self._must_be_there()
        answers = await super().exchange(asks)
        if self.mute:
            raise StoreUnavailable("the answer was lost")
        return answers

    async def decide(self, charge: Charge) -> Decision:
        self._must_be_there()
        decision = await super().decide(charge)
        if self.mute:
            self.mute = False
            raise StoreUnavailable("the answer was lost")
        return decision

    async def present(self, node: str, present_for: float) -> int:
        self._must_be_there()
        return await super().present(node, present_for)

    def _must_be_there(self) -> None:
        self.calls += 1
        if self.away:
            raise StoreUnavailable("away")

    async def books(self) -> Booking:
        total = Booking()
        for line in await self.ledger(ACME):
            total = added(total, line.booking)
        return total


class Heard:
    """Events, and waiting for them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._more = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self._more.set()

    async def until(self, kind: type[Event], count: int = 1) -> None:
        async with asyncio.timeout(20):
            while self.count(kind) < count:
                self._more.clear()
                await self._more.wait()

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)


@pytest.fixture
def authority() -> Unsteady:
    return Unsteady()


@pytest.fixture
def heard() -> Heard:
    return Heard()


def shared(authority: Unsteady, heard: Heard, plan: Plan = PLAN, **settings: float) -> SharedLimiter:
    chosen = LimiterSettings(**{"every": 0.005, **settings})  # type: ignore[arg-type]
    return SharedLimiter(plan, authority, settings=chosen, events=heard)


async def test_the_first_contact_decides_at_once_and_is_settled_at_the_first_answer(
    authority: Unsteady, heard: Heard
) -> None:
    async with shared(authority, heard) as limiter:
        verdict = limiter.try_acquire("acme")
        assert (verdict.allowed, verdict.basis) == (True, Basis.FIRST)
        await heard.until(LeasesExchanged)
        assert limiter.try_acquire("acme").basis is Basis.LEASE
    books = await authority.books()
    assert (books.unleased, books.spent) == (1, 1)
    assert books.granted == books.spent + books.returned


async def test_acquire_waits_for_the_first_answer_instead_of_spending_the_share(
    authority: Unsteady, heard: Heard
) -> None:
    async with shared(authority, heard) as limiter:
        verdict = await limiter.acquire("acme")
        assert (verdict.allowed, verdict.basis) == (True, Basis.LEASE)
    assert (await authority.books()).unleased == 0


async def test_acquire_gives_a_verdict_when_its_time_is_over(authority: Unsteady, heard: Heard) -> None:
    async with shared(authority, heard, Plan(Limit(0.01))) as limiter:
        assert await limiter.acquire("acme")
        verdict = await limiter.acquire("acme", timeout=0.05)
        assert not verdict
        assert verdict.retry_after > 50


async def test_l3_while_the_store_is_away_the_share_decides_without_error_and_then_there_is_no_free_window(
    authority: Unsteady, heard: Heard
) -> None:
    """The limit holds 100 + 100 at once; a share of four nodes holds 50, and refills at 25 a second."""
    async with shared(authority, heard, nodes=4, term=0.1) as limiter:
        limiter._renewals.crew.nodes = 4  # as if three others had been there
        assert await limiter.acquire("acme")
        authority.away = True
        began, passed, refused = SystemClock().monotonic(), 1, 0
        async with asyncio.timeout(20):
            while refused < 100:
                verdict = limiter.try_acquire("acme")
                passed += verdict.allowed
                refused += verdict.basis is Basis.DOWN and not verdict.allowed
                await asyncio.sleep(0.001)
        lasted = SystemClock().monotonic() - began
        assert 50 <= passed <= 1 + 10 + 50 + 25 * lasted
        authority.away = False
        await heard.until(AuthorityFound)
        # the first answer is to the ask of before, the second to what was spent since
        await heard.until(LeasesExchanged, heard.count(LeasesExchanged) + 1)
        level = authority.level(ACME)
        assert level is not None
        assert level <= 200 - 50 + 10  # no free window: the share that is lacking was charged
        assert level >= 200 - passed - 10  # and no more than that
    books = await authority.books()
    assert books.spent + books.late + books.unleased == passed


async def test_l6_an_answer_that_is_lost_is_asked_for_again_and_charges_once(
    authority: Unsteady, heard: Heard
) -> None:
    async with shared(authority, heard) as limiter:
        authority.mute = True
        assert limiter.try_acquire("acme", cost=5)
        await heard.until(AuthorityLost)
        authority.mute = False
        await heard.until(AuthorityFound)
        level = authority.level(ACME)
        assert level is not None
    books = await authority.books()
    assert books.unleased == 5
    assert books.granted == books.spent + books.returned


async def test_l4_leases_of_a_node_that_died_are_back_after_their_term(
    authority: Unsteady, heard: Heard
) -> None:
    slow = Plan(Limit(0.001, 9.999))
    dead = shared(authority, heard, slow, term=0.2)
    await dead.start()
    assert await dead.acquire("acme", cost=6)
    assert authority.level(ACME) == pytest.approx(4, abs=0.1)
    for task in dead._tasks:  # it dies: nothing is told, nothing given back
        task.cancel()
    async with shared(authority, heard, slow, term=0.2) as other:
        assert await other.acquire("acme", cost=4, timeout=1)  # nobody has to wait for the dead
        async with asyncio.timeout(5):
            while not other.try_acquire("acme", cost=6):  # noqa: ASYNC110 - until what it held is back
                await asyncio.sleep(0.01)


async def test_closing_gives_back_what_is_held_and_tells_what_was_spent(
    authority: Unsteady, heard: Heard
) -> None:
    async with shared(authority, heard, Plan(Limit(1, 99), ledger=True)) as limiter:
        assert await limiter.acquire("acme", cost=30)
        assert limiter.try_acquire("elsewhere")
    assert authority.level(ACME) == pytest.approx(70, abs=0.5)
    books = await authority.books()
    assert books.granted == books.spent + books.returned
    assert await authority.present("x", 1) == 1


async def test_closing_while_the_store_is_away_ends_in_time(authority: Unsteady, heard: Heard) -> None:
    async with asyncio.timeout(10):
        async with shared(authority, heard) as limiter:
            assert await limiter.acquire("acme")
            authority.away = True


async def test_nodes_are_counted_and_shares_follow(authority: Unsteady, heard: Heard) -> None:
    async with shared(authority, heard) as one:
        assert one.nodes == 1
        async with shared(authority, heard) as two:
            assert two.nodes == 2
            assert sum(two.try_acquire("acme").allowed for _ in range(150)) == 100
        async with shared(authority, heard) as three:
            assert three.nodes == 2


async def test_an_exact_limit_is_decided_by_the_authority_and_one_lost_answer_charges_once(
    authority: Unsteady, heard: Heard
) -> None:
    plan = Plan(Limit(0.001, 2.999, exact=True), key=Limit(100))
    async with shared(authority, heard, plan) as limiter:
        with pytest.raises(UsageError, match="exact"):
            limiter.try_acquire("acme")
        authority.mute = True
        verdicts = [await limiter.acquire("acme", key="k") for _ in range(5)]
    assert [verdict.allowed for verdict in verdicts] == [True, True, True, False, False]
    assert verdicts[0].basis is Basis.EXACT
    assert (verdicts[3].scope, verdicts[3].retry_after) == ("tenant", pytest.approx(1000, rel=0.01))
    assert sum(isinstance(event, ExactDecided) for event in heard.events) == 5
    books = {line.name: line.booking for line in await authority.ledger(ACME)}
    assert (books["tenant"].exact, books["key:k"].exact) == (3, 3)


async def test_an_exact_limit_falls_to_the_share_while_the_store_is_away_and_is_settled_after(
    authority: Unsteady, heard: Heard
) -> None:
    async with shared(authority, heard, Plan(Limit(0.001, 9.999, exact=True)), nodes=2) as limiter:
        limiter._renewals.crew.nodes = 2
        authority.away = True
        verdicts = [await limiter.acquire("acme") for _ in range(8)]
        assert [verdict.allowed for verdict in verdicts] == [True] * 5 + [False] * 3
        assert {verdict.basis for verdict in verdicts} == {Basis.DOWN}
        authority.away = False
        await heard.until(LeasesExchanged)
        allowed = [(await limiter.acquire("acme")).allowed for _ in range(8)]
        assert allowed == [True] * 5 + [False] * 3


async def test_a_plan_that_shrinks_cuts_the_lease_at_once(authority: Unsteady, heard: Heard) -> None:
    plans = Plans([("acme", Plan(Limit(1000, 1000)))])
    async with SharedLimiter(
        plans, authority, settings=LimiterSettings(every=0.005), events=heard
    ) as limiter:
        assert await limiter.acquire("acme")
        assert await limiter.acquire("acme", cost=50)
        plans.put("acme", Plan(Limit(10)))
        assert sum(limiter.try_acquire("acme").allowed for _ in range(100)) <= 1


async def test_a_tenant_that_is_forgotten_gives_its_lease_back(authority: Unsteady, heard: Heard) -> None:
    plans = Plans([("acme", Plan(Limit(0.001, 99.999), ledger=True))])
    async with SharedLimiter(
        plans, authority, settings=LimiterSettings(every=0.005), events=heard
    ) as limiter:
        assert await limiter.acquire("acme", cost=20)
        before = heard.count(LeasesExchanged)
        plans.put("acme", None)
        await heard.until(LeasesExchanged, before + 1)
        assert limiter.try_acquire("acme").basis is Basis.UNLIMITED
        assert authority.level(ACME) == pytest.approx(80, abs=0.1)


async def test_a_limiter_starts_once(authority: Unsteady, heard: Heard) -> None:
    async with shared(authority, heard) as limiter:
        with pytest.raises(Closed):
            await limiter.start()


def test_a_program_without_an_event_loop_leases_in_a_thread() -> None:
    authority = Unsteady()
    with SharedLimiter(PLAN, authority).in_thread() as limiter:
        until = SystemClock().monotonic() + 20
        while limiter.try_acquire("acme").basis is not Basis.LEASE:
            assert SystemClock().monotonic() < until
    books = asyncio.run(authority.books())
    assert books.granted == books.spent + books.returned


async def test_decisions_go_on_before_the_start_and_after_the_end(authority: Unsteady, heard: Heard) -> None:
    limiter = shared(authority, heard)
    assert limiter.try_acquire("acme").basis is Basis.FIRST
    async with limiter:
        await heard.until(LeasesExchanged)
    assert limiter.try_acquire("acme").allowed


async def test_acquire_before_the_start_and_in_another_loop_is_refused_by_name(
    authority: Unsteady, heard: Heard
) -> None:
    with pytest.raises(Closed, match="event loop"):
        await shared(authority, heard).acquire("acme")
    async with shared(authority, heard) as limiter:
        with pytest.raises(Closed, match="event loop"):
            await asyncio.to_thread(asyncio.run, limiter.acquire("acme"))


async def test_a_fault_of_the_authority_s_own_loses_no_ask(authority: Unsteady, heard: Heard) -> None:
    """Whatever it raises: what was spent is told in the end."""
    faults = [ValueError("a bug"), ValueError("a bug")]
    real = authority.exchange

    async def faulty(asks: Sequence[Ask]) -> Sequence[Answer]:
        if faults:
            raise faults.pop()
        return await real(asks)

    authority.exchange = faulty  # type: ignore[method-assign]
    shown: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: shown.append(context["exception"]))
    async with shared(authority, heard) as limiter:
        assert limiter.try_acquire("acme", cost=7)
        await heard.until(LeasesExchanged)
    assert (await authority.books()).unleased == 7
