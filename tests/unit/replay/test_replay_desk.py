"""The side of people: a plan looks and consumes nothing, and an order is carried out or says why not."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from replay_world import ACME, HOOK, LOG, Place, Session, messages

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.config.validation import RegistryErrors
from tenantry.kernel.errors import InvalidValue, SourceUnavailable, UnknownTenant
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.memory.directory import MemoryDirectory
from tenantry.memory.queue_store import MemoryQueueStore
from tenantry.memory.replay_books import ReplayBooks
from tenantry.memory.replay_desk import MemoryReplayDesk
from tenantry.memory.replay_store import MemoryReplayStore
from tenantry.queue.model import JobId
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.desk import NotNow, PlanSettings, PlanTooOld, ReplayService, UnknownReplay
from tenantry.replay.events import ReplayOrdered
from tenantry.replay.lifecycle import PLAN_KEPT_FOR
from tenantry.replay.model import (
    Budget,
    Edit,
    EditKind,
    Filters,
    LanePace,
    ReplayId,
    ReplaySpec,
    ReplayState,
    SourceAddress,
)
from tenantry.replay.progress import DryRun, Phase, encoded, starting
from tenantry.testing.clock import ManualClock

S = ReplayState


class Desk:
    """The service over the stores in memory, and one place where messages lie."""

    def __init__(self, place: Place) -> None:
        self.clock, self.told, self.place = ManualClock(), list[Event](), place
        self.closed = 0
        tier = Tier(TierName("gold"), replays=1, replayed_a_day=100)
        directory = MemoryDirectory(Registry((tier,), (TenantDocument(ACME, tier.name),)))
        self.randomness = SeededRandomness(1)
        around = Surroundings(directory, self.clock, self.randomness, self.told.append)
        books = ReplayBooks(MemoryQueueStore(self.clock, SeededRandomness(2)))
        self.store = MemoryReplayStore(books)
        self.service = ReplayService(
            MemoryReplayDesk(books), self, self, around, settings=PlanSettings(sample=50, patience=0.05)
        )

    def source(self, tenant: TenantId, address: SourceAddress) -> Session:
        desk = self

        class Counted(Session):
            async def close(self) -> None:
                desk.closed += 1
                await super().close()

        return Counted(self.place)

    async def shares(self, tenant: TenantId) -> tuple[float, float] | None:
        return None

    async def lanes(self, tenant: TenantId, targets: object) -> Mapping[str, LanePace]:
        return {HOOK: LanePace(10, 0.1)}

    async def started(self, **spec: object) -> ReplayId:
        planned = await self.service.plan(of(**spec))
        await self.service.start(ACME, planned.view.id)
        return planned.view.id


def of(**spec: object) -> ReplaySpec:
    return ReplaySpec(tenant=ACME, source=SourceAddress("jsonl", "x"), **spec)  # type: ignore[arg-type]


async def test_a_plan_says_what_it_would_meet_and_consumes_nothing() -> None:
    odd = replace(messages(1)[0], id="odd", payload=b"<xml/>")
    nowhere = replace(messages(1)[0], id="nowhere", target=None)
    place = Place([odd, nowhere, *messages(298)], LOG, faults={"m0": "no id"})
    desk = Desk(place)
    planned = await desk.service.plan(of(edits=(Edit(EditKind.SET, "$.v", "1"),)))
    report = planned.report
    assert (report.count, report.sample, report.whole, report.frozen) == (300, 50, False, True)
    assert report.meant.count == 300
    assert sorted(group.name for group in report.reasons) == [
        "no id",
        "nobody says where it was to go; give the replay a target",
        "the payload is no JSON: Expecting value at character 0",
    ]
    assert [group.name for group in report.by_target] == [HOOK, "unknown"]
    (over,) = report.over
    assert (over.quota, over.limit, over.left) == ("replayed_a_day", 100, 100)
    assert report.duration.low is not None
    assert not place.fetched
    assert desk.closed == 1
    assert planned.view.state is S.PLANNED
    assert desk.told == [ReplayOrdered(ACME, planned.view.id, "plan")]


async def test_a_plan_counts_only_what_the_filters_mean() -> None:
    desk = Desk(Place([*messages(30), *messages(10, error_class="timeout")], LOG))
    planned = await desk.service.plan(of(filters=Filters(error_classes=frozenset({"timeout"}))))
    assert (planned.report.meant.count, planned.report.whole) == (10, True)


async def test_a_plan_of_a_source_that_does_not_answer_says_so_and_keeps_nothing() -> None:
    for place in (Place(messages(3), down=True), Place(messages(3), silent=True)):
        desk = Desk(place)
        with pytest.raises(SourceUnavailable, match=r"no route to the broker|no answer within 0\.05 s"):
            await desk.service.plan(of())
        assert await desk.service.replays(ACME) == []


async def test_a_plan_of_a_spec_that_cannot_be_or_for_nobody_is_refused() -> None:
    desk = Desk(Place(messages(3)))
    with pytest.raises(RegistryErrors, match="park_after"):
        await desk.service.plan(of(park_after=0))
    with pytest.raises(UnknownTenant):
        await desk.service.plan(replace(of(), tenant=TenantId("nobody")))


async def test_a_start_may_be_repeated_and_one_beyond_the_tenants_places_waits() -> None:
    desk = Desk(Place(messages(3)))
    one, other = await desk.started(), await desk.started()
    assert (await desk.service.start(ACME, one)).state is S.RUNNING
    assert (await desk.service.replay(ACME, other)).state is S.HELD


async def test_a_plan_counts_what_the_run_would_park_at_once_as_what_cannot_be_sent() -> None:
    sound, *others = messages(4)
    lost = [replace(each, target=Target("ftp://x")) for each in others]
    found = await Desk(Place([sound, *lost])).service.plan(of())
    assert (found.report.broken.seen, found.report.meant.seen) == (3, 4)
    assert found.report.reasons[0].name.startswith("invalid_url")


async def test_a_plan_of_more_than_a_day_ago_is_not_started() -> None:
    desk = Desk(Place(messages(3)))
    planned = await desk.service.plan(of())
    desk.clock.advance(PLAN_KEPT_FOR)
    with pytest.raises(PlanTooOld, match="plan again"):
        await desk.service.start(ACME, planned.view.id)


async def test_an_order_is_carried_out_or_says_in_which_states_it_could_be() -> None:
    desk = Desk(Place(messages(3)))
    replay = await desk.started()
    assert (await desk.service.pause(ACME, replay)).state is S.PAUSED
    with pytest.raises(
        NotNow, match=r"paused cannot be given 'continue'; it must be held\. Now .* 'resume' or 'cancel'"
    ):
        await desk.service.proceed(ACME, replay)
    assert (await desk.service.resume(ACME, replay)).state is S.RUNNING
    assert (await desk.service.cancel(ACME, replay)).state is S.CANCELLING
    orders = [event.order for event in desk.told if isinstance(event, ReplayOrdered)]
    assert orders == ["plan", "start", "pause", "resume", "cancel"]


async def test_what_is_not_there_is_not_there_for_any_order() -> None:
    desk = Desk(Place(messages(3)))
    absent = ReplayId("0190c0de-0000-7000-8000-000000000001")
    service = desk.service
    for order in (service.start, service.pause, service.resume, service.proceed, service.cancel):
        with pytest.raises(UnknownReplay, match="there is no replay"):
            await order(ACME, absent)
    with pytest.raises(UnknownReplay):
        await service.rebudget(ACME, absent, Budget())
    with pytest.raises(UnknownReplay):
        await service.progress(ACME, absent)


async def test_a_budget_is_changed_until_the_end_and_must_be_one() -> None:
    desk = Desk(Place(messages(3)))
    replay = await desk.started()
    assert (await desk.service.rebudget(ACME, replay, Budget(messages=7))).spec.budget.messages == 7
    with pytest.raises(RegistryErrors, match=r"budget\.messages"):
        await desk.service.rebudget(ACME, replay, Budget(messages=0))
    planned = await desk.service.plan(of())
    await desk.service.cancel(ACME, planned.view.id)
    with pytest.raises(NotNow, match="'budget'"):
        await desk.service.rebudget(ACME, planned.view.id, Budget(messages=8))


async def test_progress_is_what_the_coordinator_told_unless_the_state_has_changed_since() -> None:
    desk = Desk(Place(messages(3)))
    replay = await desk.started()
    assert (await desk.service.progress(ACME, replay)).phase is Phase.DISCOVERING
    view = await desk.service.replay(ACME, replay)
    told = replace(starting(view, desk.clock.now()), rate=7.5, new_since_start=4, dry=DryRun(matched=2))
    current = replace(view, progress=encoded(told))
    assert desk.service.progress_of(current).rate == 7.5
    paused = desk.service.progress_of(replace(current, state=S.PAUSED))
    assert (paused.phase, paused.rate, paused.new_since_start) == (Phase.PAUSED, 0.0, 4)
    of_another_version = replace(current, progress='{"version": 9}')
    assert desk.service.progress_of(of_another_version).phase is Phase.DISCOVERING


async def test_what_is_being_cancelled_is_not_started_again() -> None:
    desk = Desk(Place(messages(1)))
    replay = await desk.started()
    assert (await desk.service.cancel(ACME, replay)).state is S.CANCELLING
    with pytest.raises(NotNow, match="a replay that is cancelling cannot be given 'start'"):
        await desk.service.start(ACME, replay)


async def test_a_payload_that_no_job_may_have_is_not_sent_back() -> None:
    desk = Desk(Place(messages(1)))
    with pytest.raises(InvalidValue, match="at most 1,048,576 bytes"):
        await desk.service.send_back(ACME, JobId(str(UUID(int=1))), payload=b"x" * 1_048_577)


async def test_a_plan_of_what_takes_long_to_look_at_keeps_nobody_else_waiting() -> None:
    long = [replace(each, payload=b"[" + b"0," * 20_000 + b"0]") for each in messages(4)]
    turns = 0

    async def another() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(another())
    desk = Desk(Place(long, LOG))
    planned = await desk.service.plan(of(edits=(Edit(EditKind.SET, "$[*]", "1"),)))
    other.cancel()
    assert turns > 50
    assert (planned.report.sample, planned.report.whole) == (4, True)


async def test_a_plan_looks_no_longer_than_there_is_patience_and_says_that_it_saw_a_part() -> None:
    long = [replace(each, payload=b"[" + b"0," * 9_000 + b"0]") for each in messages(4)]
    desk = Desk(Place(long, LOG))
    draw = desk.randomness.time_ordered_id

    def slow() -> str:
        desk.clock.advance(0.03)
        return draw()

    desk.randomness.time_ordered_id = slow  # type: ignore[method-assign]
    report = (await desk.service.plan(of(edits=(Edit(EditKind.SET, "$[*]", "1"),)))).report
    assert (report.sample, report.whole, report.count) == (2, False, 4)
