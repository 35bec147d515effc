"""The demo's figures say what they claim, and its words fit a narrow terminal."""

import io
import json
from collections import Counter

import pytest
from rich.console import Console

from tenantry.cli.demo.figures import Books, Figures, figures, percentile
from tenantry.cli.demo.scenario import SLOTS, Timeline, burster, members, registry
from tenantry.cli.demo.screen import View, duration, frame, line
from tenantry.cli.demo.summary import as_json, document, print_summary
from tenantry.cli.demo.tally import Tally
from tenantry.cli.demo.webhooks import payloads
from tenantry.config.registry import DEFAULT_FLOOR
from tenantry.kernel.randomness import SeededRandomness
from tenantry.queue.events import JobEnd, JobsClaimed, JobsSettled, Start
from tenantry.queue.model import Ending, JobClass, JobState, NodeId
from tenantry.testing.clock import ManualClock

EVERYONE = members()
REGISTRY = registry(EVERYONE, SeededRandomness(1))
BURST = burster(EVERYONE)
WEIGHT = {tier.name: tier.weight for tier in REGISTRY.tiers}
NODE, LIVE = NodeId("n"), JobClass.LIVE


def told(favoured: float = 1.0, *, seconds: int = 40) -> tuple[Tally, Figures]:
    """A run in which all fifty always had work, and each got one 80 ms job a second for each unit of its
    weight, the first of them ``favoured`` times as many."""
    clock = ManualClock()
    tally, began = Tally(EVERYONE, clock), clock.monotonic()
    for member in EVERYONE:
        tally.accept(member.tenant, 10_000)
    tally.burst()
    tally.refuse(BURST.tenant, 19_800)

    def starts(member, jobs):
        tally(JobsClaimed(NODE, (Start(member.tenant, member.tier, LIVE, 0.5),) * jobs))

    def ends(member, jobs):
        tally(JobsSettled(NODE, (end_of(member),) * jobs, 0.001))

    tally.measure()
    for _ in range(seconds):
        for each in (starts, ends):
            for place, member in enumerate(EVERYONE):
                each(member, int(WEIGHT[member.tier] * (favoured if place == 0 else 1)))
            clock.advance(0.08)
        clock.advance(0.84)
        tally.look()
    clock.advance(0.5)
    tally.stop_measuring()
    books = Books(10, {JobState.DELIVERED: 7, JobState.DEAD: 1}, ())
    return tally, figures(tally, REGISTRY, books, burst=BURST, began=began)


def end_of(member):
    return JobEnd(member.tenant, member.tier, LIVE, Ending.DELIVERED, 0.08)


def test_the_fifty_are_of_four_tiers_and_the_head_of_the_line_that_wants_more_is_of_all_of_them():
    assert len({member.tenant for member in EVERYONE}) == 50
    assert Counter(member.tier for member in EVERYONE).keys() == WEIGHT.keys()
    assert {member.tier for member in EVERYONE if not member.within} == WEIGHT.keys()
    assert [member.rate for member in EVERYONE] == sorted((m.rate for m in EVERYONE), reverse=True)
    assert BURST.within and BURST.tier == "standard"


def test_the_events_are_the_273_real_ones_and_the_small_ones_are_among_them():
    events = payloads()
    assert len(events) == 273 and all(isinstance(json.loads(event), dict) for event in events)
    small = payloads(largest=1_600)
    assert small and set(small) < set(events) and max(map(len, small)) <= 1_600


def test_shares_as_the_weights_give_an_index_of_one():
    _, found = told()
    assert found.measured == 50
    assert found.jain == pytest.approx(1.0)
    assert all(group.share == pytest.approx(group.entitled) for group in found.tiers.values())


def test_the_smallest_share_is_told_over_its_floor():
    _, found = told()
    least = min(WEIGHT.values()) / sum(WEIGHT[member.tier] for member in EVERYONE)
    assert found.over_floor == pytest.approx(least / (DEFAULT_FLOOR / 50))


def test_one_favoured_tenant_shows_in_the_index():
    assert (told(favoured=5.0)[1].jain or 0) < 0.9


def test_a_tenant_whose_line_was_empty_for_a_moment_is_not_measured():
    clock = ManualClock()
    tally = Tally(EVERYONE, clock)
    for member in EVERYONE[:2]:
        tally.accept(member.tenant, 2)
    tally.measure()
    tally(JobsClaimed(NODE, (Start(EVERYONE[0].tenant, EVERYONE[0].tier, LIVE, 0.0),) * 2))
    tally.accept(EVERYONE[0].tenant, 5)
    assert [tally.accounts[m.tenant].always_waiting for m in EVERYONE[:3]] == [False, True, False]


def test_what_was_accepted_and_has_no_end_is_lost():
    _, found = told()
    read = json.loads(as_json(document(found)))
    assert (read["accepted"], read["delivered"], read["dead"]) == (10, 7, 1)
    assert read["lost"] == 2


def test_one_line_for_all_makes_everyone_wait_for_the_burst():
    _, found = told()
    burst_for = 20_000 * 0.08 / SLOTS
    assert found.fifo_p99 is not None and found.fifo_p99 > burst_for
    assert all(group.waits.p99 == 0.5 for group in found.tiers.values())


def test_a_load_without_a_measured_tenant_says_so_instead_of_a_number():
    tally = Tally(EVERYONE, ManualClock())
    books = Books(0, {}, ("a fault",))
    found = figures(tally, REGISTRY, books, burst=BURST, began=ManualClock().monotonic())
    assert (found.jain, found.over_floor, found.fifo_p99) == (None, None, None)
    assert "too short to measure" in printed(found) and "found 1 fault" in printed(found)


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_that_is_shown_is_cut_off(width):
    tally, found = told()
    view = View(tally, Timeline.of(40.0), 25.0, BURST)
    shown = rendered(width, lambda console: console.print(frame(view)))
    assert "…" not in shown + printed(found, width)
    assert all(len(each) <= width for each in (shown + printed(found, width)).splitlines())
    assert "19,800" in shown and "1 larch (burst)" in shown


def test_a_line_for_a_log_names_every_tier_and_the_burster():
    tally, _ = told()
    words = line(View(tally, Timeline.of(40.0), 25.0, BURST))
    assert all(name in words for name in (*WEIGHT, BURST.tenant)) and words.startswith("25 s of 40 s")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0241, "24 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1.00 s"),
        (9.996, "10.0 s"),
        (48.21, "48.2 s"),
        (131.4, "131 s"),
    ],
)
def test_durations_read_well(seconds, text):
    assert duration(seconds) == text


def test_a_percentile_is_one_of_the_values():
    assert percentile(range(1, 101), 99) == 100
    assert percentile([3.0], 50) == 3.0
    assert percentile([], 50) is None


def printed(found: Figures, width: int = 80) -> str:
    return rendered(width, lambda console: print_summary(console, found, BURST))


def rendered(width: int, show) -> str:
    file = io.StringIO()
    show(Console(file=file, width=width, no_color=True, highlight=False))
    return file.getvalue()
