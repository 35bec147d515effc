"""What a change would move, said beforehand, against what it does move."""

import tracemalloc
from itertools import pairwise
from math import inf
from xml.etree.ElementTree import fromstring

import pytest

from tenantry.partition import (
    Layout,
    Placement,
    Spread,
    cheaper,
    choices,
    crowd,
    drain_plan,
    heat_map,
    load_of,
    movement,
    murmur2_moved,
    neighbours,
    overlap,
    suggest,
    unevenness,
    with_spreads,
)
from tenantry.partition.choice import best_possible
from tenantry.partition.movement import Use, flows, meetings, share_moved, use_of

TENANTS = [f"tenant-{i}" for i in range(4_000)]


def test_p2_from_48_to_64_a_quarter_of_first_partitions_move_and_none_between_old_ones() -> None:
    found = movement(Layout(48), Layout(64), dict.fromkeys(TENANTS, 1.0))
    assert found.first_moved == pytest.approx(0.25, abs=0.02)
    assert found.between_old == 0
    assert all(move.new.partitions[0] >= 48 for move in found.moves)
    assert found.murmur2_moved == murmur2_moved(TENANTS, 48, 64) == pytest.approx(0.75, abs=0.02)


def test_p3_from_2_to_3_modulo_moves_two_thirds_and_the_plan_names_the_cheaper_choice() -> None:
    found = choices(Layout(32, {"a": 2}), "a", 3)
    best = cheaper(found)
    assert (found[0].spread, found[0].slots, found[0].moved) == (3, "modulo", pytest.approx(2 / 3))
    assert best is not None
    assert (best.spread, best.slots, best.moved) == (4, "modulo", pytest.approx(1 / 2))


def test_jump_slots_move_the_least_that_any_rule_could_and_nothing_is_cheaper() -> None:
    found = choices(Layout(32, {"a": Spread(2, "jump")}), "a", 3)
    assert found[0].moved == pytest.approx(best_possible(2, 3)) == pytest.approx(1 / 3)
    assert cheaper(found) is None


def test_to_narrow_a_spread_halving_is_named_and_leaving_it_is_no_choice() -> None:
    found = choices(Layout(32, {"a": 8}), "a", 3)
    assert {(each.spread, each.slots) for each in found} == {(3, "modulo"), (3, "jump"), (4, "modulo")}
    best = cheaper(found)
    assert best is not None
    assert (best.spread, best.moved) == (4, pytest.approx(1 / 2))
    assert choices(Layout(32, {"a": 8}), "a", 8)[0].moved == 0
    assert cheaper(choices(Layout(32, {"a": 8}), "a", 8)) is None


@pytest.mark.parametrize("old", [Spread(1), Spread(2), Spread(4), Spread(6), Spread(3, "jump")])
@pytest.mark.parametrize(
    "new", [Spread(1), Spread(3), Spread(8), Spread(9), Spread(7, "jump"), Spread(2, "jump")]
)
def test_the_share_that_is_said_to_move_is_the_share_that_moves(old: Spread, new: Spread) -> None:
    before, after = Placement(Layout(24, {"a": old})), Placement(Layout(24, {"a": new}))
    said = share_moved(use_of(before, "a"), use_of(after, "a"))
    keys = [f"key-{i}" for i in range(6_000)]
    moved = sum(before.partition_for("a", key, 0) != after.partition_for("a", key, 0) for key in keys)
    assert moved / len(keys) == pytest.approx(said, abs=0.03)


@pytest.mark.parametrize(("k", "then"), [(4, 8), (4, 6), (5, 3), (1, 7)])
@pytest.mark.parametrize("rules", [("modulo", "modulo"), ("jump", "jump"), ("modulo", "jump")])
def test_every_key_is_counted_once(k: int, then: int, rules: tuple[str, str]) -> None:
    old, new = Use(tuple(range(k)), rules[0]), Use(tuple(range(then)), rules[1])  # type: ignore[arg-type]
    assert sum(part for *_, part in meetings(old, new)) == pytest.approx(1)
    assert sum(flows(old, new).values()) == pytest.approx(share_moved(old, new))


def test_the_drain_plan_names_for_each_moved_key_the_partition_that_is_waited_for() -> None:
    old, new = Layout(24, {"a": 4}), Layout(32, {"a": 6}, effective_from=100)
    tenants = {"a": 5.0, **dict.fromkeys(TENANTS[:200], 1.0)}
    plan = drain_plan(old, new, movement(old, new, tenants))
    waits = {wait.to: wait for wait in plan.waits}
    before, after = Placement(old), Placement(new)
    for tenant in tenants:
        for i in range(50):
            was, then = (each.partition_for(tenant, f"e{i}", 100) for each in (before, after))
            assert was == then or (was in waits[then].sources and tenant in waits[then].tenants)
    assert plan.new == tuple(range(24, 32))
    assert any("24 to 31" in step for step in plan.steps)


@pytest.mark.parametrize(
    ("at", "told"),
    [(1_772_323_200, "2026-03-01T00:00:00Z"), (-inf, "the change"), (1e15, "1000000000000000")],
)
def test_a_drain_plan_names_its_time_as_people_read_it(at: float, told: str) -> None:
    old, new = Layout(4), Layout(5, effective_from=at)
    steps = drain_plan(old, new, movement(old, new, dict.fromkeys(TENANTS[:50], 1.0))).steps
    assert any(f"before {told}" in step for step in steps)


