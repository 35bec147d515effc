"""Whatever dies, is lost, comes twice or runs unlike: leases never give more than the bucket had, the rest is
bounded as the package says, and the books add up."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from lease_world import TENANT, World

from tenantry.limiter.exchange import Booking
from tenantry.limiter.ledger import added
from tenantry.limiter.model import Basis, Limit

PLACES = st.integers(0, 3)
LIMITS = st.sampled_from(
    [Limit(100, 900), Limit(1), Limit(2, 2), Limit(20, 5), Limit(0.5, 3), Limit(1000, 0), Limit(7.3, 11.9)]
)


class Leasing(RuleBasedStateMachine):
    """Rules are what happens to a fleet; invariants what is promised at every instant."""

    @initialize(limit=LIMITS, nodes=st.integers(1, 4))
    def begin(self, limit: Limit, nodes: int) -> None:
        self.world = World(limit, nodes)
        self.forgotten = Booking()  # what dead nodes let pass and never told

    def place(self, place: int) -> int:
        return place % self.world.size

    @rule(place=PLACES, calls=st.integers(1, 40), cost=st.sampled_from([1.0, 1.0, 1.0, 2.0, 5.0, 0.5]))
    def calls_come(self, place: int, calls: int, cost: float) -> None:
        for _ in range(calls):
            verdict = self.world.call(self.place(place), cost)
            assert verdict.retry_after >= 0
            assert verdict.allowed == (verdict.retry_after == 0)

    @rule(place=PLACES)
    def asks(self, place: int) -> None:
        self.world.send(self.place(place))

    @rule(place=PLACES, twice=st.booleans())
    def the_ask_arrives(self, place: int, twice: bool) -> None:
        self.world.deliver(self.place(place), twice=twice)

    @rule(place=PLACES)
    def the_answer_arrives(self, place: int) -> None:
        self.world.answer(self.place(place))

    @rule(place=PLACES)
    def all_goes_well(self, place: int) -> None:
        self.world.round_trip(self.place(place))

    @rule(place=PLACES)
    def the_network_loses_it(self, place: int) -> None:
        self.world.lose(self.place(place))

    @rule(place=PLACES)
    def a_node_dies(self, place: int) -> None:
        self.world.crash(self.place(place))

    @rule(seconds=st.sampled_from([0.001, 0.02, 0.3, 1.0, 2.5, 30.0, 3600.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.sun.at += seconds

    @rule(seconds=st.sampled_from([-3600.0, -1.0, 5.0, 3600.0]))
    def an_administrator_sets_the_clock(self, seconds: float) -> None:
        self.world.sun.wall_step += seconds

    def books(self) -> Booking:
        lines = asyncio.run(self.world.authority.ledger(TENANT))
        total = Booking()
        for line in lines:
            total = added(total, line.booking)
        return total

    @invariant()
    def leases_give_no_more_than_the_bucket_had_and_what_returned(self) -> None:
        world = self.world
        most = world.limit.capacity + world.limit.base * world.sun.at
        lapsed = self.books().lapsed
        assert world.passed(Basis.LEASE) <= (most + lapsed) * (1 + 1e-9) + 1e-6

    @invariant()
    def a_node_without_an_answer_passes_its_share_and_no_more(self) -> None:
        """Every opening of the share is its capacity at most, between them it refills at its rate."""
        world = self.world
        share = world.limit.share(world.size)
        for node in [*world.nodes, *world.dead]:
            most = (1 + node.answers) * share.capacity + share.base * world.sun.at * 1.05
            assert node.count(Basis.FIRST, Basis.DOWN) <= most + 1e-6

    @invariant()
    def the_books_add_up(self) -> None:
        books = self.books()
        assert books.granted + 1e-6 >= books.spent + books.returned + books.lapsed
        assert books.spent + books.late + books.unleased <= self.world.passed() + self.world.repeated + 1e-6

    def teardown(self) -> None:
        """Everything heals: then all that live nodes let pass stands in the books, and the debt is
        bounded."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for place in range(world.size):
            for _ in range(3):
                world.lose(place)
                world.deliver(place)
                world.answer(place)
                world.send(place)
        for _ in range(3):
            world.sun.at += world.settings.term / 2
            for place in range(world.size):
                world.round_trip(place)
        books = self.books()
        told = books.spent + books.late + books.unleased
        alive = sum(node.count(*Basis) for node in world.nodes)
        assert told >= alive - 1e-6
        assert told <= world.passed() + world.repeated + 1e-6


TestLeasing = Leasing.TestCase
TestLeasing.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


@pytest.mark.soak
class TestLeasingAtLength(Leasing.TestCase):  # type: ignore[misc,name-defined]
    """The same, thousands of times."""

    settings = settings(max_examples=5_000, stateful_step_count=60, deadline=None)
