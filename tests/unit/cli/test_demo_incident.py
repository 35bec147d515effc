"""The second act's figures and promises say what they claim, and its pictures fit a narrow terminal."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tenantry.cli.demo.incident.cast import (
    LIVING,
    SLOTS,
    Kind,
    Scale,
    cast,
    live_path,
    registry,
    shared_path,
)
from tenantry.cli.demo.incident.dependency import Place, come_back, fail
from tenantry.cli.demo.incident.figures import Account, Found, found
from tenantry.cli.demo.incident.ledger import Ledger
from tenantry.cli.demo.incident.record import Chapter, Incident
from tenantry.cli.demo.incident.screen import Moment
from tenantry.cli.demo.incident.summary import incident_document, print_incident
from tenantry.kernel.instant import Timestamp
from tenantry.queue.events import JobEnd, JobsClaimed, JobsSettled, Start
from tenantry.queue.model import Ending, JobClass, JobState, NodeId
from tenantry.replay.model import Counts, Hold, HoldRule, ReplayId, ReplayState
from tenantry.replay.progress import Phase, Progress
from tenantry.testing.clock import ManualClock
from tenantry.testing.target import Target

PARTIES = cast(Scale.of(40.0))
NODE = NodeId("n")
KEPT_ALL = Account(100, {JobState.DELIVERED: 60, JobState.DEAD: 30}, 10, ())
PHASES = {
    ReplayState.RUNNING: Phase.STEADY,
    ReplayState.HELD: Phase.HELD,
    ReplayState.FINISHED: Phase.FINISHED,
}
HOLD = Hold(HoldRule.POISON, "33 of the last 33 messages that ended were parked", stops=True)


def seen(party, state, counts, hold=None):
    return Progress(
        replay=ReplayId("r"), tenant=party.tenant, state=state, phase=PHASES[state], at=Timestamp(0.0),
        total=party.letters, counted_exactly=True, done=0, taken=counts.taken, counts=counts, rate=3.0,
        trend=0.0, eta=None, eta_why="", running_for=1.0, hold=hold,
    )  # fmt: skip


class Story:
    """An incident on a clock that only the test moves. ``wait``: of a bystander's live job."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.incident = Incident(PARTIES, Scale.of(40.0), Ledger(self.clock), self.clock)
        self.incident.turn(Chapter.QUIET)

    def goes_on(self, seconds=10, *, wait=0.04, idle=frozenset(), hole=1):
        """Everybody with a replay holds a slot for half of each second, but for the ``idle``; the black hole
        holds ``hole`` of them."""
        busy = [party for party in self.incident.replaying if party.kind not in idle]
        busy += [party for party in busy if party.kind is Kind.HOLE] * (hole - 1)
        bystander = self.incident.of(Kind.BYSTANDER)[0]
        for _ in range(seconds):
            self._starts([Start(p.tenant, p.tier, JobClass.REPLAY, 0.0) for p in busy])
            self._starts([Start(bystander.tenant, bystander.tier, JobClass.LIVE, wait)])
            self.clock.advance(0.5)
            ends = [JobEnd(p.tenant, p.tier, JobClass.REPLAY, Ending.DELIVERED, 0.5) for p in busy]
            ends.append(JobEnd(bystander.tenant, bystander.tier, JobClass.LIVE, Ending.DELIVERED, 0.5))
            self.incident.ledger(JobsSettled(NODE, tuple(ends), 0.001))
            self.clock.advance(0.5)

    def _starts(self, starts):
        self.incident.ledger(JobsClaimed(NODE, tuple(starts)))

    def all_end(self):
        for party in self.incident.of(Kind.ORDINARY):
            self.incident.progress[party.tenant] = seen(
                party, ReplayState.FINISHED, Counts(delivered=party.letters)
            )
        for kind, hold in ((Kind.HOLE, None), (Kind.POISON, HOLD), (Kind.LARGE, None)):
            party = self.incident.of(kind)[0]
            state = ReplayState.HELD if hold else ReplayState.RUNNING
            self.incident.progress[party.tenant] = seen(party, state, Counts(waiting=20), hold)
        self.incident.look()

    def whole(self, *, during=0.04, idle=frozenset({Kind.POISON}), hole=1):
        self.goes_on()
        self.incident.turn(Chapter.DOWN)
        self.incident.turn(Chapter.REPLAYING)
        self.goes_on(wait=during, idle=idle, hole=hole)
        self.all_end()
        self.incident.turn(Chapter.ENDING)
        return self


def figures_of(story: Story, account: Account = KEPT_ALL) -> Found:
    ended = {party.tenant: 2 * party.alone for party in story.incident.of(Kind.ORDINARY)}
    return found(story.incident, account, ended=ended)


def broken(figures: Found) -> list[str]:
    return [promise.law for promise in figures.promises if not promise.kept]


def test_fifty_have_a_backlog_one_of_them_a_hundred_times_the_others_and_ten_stand_by():
    by_kind = {kind: [party for party in PARTIES if party.kind is kind] for kind in Kind}
    assert [len(by_kind[kind]) for kind in Kind] == [47, 1, 1, 1, 10]
    ordinary = {party.letters for party in by_kind[Kind.ORDINARY]}
    assert len(ordinary) == 1 and by_kind[Kind.LARGE][0].letters == 100 * ordinary.pop()
    assert len({party.strength for party in by_kind[Kind.ORDINARY]}) == 3
    assert {party.kind for party in PARTIES if party.live} == {Kind.ORDINARY, Kind.BYSTANDER}
    assert {party.tier for party in by_kind[Kind.BYSTANDER]} == {party.tier for party in PARTIES}
    assert sum(party.strength for party in PARTIES) > 2 * SLOTS, "slots are what is scarce"


