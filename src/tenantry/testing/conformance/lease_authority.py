"""What every authority of the limiter promises, memory and Valkey alike.

Derive from :class:`LeaseAuthorityConformance` and give it two fixtures: ``authority``, with nothing in it,
and ``clock``, the clock by which it decides, which tests move."""

from datetime import timedelta
from math import inf

import pytest

from tenantry.kernel.tenant import TenantId
from tenantry.limiter.exchange import Answer, Ask, Booking, Charge, Part
from tenantry.limiter.ledger import added
from tenantry.limiter.model import Limit
from tenantry.limiter.ports import Authority
from tenantry.testing.clock import ManualClock

ACME = TenantId("acme")
LIMIT = Limit(100, 900)
TERM = 2.0


def wanted(amount: float, *, need: float = 1.0, **told: float) -> Part:
    """A part that asks for ``amount`` of the tenant's limit and tells the rest."""
    return Part("tenant", LIMIT, need=need if amount else 0.0, want=amount, **told)


class LeaseAuthorityConformance:
    """One test a promise."""

    async def asked(self, authority: Authority, node: str, sequence: int, *parts: Part) -> Answer:
        """One ask that is booked in the ledger, and its answer."""
        (answer,) = await authority.exchange([Ask(ACME, node, sequence, TERM, parts, ledger=True)])
        return answer

    async def books(self, authority: Authority) -> Booking:
        """Everything in the ledger."""
        total = Booking()
        for line in await authority.ledger(ACME):
            total = added(total, line.booking)
        return total

    async def test_it_grants_what_it_has_in_whole_tokens_and_no_more(self, authority: Authority) -> None:
        first = await self.asked(authority, "a", 1, wanted(700))
        second = await self.asked(authority, "b", 1, wanted(700))
        assert first.grants[0].granted == 700
        assert second.grants[0].granted == 300
        assert second.grants[0].level == pytest.approx(0, abs=1e-6)

    async def test_what_is_not_there_yet_is_reserved_to_the_instant(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        await self.asked(authority, "a", 1, wanted(1_000))
        clock.advance(0.002)
        grant = (await self.asked(authority, "b", 1, wanted(10))).grants[0]
        assert grant.granted == 1
        assert grant.ready_in == pytest.approx(0.008, abs=1e-5)
        later = (await self.asked(authority, "c", 1, wanted(10))).grants[0]
        assert later.ready_in == pytest.approx(0.018, abs=1e-5)

    async def test_an_ask_that_comes_again_is_answered_as_before_and_charges_once(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        first = await self.asked(authority, "a", 1, wanted(100, charge=50, unleased=50))
        clock.advance(1.0)
        again = await self.asked(authority, "a", 1, wanted(100, charge=50, unleased=50))
        assert again == first
        assert (await self.books(authority)).granted == 100

    async def test_an_unspent_lease_is_back_after_its_term_and_not_before(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        slow = Limit(0.001, 99.999)
        part = Part("tenant", slow, need=1, want=90)
        await self.asked(authority, "dies", 1, part)
        clock.advance(TERM - 0.1)
        assert (await self.asked(authority, "lives", 1, part)).grants[0].granted == 10
        clock.advance(0.2)
        assert (await self.asked(authority, "lives", 2, part)).grants[0].granted == 90
        assert (await self.books(authority)).lapsed == 90

    async def test_what_is_told_after_the_lease_is_back_is_charged_late(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        slow = Limit(0.001, 99.999)
        await self.asked(authority, "a", 1, Part("tenant", slow, need=1, want=60))
        clock.advance(TERM + 1)
        told = await self.asked(authority, "a", 2, Part("tenant", slow, spent=60))
        assert told.grants[0].level == pytest.approx(40, abs=0.1)
        books = await self.books(authority)
        assert (books.lapsed, books.late, books.spent) == (60, 60, 0)

    async def test_what_is_spent_in_time_is_gone_and_what_is_given_back_is_there(
        self, authority: Authority
    ) -> None:
        await self.asked(authority, "a", 1, wanted(100))
        told = await self.asked(authority, "a", 2, wanted(0, spent=70, returned=30))
        assert told.grants[0].level == pytest.approx(930, abs=1)
        books = await self.books(authority)
        assert books.granted == books.spent + books.returned == 100

    async def test_a_charge_beyond_what_is_there_makes_it_owe(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        told = await self.asked(authority, "a", 1, wanted(0, charge=1_050, unleased=1_100))
        assert told.grants[0].level == pytest.approx(-50, abs=1)
        clock.advance(3.0)
        assert (await self.asked(authority, "b", 1, wanted(500))).grants[0].granted in {249, 250}
        assert (await self.books(authority)).unleased == 1_100

    async def test_more_than_a_limit_ever_holds_is_never_promised(self, authority: Authority) -> None:
        grant = (await self.asked(authority, "a", 1, wanted(2_000, need=1_001))).grants[0]
        assert (grant.granted, grant.ready_in) == (0, inf) or grant.granted == 0

    async def test_each_limit_of_a_tenant_has_a_bucket_of_its_own(self, authority: Authority) -> None:
        key = Part("key:k", Limit(1), need=1, want=5)
        grants = (await self.asked(authority, "a", 1, wanted(10), key)).grants
        assert [grant.granted for grant in grants] == [10, 1]
        names = {line.name for line in await authority.ledger(ACME)}
        assert names == {"tenant", "key:k"}

    async def test_tenants_do_not_share(self, authority: Authority) -> None:
        asks = [Ask(TenantId(f"t-{n}"), "a", 1, TERM, (wanted(1_000),)) for n in range(5)]
        assert [answer.grants[0].granted for answer in await authority.exchange(asks)] == [1_000] * 5

    async def test_an_exact_decision_charges_every_limit_or_none(self, authority: Authority) -> None:
        parts = (("tenant", LIMIT), ("key:k", Limit(3)))
        told = [await authority.decide(Charge(ACME, f"id-{n}", 1.0, parts)) for n in range(4)]
        assert [each.allowed for each in told] == [True, True, True, False]
        assert told[3].name == "key:k"
        assert told[3].retry_after == pytest.approx(1 / 3, abs=0.05)
        books = await self.books(authority)
        assert books.exact == 6  # three of each of two limits

    async def test_an_exact_decision_that_is_asked_again_charges_once(self, authority: Authority) -> None:
        charge = Charge(ACME, "the-same", 600.0, (("tenant", LIMIT),))
        assert await authority.decide(charge) == await authority.decide(charge)
        other = await authority.decide(Charge(ACME, "another", 600.0, (("tenant", LIMIT),)))
        assert not other.allowed
        assert other.retry_after == pytest.approx(2.0, abs=0.1)

    async def test_leases_and_exact_decisions_draw_on_one_bucket(self, authority: Authority) -> None:
        await self.asked(authority, "a", 1, wanted(950))
        assert not (await authority.decide(Charge(ACME, "x", 60.0, (("tenant", LIMIT),)))).allowed
        assert (await authority.decide(Charge(ACME, "y", 50.0, (("tenant", LIMIT),)))).allowed

    async def test_it_counts_the_nodes_that_are_there(self, authority: Authority, clock: ManualClock) -> None:
        assert await authority.present("a", 5) == 1
        assert await authority.present("b", 50) == 2
        clock.advance(6)
        assert await authority.present("b", 50) == 1
        await authority.present("c", 50)
        await authority.leave("c")
        assert await authority.present("b", 50) == 1

    async def test_a_tenant_that_nobody_uses_is_forgotten_to_be_full(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        await self.asked(authority, "a", 1, wanted(1_000))
        clock.advance(3_600)
        assert (await self.asked(authority, "b", 1, wanted(1_000))).grants[0].granted == 1_000

    async def test_days_of_the_ledger_are_the_authority_s(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        await self.asked(authority, "a", 1, wanted(10))
        clock.advance(86_400)
        await self.asked(authority, "b", 1, wanted(20))
        lines = sorted((line.day, line.booking.granted) for line in await authority.ledger(ACME))
        assert [amount for _, amount in lines] == [10, 20]
        assert (lines[1][0] - lines[0][0]).days == 1

    async def test_a_day_of_the_ledger_names_every_tenant_once_and_only_its_own_limit(
        self, authority: Authority, clock: ManualClock
    ) -> None:
        key = Part("key:k", Limit(50), spent=3, unleased=5)
        own = Part("tenant", LIMIT, unleased=7)
        tenants = [TenantId(f"t-{n}") for n in range(1_200)]
        await authority.exchange([Ask(each, "a", 1, TERM, (own, key), ledger=True) for each in tenants])
        await authority.exchange([Ask(TenantId("unbooked"), "a", 1, TERM, (own,), ledger=False)])
        (day,) = {line.day for line in await authority.ledger(tenants[0])}
        clock.advance(86_400)
        await self.asked(authority, "a", 1, wanted(0, unleased=11))
        lines = [line async for line in authority.day_of_all(day)]
        assert {line.tenant for line in lines} == set(tenants)
        assert {(line.day, line.name, line.used) for line in lines} == {(day, "tenant", 7.0)}
        (later,) = [line async for line in authority.day_of_all(day + timedelta(days=1))]
        assert (later.tenant, later.used) == (ACME, 11)
