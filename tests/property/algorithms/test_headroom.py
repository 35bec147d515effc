"""The headroom: live work does not wait for a replay's job to end, and no share moves by it."""

from collections import Counter
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.algorithms.fair_share import FairShare, Pick
from tenantry.kernel.randomness import SeededRandomness
from tenantry.simulation import ANY, Arrival, FlowKey, SimSettings, SimTenant, ours, simulate

REPLAY = 2
few = settings(max_examples=15, deadline=None)


class Pool:
    """A pool whose tenants have work of several classes, and what runs in it."""

    def __init__(self, slots: int, tenants: int) -> None:
        self.slots, self.now = slots, 0.0
        self.fair = FairShare(quantum=0.01)
        self.fair.set_slots(slots, ANY)
        for n in range(tenants):
            self.fair.set_tenant(n, weight=1.0)
            for rank in range(3):
                self.fair.open_flow((n, rank), tenant=n, lane=(n, rank), rank=rank)
        self.running: list[Pick] = []  # one entry a job

    @property
    def free(self) -> int:
        return self.slots - len(self.running)

    def round(self) -> list[Pick]:
        picks = self.fair.plan({ANY: self.free}, self.now)
        self.running += [pick for pick in picks for _ in range(pick.count)]
        return picks

    def end(self, count: int, busy_for: float = 1.0) -> None:
        """The oldest ``count`` jobs end."""
        for pick in self.running[:count]:
            self.fair.settle(pick.charge, busy_for, self.now)
        del self.running[:count]


SIZES = {1: 0, 10: 0, 19: 0, 20: 1, 50: 1, 100: 1, 143: 1, 200: 2, 400: 2, 1_000: 4, 2_000: 6}
"""Slots, and how many of them are the headroom."""


