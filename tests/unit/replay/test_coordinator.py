"""The coordinator leads replays from their source to their end, whatever happens on the way."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from replay_world import BROKER, GLOBEX, LOG, QUICK, Place, World, messages

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Timestamp
from tenantry.lanes.model import Target
from tenantry.replay import events
from tenantry.replay.model import (
    Budget,
    Counts,
    Edit,
    EditKind,
    Filters,
    Hold,
    HoldRule,
    ReplayId,
    ReplayState,
    ReplayView,
    Traits,
)
from tenantry.replay.progress import Phase, decoded

S = ReplayState


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    for holder in list(world.coordinators):
        if holder in world._tasks:
            await world.stop(holder)


@pytest.mark.parametrize("traits", [BROKER, LOG], ids=["broker", "log"])
async def test_a_replay_takes_everything_delivers_it_and_finishes(world: World, traits: Traits) -> None:
    place = Place(messages(700), traits)
    replay = world.start(place)
    world.launch()
    view = await world.ended(replay)
    assert view.state is S.FINISHED
    assert view.counts == Counts(delivered=700)
    assert place.acknowledged == {f"m{n}" for n in range(700)}
    assert set(world.store.sent.values()) == {1}
    assert place.opened == 1
    record = world.progress(replay)
    assert (record.phase, record.done, record.total, record.taken) == (Phase.FINISHED, 700, 700, 700)


async def test_an_empty_source_is_a_replay_that_finishes(world: World) -> None:
    replay = world.start(Place([]))
    world.launch()
    assert (await world.ended(replay)).state is S.FINISHED


async def test_nothing_is_acknowledged_before_it_is_staged(world: World) -> None:
    place = Place(messages(120))
    replay = world.start(place)

    def staged_first() -> None:
        keys = {job.staged.message.id for job in world.jobs(replay)}
        assert place.acknowledged <= keys

    world.store.before_commit = staged_first
    world.launch()
    await world.ended(replay)
    assert not world.events(events.ReplayFaulted)


async def test_what_is_under_way_and_in_hand_stays_within_the_window(world: World) -> None:
    place = Place(messages(2_000), replace(BROKER, window=20))
    replay = world.start(place)
    most = 0

    def look() -> None:
        nonlocal most
        most = max(most, world.view(replay).counts.unended)

    world.store.after_commit = look
    world.launch()
    await world.ended(replay)
    assert most <= 50
    assert place.most_in_hand <= 20


async def test_messages_that_are_not_meant_stay_in_the_source(world: World) -> None:
    late = [replace(each, id=f"x{each.id}") for each in messages(40, error_class="timeout")]
    place = Place([*messages(60), *late])
    replay = world.start(place, filters=Filters(error_classes=frozenset({"timeout"})))
    world.launch()
    view = await world.ended(replay)
    assert view.counts == Counts(delivered=40, left=60)
    assert place.rest == {f"m{n}" for n in range(60)}


async def test_what_was_left_and_comes_again_after_a_pause_is_counted_once(world: World) -> None:
    place = Place(messages(60), endless=True)
    replay = world.start(place, filters=Filters(error_classes=frozenset({"timeout"})))
    world.launch()
    await world.until(lambda: world.view(replay).counts.left == 60)
    world.order(replay, S.PAUSED)
    await world.rounds(replay)
    world.order(replay, S.RUNNING)
    place.endless = False
    view = await world.ended(replay)
    assert place.opened == 2
    assert view.counts == Counts(left=60)


async def test_edits_are_made_and_where_they_cannot_be_the_message_is_parked(world: World) -> None:
    place = Place([*messages(3), replace(messages(1)[0], id="odd", payload=b"<xml/>")])
    replay = world.start(place, edits=(Edit(EditKind.SET, "$.v", "2"),), target=Target("https://b.example/"))
    world.launch()
    view = await world.ended(replay)
    assert (view.counts.delivered, view.counts.parked) == (3, 1)
    staged = {job.staged.message.id: job.staged for job in world.jobs(replay)}
    assert staged["m1"].payload == b'{"n":1,"v":2}'
    assert staged["m1"].target == "https://b.example/"
    assert staged["odd"].broken == "the payload is no JSON: Expecting value at character 0"
    assert events.MessagesParked(view.spec.tenant, replay, "broken", 1) in world.told


async def test_r2_what_is_no_message_is_parked_with_its_reason_and_the_rest_goes_on(world: World) -> None:
    nowhere = replace(messages(1)[0], id="nowhere", target=None)
    place = Place([*messages(20), nowhere], faults={"m7": "no id"})
    replay = world.start(place)
    world.launch()
    view = await world.ended(replay)
    assert view.counts == Counts(delivered=19, parked=2)
    reasons = {job.staged.message.id: job.staged.broken for job in world.jobs(replay) if job.staged.broken}
    assert reasons == {"m7": "no id", "nowhere": "nobody says where it was to go; give the replay a target"}
    assert not place.rest


@pytest.mark.parametrize("traits", [BROKER, LOG], ids=["broker", "log"])
async def test_r2_what_the_store_cannot_hold_is_offered_again_as_broken_and_parked(
    world: World, traits: Traits
) -> None:
    place = Place(messages(60), traits)
    replay = world.start(place)
    world.store.unholdable = frozenset({"m0", "m33"})
    world.launch()
    view = await world.ended(replay)
    assert view.counts == Counts(delivered=58, parked=2)
    assert set(world.store.sent.values()) == {1}


STAGES = ["fetched", "committed", "acknowledged", "draining", "held", "paused", "cancelling"]


@pytest.mark.parametrize("traits", [BROKER, LOG], ids=["broker", "log"])
@pytest.mark.parametrize("stage", STAGES)
async def test_r3_killed_in_each_stage_another_goes_on_and_nothing_is_sent_twice(
    world: World, stage: str, traits: Traits
) -> None:
    place = Place(messages(300), traits)
    replay = world.start(place)
    world.store.permits = 7
    reached = asyncio.Event()
    match stage:
        case "fetched":
            place.after_fetch = lambda: reached.set() if sum(place.fetched.values()) > 60 else None
        case "committed":
            world.store.after_commit = lambda: reached.set() if len(list(world.jobs(replay))) > 60 else None
        case "draining":
            world.store.permits = 1
    world.launch("n1")
    if stage in {"fetched", "committed"}:
        await reached.wait()
    elif stage == "draining":
        world.store.permits = 50
        await world.until(lambda: world.view(replay).exhausted)
        world.store.permits = 1
    else:
        await world.until(lambda: world.view(replay).counts.delivered > 50)
    if stage == "held":
        place.down = True
        await world.held(replay)
    if stage == "paused":
        world.order(replay, S.PAUSED)
    if stage == "cancelling":
        world.order(replay, S.CANCELLING)
    await world.kill("n1")
    place.down = False
    world.store.permits = 50
    if stage == "paused":
        assert world.view(replay).state is S.PAUSED
        world.order(replay, S.RUNNING)
    world.launch("n2")
    view = await world.ended(replay)
    assert max(world.store.sent.values()) == 1
    counts = view.counts
    if stage == "cancelling":
        assert view.state is S.CANCELLED
        assert counts.delivered + counts.returned == counts.taken > 50
    else:
        assert counts == Counts(delivered=300)
        assert place.acknowledged == {f"m{n}" for n in range(300)}
    assert view.token == 2


async def test_a_pause_stops_the_taking_gives_back_what_is_in_hand_and_a_resume_goes_on(world: World) -> None:
    place = Place(messages(400))
    replay = world.start(place)
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered > 50)
    world.order(replay, S.PAUSED)
    await world.rounds(replay)
    taken = world.view(replay).counts.taken
    await world.rounds(replay, 20)
    assert world.view(replay).counts.taken == taken < 400
    assert world.progress(replay).phase is Phase.PAUSED
    world.order(replay, S.RUNNING)
    assert (await world.ended(replay)).counts == Counts(delivered=400)


async def test_an_order_does_not_wait_for_a_source_that_is_silent() -> None:
    world = World(replace(QUICK, run=replace(QUICK.run, patience=3_600.0)))
    place = Place(messages(400), endless=True)
    replay = world.start(place)
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered > 50)
    place.silent = True
    world.order(replay, S.CANCELLING)
    assert (await world.ended(replay)).state is S.CANCELLED
    await world.stop()


async def test_cancel_takes_no_more_and_returns_what_waits(world: World) -> None:
    place = Place(messages(5_000))
    replay = world.start(place)
    world.store.permits = 5
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered > 50)
    world.order(replay, S.CANCELLING)
    view = await world.ended(replay)
    assert view.state is S.CANCELLED
    assert view.counts.delivered + view.counts.returned == view.counts.taken < 5_000
    assert len(place.rest) == 5_000 - view.counts.taken
    (ended,) = world.events(events.ReplayEnded)
    assert isinstance(ended, events.ReplayEnded)
    assert (ended.state, ended.taken) == (S.CANCELLED, view.counts.taken)


async def test_a_sample_is_run_and_held_until_a_person_lets_it_go_on(world: World) -> None:
    replay = world.start(Place(messages(500)), sample=0.1)
    world.launch()
    hold = await world.held(replay)
    assert hold.rule is HoldRule.SAMPLE
    assert hold.reason.startswith("the sample of 50 messages was run: 50 delivered, 0 parked, 0 dead")
    assert world.view(replay).counts == Counts(delivered=50)
    world.order(replay, S.RUNNING, sampled=True)
    assert (await world.ended(replay)).counts == Counts(delivered=500)


async def test_a_budget_of_messages_is_never_passed_and_a_larger_one_lets_it_go_on(world: World) -> None:
    replay = world.start(Place(messages(500)), budget=Budget(messages=75))
    world.launch()
    hold = await world.held(replay)
    assert (hold.rule, hold.stops) == (HoldRule.BUDGET, False)
    await world.until(lambda: world.view(replay).counts.delivered == 75)
    record = world.store.records[replay]
    record.view = replace(record.view, spec=replace(record.view.spec, budget=Budget(messages=1_000)))
    assert (await world.ended(replay)).counts == Counts(delivered=500)
    assert S.RUNNING in record.moves


async def test_running_time_is_what_a_budget_counts_and_not_time_that_was_paused(world: World) -> None:
    replay = world.start(Place(messages(500), endless=True), budget=Budget(running_for=100.0))
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered == 500)
    world.clock.advance(10.0)
    await world.rounds(replay)
    world.order(replay, S.PAUSED)
    await world.rounds(replay)
    for _ in range(20):
        world.clock.advance(10.0)  # less than the lease each
        await world.rounds(replay)
    world.order(replay, S.RUNNING)
    await world.rounds(replay)
    assert 10.0 <= world.progress(replay).running_for < 30.0
    for _ in range(10):
        world.clock.advance(10.0)
        await world.rounds(replay)
    assert (await world.held(replay)).rule is HoldRule.BUDGET


async def test_a_deadline_holds_and_stops_what_waits(world: World) -> None:
    replay = world.start(Place(messages(500)), budget=Budget(until=Timestamp(world.clock.now() + 5)))
    world.store.outcome = lambda staged: "down"
    world.launch()
    await world.until(lambda: world.view(replay).counts.waiting > 0)
    world.clock.advance(6.0)
    hold = await world.held(replay)
    assert (hold.rule, hold.stops) == (HoldRule.BUDGET, True)


@pytest.mark.parametrize("traits", [BROKER, LOG], ids=["broker", "log"])
async def test_a_quota_holds_until_it_frees_and_nothing_is_lost(traits: Traits) -> None:
    world = World(replace(QUICK, lease_for=10_000.0))
    place = Place(messages(200), traits)
    replay = world.start(place)
    world.store.quota_after = 70
    world.launch()
    hold = await world.held(replay)
    assert hold.rule is HoldRule.QUOTA
    assert world.view(replay).counts.taken == 70
    assert len(place.acknowledged) == 70
    world.store.quota_after = None
    await world.rounds(replay)
    assert world.view(replay).state is S.HELD
    world.clock.advance(3_599.0)
    await world.rounds(replay)
    assert world.view(replay).state is S.HELD
    world.clock.advance(1.0)
    assert (await world.ended(replay)).counts == Counts(delivered=200)
    assert place.opened == 2
    assert world.events(events.ReplayFreed)
    await world.stop()


async def test_over_the_number_of_running_replays_it_waits_for_a_place(world: World) -> None:
    first = world.start(Place(messages(50), endless=True))
    second = world.start(Place(messages(50)), target=Target("https://b.example/"))
    waits = Hold(HoldRule.CONCURRENCY, "it waits for a place")
    record = world.store.records[second]
    record.view = replace(record.view, state=S.HELD, hold=waits)
    world.store.most_running = 1
    world.launch()
    await world.rounds(second, 20)
    assert world.view(second).hold == waits
    world.places[first].endless = False
    await world.ended(first)
    assert (await world.ended(second)).counts == Counts(delivered=50)


async def test_a_source_that_cannot_be_read_holds_its_replay_and_is_tried_again_later_each_time(
    world: World,
) -> None:
    place = Place(messages(100), down=True)
    replay = world.start(place)
    world.launch()
    waits: list[float] = []
    for tried in range(1, 5):
        await world.until(lambda: len(world.events(events.SourceFailed)) >= tried)  # noqa: B023 - awaited here
        hold = await world.held(replay)
        assert hold.rule is HoldRule.SOURCE
        assert hold.reason == "its source cannot be read: no route to the broker"
        assert hold.frees_at is not None
        waits.append(hold.frees_at - world.clock.now())
        place.down = tried < 4
        world.clock.advance(waits[-1] + 0.01)
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]
    assert (await world.ended(replay)).counts == Counts(delivered=100)


async def test_a_source_that_fails_in_the_middle_loses_nothing(world: World) -> None:
    place = Place(messages(300))
    replay = world.start(place)
    world.store.after_commit = lambda: setattr(place, "down", True)  # it cannot be acknowledged
    world.launch()
    await world.held(replay)
    assert place.rest
    place.down, world.store.after_commit = False, lambda: None
    world.clock.advance(2.0)
    view = await world.ended(replay)
    assert view.counts == Counts(delivered=300)
    assert max(world.store.sent.values()) == 1
    assert place.opened == 2


async def test_one_silent_one_broken_and_one_faulty_source_hold_up_nobody_else(world: World) -> None:
    world.start(Place(messages(10), silent=True), name="silent")
    world.start(Place(messages(10), down=True), name="down")
    faulty = Place(messages(10))
    world.start(faulty, name="faulty")

    def fault() -> None:
        raise ValueError("a bug of the adapter's, at amqp://user:secret@host")

    faulty.after_fetch = fault
    good = [world.start(Place(messages(300)), name=f"good{n}", tenant=GLOBEX) for n in range(5)]
    world.launch()
    for replay in good:
        assert (await world.ended(replay)).counts == Counts(delivered=300)
    (told, *_) = world.events(events.ReplayFaulted)
    assert isinstance(told, events.ReplayFaulted)
    assert told.fault.startswith("ValueError (test_coordinator.py:"), "a client's words may hold a secret"


async def test_a_store_that_does_not_answer_is_waited_for(world: World) -> None:
    replay = world.start(Place(messages(300)))
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered > 50)
    world.store.down = True
    calls = world.store.calls.total()
    await world.until(lambda: world.store.calls.total() > calls + 20)
    world.store.down = False
    view = await world.ended(replay)
    assert view.counts == Counts(delivered=300)
    assert max(world.store.sent.values()) == 1


async def test_a_lost_lease_drops_everything_and_the_other_goes_on(world: World) -> None:
    place = Place(messages(3_000), LOG)
    replay = world.start(place)
    first = world.launch("n1")
    await world.until(lambda: world.view(replay).counts.delivered > 50)
    record = world.store.records[replay]
    record.view = replace(record.view, token=record.view.token + 1, holder="n2")  # another has it now
    record.lease_until = world.clock.now() + 15.0
    await world.until(lambda: replay not in first.replays)
    taken, feeds = world.view(replay).counts.taken, world.store.calls["feed"]
    takes = world.store.calls["take"]
    await world.until(lambda: world.store.calls["take"] > takes + 5)
    assert (world.view(replay).counts.taken, world.store.calls["feed"]) == (taken, feeds)
    (lost,) = world.events(events.ReplayLost)
    assert isinstance(lost, events.ReplayLost)
    assert (lost.holder, lost.token) == ("n1", 1)


async def test_a_replay_that_ends_while_its_lease_is_renewed_is_not_said_to_be_lost(world: World) -> None:
    """An end gives the lease back: a renewal that comes before its task has heard of it finds none."""
    move = world.store.move

    async def slow(*given: object, **named: object) -> object:
        found = await move(*given, **named)  # type: ignore[arg-type]
        if S.FINISHED in given:
            keeps = world.store.calls["keep"]
            await world.until(lambda: world.store.calls["keep"] > keeps + 2)
        return found

    world.store.move = slow  # type: ignore[method-assign, assignment]
    replay = world.start(Place(messages(20)))
    world.launch()
    await world.ended(replay)
    await world.until(lambda: bool(world.events(events.ReplayEnded) or world.events(events.ReplayLost)))
    assert world.events(events.ReplayLost) == []


async def test_what_cannot_be_trusted_any_more_is_dropped_without_an_answer_of_the_store() -> None:
    world = World(replace(QUICK, lease_for=1.0))
    replay = world.start(Place(messages(3_000)))
    coordinator = world.launch()
    await world.until(lambda: world.view(replay).counts.delivered > 50)
    world.store.down = True
    world.clock.advance(0.95)
    await world.until(lambda: not coordinator.replays)
    world.store.down = False
    world.clock.advance(1.0)
    assert (await world.ended(replay)).counts == Counts(delivered=3_000)
    await world.stop()


async def test_a_coordinator_that_is_asked_to_go_frees_its_leases_at_once(world: World) -> None:
    replay = world.start(Place(messages(2_000)))
    world.launch("n1")
    await world.until(lambda: world.view(replay).counts.delivered > 50)
    await world.stop("n1")
    world.launch("n2")
    view = await world.ended(replay)
    assert view.counts == Counts(delivered=2_000)
    assert view.token == 2


async def test_two_coordinators_share_and_no_replay_is_led_by_both(world: World) -> None:
    world.settings = replace(world.settings, most_at_once=2)
    targets = [Target(f"https://{n}.example/") for n in range(8)]
    replays = [world.start(Place(messages(200), endless=True), target=target) for target in targets]
    one, other = world.launch("n1"), world.launch("n2")
    await world.until(lambda: all(world.view(each).counts.delivered == 200 for each in replays))
    assert not one.replays & other.replays
    assert one.replays | other.replays == set(replays)
    assert len(one.replays) >= 2 <= len(other.replays)


async def test_a_dry_run_matches_and_counts_and_takes_nothing(world: World) -> None:
    for traits in (BROKER, LOG):
        place = Place([*messages(300), replace(messages(1)[0], id="odd", payload=b"<xml/>")], traits)
        replay = world.start(place, dry_run=True, edits=(Edit(EditKind.SET, "$.v", "2"),))
        if not world.coordinators:
            world.launch()
        view = await world.ended(replay)
        assert view.counts.taken == 0
        assert len(place.rest) == 301
        dry = world.progress(replay).dry
        assert dry is not None
        assert (dry.matched, dry.left, dry.broken) == (301, 0, 1)
    assert not world.store.sent


async def test_r9_a_backlog_that_is_all_poison_stops_itself_early_and_says_why(world: World) -> None:
    place = Place(messages(100_000, error_class="http_422", failure="bad order"))
    replay = world.start(place)
    world.store.outcome = lambda staged: "bad"
    world.launch()
    hold = await world.held(replay)
    assert (hold.rule, hold.stops, hold.frees_at) == (HoldRule.POISON, True, None)
    assert "were parked, by their own fault" in hold.reason
    counts = world.view(replay).counts
    assert counts.taken <= 500
    sent = world.store.sent.total()
    assert sent <= 300
    await world.rounds(replay, 20)
    assert (world.store.sent.total(), world.view(replay).counts.taken) == (sent, counts.taken)
    world.store.outcome = lambda staged: "ok"  # the consumer was repaired
    world.order(replay, S.RUNNING)
    await world.until(lambda: world.view(replay).counts.delivered > 1_000)


async def test_r9_a_poisoned_class_is_parked_and_the_rest_goes_on(world: World) -> None:
    bad = [
        replace(each, id=f"b{n}", error_class="http_422", failure=f"order {n} not found")
        for n, each in enumerate(messages(600))
    ]
    place = Place([each for pair in zip(messages(600), bad, strict=True) for each in pair])
    replay = world.start(place)
    world.store.outcome = lambda staged: "bad" if staged.message.id.startswith("b") else "ok"
    world.launch()
    view = await world.ended(replay)
    assert view.counts.delivered == 600
    assert view.counts.parked == 600
    assert sum(count for each, count in world.store.sent.items() if each.startswith("b")) <= 200
    (told,) = world.events(events.ClassHeld)
    assert isinstance(told, events.ClassHeld)
    assert told.reason.endswith("attempts of its class failed alike and 0 of it were delivered")


async def test_a_continue_after_a_sample_tries_the_classes_again_that_failed_in_it(world: World) -> None:
    bad = [replace(each, id=f"b{n}", error_class="http_422") for n, each in enumerate(messages(600))]
    place = Place([each for pair in zip(messages(600), bad, strict=True) for each in pair])
    replay = world.start(place, sample=0.5)
    world.store.outcome = lambda staged: "bad" if staged.message.id.startswith("b") else "ok"
    world.launch()
    assert (await world.held(replay)).rule is HoldRule.SAMPLE
    assert len(world.events(events.ClassHeld)) == 1
    assert world.view(replay).counts.parked == 300
    assert decoded(world.view(replay).progress).classes_held == 1
    world.store.outcome = lambda staged: "ok"  # the consumer was repaired
    world.order(replay, S.RUNNING, sampled=True)
    assert (await world.ended(replay)).counts.parked == 300, "what comes after the sample is sent"


async def test_r7_a_held_replay_says_no_time_and_its_rate_does_not_fall_meanwhile() -> None:
    world = World(replace(QUICK, lease_for=10_000.0))
    place = Place(messages(20_000))
    replay = world.start(place)
    world.launch()

    def tick() -> None:
        world.clock.advance(1.0)

    world.store.after_commit = tick
    await world.until(lambda: bool(world.view(replay).progress))
    await world.until(lambda: world.progress(replay).eta is not None)
    before = world.progress(replay)
    assert before.phase is Phase.STEADY
    world.store.after_commit = lambda: None
    place.down = True
    await world.held(replay)
    world.clock.advance(0.7)  # no retry is due yet
    await world.rounds(replay)
    held = world.progress(replay)
    assert (held.phase, held.eta) == (Phase.HELD, None)
    assert held.eta_why == "held: time stands still for it"
    assert held.rate > 0.5 * before.rate
    await world.stop()


async def test_r8_new_failures_are_counted_beside_the_replay(world: World) -> None:
    place = Place(messages(300), endless=True, new=0)
    replay = world.start(place)
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered == 300)
    place.new = 42
    await world.until(lambda: world.progress(replay).new_since_start == 42)
    assert world.progress(replay).total == 300
    place.endless = False
    assert (await world.ended(replay)).counts == Counts(delivered=300)


async def test_a_tenant_that_replays_the_same_failures_again_is_told_to_go_in_circles(world: World) -> None:
    place = Place(messages(40))
    first = world.start(place)
    world.store.outcome = lambda staged: "bad" if int(staged.message.id[1:]) % 4 else "ok"
    world.launch()
    await world.ended(first)
    assert not world.events(events.ReplayInCircles)
    second = world.start(Place(messages(40)))
    world.store.outcome = lambda staged: "bad"
    await world.ended(second)
    (told,) = world.events(events.ReplayInCircles)
    assert isinstance(told, events.ReplayInCircles)
    assert told.replay == second
    assert told.part == pytest.approx(30 / 40)
    assert world.progress(second).circling


async def test_lanes_that_say_nothing_stop_nothing(world: World) -> None:
    replay = world.start(Place(messages(200)))
    world.lanes.down = True
    world.launch()
    assert (await world.ended(replay)).counts == Counts(delivered=200)


async def test_a_spec_that_cannot_be_compiled_is_its_own_replays_fault_alone(world: World) -> None:
    bad = world.start(Place(messages(5)), edits=(Edit(EditKind.REMOVE, "$"),))
    good = world.start(Place(messages(50)))
    world.launch()
    assert (await world.ended(good)).counts == Counts(delivered=50)
    hold = await world.held(bad)
    assert hold.rule is HoldRule.SOURCE
    assert "edits[0].at" in hold.reason


async def test_the_phases_of_what_it_leads_are_measured(world: World) -> None:
    replay = world.start(Place(messages(50), endless=True))
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered == 50)
    await world.rounds(replay, 10)
    measured = [each.phases for each in world.told if isinstance(each, events.ReplaysMeasured)]
    assert {"discovering": 1} in measured


async def test_a_store_that_refuses_what_is_marked_as_broken_is_a_fault_that_is_told(world: World) -> None:
    replay = world.start(Place(messages(5)))

    def broken(*_: object) -> None:
        raise InvariantBroken("a row")

    world.store.before_commit = broken
    world.launch()
    await world.until(lambda: bool(world.events(events.ReplayFaulted)))
    (told, *_) = world.events(events.ReplayFaulted)
    assert isinstance(told, events.ReplayFaulted)
    assert told.fault.startswith("InvariantBroken: a row (")
    world.store.before_commit = lambda: None
    assert (await world.ended(replay)).counts == Counts(delivered=5)


async def test_an_adapter_that_cancels_its_caller_ends_no_other_replay(world: World) -> None:
    odd, good = Place(messages(5)), Place(messages(300))
    world.start(odd, name="odd")

    def cancel() -> None:
        raise asyncio.CancelledError

    odd.after_fetch = cancel
    replay = world.start(good, target=Target("https://b.example/"))
    world.launch()
    assert (await world.ended(replay)).counts == Counts(delivered=300)
    odd.after_fetch = lambda: None
    assert (await world.ended(ReplayId("odd"))).counts == Counts(delivered=5)


async def test_where_filters_leave_most_of_a_source_it_is_passed_over_in_few_looks(world: World) -> None:
    late = [replace(each, id=f"x{each.id}") for each in messages(40, error_class="timeout")]
    place = Place([*messages(20_000), *late], LOG)
    replay = world.start(place, filters=Filters(error_classes=frozenset({"timeout"})))
    world.launch()
    assert (await world.ended(replay)).counts == Counts(delivered=40, left=20_000)
    assert world.store.calls["feed"] < 40


async def test_a_continue_is_not_undone_by_a_record_that_was_on_its_way() -> None:
    world = World(replace(QUICK, lease_for=10_000.0))
    replay = world.start(Place(messages(500)), sample=0.1)
    world.launch()
    await world.held(replay)

    def go_on() -> None:  # between what the coordinator saw and what it writes
        world.store.before_move = lambda: None
        world.order(replay, S.RUNNING, sampled=True)

    world.store.before_move = go_on
    world.clock.advance(16.0)  # so long after the last record comes another
    assert (await world.ended(replay)).counts == Counts(delivered=500)
    await world.stop()


async def test_a_row_that_cannot_be_read_does_not_end_the_replays_that_are_led(world: World) -> None:
    replay = world.start(Place(messages(300), endless=True))
    world.launch()
    await world.until(lambda: world.view(replay).counts.delivered == 300)
    take = world.store.take

    async def bad_row(*_: object, **__: object) -> list[ReplayView]:
        raise ValueError("a spec of another version")

    world.store.take = bad_row  # type: ignore[method-assign]
    await world.until(lambda: bool(world.events(events.CoordinatorFaulted)))
    world.places[replay].endless = False
    assert (await world.ended(replay)).counts == Counts(delivered=300)
    world.store.take = take  # type: ignore[method-assign]
    other = world.start(Place(messages(10)), target=Target("https://b.example/"))
    assert (await world.ended(other)).counts == Counts(delivered=10)


async def test_what_takes_long_to_edit_is_edited_beside_the_loop_and_stays_in_order(world: World) -> None:
    long = [replace(each, payload=b"[" + b"0," * 9_000 + b"0]") for each in messages(6)]
    place = Place([*long, *messages(2, error_class="timeout")])
    only = Filters(error_classes=frozenset({long[0].error_class}))
    replay = world.start(place, filters=only, edits=(Edit(EditKind.SET, "$[*]", "1"),))
    world.launch()
    view = await world.ended(replay)
    assert (view.counts.delivered, view.counts.left) == (6, 2)
    staged = [job.staged for job in world.jobs(replay)]
    assert [each.message.id for each in staged] == [f"m{n}" for n in range(6)]
    assert {each.payload for each in staged} == {b"[" + b"1," * 9_000 + b"1]"}


async def test_nothing_more_is_taken_for_a_tenant_that_is_gone_until_it_is_back() -> None:
    world = World(replace(QUICK, lease_for=10_000.0))
    before = world.directory.registry
    place = Place(messages(200))
    replay = world.start(place)
    world.directory.replace(replace(before, tenants=()))
    world.launch()
    hold = await world.held(replay)
    assert hold.reason.startswith("the tenant is in the registry no more")
    assert (hold.rule, world.view(replay).counts.taken) == (HoldRule.QUOTA, 0)
    world.directory.replace(before)
    world.clock.advance(60.0)
    assert (await world.ended(replay)).counts == Counts(delivered=200)
    await world.stop()