def test_only_lanes_of_the_dependency_die_at_once_and_only_while_it_is_down():
    party = PARTIES[0]
    (document, *_) = registry(PARTIES, dying_at="http://127.0.0.1:1").tenants
    assert document.settings_for("http://127.0.0.1:1" + shared_path(party.tenant)).max_attempts == 1
    assert document.settings_for("http://127.0.0.1:1" + live_path(party.tenant)) == LIVING
    assert registry(PARTIES).tenants[0].targets == {}


def test_a_run_in_which_all_went_well_keeps_every_promise():
    figures = figures_of(Story().whole())
    assert broken(figures) == [] and figures.kept
    tiers = figures.tiers.values()
    assert sum(tier.ended for tier in tiers) == sum(tier.tenants for tier in tiers) == 47
    assert figures.tiers["critical"].took == pytest.approx(2 * (figures.tiers["critical"].alone or 0))
    assert figures.tiers["critical"].share == pytest.approx(0.5 * 5 / SLOTS)


@pytest.mark.parametrize(
    ("account", "law"),
    [(replace(KEPT_ALL, accepted=101), "lost"), (replace(KEPT_ALL, faults=("one",)), "lost")],
)
def test_what_is_lost_and_a_fault_in_the_books_break_a_promise(account, law):
    (only,) = broken(figures_of(Story().whole(), account))
    assert law in only


def test_live_work_that_waits_longer_than_before_breaks_one():
    (only,) = broken(figures_of(Story().whole(during=0.2)))
    assert "live work" in only


def test_a_black_hole_that_takes_more_than_its_share_breaks_one():
    story = Story().whole(hole=3)
    figures = figures_of(story)
    assert figures.odd[Kind.HOLE].share == pytest.approx(3 * 0.5 / SLOTS)
    (only,) = broken(figures)
    assert "black hole" in only


def test_a_replay_that_did_not_end_or_stop_or_had_too_little_breaks_one():
    story = Story().whole()
    last, poison = story.incident.of(Kind.ORDINARY)[-1], story.incident.of(Kind.POISON)[0]
    story.incident.progress[last.tenant] = seen(last, ReplayState.RUNNING, Counts(waiting=1))
    story.incident.stopped[poison.tenant] = seen(poison, ReplayState.RUNNING, Counts(waiting=1))
    assert len(broken(figures_of(story))) == 2


def test_whoever_held_less_than_the_floor_breaks_one():
    story = Story().whole(idle=frozenset({Kind.POISON, Kind.LARGE}))
    figures = figures_of(story)
    assert figures.over_floor == 0.0 and len(broken(figures)) == 1


def test_only_bystanders_who_started_before_the_outage_or_while_replays_ran_are_counted():
    live = figures_of(Story().whole(during=0.05)).live["bystanders"]
    assert (live.before, live.during) == (0.04, 0.05)
    assert (live.jobs_before, live.jobs_during) == (9, 10), "the first second is warming up"


def test_what_came_to_a_target_beyond_what_was_delivered_was_delivered_twice():
    story = Story().whole()
    for party in story.incident.of(Kind.ORDINARY):
        story.incident.requests_before[shared_path(party.tenant)] = 7
        story.incident.requests_after[shared_path(party.tenant)] = 7 + party.letters
    assert figures_of(story).twice == 0
    story.incident.requests_after[shared_path(story.incident.of(Kind.ORDINARY)[0].tenant)] += 3
    assert figures_of(story).twice == 3


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_of_the_incident_that_is_shown_is_cut_off(width):
    story = Story().whole()
    figures = figures_of(story)
    shown = rendered(width, Moment(story.incident).frame()) + printed(width, figures)
    assert "…" not in shown
    assert all(len(each) <= width for each in shown.splitlines())
    assert "stopped itself" in shown and "black hole" in shown and "kept" in shown


def test_a_broken_promise_is_told_as_one_in_words_and_in_the_document():
    figures = figures_of(Story().whole(during=0.2))
    assert "BROKEN" in printed(80, figures)
    assert list(incident_document(figures)["promises"].values()).count(False) == 1


def test_a_line_for_a_log_says_how_far_the_replays_are():
    words = Moment(Story().whole().incident).line()
    assert "47 of 50 replays ended" in words and "1,410 replayed" in words


async def test_the_dependency_is_down_for_its_parts_only_and_comes_back_to_each_in_its_way():
    places = [Place("good", Kind.ORDINARY, 2), Place("bad", Kind.POISON, 1)]
    async with Target() as target:
        fail(target, places)
        assert await _statuses(target) == [503, 503, 200]
        come_back(target, places)
        assert await _statuses(target) == [200, 422, 200]


async def _statuses(target: Target) -> list[int]:
    import aiohttp

    paths = (shared_path("good"), shared_path("bad"), live_path("good"))
    async with aiohttp.ClientSession() as client:
        answers = [await client.post(target.url + path, data=b"{}") for path in paths]
        return [answer.status for answer in answers]


def printed(width: int, figures: Found) -> str:
    file = io.StringIO()
    print_incident(Console(file=file, width=width, no_color=True, highlight=False), figures)
    return file.getvalue()


def rendered(width: int, picture) -> str:
    file = io.StringIO()
    Console(file=file, width=width, no_color=True, highlight=False).print(picture)
    return file.getvalue()
