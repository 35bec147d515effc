"""Static shares: even at first, moved to where the calls come, never more than the limit in all."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.kernel.errors import UsageError
from tenantry.kernel.instant import Instant
from tenantry.kernel.tenant import TenantId
from tenantry.limiter import Basis, Limit, LimiterSettings, Plan
from tenantry.limiter.exchange import Charge
from tenantry.limiter.leasing import LeasingLimiter
from tenantry.limiter.renewal import Renewals
from tenantry.limiter.shares import OPENING, Division, reported
from tenantry.memory.share_authority import MemoryShareAuthority
from tenantry.testing.clock import ManualClock

ACME = TenantId("acme")
DOCUMENT = Limit(500, 1_000)


class Fleet:
    """Ten nodes of the document, in virtual time; every node is heard each time anybody asks."""

    def __init__(self, nodes: int = 10, limit: Limit = DOCUMENT) -> None:
        self.clock = ManualClock()
        self.authority = MemoryShareAuthority(self.clock)
        settings = LimiterSettings(nodes=nodes)
        self.renewals = [Renewals(f"node-{n}", self.clock, settings) for n in range(nodes)]
        for each in self.renewals:
            each.crew.opening = self.authority.opening
            asyncio.run(self.authority.present(each.node, 1e9))
        plan = Plan(limit)
        self.limiters = [LeasingLimiter(plan, each, clock=self.clock) for each in self.renewals]

    def call(self, node: int, calls: int = 1) -> int:
        return sum(self.limiters[node].try_acquire(ACME).allowed for _ in range(calls))

    def sync(self) -> None:
        for renewals in self.renewals:
            for pending in renewals.due():
                (answer,) = asyncio.run(self.authority.exchange([pending.ask]))
                renewals.answered(pending, answer)

    def run(self, seconds: float, demand: dict[int, int]) -> int:
        """``demand``: calls a second at each node. Syncs come when nodes send them."""
        passed = 0
        for _ in range(round(seconds * 50)):
            self.clock.advance(0.02)
            for node, rate in demand.items():
                passed += self.call(node, rate // 50)
            self.sync()
        return passed


def test_the_document_s_ten_nodes_have_50_a_second_and_a_burst_of_100_each() -> None:
    fleet = Fleet()
    for node in range(10):
        fleet.call(node)
    fleet.sync()
    assert fleet.authority.parts(ACME) == {f"node-{n}": pytest.approx(0.1) for n in range(10)}
    for node in range(10):
        (standing,) = fleet.limiters[node].standings(ACME)
        assert standing.limit == Limit(500, 1_000)
    share = fleet.limiters[0]._tenants[ACME].share.limit
    assert (share.base, share.burst) == (pytest.approx(50), pytest.approx(100))


def test_traffic_on_two_nodes_is_throttled_first_and_has_most_of_the_limit_after_the_next_syncs() -> None:
    fleet = Fleet()
    for node in range(10):
        fleet.call(node)
    fleet.sync()
    first = fleet.run(1.0, {0: 1_000, 1: 1_000})
    assert first <= 2 * (50 + 150)
    fleet.run(8.0, {0: 1_000, 1: 1_000})
    later = fleet.run(10.0, {0: 1_000, 1: 1_000})
    assert 0.85 * 5_000 <= later <= 5_000 + 1


def test_the_total_never_passes_the_limit_however_the_traffic_moves() -> None:
    fleet, passed, began = Fleet(), 0, 0.0
    for second in range(30):
        hot = {second // 3 % 10: 2_000, (second // 3 + 1) % 10: 2_000, (second * 7) % 10: 500}
        passed += fleet.run(1.0, hot)
        began += 1.0
        assert passed <= DOCUMENT.capacity + DOCUMENT.base * began + 1


def test_a_node_opens_with_a_tenth_of_its_part_and_says_what_it_decides_on() -> None:
    fleet = Fleet()
    verdict = fleet.limiters[3].try_acquire(ACME)
    assert verdict.basis is Basis.FIRST
    assert 1 + fleet.call(3, 100) == 15
    fleet.sync()
    assert fleet.limiters[3].try_acquire(ACME).basis is Basis.SHARE


def test_exact_limits_are_refused_by_name() -> None:
    authority = MemoryShareAuthority(ManualClock())
    with pytest.raises(UsageError, match="exact"):
        asyncio.run(authority.decide(Charge(ACME, "x", 1.0, (("tenant", DOCUMENT),))))


@given(
    reports=st.lists(
        st.tuples(st.integers(0, 5), st.floats(0, 1e6), st.floats(0.01, 5.0)), min_size=1, max_size=60
    ),
    nodes=st.integers(1, 6),
)
def test_parts_in_force_never_add_up_to_more_than_the_whole(
    reports: list[tuple[int, float, float]], nodes: int
) -> None:
    division: Division = {}
    now = 0.0
    for node, demand, gap in reports:
        now += gap
        division, told = reported(
            division, f"n-{node % nodes}", demand, nodes=nodes, now=Instant(now), gone_after=1e9
        )
        silent = (nodes - len(division)) * OPENING / nodes
        assert sum(held.in_force for held in division.values()) + silent <= 1 + 1e-9
        assert told >= OPENING / nodes - 1e-12
