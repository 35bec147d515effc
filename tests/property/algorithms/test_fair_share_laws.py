"""Laws F1 to F8 of the design on the pure rule, over virtual time with real slots."""

from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.algorithms.fair_share import FairShare, least_effective_weight, turns
from tenantry.simulation import ANY, Arrival, FlowKey, SimSettings, SimTenant, Simulation, ours, simulate
from tenantry.simulation.schedulers import Fair

QUANTUM = 0.010
weights = st.lists(st.floats(0.1, 1_000.0), min_size=2, max_size=8)
few = settings(max_examples=15, deadline=None)


def backlog(name: str, busy_for: float = 1.0, *, count: int = 1_000_000, **flow: object) -> Arrival:
    return Arrival(0.0, FlowKey(name, **flow), count, busy_for)  # type: ignore[arg-type]


def pool(*names: str, slots: int = 4, weight: float = 1.0, **options: float) -> FairShare:
    fair = FairShare(quantum=options.get("quantum", QUANTUM), floor=options.get("floor", 0.25))
    fair.set_slots(slots, ANY)
    for name in names:
        fair.set_tenant(name, weight=weight)
        fair.open_flow(name, tenant=name, lane=name)
    return fair


def serve(
    fair: FairShare, *, jobs: int, slots: int = 1, busy_for: float = 1.0, now: float = 0.0
) -> list[str]:
    """Run ``jobs`` jobs in rounds of all slots. Whose they were, in order."""
    order: list[str] = []
    while len(order) < jobs:
        picks = fair.plan({ANY: slots}, now)
        if not picks:
            break
        now += busy_for
        for pick in picks:
            order += [str(pick.tenant)] * pick.count
            for _ in range(pick.count):
                fair.settle(pick.charge, busy_for, now)
    return order


# -- F1 ------------------------------------------------------------------------------------------------


@few
@given(weights=weights, floor=st.floats(0.0, 1.0), slots=st.integers(1, 8), data=st.data())
def test_f1_everyone_eligible_gets_the_share_less_a_quantum_and_the_longest_job_times_the_slots(
    weights: list[float], floor: float, slots: int, data: st.DataObject
) -> None:
    tenants = [SimTenant(f"t{n}", weight=weight) for n, weight in enumerate(weights)]
    lengths = [data.draw(st.floats(0.25, 2.0)) for _ in weights]
    arrivals = [backlog(t.id, n) for t, n in zip(tenants, lengths, strict=True)]
    report = simulate(tenants, arrivals, ours(floor), SimSettings({ANY: slots}, until=60.0))
    least = least_effective_weight({weight: weights.count(weight) for weight in weights}, floor)
    shares = [max(weight, least) / sum(max(w, least) for w in weights) for weight in weights]
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= floor / len(weights) - 1e-9
    for tenant, share in zip(tenants, shares, strict=True):
        behind = QUANTUM + max(lengths) * slots
        if len(weights) > slots:  # then everybody else's longest job may come first (Goyal et al., theorem 1)
            behind += share * sum(lengths)
        promised = share * slots * 60.0 - behind
        assert report.tenants[tenant.id].slot_seconds >= promised - 1e-6


