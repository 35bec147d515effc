"""Jobs out of line: back when due, retries later while their pool sheds them, and none is lost."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.shedding import Level
from tenantry.config.tiers import Shedding, Tier
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TierName
from tenantry.queue.changes import Deferred
from tenantry.queue.deferrals import LONGEST_PUT_OFF, Deferrals
from tenantry.queue.model import FlowId, PoolLevel, Seq

STANDARD = Tier(TierName("standard"))
GOLD = Tier(TierName("gold"), shedding=Shedding.LAST)
FLOW = FlowId(1)


def of(tier: Tier | None) -> Callable[[FlowId], Tier | None]:
    return lambda flow: tier


def level(found: Level) -> PoolLevel:
    return PoolLevel("shared", found, 9.0, 1.0, 15.0 * found)


def back(deferrals: Deferrals, now: float, tier: Tier | None = STANDARD) -> list[tuple[int, float]]:
    return [(job.seq, since) for job, since in deferrals.due(Timestamp(now), of(tier))]


def holding(*jobs: Deferred, shed: Level = Level.RETRIES) -> Deferrals:
    deferrals = Deferrals()
    deferrals.shed([level(shed)])
    for job in jobs:
        deferrals.add(job)
    return deferrals


def retry(seq: int, due_at: float, *, attempts: int = 1, first: bool = False) -> Deferred:
    return Deferred(FLOW, Seq(seq), Timestamp(due_at), attempts, first)


def test_retries_are_put_off_until_their_pool_sheds_them_no_longer_in_the_order_in_which_they_fell_due() -> (
    None
):
    deferrals = holding(retry(2, 11.0), retry(1, 10.0), retry(3, 12.0))
    assert back(deferrals, 20.0) == []
    assert len(list(deferrals.places())) == 3
    deferrals.shed([level(Level.BACKGROUND)])
    assert back(deferrals, 30.0) == [(1, 30.0), (2, 30.0), (3, 30.0)]
    assert list(deferrals.places()) == []


@pytest.mark.parametrize(
    ("job", "tier"),
    [
        (retry(1, 10.0, attempts=0), STANDARD),  # a first attempt that was submitted with a delay
        (retry(1, 10.0, first=True), STANDARD),  # given back unharmed
        (retry(1, 10.0), GOLD),  # a protected tier
        (retry(1, 10.0), None),  # others wait behind it
    ],
)
def test_first_attempts_and_what_keeps_its_place_and_protected_tiers_are_not_put_off(
    job: Deferred, tier: Tier | None
) -> None:
    assert back(holding(job, shed=Level.STANDARD), 10.0, tier) == [(1, 10.0)]


def test_a_level_below_retries_puts_nothing_off() -> None:
    assert back(holding(retry(1, 10.0), shed=Level.BACKGROUND), 10.0) == [(1, 10.0)]


def test_an_overload_that_does_not_end_puts_no_retry_off_for_ever() -> None:
    deferrals = holding(retry(1, 10.0), retry(2, 11.0))
    assert back(deferrals, 9.0 + LONGEST_PUT_OFF) == []
    assert back(deferrals, 10.0 + LONGEST_PUT_OFF) == [(1, 10.0 + LONGEST_PUT_OFF)]


def test_a_job_cancelled_while_it_is_put_off_does_not_come_back() -> None:
    deferrals = holding(retry(1, 10.0), retry(2, 10.0))
    assert back(deferrals, 10.0) == []
    assert deferrals.take_out((FLOW, Seq(1))) is not None
    deferrals.shed([])
    assert back(deferrals, 11.0) == [(2, 11.0)]


def test_the_end_of_an_overload_is_no_burst_of_its_own() -> None:
    deferrals = holding(*(retry(seq, 10.0) for seq in range(2_500)))
    assert back(deferrals, 10.0) == []
    deferrals.shed([])
    assert [len(back(deferrals, 11.0)) for _ in range(3)] == [1_000, 1_000, 500]


@given(
    st.lists(st.tuples(st.floats(0.0, 50.0), st.integers(0, 3), st.booleans()), max_size=40),
    st.lists(st.tuples(st.floats(0.0, 30.0), st.sampled_from(Level)), max_size=12),
)
def test_whatever_levels_come_every_job_comes_back_once_and_never_early(
    jobs: list[tuple[float, int, bool]], levels: list[tuple[float, Level]]
) -> None:
    deferrals, now, found = Deferrals(), 0.0, list[int]()
    due = {seq: due_at for seq, (due_at, _, _) in enumerate(jobs)}
    for seq, (due_at, attempts, first) in enumerate(jobs):
        deferrals.add(retry(seq, due_at, attempts=attempts, first=first))
    for passed, shed in levels:
        now += passed
        deferrals.shed([level(shed)])
        came = [seq for seq, _ in back(deferrals, now)]
        assert all(due[seq] <= now for seq in came)
        found += came
    deferrals.shed([])
    found += [seq for seq, _ in back(deferrals, now + 100.0)]
    assert sorted(found) == sorted(due)
