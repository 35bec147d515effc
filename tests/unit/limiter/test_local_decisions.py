"""One node alone: exact under threads, cheap to forget, and honest about when to come back."""

import sys
import threading
from math import ceil, inf

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.limiter import Basis, Limit, Limiter, LimiterSettings, Plan, Plans
from tenantry.testing.clock import ManualClock

DOCUMENT = Plan(Limit(100, 900))
"""The document's plan: 100 a second, capacity 1,000."""


def made(plan: Plan, **settings: int) -> tuple[Limiter, ManualClock]:
    clock = ManualClock()
    return Limiter(plan, clock=clock, settings=LimiterSettings(**settings)), clock


def passed(limiter: Limiter, calls: int, tenant: str = "tenant-42", **scopes: str) -> int:
    return sum(limiter.try_acquire(tenant, **scopes).allowed for _ in range(calls))


def raced(limiter: Limiter, threads: int, calls: int, **scopes: str) -> int:
    """How many of ``threads`` x ``calls`` attempts pass when all threads begin at once."""
    counts: list[int] = []
    start = threading.Barrier(threads)

    def run() -> None:
        start.wait()
        counts.append(passed(limiter, calls, **scopes))

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts)


@pytest.fixture
def often_interrupted():
    """Threads are switched every 10 µs, so that they meet inside of decisions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often_interrupted")
def test_sixteen_threads_get_what_there_is_and_two_seconds_later_what_was_refilled() -> None:
    limiter, clock = made(DOCUMENT)
    assert raced(limiter, 16, 10_000) == 1_000
    clock.advance(2.0)
    assert passed(limiter, 1_000) == 200
    assert limiter.try_acquire("tenant-7")


@pytest.mark.usefixtures("often_interrupted")
def test_threads_that_share_three_limits_are_held_to_the_tightest_and_charge_no_other_for_refusals() -> None:
    plan = Plan(Limit(100, 900), Limit(50, 350), {"POST /orders": Limit(10, 140)})
    limiter, _ = made(plan)
    assert raced(limiter, 8, 2_000, key="k", route="POST /orders") == 150
    tenant, key, route = limiter.standings("tenant-42", key="k", route="POST /orders")
    assert (tenant.remaining, key.remaining, route.remaining) == (850, 250, 0)


@pytest.mark.usefixtures("often_interrupted")
def test_records_that_are_forgotten_while_threads_use_them_lose_no_charge() -> None:
    """Full buckets may go at any time; whoever holds one that has just gone looks again."""
    limiter, _ = made(Plan(Limit(1, 4)), most_tenants=64)
    counts: list[int] = []
    start = threading.Barrier(4)

    def crowd(number: int) -> None:
        start.wait()
        for each in range(3_000):
            limiter.try_acquire(f"passer-by-{number}-{each}", cost=0.001)

    def regular() -> None:
        start.wait()
        counts.append(passed(limiter, 3_000, "regular"))

    limiter.try_acquire("regular", cost=5)  # nothing left: it is never the one nearest to full
    workers = [threading.Thread(target=crowd, args=(n,)) for n in range(2)]
    workers += [threading.Thread(target=regular) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(counts) == 0
    assert len(limiter) <= 65


def test_l1_a_window_s_edge_lets_nothing_extra_through() -> None:
    limiter, clock = made(Plan(Limit(10)))
    clock.advance(0.999)
    before = passed(limiter, 10)
    clock.advance(0.001)
    assert before + passed(limiter, 10) == 10


def test_l2_at_twice_the_limit_the_full_limit_gets_through() -> None:
    limiter, clock = made(Plan(Limit(50)))
    passed(limiter, 50)
    count = 0
    for _ in range(60 * 100):
        clock.advance(0.01)
        count += passed(limiter, 1)
    assert abs(count - 60 * 50) <= 1


def test_l7_ten_idle_years_fill_the_bucket_and_no_more_and_a_wall_clock_that_steps_changes_nothing() -> None:
    limiter, clock = made(DOCUMENT)
    passed(limiter, 500)
    clock.advance(10 * 366 * 86_400)
    assert passed(limiter, 2_000) == 1_000
    clock.step_wall(-3_600)
    assert passed(limiter, 10) == 0
    clock.advance(0.5)
    assert passed(limiter, 100) == 50


def test_l8_200_ms_into_a_bucket_of_one_a_second_it_says_800_ms_and_sleeping_that_is_enough() -> None:
    limiter, clock = made(Plan(Limit(1)))
    assert limiter.try_acquire("a")
    clock.advance(0.2)
    verdict = limiter.try_acquire("a")
    assert not verdict
    assert verdict.scope == "tenant"
    assert verdict.retry_after == pytest.approx(0.8)
    clock.advance(verdict.retry_after)
    assert limiter.try_acquire("a")


def test_l9_an_hour_at_the_limit_is_all_of_it() -> None:
    limiter, clock = made(Plan(Limit(7)))
    count = 0
    for _ in range(3_600 * 7):
        clock.advance(1 / 7)
        count += passed(limiter, 1)
    assert abs(count - 3_600 * 7) <= 0.01 * 3_600 * 7


def test_a_cost_that_no_limit_ever_holds_is_refused_for_good() -> None:
    limiter, _ = made(DOCUMENT)
    verdict = limiter.try_acquire("a", cost=1_001)
    assert (verdict.allowed, verdict.retry_after) == (False, inf)
    assert verdict.refusal is not None
    assert verdict.refusal.retry_after is None
    assert limiter.try_acquire("a", cost=1_000)


def test_a_refusal_names_the_limit_that_lasts_longest() -> None:
    limiter, clock = made(Plan(Limit(100), Limit(1), {"r": Limit(10)}))
    assert limiter.try_acquire("a", key="k", route="r")
    assert limiter.try_acquire("a", key="k", route="r").scope == "key"
    clock.advance(0.01)
    assert limiter.try_acquire("a", key="other", route="r")
    assert limiter.try_acquire("a", route="elsewhere")


def test_a_plan_s_change_acts_on_the_next_call_and_forgives_nothing() -> None:
    clock, plans = ManualClock(), Plans([("a", Plan(Limit(10, 90)))])
    limiter = Limiter(plans, clock=clock)
    assert passed(limiter, 200, "a") == 100
    plans.put("a", Plan(Limit(1_000, 9_000)))
    assert passed(limiter, 10_000, "a") == 9_900  # what was lacking is lacking still
    plans.put("a", Plan(Limit(1), key=Limit(2)))
    assert limiter.try_acquire("a", key="k").retry_after == pytest.approx(1.0)
    clock.advance(5)
    assert passed(limiter, 5, "a", key="k") == 1
    plans.put("a", None)
    assert limiter.try_acquire("a").basis is Basis.UNLIMITED
    assert len(limiter) == 0


def test_buckets_go_only_after_they_were_idle_for_as_long_as_filling_them_takes() -> None:
    limiter, clock = made(DOCUMENT)
    passed(limiter, 1_000, "idle")
    clock.advance(9.99)
    for each in range(10):
        limiter.try_acquire(f"passer-by-{each}")
    assert limiter.standings("idle")[0].remaining == 999
    assert len(limiter) == 11
    clock.advance(9.99)
    for each in range(20):
        limiter.try_acquire(f"more-{each}")
    assert len(limiter) == 31
    clock.advance(0.03)
    for each in range(40):
        limiter.try_acquire(f"another-{each}", cost=1_000)
    assert len(limiter) <= 60  # the eleven that were idle have gone


def test_past_the_bound_of_one_tenant_s_keys_the_one_nearest_to_full_is_forgotten_and_no_other_tenant_s() -> (
    None
):
    limiter, _ = made(Plan(Limit(1e6, 1e6), Limit(1, 9)), most_keys=8)
    passed(limiter, 10, "victim", key="theirs")
    passed(limiter, 10, "flooder", key="drained")
    for each in range(1_000):
        limiter.try_acquire("flooder", key=f"key-{each}")
    assert not limiter.try_acquire("victim", key="theirs")
    assert not limiter.try_acquire("flooder", key="drained")


def test_what_is_given_back_can_be_taken_again() -> None:
    limiter, _ = made(Plan(Limit(1), Limit(1)))
    assert limiter.try_acquire("a", key="k")
    limiter.give_back("a", key="k")
    assert limiter.try_acquire("a", key="k")
    assert not limiter.try_acquire("a", key="k")


def test_a_standing_says_what_is_left_and_when_it_is_whole() -> None:
    limiter, clock = made(DOCUMENT)
    passed(limiter, 250)
    clock.advance(0.5)
    (standing,) = limiter.standings("tenant-42")
    assert (standing.scope, standing.remaining, ceil(standing.full_in)) == ("tenant", 800, 2)
    assert limiter.standings("a.tenant-never-seen")[0].remaining == 1_000


@pytest.mark.parametrize("cost", [0, -1, float("nan"), float("inf"), 2e12])
def test_a_cost_that_is_none_is_refused_by_name(cost: float) -> None:
    limiter, _ = made(DOCUMENT)
    with pytest.raises(InvalidValue, match="cost"):
        limiter.try_acquire("a", cost=cost)
    assert passed(limiter, 2_000, "a") == 1_000


@pytest.mark.parametrize("tenant", ["", "two words", 7, None])
def test_what_is_no_tenant_is_refused_by_name(tenant: str) -> None:
    limiter, _ = made(DOCUMENT)
    with pytest.raises(InvalidValue, match="tenant"):
        limiter.try_acquire(tenant)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("100/s burst 200", Limit(100, 200)),
        ("90/min", Limit(1.5)),
        ("1000/d burst 5 exact", Limit(1000 / 86_400, 5, exact=True)),
    ],
)
def test_a_limit_is_read_as_it_is_written(text: str, limit: Limit) -> None:
    assert Limit.parse(text) == limit
    assert Limit.parse(str(limit)).base == pytest.approx(limit.base)


@pytest.mark.parametrize(
    "text", ["100", "100/fortnight", "0/s", "-1/s", "1e9/s", "1/s burst -3", "", "1..2/s"]
)
def test_a_limit_that_cannot_be_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(InvalidValue, match="Such as: 100/s burst 200"):
        Limit.parse(text, path="--limit")


@pytest.mark.parametrize("arguments", [(0,), (float("nan"),), (2e6,), (1, -1), (1, float("inf")), (1e-9,)])
def test_a_limit_out_of_range_is_refused(arguments: tuple[float, ...]) -> None:
    with pytest.raises(InvalidValue):
        Limit(*arguments)


def test_plans_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidValue, match="plans"):
        Limiter("100/s")  # type: ignore[arg-type]


def test_names_that_a_caller_invents_are_not_remembered() -> None:
    """A path that the plan does not name is no route, and a key without a limit no key."""
    limiter, _ = made(Plan(Limit(1e6, 1e6), routes={"GET /": Limit(1e6, 1e6)}))
    for each in range(1_000):
        assert limiter.try_acquire("a", key=f"key-{each}", route=f"GET /{each}x")
    assert len(limiter._tenants["a"].more.paths) <= 1
    assert limiter._tenants["a"].more.routes == {}