@few
@given(slots=st.sampled_from(sorted(SIZES)), tenants=st.integers(1, 12))
def test_replays_take_every_slot_but_the_headroom(slots: int, tenants: int) -> None:
    pool = Pool(slots, tenants)
    for n in range(tenants):
        pool.fair.add((n, REPLAY), 20_000)
    for _ in range(5):
        pool.round()
        assert pool.free == SIZES[slots]
        pool.now += 1.0
        pool.end(slots // 3)


@few
@given(
    slots=st.integers(20, 400),
    tenants=st.integers(2, 12),
    who=st.integers(0, 11),
    rank=st.sampled_from([0, 1]),
)
def test_live_work_starts_in_the_very_next_round_of_a_pool_full_of_replays(
    slots: int, tenants: int, who: int, rank: int
) -> None:
    """Whether its tenant replays too or not, and though it has just had more than its turn."""
    pool, who = Pool(slots, tenants), who % tenants
    for n in range(tenants):
        pool.fair.add((n, REPLAY), 1_000)
    pool.round()
    pool.fair.add((who, rank))
    (pick,) = pool.round()
    assert (pick.flow, pick.count) == ((who, rank), 1)


def test_one_tenant_holds_at_most_half_of_the_headroom_and_the_rest_is_there_for_the_others() -> None:
    pool = Pool(1_000, 3)
    for n in (0, 1):
        pool.fair.add((n, REPLAY), 10_000)
    pool.round()
    assert pool.free == 4
    pool.fair.add((0, 0), 100)
    assert [pick.tenant for pick in pool.round() for _ in range(pick.count)] == [0, 0]
    pool.fair.add((2, 0), 1)
    assert [(pick.tenant, pick.count) for pick in pool.round()] == [(2, 1)]


def test_what_was_started_on_the_headroom_frees_it_when_it_ends() -> None:
    pool = Pool(100, 2)
    pool.fair.add((0, REPLAY), 10_000)
    pool.round()
    for _ in range(3):
        pool.fair.add((1, 0))
        (pick,) = pool.round()
        assert pick.flow == (1, 0)
        assert pool.round() == [], "its slot is the headroom: replays may not have another for it"
        pool.running.remove(pick)
        pool.fair.settle(pick.charge, 0.5, pool.now + 0.5)


@few
@given(
    share_of=st.sampled_from(["live", "replay"]),
    slots=st.sampled_from([50, 100, 200]),
    seed=st.integers(0, 9),
)
def test_an_endless_live_backlog_gets_no_more_by_the_headroom_than_the_headroom(
    share_of: str, slots: int, seed: int
) -> None:
    """One of five tenants has live work without end, the others replay: it gets its fifth, and what the
    headroom is at most on top of it; the others lose no more than that."""
    tenants = [SimTenant(f"t{n}") for n in range(5)]
    chance = SeededRandomness(seed)
    arrivals = [
        Arrival(0.0, FlowKey(t.id, rank=0 if n == 0 else REPLAY), 1_000_000, chance.uniform(0.5, 2.0))
        for n, t in enumerate(tenants)
    ]
    until = 60.0
    report = simulate(tenants, arrivals, ours(0.25), SimSettings({ANY: slots}, until=until))
    capacity = slots * until
    mine = report.tenants["t0"].slot_seconds / capacity
    longest = 2.0 * slots / capacity
    extra = ceil(SIZES[slots] / 2) / slots
    if share_of == "live":
        assert mine <= 0.2 + extra + longest
        assert mine >= 0.2 - extra - longest
    else:
        for n in range(1, 5):
            assert report.tenants[f"t{n}"].slot_seconds / capacity >= 0.2 - SIZES[slots] / slots - longest


@few
@given(seed=st.integers(0, 1_000), slots=st.sampled_from([20, 100, 300]))
def test_without_replays_nothing_is_decided_otherwise_than_without_a_headroom(seed: int, slots: int) -> None:
    chance = SeededRandomness(seed)
    draw = lambda below: int(chance.uniform(0.0, below))  # noqa: E731
    events = [(draw(6), draw(2), 1 + draw(39)) for _ in range(60)]
    assert decided(events, slots, with_headroom=True) == decided(events, slots, with_headroom=False)


def decided(events: list[tuple[int, int, int]], slots: int, *, with_headroom: bool) -> list[object]:
    pool = Pool(slots, 6)
    if not with_headroom:
        pool.fair._headroom.resize(1)
    order: list[object] = []
    for who, rank, count in events:
        pool.fair.add((who, rank), count)
        order += [(pick.flow, pick.count) for pick in pool.round()]
        pool.now += 0.1
        pool.end(len(pool.running) // 4, busy_for=0.1)
    return order


@pytest.mark.parametrize(("slots", "tenants"), [(20, 8), (20, 60), (200, 60), (200, 250)])
def test_f8_a_tenant_whose_share_is_below_the_headroom_gets_its_classes_and_borrows_no_more_than_a_job(
    slots: int, tenants: int
) -> None:
    """Its background and its replay have their one in ten too; what it owes does not grow; and when replays
    end, its live work is not behind the others' by all that it was ahead."""
    pool = Pool(slots, tenants)
    for n in range(tenants):
        pool.fair.add((n, REPLAY), 100_000)
    for rank in (0, 1):
        pool.fair.add((0, rank), 100_000)
    picked, rounds = Counter[object](), 600
    for _ in range(rounds):
        for pick in pool.round():
            if pick.tenant == 0:
                picked[pick.flow] += pick.count
        pool.now += 1.0
        pool.end(len(pool.running))
    share = slots / tenants
    assert picked.total() == pytest.approx(share * rounds, rel=0.1, abs=5)
    assert min(picked[0, 1], picked[0, 2]) >= 0.08 * picked.total() - 1
    assert pool.fair.deficit(0) > -(2.0 + 2.0 * share), "slot-seconds"


def test_f3_of_slots_that_differ_replays_may_have_all() -> None:
    """The free ones may be of no use to whoever would start out of turn: no replay waits for that."""
    some, others = frozenset({"a"}), frozenset({"b"})
    fair = FairShare()
    fair.set_slots(20, some | others)
    for tenant in ("live", "replays"):
        fair.set_tenant(tenant, weight=1.0)
    fair.open_flow("l", tenant="live", lane="l", kind="a")
    fair.open_flow("r", tenant="replays", lane="r", kind="b", rank=REPLAY)
    fair.add("l", 1_000)
    assert sum(pick.count for pick in fair.plan({some: 19, others: 1}, 0.0)) == 19
    fair.add("r", 5)
    assert [(pick.flow, pick.count) for pick in fair.plan({others: 1}, 0.1)] == [("r", 1)]


def test_slots_are_scarce_while_somebody_waits_for_one_and_not_otherwise() -> None:
    pool = Pool(100, 2)
    assert pool.round() == [] and not pool.fair.scarce, "nobody is there"
    pool.fair.add((0, REPLAY), 99)
    pool.round()
    assert not pool.fair.scarce, "all have what they want"
    pool.fair.add((1, REPLAY), 1)
    pool.round()
    assert pool.fair.scarce, "only the headroom is left"
    pool.end(1)
    pool.round()
    assert not pool.fair.scarce


def test_a_rule_whose_pool_shrinks_below_twenty_slots_leaves_nothing_free() -> None:
    pool = Pool(40, 2)
    pool.fair.add((0, REPLAY), 1_000)
    pool.round()
    assert pool.free == 1
    pool.fair.set_slots(15, ANY)
    pool.slots = 15
    pool.end(len(pool.running))
    pool.round()
    assert pool.free == 0


def test_live_work_started_out_of_turn_is_paid_for_by_its_tenants_own_replay() -> None:
    """Five tenants replay; one has live work too, ten slots of its forty: its share stays its share."""
    tenants = [SimTenant(f"t{n}") for n in range(5)]
    replays = [Arrival(0.0, FlowKey(t.id, "r", REPLAY), 1_000_000, 1.0) for t in tenants]
    live = [Arrival(n * 0.02, FlowKey("t0", "l"), 1, 0.2) for n in range(100 * 50)]
    report = simulate(tenants, [*replays, *live], ours(0.25), SimSettings({ANY: 200}, until=100.0))
    shares = [each.slot_seconds / (200 * 100.0) for each in report.tenants.values()]
    assert shares == pytest.approx([0.2] * 5, abs=0.012)
