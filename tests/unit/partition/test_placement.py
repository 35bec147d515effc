"""Where events go: by their own time, their tenant's ranking, and their entity's slot."""

import pickle
import threading
from math import inf, nan

import pytest

from tenantry.kernel.errors import InvalidValue
from tenantry.partition import History, Layout, Placement, Spread, murmur2_partition


def test_p1_kafkas_murmur2_puts_the_known_keys_where_kafka_puts_them() -> None:
    assert murmur2_partition("TT0124", 15) == 10
    assert murmur2_partition("fd7af248-ce5c-46a5-93d7-1c0c9005b99d", 32) == 26


def test_p4_partition_ids_in_any_order_and_of_any_type_give_the_same_answer() -> None:
    listings = (range(12), [*range(11, -1, -1)], [str(each) for each in range(12)], 12)
    placements = [Placement(Layout(each, {"a": 5})) for each in listings]
    answers = {tuple(each.partition_for("a", f"e{i}", 0) for i in range(200)) for each in placements}
    assert len(answers) == 1
    assert {murmur2_partition(b"key", each) for each in listings} == {murmur2_partition(b"key", 12)}


def test_layouts_listed_in_any_order_are_the_same_history() -> None:
    early, late = Layout(8, {"a": 2}, 10), Layout(8, {"a": 4}, 20)
    assert History((late, early)) == History((early, late))


def test_a_layout_replaces_the_whole_of_the_one_before() -> None:
    placement = Placement([Layout(32, {"a": 4, "b": 4}, 0), Layout(32, {"a": 8}, 100)])
    assert [len(placement.partitions_of("b", at)) for at in (99.9, 100)] == [4, 1]


def test_before_the_first_layout_every_tenant_has_the_default_spread() -> None:
    placement = Placement(Layout(32, {"a": 4}, 1000))
    assert [len(placement.partitions_of("a", at)) for at in (-inf, 999, 1000, inf)] == [1, 1, 4, 4]


def test_an_unknown_tenant_or_a_spread_beyond_the_partitions_is_clamped() -> None:
    placement = Placement(Layout(6, {"a": 99}))
    assert placement.where_at("a", None, 0) == (0, 1, 2, 3, 4, 5)
    assert len(placement.partitions_of("unknown", 0)) == 1


def test_small_tenants_never_stand_on_reserved_partitions_and_hot_ones_on_no_others() -> None:
    placement = Placement(Layout(16, {"hot": 3}, reserved=[12, 13, 14, 15]))
    small = {placement.partition_for(f"t{i}", "", 0) for i in range(2000)}
    assert small == set(range(12))
    assert set(placement.partitions_of("hot", 0)) < {12, 13, 14, 15}


def test_a_pin_is_kept_in_its_order_whatever_the_ranking_says() -> None:
    placement = Placement(Layout(16, pins={"a": [9, 2]}, reserved=[9]))
    assert placement.partitions_of("a", 0) == (9, 2)
    assert {placement.partition_for("a", f"e{i}", 0) for i in range(50)} == {2, 9}


def test_pending_and_draining_partitions_are_read_and_not_written() -> None:
    placement = Placement(Layout(8, {"hot": 8}, states={6: "pending", 7: "draining"}))
    assert placement.where_at("hot", None, 0) == (0, 1, 2, 3, 4, 5)
    assert placement.readable_at(0) == tuple(range(8))


def test_making_pending_partitions_active_moves_only_onto_them() -> None:
    before = Placement(Layout(64, states=dict.fromkeys(range(48, 64), "pending")))
    plain, after = Placement(Layout(48)), Placement(Layout(64))
    for tenant in (f"t{i}" for i in range(500)):
        was, then = before.partition_for(tenant, "", 0), after.partition_for(tenant, "", 0)
        assert was == plain.partition_for(tenant, "", 0)
        assert then == was or then >= 48


def test_where_during_has_every_partition_an_event_of_that_time_went_to_and_no_other() -> None:
    history = History((Layout(32, {"a": 4}, 0), Layout(32, {"a": 2}, 100), Layout(64, {"a": 2}, 200)))
    placement = Placement(history)
    went = {placement.partition_for("a", f"e{i}", at) for i in range(500) for at in (50, 99, 100, 150)}
    assert placement.where_during("a", 50, 150) == tuple(sorted(went))
    one = {placement.partition_for("a", "e1", at) for at in (50, 100, 200)}
    assert placement.where_during("a", 50, 1e12, "e1") == tuple(sorted(one))
    assert placement.where_during("a", 100, 100) == placement.where_at("a", None, 100)


def test_a_batch_gives_what_single_calls_give() -> None:
    placement = Placement([Layout(32, {"a": 4}, 0), Layout(48, {"a": Spread(5, "jump")}, 50)])
    events = [(tenant, f"e{i}", i) for i in range(100) for tenant in ("a", "b")]
    assert placement.partitions_for(events) == [placement.partition_for(*each) for each in events]


def test_a_cache_of_one_tenant_answers_as_a_large_one() -> None:
    layout = Layout(32, {"t1": 4})
    small, large = Placement(layout, cached_tenants=1), Placement(layout)
    for i in [*range(20), *range(20)]:
        assert small.partition_for(f"t{i % 7}", f"e{i}", 0) == large.partition_for(f"t{i % 7}", f"e{i}", 0)