@settings(max_examples=50, deadline=None)
@given(weights=weights, free=st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_f1_a_round_gives_what_its_slots_one_by_one_would(weights: list[float], free: list[int]) -> None:
    given_out = []
    for at_once in (True, False):
        fair = FairShare(quantum=QUANTUM, prior=1.0)
        fair.set_slots(1_000, ANY)
        for name, weight in enumerate(weights):
            fair.set_tenant(name, weight=weight)
            fair.open_flow(name, tenant=name, lane=name)
            fair.add(name, 1_000, cost=1.0)
        for slots in free:
            for part in [slots] if at_once else [1] * slots:
                assert sum(pick.count for pick in fair.plan({ANY: part}, 0.0)) == part
        given_out.append([fair.in_flight(name) for name in range(len(weights))])
    for together, singly in zip(*given_out, strict=True):
        assert abs(together - singly) <= 1


def test_f1_capacity_divides_exactly_as_the_weights_1_2_4() -> None:
    tenants = [SimTenant("one", weight=1), SimTenant("two", weight=2), SimTenant("four", weight=4)]
    report = simulate(tenants, [backlog(t.id) for t in tenants], ours(), SimSettings({ANY: 7}, until=1_000.0))
    assert [report.tenants[t.id].slot_seconds for t in tenants] == pytest.approx([1_000, 2_000, 4_000], abs=7)


@few
@given(heavy=st.floats(1.0, 10_000.0), slots=st.integers(1, 8), when=st.floats(0.0, 5.0))
def test_f1_a_debt_stays_what_it_was_in_slot_seconds_when_the_floor_moves(
    heavy: float, slots: int, when: float
) -> None:
    """A light tenant that ran alone is not punished in the heavy newcomer's larger units."""
    fair = ours()
    tenants = [SimTenant("light"), SimTenant("heavy", weight=heavy)]
    simulation = Simulation(tenants, fair, SimSettings({ANY: slots}, until=60.0))
    late = Arrival(when, FlowKey("heavy"), 1_000_000, 1.0)
    report = simulation.run([backlog("light"), late])
    share = max(0.125, 1 / (1 + heavy))
    assert report.tenants["light"].slot_seconds >= share * slots * 60.0 - QUANTUM - slots - 1


@few
@given(heavy=st.floats(2.0, 1_000.0), seed=st.integers(0, 5))
def test_f1_the_floor_holds_while_others_come_and_go_at_every_pick(heavy: float, seed: int) -> None:
    """One tenant on the floor beside many that have one job at a time: n changes with every pick."""
    tenants = [SimTenant("light"), *(SimTenant(f"h{n}", weight=heavy) for n in range(9))]
    arrivals = [backlog("light", 0.5)]
    for n in range(9):
        arrivals += [
            Arrival((tick * 7 + n * seed) % 100 * 1.0, FlowKey(f"h{n}"), 2, 0.9) for tick in range(150)
        ]
    report = simulate(tenants, arrivals, ours(), SimSettings({ANY: 2}, until=100.0))
    assert report.tenants["light"].slot_seconds >= 0.25 / 10 * 200 - QUANTUM - 2 * 0.9


@few
@given(caps=st.lists(st.floats(0.05, 1.0), min_size=2, max_size=6), slots=st.integers(2, 30))
def test_f1_what_a_capped_tenant_leaves_goes_to_the_others(caps: list[float], slots: int) -> None:
    tenants = [SimTenant(f"t{n}", cap=cap) for n, cap in enumerate(caps)]
    report = simulate(
        tenants, [backlog(t.id, 0.5) for t in tenants], ours(), SimSettings({ANY: slots}, until=50.0)
    )
    most = {t.id: max(1, ceil(t.cap * slots - 1e-9)) for t in tenants}  # a cap is exact to within rounding
    used = {t.id: report.tenants[t.id].slot_seconds / 50.0 for t in tenants}
    assert sum(used.values()) == pytest.approx(min(slots, sum(most.values())), rel=0.02)
    free = [t.id for t in tenants if used[t.id] < most[t.id] - 0.6]
    for name in free:  # all below their cap are equal
        assert used[name] == pytest.approx(max(used.values()), abs=1.2)


def test_f1_a_weight_changed_in_mid_flight_acts_on_the_backlog_and_keeps_the_debt() -> None:
    fair = pool("a", "b", slots=1)
    fair.add("a", 10_000)
    fair.add("b", 10_000)
    serve(fair, jobs=100)
    debts = fair.deficit("a"), fair.deficit("b")
    fair.set_tenant("b", weight=3.0)
    assert (fair.deficit("a"), fair.deficit("b")) == pytest.approx(debts)
    order = serve(fair, jobs=400, now=100.0)
    assert order.count("b") == pytest.approx(300, abs=3)


# -- F2 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["lanes", "replays", "kinds", "classes"])
def test_f2_splitting_work_over_twenty_gains_nothing(split: str) -> None:
    kinds = frozenset({"", *(f"k{n}" for n in range(20))})
    flows = {
        "lanes": [FlowKey("many", lane=f"l{n}") for n in range(20)],
        "replays": [FlowKey("many", rank=2, name=f"r{n}") for n in range(20)],
        "kinds": [FlowKey("many", kind=f"k{n}") for n in range(20)],
        "classes": [FlowKey("many", rank=n % 3, lane=f"l{n}") for n in range(20)],
    }[split]
    arrivals = [Arrival(0.0, flow, 10_000, 0.5) for flow in flows] + [backlog("one", 0.5)]
    report = simulate(
        [SimTenant("many"), SimTenant("one")], arrivals, ours(), SimSettings({kinds: 4}, until=200.0)
    )
    assert report.tenants["one"].slot_seconds == pytest.approx(400, abs=4)


@pytest.mark.parametrize("split", ["lanes", "replays", "kinds"])
def test_f2_within_a_tenant_slot_seconds_rotate_whatever_the_jobs_take(split: str) -> None:
    """Jobs of 20 s beside jobs of 1 s: overruns are charged to lanes, flows and kinds too."""
    slow, quick = {
        "lanes": (FlowKey("a", lane="slow"), FlowKey("a", lane="quick")),
        "replays": (FlowKey("a", rank=2, name="slow"), FlowKey("a", rank=2, name="quick")),
        "kinds": (FlowKey("a", kind="slow"), FlowKey("a", kind="quick")),
    }[split]
    kinds = frozenset({"", "slow", "quick"})
    fair, used, now = Fair(), {slow: 0.0, quick: 0.0}, 0.0
    fair.open([SimTenant("a")], {kinds: 1})
    fair.submit(slow, 1_000, None)
    fair.submit(quick, 10_000, None)
    while now < 4_000.0:
        (start,) = fair.start({kinds: 1}, now)
        busy_for = 20.0 if start.flow == slow else 1.0
        now += busy_for
        used[start.flow] += busy_for
        fair.start({}, now)  # time passes in a planner: overruns are charged as they run
        fair.end(start, busy_for, now)
    assert used[slow] / now == pytest.approx(0.5, abs=0.02)


# -- F3 (random states: test_fair_share_machine) ----------------------------------------------------------


def test_f3_limited_work_is_skipped_not_waited_for() -> None:
    """Case Q2: 1,000 jobs limited to 30 a minute, then one job of another; 50 slots."""
    tenants = [SimTenant("limited", rate=0.5), SimTenant("b")]
    arrivals = [backlog("limited", 0.1, count=1_000), Arrival(3.3, FlowKey("b"), 1, 0.1)]
    report = simulate(tenants, arrivals, ours(), SimSettings({ANY: 50}, until=60.0))
    assert report.tenants["b"].waits == [0.0]
    assert report.tenants["limited"].started == 30


def test_f3_one_kind_full_does_not_hold_up_the_other_on_slots_of_its_own() -> None:
    http, mail = frozenset({"http"}), frozenset({"mail"})
    arrivals = [backlog("a", 5.0, kind="http"), backlog("b", 1.0, kind="mail")]
    report = simulate(
        [SimTenant("a"), SimTenant("b")], arrivals, ours(), SimSettings({http: 1, mail: 3}, until=50.0)
    )
    assert report.tenants["a"].slot_seconds == pytest.approx(50)
    assert report.tenants["b"].slot_seconds == pytest.approx(150)


# -- F4 ------------------------------------------------------------------------------------------------


@few
@given(cap=st.floats(0.01, 1.0), slots=st.integers(1, 60), weight=st.floats(0.1, 1_000.0))
def test_f4_nobody_holds_more_than_the_cap_whatever_the_weight(cap: float, slots: int, weight: float) -> None:
    tenants = [SimTenant("a", weight=weight, cap=cap), SimTenant("b")]
    report = simulate(tenants, [backlog("a"), backlog("b")], ours(), SimSettings({ANY: slots}, until=5.0))
    assert report.tenants["a"].most <= max(1, -(-cap * slots // 1))


def test_f4_twenty_jobs_each_submitted_at_once_never_run_more_than_three_of_one() -> None:
    """Case Q1."""
    tenants = [SimTenant("a", cap=0.3), SimTenant("b", cap=0.3)]
    arrivals = [Arrival(0.0, FlowKey(name), 20, 1.0) for name in "ab"]
    report = simulate(tenants, arrivals, ours(), SimSettings({ANY: 10}, until=100.0))
    assert [report.tenants[name].most for name in "ab"] == [3, 3]
    assert [report.tenants[name].finished for name in "ab"] == [20, 20]


def test_f4_a_lowered_cap_revokes_nothing_and_starts_nothing_until_below_it() -> None:
    fair = pool("a", slots=10)
    fair.add("a", 100)
    (pick,) = fair.plan({ANY: 10}, 0.0)
    fair.set_tenant("a", weight=1.0, cap=0.3)
    assert fair.in_flight("a") == 10
    for held in range(9, 2, -1):
        fair.settle(pick.charge, 1.0, 1.0)
        assert fair.plan({ANY: 10 - held}, 1.0) == [] or held < 3
        assert fair.in_flight("a") == held
    fair.settle(pick.charge, 1.0, 1.0)
    assert sum(one.count for one in fair.plan({ANY: 8}, 1.0)) == 1


def test_f4_the_cap_follows_the_live_slots() -> None:
    fair = pool("a", slots=10)
    fair.set_tenant("a", weight=1.0, cap=0.25)
    fair.add("a", 100)
    assert sum(pick.count for pick in fair.plan({ANY: 10}, 0.0)) == 3
    fair.set_slots(40, ANY)
    assert sum(pick.count for pick in fair.plan({ANY: 37}, 0.0)) == 7


def test_f4_one_busy_tenant_of_ten_has_the_pool_and_the_others_return_within_one_job_time() -> None:
    """Case Q4."""
    tenants = [SimTenant(f"t{n}") for n in range(10)]
    arrivals = [backlog("t0", 1.0)]
    arrivals += [Arrival(50.5, FlowKey(f"t{n}"), 1_000, 1.0) for n in range(1, 10)]
    simulation = Simulation(tenants, ours(), SimSettings({ANY: 20}, until=52.0))
    report = simulation.run(arrivals)
    assert report.tenants["t0"].most == 20
    assert [report.tenants[f"t{n}"].most for n in range(1, 10)] == [2] * 9 or min(
        report.tenants[f"t{n}"].most for n in range(1, 10)
    ) >= 2


# -- F5 ------------------------------------------------------------------------------------------------


def block_by(way: str, fair: FairShare) -> None:
    """Make ``b``, which has work, ineligible in one of the ways there are."""
    if way == "submit":
        return
    fair.add("b", 1_000)
    if way == "resume lane":
        fair.pause_lane("b", paused=True)
    elif way == "resume flow":
        fair.pause_flow("b", paused=True)
    elif way == "lane hold ends":
        fair.hold_lane("b", 1_000.0)
    elif way == "flow hold ends":
        fair.hold_flow("b", 1_000.0)
    elif way == "limit frees":
        fair.limit_lane("b", 0)
    elif way == "rate frees":
        fair.set_tenant("b", weight=1.0, rate=0.001)
        serve(fair, jobs=2)
    elif way == "slots appear":
        fair.open_flow("b2", tenant="b", lane="b2", kind="rare")
        fair.withdraw("b", 1_000)
        fair.add("b2", 1_000)


def unblock_by(way: str, fair: FairShare) -> frozenset[str]:
    if way == "submit":
        fair.add("b", 1_000)
    fair.pause_lane("b", paused=False)
    fair.pause_flow("b", paused=False)
    fair.limit_lane("b", None)
    if way == "rate frees":
        fair.set_tenant("b", weight=1.0)
    if way == "slots appear":
        fair.set_slots(1, frozenset({"", "rare"}))
        return frozenset({"", "rare"})
    return ANY


@pytest.mark.parametrize(
    "way",
    [
        "submit",
        "resume lane",
        "resume flow",
        "lane hold ends",
        "flow hold ends",
        "limit frees",
        "rate frees",
        "slots appear",
    ],
)
def test_f5_whoever_becomes_eligible_for_whatever_reason_has_at_most_a_quantum_of_credit(way: str) -> None:
    fair = pool("a", "b", slots=1)
    fair.add("a", 100_000)
    block_by(way, fair)
    serve(fair, jobs=900)
    kinds = unblock_by(way, fair)
    now, order = 1_000.0, []
    for _ in range(100):
        picks = fair.plan({kinds: 1}, now)
        assert fair.deficit("b") <= QUANTUM + 1e-9
        now += 1.0
        for pick in picks:
            order.append(str(pick.tenant))
            fair.settle(pick.charge, 1.0, now)
    assert order.count("b") == pytest.approx(50, abs=2), "a quarter of an hour's absence is not paid back"


def test_f5_a_freed_cap_brings_no_credit() -> None:
    fair = pool("a", "b", slots=4)
    fair.set_tenant("b", weight=1.0, cap=0.25)
    fair.add("a", 100_000)
    fair.add("b", 100_000)
    (blocked,) = (pick for pick in fair.plan({ANY: 4}, 0.0) if pick.tenant == "b")
    serve(fair, jobs=900, slots=3)
    fair.settle(blocked.charge, 1.0, 900.0)  # held its slot for 900 s, used 1
    assert fair.deficit("b") <= QUANTUM + 1e-9


def test_f5_offered_load_that_rises_gets_equal_shares_at_once() -> None:
    """Case Q5: 2/s and 1/s at 3/s for 20 s, then 2/s each."""
    tenants = [SimTenant("q1"), SimTenant("q2")]
    third = 1 / 3
    arrivals = [Arrival(n * 0.5, FlowKey("q1"), 1, third) for n in range(200)]
    arrivals += [Arrival(float(n), FlowKey("q2"), 1, third) for n in range(20)]
    arrivals += [Arrival(20.0 + n * 0.5, FlowKey("q2"), 1, third) for n in range(160)]
    report = simulate(tenants, arrivals, ours(), SimSettings({ANY: 1}, until=100.0))
    later = report.order[60:]
    for begin in range(0, 60, 12):
        window = later[begin : begin + 12]
        assert abs(window.count("q1") - window.count("q2")) <= 2


def test_f5_a_kind_that_shares_few_slots_hoards_nothing_for_the_day_when_it_shares_all() -> None:
    """``b`` runs only on one slot of four for an hour; then every slot runs its kind."""
    http, both = frozenset({"http"}), frozenset({"http", "rare"})
    fair = Fair()
    fair.open([SimTenant("a"), SimTenant("b")], {http: 3, both: 1})
    fair.submit(FlowKey("a", kind="http"), 100_000, None)
    fair.submit(FlowKey("b", kind="rare"), 100_000, None)
    used = {"a": 0, "b": 0}
    now = 0.0
    for second in range(7_200):
        slots = {http: 3, both: 1} if second < 3_600 else {both: 4}
        starts = fair.start(slots, now)
        now += 1.0
        for start in starts:
            used[start.flow.tenant] += start.count if second >= 3_600 else 0
            for _ in range(start.count):
                fair.end(start, 1.0, now)
        if second == 3_599:
            fair.rule.set_slots(4, both)
    assert used["a"] == pytest.approx(used["b"], rel=0.01)


def test_f5_light_work_of_a_kind_is_served_beside_a_flood_of_it_though_other_kinds_are_busy() -> None:
    """``d`` has a trickle on the big kind and one job in ten seconds on the small one, which ``b`` floods."""
    http, both = frozenset({"http"}), frozenset({"http", "rare"})
    arrivals = [backlog("a", 1.0, kind="http"), backlog("b", 1.0, kind="rare")]
    for n in range(30):
        arrivals.append(Arrival(n * 10.0, FlowKey("d", kind="http"), 1, 1.0))
        arrivals.append(Arrival(n * 10.0 + 0.5, FlowKey("d", kind="rare"), 1, 1.0))
    tenants = [SimTenant(name) for name in "abd"]
    report = simulate(tenants, arrivals, ours(), SimSettings({http: 9, both: 1}, until=300.0))
    assert max(report.tenants["d"].waits) <= 3.0


def test_f5_a_kind_that_is_new_starts_at_the_pools_present_time() -> None:
    kinds = frozenset({"", "new"})
    fair = FairShare()
    fair.set_slots(1, kinds)
    for name in "ab":
        fair.set_tenant(name, weight=1.0)
    fair.open_flow("a", tenant="a", lane="a")
    fair.add("a", 10_000)
    now, order = 0.0, []
    for step in range(1_100):
        if step == 1_000:
            fair.open_flow("b", tenant="b", lane="b", kind="new")
            fair.add("b", 10_000)
        (pick,) = fair.plan({kinds: 1}, now)
        now += 1.0
        fair.settle(pick.charge, 1.0, now)
        order.append(pick.tenant)
    assert order[1_000:].count("b") == pytest.approx(50, abs=2)


def test_f5_a_debt_is_not_left_behind_by_changing_to_another_kind() -> None:
    kinds = frozenset({"x", "y", ""})
    fair = FairShare()
    fair.set_slots(1, kinds)
    for name in "ad":
        fair.set_tenant(name, weight=1.0)
    fair.open_flow("a", tenant="a", lane="a")
    fair.open_flow("dx", tenant="d", lane="dx", kind="x")
    fair.add("a", 1_000)
    fair.add("dx", 1)
    now = 0.0
    order: list[object] = []
    for _ in range(30):
        (pick,) = fair.plan({kinds: 1}, now)
        busy_for = 20.0 if pick.tenant == "d" and "d" not in order else 1.0
        now += busy_for
        fair.settle(pick.charge, busy_for, now)
        order.append(pick.tenant)
        if busy_for == 20.0:
            fair.open_flow("dy", tenant="d", lane="dy", kind="y")
            fair.add("dy", 10)
    first = order.index("d")
    assert "d" not in order[first + 1 : first + 18], "twenty seconds are paid before the next turn"


# -- F6 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize(("slow", "quick"), [(None, None), (1.0, 20.0), (0.001, 100.0), (500.0, 0.001)])
def test_f6_jobs_of_20_s_beside_jobs_of_1_s_share_50_to_50_whatever_the_estimates(
    slots: int, slow: float | None, quick: float | None
) -> None:
    arrivals = [
        Arrival(0.0, FlowKey("slow"), 100_000, 20.0, slow),
        Arrival(0.0, FlowKey("quick"), 100_000, 1.0, quick),
    ]
    until = 5_000.0
    report = simulate(
        [SimTenant("slow"), SimTenant("quick")], arrivals, ours(), SimSettings({ANY: slots}, until=until)
    )
    assert report.tenants["slow"].slot_seconds / (slots * until) == pytest.approx(0.5, abs=0.02)


@few
@given(declared=st.sampled_from([0.0, 0.001, 0.1, 10.0, 1_000.0, 86_400.0]), slots=st.integers(1, 8))
def test_f6_lying_about_the_cost_gains_nothing(declared: float, slots: int) -> None:
    arrivals = [Arrival(0.0, FlowKey("liar"), 100_000, 1.0, declared), backlog("honest", 1.0)]
    report = simulate(
        [SimTenant("liar"), SimTenant("honest")], arrivals, ours(), SimSettings({ANY: slots}, until=400.0)
    )
    fair_part = 200.0 * slots
    assert report.tenants["liar"].slot_seconds <= fair_part + QUANTUM + 2 * slots


def test_f6_a_job_that_overruns_is_charged_while_it_runs() -> None:
    fair = pool("a", "b", slots=2)
    fair.add("a", 1, cost=0.1)
    (stuck,) = fair.plan({ANY: 1}, 0.0)
    fair.add("a", 1_000)
    fair.add("b", 1_000)
    used, now = {"a": 0, "b": 0}, 0.0
    for _ in range(100):
        (pick,) = fair.plan({ANY: 1}, now)
        now += 1.0
        used[str(pick.tenant)] += 1
        fair.settle(pick.charge, 1.0, now)
    assert used["a"] <= 2, "the slot that it holds all the while is its half"
    fair.settle(stuck.charge, 100.0, now)


def test_f6_an_overrun_is_charged_once_whether_or_not_anyone_looked_in_between() -> None:
    def debt(looks: int) -> float:
        fair = pool("a", "b", slots=2)
        fair.add("b", 10)
        fair.add("a", 1, cost=1.0)
        for pick in fair.plan({ANY: 2}, 0.0):
            if pick.tenant == "a":
                charge = pick.charge
        for look in range(looks):
            fair.plan({}, 30.0 * (look + 1) / looks)
        fair.settle(charge, 30.0, 30.0)
        return fair.deficit("a")

    assert debt(0) == pytest.approx(debt(1)) == pytest.approx(debt(7))


def test_f6_refunds_give_back_what_was_charged_but_no_more_than_a_quantum_of_credit() -> None:
    fair = pool("a", "b", slots=10)
    fair.add("a", 1_000, cost=100.0)
    fair.add("b", 1_000)
    for pick in fair.plan({ANY: 10}, 0.0):
        for _ in range(pick.count):
            fair.settle(pick.charge, 0.001, 0.001)
    assert -1.0 <= fair.deficit("a") <= QUANTUM + 1e-9


def test_f6_work_that_was_adopted_after_a_rebuild_is_charged_from_its_start() -> None:
    fair = pool("a", "b", slots=2)
    fair.add("a", 1_000)
    fair.add("b", 1_000)
    charge = fair.adopt("a", -50.0, 0.0)
    assert fair.in_flight("a") == 1
    order, now = [], 0.0
    for _ in range(60):
        (pick,) = fair.plan({ANY: 1}, now)
        now += 1.0
        fair.settle(pick.charge, 1.0, now)
        order.append(pick.tenant)
    assert order.count("a") <= 2
    fair.settle(charge, None, now)
    assert fair.in_flight("a") == 0


def test_f6_jobs_that_were_never_started_teach_nothing_and_cost_nothing() -> None:
    fair = pool("a", "b", slots=1)
    fair.add("a", 10_000)
    fair.add("b", 10_000)
    serve(fair, jobs=100)
    for _ in range(50):
        (pick,) = fair.plan({ANY: 1}, 100.0)
        fair.settle(pick.charge, 0.0, 100.0)
    order = serve(fair, jobs=100, now=100.0)
    assert order.count("a") == pytest.approx(50, abs=2)


def test_f6_claims_of_one_give_the_same_shares_as_claims_of_a_hundred() -> None:
    """Case Q6."""
    counts = {}
    for batch in (1, 100):
        fair = FairShare()
        fair.set_slots(batch, ANY)
        for name, weight in (("one", 1.0), ("two", 2.0), ("four", 4.0)):
            fair.set_tenant(name, weight=weight)
            fair.open_flow(name, tenant=name, lane=name)
            fair.add(name, 100_000)
        order = serve(fair, jobs=3_500, slots=batch, busy_for=0.01)
        counts[batch] = [order.count(name) for name in ("one", "two", "four")]
    assert counts[1] == pytest.approx([500, 1_000, 2_000], abs=8)
    assert counts[100] == pytest.approx([500, 1_000, 2_000], abs=100)


# -- F7 ------------------------------------------------------------------------------------------------


class Counted:
    """Counts the heap operations of the rule while it stands in for ``heapq`` there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.operations = 0
        for name in ("heappush", "heappop", "heapreplace", "heapify"):
            monkeypatch.setattr(turns, name, self._counting(getattr(turns, name)))

    def _counting(self, operation):  # type: ignore[no-untyped-def]
        def counted(*args: object) -> object:
            self.operations += 1
            return operation(*args)

        return counted


@pytest.mark.parametrize("how", ["paused lane", "held lane", "limit", "paused flow", "held flow"])
def test_f7_blocked_work_costs_nothing_between_being_blocked_and_unblocked(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def operations(blocked: int) -> int:
        fair = pool("a", "b", slots=1)
        for n in range(blocked):
            flow = f"blocked{n}"
            fair.open_flow(flow, tenant="a", lane=flow)
            fair.add(flow, 50)
            if how == "paused lane":
                fair.pause_lane(flow, paused=True)
            elif how == "held lane":
                fair.hold_lane(flow, 1e9)
            elif how == "limit":
                fair.limit_lane(flow, 0)
            elif how == "paused flow":
                fair.pause_flow(flow, paused=True)
            else:
                fair.hold_flow(flow, 1e9)
        fair.add("a", 10_000)
        fair.add("b", 10_000)
        serve(fair, jobs=100)
        with monkeypatch.context() as patch:
            counted = Counted(patch)
            serve(fair, jobs=1_000, now=100.0)
            return counted.operations

    few_blocked, many_blocked = operations(10), operations(10_000)
    assert many_blocked <= few_blocked + 10


def test_f7_half_a_million_blocked_jobs_delay_nobody_by_one_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def operations(jobs: int) -> int:
        fair = pool("a", "b", slots=1)
        fair.add("a", jobs)
        fair.set_tenant("a", weight=1.0, rate=1e-9)
        fair.add("b", 10_000)
        serve(fair, jobs=10)
        with monkeypatch.context() as patch:
            counted = Counted(patch)
            assert set(serve(fair, jobs=1_000, now=10.0)) == {"b"}
            return counted.operations

    assert operations(500_000) == operations(10)


def test_f7_dead_entries_never_outnumber_the_living_by_more_than_a_constant_factor() -> None:
    fair = pool("a", "b", slots=4)
    fair.add("a", 1_000_000, cost=1_000.0)
    fair.add("b", 1_000_000)
    now = 0.0
    for _ in range(5_000):
        for pick in fair.plan({ANY: 4}, now):
            for _ in range(pick.count):
                fair.settle(pick.charge, 0.001, now)
        now += 0.001
        fair.pause_lane("b", paused=True)
        fair.pause_lane("b", paused=False)
        fair.hold_lane("a", now + 1e6)
        fair.hold_lane("a", now)
    line = fair._tenants["a"].lines[""]
    assert len(line.band._heap) < 200
    assert len(line.ranks[0]._heap) < 200
    assert len(fair._ends) + len(fair._holds) < 5_000


# -- F8 ------------------------------------------------------------------------------------------------


@few
@given(limit=st.integers(1, 5), slots=st.integers(1, 6), same_lane=st.booleans(), busy=st.floats(0.001, 1.0))
def test_f8_live_goes_first_and_each_lower_class_keeps_one_in_ten(
    limit: int, slots: int, same_lane: bool, busy: float
) -> None:
    """Also where a lane's limit makes every class ineligible between any two picks."""
    fair = Fair()
    fair.open([SimTenant("a")], {ANY: slots})
    flows = [FlowKey("a", "lane" if same_lane else f"lane{rank}", rank) for rank in range(3)]
    for flow in flows:
        fair.submit(flow, 10_000, None)
        fair.rule.limit_lane((flow.tenant, flow.lane, flow.kind), limit if same_lane else None)
    order: list[int] = []
    now = 0.0
    while len(order) < 1_000:
        starts = fair.start({ANY: slots}, now)
        now += busy
        for start in starts:
            order += [start.flow.rank] * start.count
            for _ in range(start.count):
                fair.end(start, busy, now)
    assert order.count(1) >= 95
    assert order.count(2) >= 95
    assert order.count(0) >= 760
    for begin in range(0, 980, 20):
        assert {0, 1, 2} <= set(order[begin : begin + 20])


def test_f8_live_of_one_kind_goes_before_background_of_another_on_the_same_slots() -> None:
    kinds = frozenset({"x", "y"})
    fair = Fair()
    fair.open([SimTenant("a")], {kinds: 1})
    fair.submit(FlowKey("a", kind="x", rank=1), 100, None)
    fair.submit(FlowKey("a", kind="y", rank=0), 100, None)
    ranks = []
    for now in range(20):
        (start,) = fair.start({kinds: 1}, float(now))
        ranks.append(start.flow.rank)
        fair.end(start, 1.0, now + 1.0)
    assert ranks[:8] == [0] * 8
    assert ranks.count(1) == 2


def test_f8_a_paused_class_accrues_no_turns() -> None:
    fair = Fair()
    fair.open([SimTenant("a")], {ANY: 1})
    live, replay = FlowKey("a"), FlowKey("a", rank=2)
    fair.submit(live, 10_000, None)
    fair.submit(replay, 10_000, None)
    fair.rule.pause_flow(replay, paused=True)
    ranks, now = [], 0.0
    for step in range(300):
        if step == 200:
            fair.rule.pause_flow(replay, paused=False)
        (start,) = fair.start({ANY: 1}, now)
        now += 1.0
        fair.end(start, 1.0, now)
        ranks.append(start.flow.rank)
    assert 2 not in ranks[:200]
    assert ranks[200:].count(2) <= 12


def test_f8_lanes_of_a_lower_class_take_turns_though_live_work_runs_far_ahead() -> None:
    """A lane whose replay begins late is not behind the others by all the live work that ran meanwhile."""
    fair = Fair()
    fair.open([SimTenant("a")], {ANY: 1})
    old, new = FlowKey("a", "old", 2), FlowKey("a", "new", 2)
    fair.submit(FlowKey("a", "p"), 100_000, None)
    fair.submit(old, 100_000, None)
    order, now = [], 0.0
    for step in range(3_000):
        if step == 2_000:
            fair.submit(new, 100_000, None)
        (start,) = fair.start({ANY: 1}, now)
        now += 1.0
        fair.end(start, 1.0, now)
        order.append(start.flow)
    assert order[2_000:].count(new) == pytest.approx(order[2_000:].count(old), abs=2)


# -- rates, cases, words --------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.5, 3.7, 30.0])
@pytest.mark.parametrize("round_for", [0.0, 0.05])
def test_an_hour_at_the_rate_is_all_of_it_within_one_percent(rate: float, round_for: float) -> None:
    until = 3_600.0 if rate < 30 else 300.0
    fair = pool("a", slots=1_000)
    fair.set_tenant("a", weight=1.0, rate=rate)
    fair.add("a", 10_000_000)
    started, now = 0, 0.0
    while now < until:
        for pick in fair.plan({ANY: 1_000}, now):
            started += pick.count
            for _ in range(pick.count):
                fair.settle(pick.charge, 0.001, now)
        timer = fair.next_timer()
        assert timer is not None or round_for
        now = max(timer or 0.0, now + round_for)
    assert started == pytest.approx(rate * until, rel=0.01, abs=max(1.0, rate))


def test_a_raised_rate_acts_at_once_and_not_after_the_old_rates_wait() -> None:
    fair = pool("a", slots=10)
    fair.set_tenant("a", weight=1.0, rate=0.001)
    fair.add("a", 100)
    assert len(serve(fair, jobs=5, slots=10)) == 1
    fair.set_tenant("a", weight=1.0, rate=1.0)
    assert fair.next_timer() == pytest.approx(1.0)
    assert len(fair.plan({ANY: 10}, 1.0)) == 1
    fair.set_tenant("a", weight=1.0, rate=None)
    assert sum(pick.count for pick in fair.plan({ANY: 9}, 1.0)) == 9


def test_q3_the_wait_of_a_light_tenant_does_not_depend_on_the_flooders_targets() -> None:
    waits = {}
    for lanes in (1, 20):
        arrivals = [Arrival(0.0, FlowKey("flood", f"l{n}"), 2_000 // lanes, 0.1) for n in range(lanes)]
        arrivals.append(Arrival(5.05, FlowKey("light"), 1, 0.1))
        report = simulate(
            [SimTenant("flood"), SimTenant("light")], arrivals, ours(), SimSettings({ANY: 4}, until=30.0)
        )
        waits[lanes] = report.tenants["light"].waits
    assert waits[1] == waits[20]
    assert waits[1][0] <= 0.1


def test_an_equal_visit_never_takes_the_whole_pool_from_another_kind_on_the_same_slots() -> None:
    kinds = frozenset({"x", "y"})
    fair = Fair()
    fair.open([SimTenant("a"), SimTenant("b")], {kinds: 100})
    fair.submit(FlowKey("a", kind="x"), 1_000, 1.0)
    fair.submit(FlowKey("b", kind="y"), 1_000, 1.0)
    started = {"a": 0, "b": 0}
    for start in fair.start({kinds: 100}, 0.0):
        started[start.flow.tenant] += start.count
    assert started == {"a": 50, "b": 50}


def test_declared_costs_survive_withdrawals_and_never_outnumber_the_waiting() -> None:
    fair = pool("a", slots=10)
    fair.add("a", 3)
    fair.add("a", 5, cost=7.0)
    fair.withdraw("a", 4)
    picks = fair.plan({ANY: 10}, 0.0)
    assert [(pick.count, pick.charge.estimate) for pick in picks] == [(3, 0.1), (1, 7.0)]
    fair.add("a", 2)
    assert [(pick.count, pick.charge.estimate) for pick in fair.plan({ANY: 10}, 0.0)] == [(2, 0.1)]


def test_next_timer_names_holds_and_rates_and_nothing_that_is_over() -> None:
    fair = pool("a", slots=2)
    fair.add("a", 5, cost=3.0)
    (pick, *_) = fair.plan({ANY: 1}, 0.0)
    assert fair.next_timer() is None, "the end of an estimate gives nothing to plan"
    fair.hold_lane("a", 50.0)
    fair.hold_lane("a", 20.0)
    assert fair.next_timer() == 20.0
    fair.hold_lane("a", 70.0)
    assert fair.next_timer() == 70.0
    fair.settle(pick.charge, 1.0, 1.0)
    assert fair.plan({ANY: 2}, 69.0) == []
    assert sum(one.count for one in fair.plan({ANY: 2}, 70.0)) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda fair: FairShare(floor=1.5), "floor"),
        (lambda fair: FairShare(quantum=0.0), "quantum"),
        (lambda fair: FairShare(prior=float("nan")), "prior"),
        (lambda fair: fair.set_tenant("a", weight=0.0), "weight"),
        (lambda fair: fair.set_tenant("a", weight=float("inf")), "weight"),
        (lambda fair: fair.set_tenant("a", weight=1.0, cap=0.0), "cap"),
        (lambda fair: fair.set_tenant("a", weight=1.0, rate=0.0), "rate"),
        (lambda fair: fair.set_slots(-1, ANY), "slots"),
        (lambda fair: fair.open_flow("x", tenant="a", lane="a", rank=3), "rank"),
        (lambda fair: fair.add("a", -1), "count"),
        (lambda fair: fair.add("a", 1, cost=float("nan")), "cost"),
        (lambda fair: fair.withdraw("a", 1), "count"),
        (lambda fair: fair.hold_lane("a", float("nan")), "until"),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=words):
        call(pool("a"))


def test_a_charge_cannot_be_settled_more_often_than_its_jobs() -> None:
    fair = pool("a")
    fair.add("a", 1)
    (pick,) = fair.plan({ANY: 1}, 0.0)
    fair.settle(pick.charge, 1.0, 1.0)
    with pytest.raises(ValueError, match="once for each job"):
        fair.settle(pick.charge, 1.0, 1.0)
    assert fair.in_flight("a") == 0
