"""What presses a pool, what its level does to retries and submits, and what the planner says of it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.algorithms.fair_share.shares import Shares
from tenantry.algorithms.shedding import Level, Pressure, SheddingSettings
from tenantry.config.tiers import Shedding, Tier
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TierName
from tenantry.kernel.verdict import Rule
from tenantry.lanes.model import Target
from tenantry.queue.events import PoolSlots
from tenantry.queue.model import JobClass, NewJob, PoolLevel
from tenantry.queue.overload import LEVEL_FRESH_FOR, Contender, Levels, pressure, refusal_of

FLOOR = 0.25
FULL = PoolSlots("shared", 4, 4)
FREE = Tier(TierName("free"), shedding=Shedding.FIRST)
STANDARD = Tier(TierName("standard"))
GOLD = Tier(TierName("gold"), shedding=Shedding.LAST)
LIVE = NewJob(Target("https://example.com/hook"), b"{}")
BACKGROUND = replace(LIVE, job_class=JobClass.BACKGROUND)
HARD, AT_REST = Pressure(60.0, 1.0), Pressure(0.0, 0.1)
SETTINGS = SheddingSettings()


def age(*contenders: Contender, slots: PoolSlots = FULL) -> float:
    return pressure(slots, contenders, FLOOR).age


def crowd(count: int, *, waited: float, running: int = 0) -> Sequence[Contender]:
    return [Contender(1.0, running, waited)] * count


# -- pressure ------------------------------------------------------------------------------------------------


def test_a_pool_is_pressed_when_more_than_half_of_its_tenants_wait_within_their_quota() -> None:
    assert age(*crowd(5, waited=9.0), *crowd(4, waited=0.0, running=1)) == 9.0
    assert age(*crowd(4, waited=9.0), *crowd(4, waited=0.0, running=1)) == 0.0


def test_bursts_of_some_do_not_press_a_pool_that_serves_most_tenants_at_once() -> None:
    assert age(*crowd(10, waited=300.0), *crowd(12, waited=0.1)) == pytest.approx(0.1)


def test_a_tenant_with_a_long_queue_and_its_whole_share_presses_nothing() -> None:
    assert age(Contender(1.0, 4, 600.0)) == 0.0
    assert age(Contender(1.0, 2, 600.0), Contender(1.0, 2, 600.0)) == 0.0


def test_part_of_a_slot_is_nobodys_due_while_there_are_slots_for_all() -> None:
    three = [Contender(1.0, 2, 600.0), Contender(1.0, 1, 600.0), Contender(1.0, 1, 600.0)]
    assert age(*three) == 0.0


def test_tenants_that_hold_less_than_their_share_press_it() -> None:
    assert age(Contender(1.0, 1, 8.0), Contender(1.0, 1, 9.0), slots=PoolSlots("shared", 8, 8)) == 8.0


def test_with_more_tenants_than_slots_each_is_within_its_quota_whether_it_has_its_turn_or_not() -> None:
    assert age(*crowd(4, waited=20.0, running=1), *crowd(4, waited=20.0)) == 20.0


def test_the_light_ones_do_not_outnumber_the_heavy() -> None:
    light = [Contender(1.0, 0, 60.0)] * 3
    assert age(*light, Contender(8.0, 4, 0.0)) == 0.0
    assert age(*light, Contender(8.0, 0, 7.0)) == 7.0


def test_a_pool_at_rest_is_not_pressed_however_old_its_work() -> None:
    assert pressure(PoolSlots("shared", 10, 4), crowd(20, waited=900.0), FLOOR) == Pressure(0.0, 0.4)


def test_a_pool_without_workers_refuses_nothing() -> None:
    assert pressure(PoolSlots("shared", 0, 0), crowd(20, waited=900.0), FLOOR) == Pressure(0.0, 0.0)


@given(
    st.lists(
        st.builds(Contender, st.sampled_from([1.0, 2.0, 8.0]), st.integers(0, 5), st.floats(0.0, 900.0)),
        max_size=30,
    ),
    st.integers(0, 8),
)
def test_pressure_is_one_of_the_waits_or_none_and_more_than_half_wait_as_long(
    contenders: list[Contender], slots: int
) -> None:
    found = pressure(PoolSlots("shared", slots, slots), contenders, FLOOR).age
    if found > 0.0:
        shares = Shares(FLOOR)
        for each in contenders:
            shares.count(each.weight, 1)
        assert sum(shares.share(each.weight) for each in contenders if each.waited >= found) > 0.5


# -- levels --------------------------------------------------------------------------------------------------


class Steps:
    """Levels, stepped once a second."""

    def __init__(self) -> None:
        self.levels, self.now = Levels(SETTINGS), 0.0
        self.written: list[tuple[float, Level]] = []

    def pass_time(self, seconds: int, pressure: Pressure) -> Level:
        for _ in range(seconds):
            self.now += 1.0
            self.levels.step({"shared": pressure}, now=Timestamp(self.now))
            for each in self.levels.to_keep(Timestamp(self.now)):
                self.written.append((self.now, each.level))
        (found,) = self.levels.current()
        return found.level


def test_a_level_comes_by_steps_and_is_told_with_what_it_was() -> None:
    levels, told = Levels(SETTINGS), []
    for second in range(20):
        told += levels.step({"shared": HARD}, now=Timestamp(float(second)))
    assert [(each.level, before) for each, before in told] == [
        (Level.BACKGROUND, Level.NONE),
        (Level.RETRIES, Level.BACKGROUND),
        (Level.STANDARD, Level.RETRIES),
    ]
    assert [each.falls_in for each, _ in told] == [15.0, 30.0, 45.0]


def test_a_pool_that_sheds_nothing_writes_nothing_and_one_that_does_is_never_stale() -> None:
    steps = Steps()
    assert steps.pass_time(60, AT_REST) is Level.NONE
    assert steps.written == []
    steps.pass_time(60, HARD)
    moments = [at for at, _ in steps.written]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert max(gaps) <= LEVEL_FRESH_FOR / 2
    assert len(moments) <= 30


def test_when_it_is_over_that_is_written_once() -> None:
    steps = Steps()
    steps.pass_time(6, HARD)
    steps.written.clear()
    assert steps.pass_time(60, AT_REST) is Level.NONE
    assert [level for _, level in steps.written].count(Level.NONE) == 1
    assert steps.written[-1][1] is Level.NONE


def test_the_next_planner_goes_on_from_what_the_last_one_said_and_down_from_there() -> None:
    levels = Levels(SETTINGS)
    levels.adopt([PoolLevel("shared", Level.RETRIES, 9.0, 1.0, 30.0)])
    assert [each.level for each in levels.current()] == [Level.RETRIES]
    levels.step({"shared": AT_REST}, now=Timestamp(0.0))
    assert [each.level for each in levels.to_keep(Timestamp(0.0))] == [Level.RETRIES]
    for second in range(1, 40):
        levels.step({"shared": AT_REST}, now=Timestamp(float(second)))
    assert [each.level for each in levels.current()] == [Level.NONE]


def test_a_pool_whose_nodes_are_gone_stops_shedding_and_is_forgotten() -> None:
    levels = Levels(SETTINGS)
    for second in range(7):
        levels.step({"gold": HARD}, now=Timestamp(float(second)))
    for second in range(7, 30):
        levels.step({}, now=Timestamp(float(second)))
    assert levels.current() == ()


# -- submits -------------------------------------------------------------------------------------------------


def at(level: Level) -> PoolLevel:
    return PoolLevel("shared", level, 9.0, 1.0, 15.0 * level)


@pytest.mark.parametrize(
    ("tier", "job", "from_level"),
    [
        (FREE, BACKGROUND, Level.BACKGROUND),
        (FREE, LIVE, Level.STANDARD),
        (STANDARD, BACKGROUND, Level.STANDARD),
        (STANDARD, LIVE, Level.STANDARD),
        (GOLD, BACKGROUND, None),
        (GOLD, LIVE, None),
    ],
)
def test_new_work_is_refused_in_the_order_of_tiers_and_classes(
    tier: Tier, job: NewJob, from_level: Level | None
) -> None:
    refused = [level for level in Level if refusal_of(at(level), tier, [job], 0.5)]
    assert refused == [level for level in Level if from_level is not None and level >= from_level]


def test_a_replay_by_hand_is_shed_as_background_work_is() -> None:
    replay = replace(LIVE, job_class=JobClass.REPLAY)
    assert refusal_of(at(Level.BACKGROUND), FREE, [replay], 0.0)
    assert not refusal_of(at(Level.RETRIES), STANDARD, [replay], 0.0)


def test_a_refusal_names_the_rule_the_row_the_pool_and_when_to_come_back() -> None:
    refusal = refusal_of(at(Level.RETRIES), FREE, [LIVE, BACKGROUND], 0.5)
    assert refusal is not None
    assert (refusal.rule, refusal.retry_after) == (Rule.OVERLOAD, 45.0)
    assert refusal.detail == (
        "jobs[1]: the pool 'shared' is overloaded, and new background work of tier 'free' is not accepted "
        "for now"
    )


@given(st.sampled_from([level for level in Level if level]), st.floats(0.0, 1.0))
def test_to_come_back_is_spread_over_as_long_again_as_the_level_needs_to_fall(
    level: Level, draw: float
) -> None:
    refusal = refusal_of(at(level), FREE, [BACKGROUND], draw)
    assert refusal is not None
    assert refusal.retry_after is not None
    assert 15.0 * level <= refusal.retry_after <= 30.0 * level