def test_what_stops_being_written_is_named_so_that_it_is_read_until_empty() -> None:
    old, new = Layout(8), Layout(8, effective_from=9, states={3: "draining"})
    found = movement(old, new, dict.fromkeys(TENANTS[:500], 1.0))
    assert drain_plan(old, new, found).retired == (3,)
    assert {move.old.partitions for move in found.moves} == {(3,)}


def test_the_load_is_the_traffic_and_is_where_the_events_are() -> None:
    layout = Layout(16, {"a": 4})
    load = load_of(layout, {"a": 40.0, "b": 5.0})
    assert sum(load.values()) == pytest.approx(45)
    assert {each for each, rate in load.items() if rate} == {
        *Placement(layout).partitions_of("a", inf),
        *Placement(layout).partitions_of("b", inf),
    }


def test_tenants_of_four_in_48_share_no_partition_in_about_seventy_of_a_hundred_pairs() -> None:
    found = overlap(Layout(48, default_spread=4), TENANTS[:1000])
    assert found.apart == pytest.approx(0.698, abs=0.01)
    assert sum(found.pairs.values()) == 1000 * 999 / 2


def test_the_neighbours_of_a_tenant_are_those_that_share_a_partition_with_it() -> None:
    layout = Layout(8)
    at = Placement(layout).partition_for
    own = at(TENANTS[0], "", 0)
    expected = tuple(each for each in TENANTS[1:100] if at(each, "", 0) == own)
    assert neighbours(layout, TENANTS[0], TENANTS[:100]) == expected


def test_spreads_as_suggested_keep_every_tenant_within_the_bound_and_even_out_the_load() -> None:
    layout, traffic = Layout(32), crowd(2000)
    found = suggest(layout, traffic, most=1000.0)
    then = with_spreads(layout, found, 1.0)
    assert all(rate / then.spread_of(tenant) <= 1000 for tenant, rate in traffic.items())
    assert unevenness(load_of(then, traffic)) < unevenness(load_of(layout, traffic)) / 2
    assert suggest(then, traffic, most=1000.0) == ()


def test_a_spread_is_narrowed_only_when_a_quarter_of_it_would_do() -> None:
    layout = Layout(32, {"a": 8})
    assert suggest(layout, {"a": 3.0}, most=1.0) == ()
    assert suggest(layout, {"a": 2.0}, most=1.0)[0].choice.spread == 2


def test_more_than_the_topic_has_is_said_to_be_needed() -> None:
    found = suggest(Layout(8), {"a": 100.0, "b": 1.0}, most=5.0)[0]
    assert (found.needed, found.choice.spread) == (20, 8)


def test_a_crowd_adds_up_and_falls_by_rank() -> None:
    rates = list(crowd(100, skew=1.0, total=500).values())
    assert sum(rates) == pytest.approx(500)
    assert all(one > other for one, other in pairwise(rates))
    assert rates[0] == pytest.approx(2 * rates[1])


def test_the_heat_map_is_whole_svg_and_escapes_what_tenants_are_called() -> None:
    from xml.etree import ElementTree

    drawn = heat_map(Layout(12), {"<b>&": 4.0, "x" * 60: 2.0}, title="a < b")
    root = ElementTree.fromstring(drawn)
    cells = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if len(each)]
    assert len(cells) == 3 * 12
    assert drawn == heat_map(Layout(12), {"x" * 60: 2.0, "<b>&": 4.0}, title="a < b")


def test_a_spread_tenant_moves_more_when_partitions_are_added_and_also_between_old_ones() -> None:
    found = movement(Layout(48, default_spread=4), Layout(64, default_spread=4), dict.fromkeys(TENANTS, 1.0))
    assert found.keys_moved > 0.3
    assert 0 < found.between_old < found.keys_moved


def test_what_is_suggested_moves_what_the_suggestion_says_where_partitions_are_reserved() -> None:
    layout = Layout(32, {"quiet": 8}, reserved=range(24, 32))
    [found] = suggest(layout, {"quiet": 1.0, **dict.fromkeys(TENANTS[:50], 20.0)}, most=50.0)
    assert (found.tenant, found.choice.spread) == ("quiet", 1)
    then = with_spreads(layout, (found,), 10.0)
    assert movement(layout, then, {"quiet": 1.0}).keys_moved == found.choice.moved == 7 / 8
    assert Placement(then).partitions_of("quiet", inf)[0] >= 24


def test_overlap_takes_memory_by_how_many_partitions_there_are_and_not_by_their_numbers() -> None:
    far = Layout([7, 2**31 - 1], {"wide": 2})  # as bits by number: 256 MiB a tenant
    tracemalloc.start()
    shared = overlap(far, ["wide", "a", "b"])
    near = neighbours(far, "wide", ["a", "b"])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(shared.pairs.values()) == 3
    assert near == ("a", "b")
    assert most < 1 << 20


def test_a_heat_map_is_xml_whatever_tenants_are_called() -> None:
    drawn = heat_map(Layout(2), {"a\x01\ufffe<&": 1.0}, title="\x00")
    assert "a\ufffd\ufffd<&" in {each.text for each in fromstring(drawn).iter()}
