"""A mass incident in virtual time, in its short form: 24 replays. ``make bench NAME=replay`` runs all 300."""

import json
from math import isclose

import pytest

from tenantry.simulation.incident import (
    HEADINGS,
    Backlog,
    IncidentRun,
    Judged,
    ReplayResult,
    Scale,
    lines,
    mass_incident,
    picture,
    plain,
    rows,
)

SHORT = Scale(replays=24, bystanders=6, slots=120, median=600, largest=30_000)
TINY = Scale(replays=5, bystanders=1, slots=20, median=20, largest=500)


@pytest.fixture(scope="module")
def judged() -> Judged:
    return Judged(IncidentRun(mass_incident(SHORT), seed=1).run())


def named(judged: Judged, name: str) -> ReplayResult:
    return next(each for each in judged.report.results if each.tenant.id == name)


def test_every_message_is_delivered_or_parked_but_those_for_a_black_hole(judged: Judged) -> None:
    for each in judged.report.results:
        if each.tenant.backlog is Backlog.USUAL:
            assert (each.delivered, each.parked) == (each.tenant.messages, 0)
        if each.tenant.backlog is Backlog.POISON:
            assert (each.delivered, each.parked) == (0, each.tenant.messages)
    assert named(judged, "hole").delivered == 0
    ended = sum(each.delivered + each.parked + each.returned for each in judged.report.results)
    live = sum(len(each.live) + each.lost for each in judged.report.results)
    assert judged.report.calls == ended + live


def test_each_replay_of_a_minute_and_more_ends_within_a_tenth_of_the_fluid_schedules_time(
    judged: Judged,
) -> None:
    assert len(judged.long) >= 3
    assert judged.long[-1] <= 1.1
    assert judged.late <= 6.0  # seconds: what the way up from one call in flight costs the shorter ones


def test_the_smallest_share_is_above_the_floor_over_a_life_and_in_any_ten_seconds(judged: Judged) -> None:
    assert judged.least_share >= 1.0
    assert judged.least_window >= 1.0


def test_ends_are_foretold_though_shares_change_whenever_a_replay_ends(judged: Judged) -> None:
    right, shown = judged.foretold
    assert right >= 0.9
    assert shown >= 0.4  # half of them last for less than a minute, and half a minute is discovery


def test_the_critical_tier_drains_ahead_and_every_tier_by_its_share(judged: Judged) -> None:
    """The standard one holds the two largest replays, so that the parts of the other two are compared."""
    critical, standard, basic = judged.tiers
    assert critical.ended < standard.ended < basic.ended
    assert critical.drained > 3.0 * basic.drained
    for tier in judged.tiers:
        assert tier.drained >= tier.due / 1.1


def test_live_work_is_not_slowed_beyond_the_promise(judged: Judged) -> None:
    assert judged.live_seconds(during=True) <= 1.3 * judged.live_seconds(during=False)
    assert judged.live(during=True) <= 1.3 * judged.live(during=False)


def test_a_black_hole_holds_less_than_one_slot_and_poison_takes_nobody_elses(judged: Judged) -> None:
    """Cases R9 and R10: the breaker of the one is open, and that of the other never opens."""
    assert judged.held_by_holes < 1.0
    assert named(judged, "hole").most <= 4
    assert named(judged, "poison").lost == 0


def test_nobody_holds_more_than_the_cap_and_all_slots_are_used_while_everybody_wants_them(
    judged: Judged,
) -> None:
    assert all(each.most <= 24 for each in judged.report.results)
    busy = judged.report.used[4:10]
    assert sum(busy) >= 0.9 * 120 * len(busy)


def test_it_is_told_as_a_table_as_a_document_and_as_a_picture(judged: Judged) -> None:
    assert [row[0] for row in rows(judged)] == ["critical", "standard", "basic"]
    assert all(len(row) == len(HEADINGS) for row in rows(judged))
    told = "\n".join(lines(judged))
    assert "3 replays of a minute and more" in told
    assert "hole: 600 messages, 0 delivered" in told
    document = json.loads(json.dumps(plain(judged)))
    assert document["over_fluid"]["most"] == judged.long[-1]
    assert len(document["replays"]) == 24
    assert picture(judged).startswith("<svg")


def test_the_same_seed_gives_the_same_incident_and_another_another() -> None:
    one, two, three = (
        plain(Judged(IncidentRun(mass_incident(TINY, seed=seed), seed).run())) for seed in (1, 1, 2)
    )
    assert one == two != three


def test_what_is_too_small_to_compare_is_said_so() -> None:
    judged = Judged(IncidentRun(mass_incident(TINY), seed=1).run())
    assert "there is nothing to compare with it" in lines(judged)[0]
    assert plain(judged)["over_fluid"]["most"] is None
    with pytest.raises(ValueError, match="replays must be >= 5, not 4"):
        mass_incident(Scale(replays=4))


@pytest.mark.soak
def test_three_hundred_replays_and_five_million_messages_in_one() -> None:
    judged = Judged(IncidentRun(mass_incident(Scale(median=8_000))).run())
    assert judged.long[-1] <= 1.15
    assert judged.long[int(0.95 * len(judged.long))] <= 1.1
    assert judged.least_share >= 1.0
    assert judged.least_window >= 1.0
    assert all(tier.drained >= tier.due / 1.1 for tier in judged.tiers)
    assert judged.live_seconds(during=True) <= 1.3 * judged.live_seconds(during=False)


def test_where_live_work_leaves_the_fluid_schedule_nothing_there_is_nothing_to_compare() -> None:
    crowded = Scale(replays=5, bystanders=1, slots=2, median=2, largest=5, live=20.0)
    judged = Judged(IncidentRun(mass_incident(crowded), seed=1).run())
    assert judged.replays == []
    assert json.loads(json.dumps(plain(judged), allow_nan=False))["over_fluid"]["most"] is None


def test_sizes_are_spread_and_two_are_far_beyond_the_others() -> None:
    incident = mass_incident()
    sizes = sorted(tenant.messages for tenant in incident.tenants if tenant.messages)
    assert len(sizes) == 300
    assert sizes[-2:] == [400_000, 5_000_000]
    assert isclose(sizes[150], 4_000, rel_tol=0.2)
