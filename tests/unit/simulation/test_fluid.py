"""The fluid schedule: nobody beyond what they can use, floors kept, nothing left that somebody could use."""

from math import inf, isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.simulation.fluid import FluidTenant, filled, fluid

tenants = st.lists(
    st.builds(
        FluidTenant,
        id=st.just(""),
        weight=st.sampled_from([1.0, 2.0, 4.0, 16.0]),
        messages=st.integers(0, 10_000).map(float),
        takes=st.floats(0.01, 2.0),
        most=st.floats(0.5, 50.0),
        live=st.floats(0.0, 0.4),
    ),
    min_size=1,
    max_size=30,
).map(
    lambda found: [
        FluidTenant(f"t{place}", one.weight, one.messages, one.takes, one.most, one.live)
        for place, one in enumerate(found)
    ]
)
slots = st.floats(1.0, 200.0)


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(tenants, slots, st.sampled_from([0.0, 0.25, 1.0]))
def test_slots_are_filled_up_to_what_all_can_use_and_nobody_has_more_than_that(
    found: list[FluidTenant], pool: float, floor: float
) -> None:
    held = filled(found, pool, floor)
    assert all(-1e-9 <= held[tenant.id] <= tenant.most * (1 + 1e-9) for tenant in found)
    assert isclose(sum(held.values()), min(pool, sum(tenant.most for tenant in found)), rel_tol=1e-6)


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(tenants, slots)
def test_everybody_has_its_floor_or_all_that_it_can_use(found: list[FluidTenant], pool: float) -> None:
    held = filled(found, pool, 0.25)
    for tenant in found:
        assert held[tenant.id] >= min(tenant.most, 0.25 * pool / len(found)) * (1 - 1e-9)


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(tenants, slots)
def test_of_two_who_could_use_more_the_heavier_has_as_much_more_as_it_weighs(
    found: list[FluidTenant], pool: float
) -> None:
    """Max-min: whoever has less per weight than another can use no more, or stands on the floor."""
    held = filled(found, pool, 0.0)
    hungry = [tenant for tenant in found if held[tenant.id] < tenant.most * (1 - 1e-9)]
    levels = [held[tenant.id] / tenant.weight for tenant in hungry]
    assert not levels or isclose(min(levels), max(levels), rel_tol=1e-6)
    for tenant in found:
        if tenant not in hungry and levels:
            assert held[tenant.id] / tenant.weight <= max(levels) * (1 + 1e-6)


@settings(deadline=None)  # the machine may be busy; nothing here is timed
@given(tenants, slots)
def test_each_replay_ends_when_all_its_messages_have_gone_and_none_goes_twice(
    found: list[FluidTenant], pool: float
) -> None:
    schedule = fluid(found, pool)
    for tenant in found:
        if tenant.messages and schedule.ends[tenant.id] < inf:
            gone = schedule.drained(schedule.ends[tenant.id])[tenant.id]
            assert isclose(gone, tenant.messages, rel_tol=1e-6)
    last = max((end for end in schedule.ends.values() if end < inf), default=0.0)
    for name, gone in schedule.drained(last + 1.0).items():
        assert gone <= next(one.messages for one in found if one.id == name) * (1 + 1e-6)


def test_by_hand_two_replays_of_weights_one_and_two_on_three_slots() -> None:
    """The heavy one ends at 50 s with 2 slots; the light one has done 50 then, and the rest on 3."""
    light = FluidTenant("light", 1.0, 200.0, 1.0, 10.0)
    heavy = FluidTenant("heavy", 2.0, 100.0, 1.0, 10.0)
    assert fluid([light, heavy], 3.0, floor=0.0).ends == {"light": 100.0, "heavy": 50.0}


def test_a_weak_target_leaves_its_slots_and_live_work_goes_first() -> None:
    weak = FluidTenant("weak", 4.0, 90.0, 0.5, 1.0, live=0.25)
    other = FluidTenant("other", 1.0, 900.0, 1.0, 100.0)
    schedule = fluid([weak, other], 10.0)
    assert schedule.stretches[0].slots == {"weak": 1.0, "other": 9.0}
    assert schedule.ends["weak"] == 60.0  # 0.75 slots of half a second: 1.5 a second


def test_what_cannot_be_delivered_never_ends_and_takes_nothing() -> None:
    hole = FluidTenant("hole", 4.0, 10.0, 1.0, 0.0)
    other = FluidTenant("other", 1.0, 10.0, 1.0, 100.0)
    assert fluid([hole, other], 10.0).ends == {"hole": inf, "other": 1.0}