def test_what_is_remembered_is_bounded_in_tenants_and_in_the_length_of_their_ids() -> None:
    placement = Placement(Layout(4), cached_tenants=100)
    for i in range(1000):
        placement.partition_for(f"t{i}", "", 0)
        placement.partition_for(f"{i}" * 300, "", 0)
    epoch = placement._newest
    assert len(epoch.young) + len(epoch._aged) <= 100
    assert all(len(tenant) <= 255 for tenant in (*epoch.young, *epoch._aged))


def test_threads_that_miss_at_once_get_the_same_answers() -> None:
    placement = Placement(Layout(32, default_spread=3), cached_tenants=10)
    expected = [Placement(Layout(32, default_spread=3)).partition_for(f"t{i}", "e", 0) for i in range(100)]
    found: list[list[int]] = []

    def place() -> None:
        found.append([placement.partition_for(f"t{i}", "e", 0) for i in range(100)])

    threads = [threading.Thread(target=place) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [expected] * 8


def test_a_history_only_grows_at_its_end() -> None:
    history = History((Layout(32, effective_from=100),))
    assert len(history.with_next(Layout(32, effective_from=200))) == 3
    with pytest.raises(InvalidValue, match="later time"):
        history.with_next(Layout(32, effective_from=100))


def test_a_layout_survives_pickling_and_cannot_be_changed() -> None:
    layout = Layout([3, 1], {"a": Spread(2, "jump")}, 5, pins={"b": [1]}, states={3: "active"})
    assert pickle.loads(pickle.dumps(layout)) == layout
    with pytest.raises(TypeError):
        layout.spreads["a"] = 3  # type: ignore[index]


@pytest.mark.parametrize(
    ("told", "make"),
    [
        ("partitions", lambda: Layout(0)),
        ("each id once", lambda: Layout([1, "1"])),
        ("partition's number", lambda: Layout(["x"])),
        ("partition's number", lambda: Layout([True])),
        ("spreads.a", lambda: Layout(4, {"a": 0})),
        ("spreads.a", lambda: Layout(4, {"a": 2.0})),  # type: ignore[dict-item]
        ("default_spread", lambda: Layout(4, default_spread=0)),
        ("slots", lambda: Layout(4, slots="ring")),  # type: ignore[arg-type]
        ("reserved", lambda: Layout(4, reserved=[0, 1, 2, 3])),
        ("reserved\\[9\\]", lambda: Layout(4, reserved=[9])),
        ("Move the pin", lambda: Layout(4, pins={"a": [1]}, states={1: "draining"})),
        ("drop the spread", lambda: Layout(4, {"a": 2}, pins={"a": [1]})),
        ("pins.a", lambda: Layout(4, pins={"a": []})),
        ("states.1", lambda: Layout(4, states={1: "gone"})),  # type: ignore[dict-item]
        ("effective_from", lambda: Layout(4, effective_from=nan)),
        ("effective_from", lambda: Layout(4, effective_from=inf)),
        ("each time once", lambda: History((Layout(4, {}, 1), Layout(5, {}, 1)))),
        ("at least one layout", lambda: History(())),
        ("cached_tenants", lambda: Placement(Layout(4), cached_tenants=0)),
        ("at: nan", lambda: Placement(Layout(4)).partition_for("a", "b", nan)),
        ("Decode it", lambda: Placement(Layout(4)).partition_for(b"a", "b", 0)),  # type: ignore[arg-type]
        ("entity", lambda: Placement(Layout(4, {"a": 2})).partition_for("a", 5, 0)),  # type: ignore[arg-type]
        ("UTF-8", lambda: Placement(Layout(4)).partition_for("\ud800", "b", 0)),
        ("UTF-8", lambda: Placement(Layout(4, {"a": 2})).partition_for("a", "\ud800", 0)),
        ("start", lambda: Placement(Layout(4)).where_during("a", 2, 1)),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(told: str, make: object) -> None:
    with pytest.raises(InvalidValue, match=told):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("moment", ["now", None, [1]])
def test_a_time_that_is_no_number_is_refused_in_words(moment: object) -> None:
    placement = Placement(Layout(4))
    with pytest.raises(InvalidValue, match="the event's own time"):
        placement.partition_for("t", "e", moment)  # type: ignore[arg-type]


@pytest.mark.parametrize("entity", [None, 17, b"order-17"])
def test_an_entity_that_is_no_text_is_refused_before_its_tenant_is_widened_too(entity: object) -> None:
    placement = Placement(Layout(8, {"wide": 4}))
    for tenant in ("wide", "narrow"):
        with pytest.raises(InvalidValue, match="entity"):
            placement.partition_for(tenant, entity, 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"partitions": 1.5}, {"pins": {"t": 1.5}}, {"pins": {"t": None}}])
def test_partitions_that_are_no_listing_are_refused_in_words(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match="partitions' numbers, listed"):
        Layout(**{"partitions": 4, **wrong})  # type: ignore[arg-type]
