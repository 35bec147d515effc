"""What the queue promises to replays: the same jobs in the same lanes, told to their replay and not counted
to their tenant's bound."""

from dataclasses import replace

import pytest

from tenantry.kernel.errors import InvariantBroken
from tenantry.queue.lifecycle import RETURNED_REASON, START_LEASE, WORKER_LOST
from tenantry.queue.model import (
    ClaimedJob,
    Ending,
    EndKind,
    JobClass,
    JobId,
    JobState,
    JobView,
    Node,
    ReplayedJob,
    ReplayEnd,
    ReplayTerms,
    Settlement,
)
from tenantry.queue.settling import LOST_FINGERPRINT
from tenantry.testing.conformance.world import (
    ACME,
    FINGERPRINT,
    GLOBEX,
    HOOK,
    LEASE,
    OTHER_HOOK,
    World,
    batch,
    job,
    messages,
    settlement,
)

HOLDING = ReplayTerms("r1", park_after=5, hold_unknown=True)


class ReplayConformance:
    """Feeding, ending, parking, pausing and withdrawing the jobs of replays."""

    # -- feeding ---------------------------------------------------------------------------------------

    async def test_a_fed_message_is_a_job_of_its_replay_with_its_headers_and_the_terms(
        self, world: World
    ) -> None:
        headers = {"X-Trace": "7", "x-note": "zwölf"}
        (id_,) = await world.feed(*messages(1, headers=headers, prior=4), replay=ReplayTerms("r1", 7, True))
        node = await world.node()
        (held,) = await world.claim(node)
        assert (held.id, held.job_class, held.headers) == (id_, JobClass.REPLAY, headers)
        assert held.replay == ReplayTerms("r1", 7, True)
        assert (held.prior, held.attempt, held.number, held.faults) == (4, 1, 5, 0)
        await world.settle(node, [held], Ending.DELIVERED)

    async def test_a_job_of_no_replay_has_neither_headers_nor_terms(self, world: World) -> None:
        await world.submit(job())
        (held,) = await world.claim(await world.node())
        assert (dict(held.headers), held.replay, held.prior) == ({}, None, 0)

    async def test_the_last_terms_hold_for_what_was_fed_before(self, world: World) -> None:
        await world.feed(*messages(1))
        await world.feed(*messages(1), replay=HOLDING)
        held = await world.claim(await world.node())
        assert [each.replay for each in held] == [HOLDING, HOLDING]

    async def test_messages_start_in_the_order_in_which_they_were_fed(self, world: World) -> None:
        first = await world.feed(*messages(3))
        second = await world.feed(*messages(3))
        assert tuple(each.id for each in await world.claim(await world.node())) == first + second

    async def test_replays_and_live_work_of_one_lane_have_flows_of_their_own(self, world: World) -> None:
        await world.submit(job())
        for replay in ("r1", "r2"):
            await world.feed(*messages(2), *messages(1, target=OTHER_HOOK), replay=replay)
        flows = {flow.opened.flow: flow.opened for flow in (await world.hand.begin()).flows}
        assert sorted((each.replay or "", each.target) for each in flows.values()) == [
            ("", HOOK), ("r1", HOOK), ("r1", OTHER_HOOK), ("r2", HOOK), ("r2", OTHER_HOOK)
        ]  # fmt: skip

    async def test_a_job_that_has_not_ended_is_not_fed(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1))
        with pytest.raises(InvariantBroken):
            await world.feed(ReplayedJob(id_, HOOK, b"{}"), replay="r2")
        assert len(await world.claim(await world.node())) == 1

    # -- the bound -------------------------------------------------------------------------------------

    async def test_a_replay_neither_uses_nor_frees_its_tenants_bound(self, world: World) -> None:
        node = await world.node()
        await world.submit(*batch(2), bound=3)
        await world.feed(*messages(5, target=OTHER_HOOK))
        await world.submit(job(), bound=3)
        held = await world.claim(node, target=OTHER_HOOK)
        await world.settle(node, held[:1], Ending.DELIVERED)
        await world.settle(node, held[1:2], Ending.DEAD)
        await world.settle(node, held[2:3], Ending.PARKED)
        await world.replays.withdraw_replay(ACME, "r1", limit=10)
        await world.room()
        await world.refused(job(), bound=3)

    async def test_counts_and_views_know_the_jobs_of_replays(self, world: World) -> None:
        ids = await world.feed(*messages(5))
        node = await world.node()
        held = await world.claim(node, 3)
        await world.settle(node, held[:1], Ending.DELIVERED)
        await world.settle(node, held[1:2], Ending.PARKED)
        counts = await world.operator.counts()
        assert {state: count for state, count in counts.items() if count} == {
            JobState.DELIVERED: 1, JobState.PARKED: 1, JobState.RUNNING: 1, JobState.WAITING: 2,
        }  # fmt: skip
        states = await world.intake.states(ACME, ids)
        assert states[ids[1]] is JobState.PARKED
        (view,) = await world.intake.jobs(ACME, state=JobState.PARKED, limit=10)
        assert view.id == ids[1]
        assert len(await world.intake.jobs(ACME, state=None, limit=10)) == 5

    # -- ends ------------------------------------------------------------------------------------------

    async def test_every_end_and_failed_attempt_is_told_to_its_replay_once(self, world: World) -> None:
        ids = await world.feed(*messages(4, prior=2))
        await world.submit(job())
        node = await world.node()
        held = {each.id: each for each in await world.claim(node)}
        endings = (Ending.DELIVERED, Ending.DEAD, Ending.PARKED, Ending.RETRY)
        reports = [settlement(held[id_], ending) for id_, ending in zip(ids, endings, strict=True)]
        live = [settlement(each, Ending.DELIVERED) for each in held.values() if each.replay is None]
        assert await world.worker.settle(node, [*reports, *live]) == 5
        failed = ("http_503", 503, FINGERPRINT)
        assert {_short(end) for end in await world.ends()} == {
            (ids[0], EndKind.DELIVERED, 3, "", 200, ""),
            (ids[1], EndKind.DEAD, 3, *failed),
            (ids[2], EndKind.PARKED, 3, *failed),
            (ids[3], EndKind.FAILED, 3, *failed),
        }
        assert await world.ends() == []

    async def test_ends_are_told_to_each_replay_apart_with_their_slot_seconds(self, world: World) -> None:
        await world.feed(*messages(1), replay="r1")
        (second,) = await world.feed(*messages(1), replay="r2")
        node = await world.node()
        held = await world.claim(node)
        reports = [replace(settlement(each, Ending.DELIVERED), busy_for=0.25) for each in held]
        await world.worker.settle(node, reports)
        (end,) = await world.ends("r2")
        assert (end.replay, end.tenant, end.job, end.busy_for) == ("r2", ACME, second, 0.25)
        assert len(await world.ends("r1")) == 1

    async def test_what_is_given_back_unharmed_is_no_end(self, world: World) -> None:
        await world.feed(*messages(1))
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.RELEASED)
        assert await world.ends() == []

    async def test_an_old_token_tells_a_replay_nothing(self, world: World) -> None:
        await world.feed(*messages(1))
        node = await world.node()
        held = await world.claim(node)
        await world.settle(node, held, Ending.DELIVERED)
        await world.ends()
        for ending in (Ending.DELIVERED, Ending.PARKED, Ending.DEAD):
            assert await world.settle(node, held, ending) == 0
        assert await world.ends() == []

    async def test_a_cancelled_job_of_a_replay_is_told_as_such(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1, prior=2))
        assert await world.intake.cancel(ACME, id_) is JobState.CANCELLED
        (end,) = await world.ends()
        assert (end.job, end.kind, end.attempts) == (id_, EndKind.CANCELLED, 2)
        assert await world.claim(await world.node()) == []

    # -- dead letters ----------------------------------------------------------------------------------

    async def test_a_replayed_dead_letter_that_fails_again_is_the_same_one_with_its_whole_history(
        self, world: World
    ) -> None:
        """Case R4."""
        node = await world.node()
        id_ = await _dead(world, node, attempts=2)
        died = await _view(world, id_)
        await world.feed(ReplayedJob(id_, HOOK, b"{}"))
        waits = await _view(world, id_)
        assert (waits.state, waits.attempts, len(waits.history)) == (JobState.WAITING, 2, 2)
        assert waits.submitted_at == pytest.approx(died.submitted_at, abs=0.001)
        (held,) = await world.claim(node)
        assert (held.prior, held.attempt) == (2, 1)
        await world.settle(node, [held], Ending.RETRY)
        await world.settle(node, await world.claim(node), Ending.DEAD)
        view = await _view(world, id_)
        assert (view.state, view.attempts) == (JobState.DEAD, 4)
        assert [each.number for each in view.history] == [1, 2, 3, 4]
        assert [each.id for each in await world.intake.jobs(ACME, state=None, limit=10)] == [id_]

    async def test_a_replayed_dead_letter_that_is_delivered_is_no_dead_letter(self, world: World) -> None:
        node = await world.node()
        id_ = await _dead(world, node, attempts=1)
        await world.feed(ReplayedJob(id_, OTHER_HOOK, b'{"edited": true}'))
        (held,) = await world.claim(node)
        assert (held.target, held.payload) == (OTHER_HOOK, b'{"edited": true}')
        await world.settle(node, [held], Ending.DELIVERED)
        view = await _view(world, id_)
        assert (view.state, view.attempts, view.reason, view.history) == (JobState.DELIVERED, 2, "", ())
        assert await world.intake.jobs(ACME, state=JobState.DEAD, limit=10) == []

    async def test_a_set_counts_the_end_of_a_replayed_dead_letter_once(self, world: World) -> None:
        node = await world.node()
        stored = await world.intake.submit_bulk(ACME, batch(1), most=10)
        await world.feeder.feed(ACME, bound=None, limit=10)
        held = await world.claim(node)
        await world.settle(node, held, Ending.DEAD)
        await world.feed(ReplayedJob(held[0].id, HOOK, b"{}"))
        counted = await world.intake.bulk(ACME, stored.id)  # type: ignore[union-attr]  # a set
        assert counted is not None
        assert (counted.queued, counted.dead) == (1, 0)
        await world.settle(node, await world.claim(node), Ending.DELIVERED)
        counted = await world.intake.bulk(ACME, stored.id)  # type: ignore[union-attr]
        assert counted is not None
        assert (counted.queued, counted.delivered, counted.dead) == (0, 1, 0)

    # -- parking ---------------------------------------------------------------------------------------

    async def test_a_parked_job_is_no_end_and_waits_for_nobody(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1))
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.PARKED)
        view = await _view(world, id_)
        assert (view.state, view.attempts, view.ended_at) == (JobState.PARKED, 1, None)
        assert (view.reason, view.status) == ("http_503 after 1 attempts", 503)
        assert [each.number for each in view.history] == [1]
        assert await world.claim(node) == []

    async def test_a_parked_job_that_is_sent_back_goes_on_with_its_history(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1))
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.PARKED)
        await world.feed(ReplayedJob(id_, HOOK, b"edited"))
        (held,) = await world.claim(node)
        assert (held.payload, held.prior, held.faults) == (b"edited", 1, 0)
        await world.settle(node, [held], Ending.PARKED)
        assert [each.number for each in (await _view(world, id_)).history] == [1, 2]
        assert [end.attempts for end in await world.ends()] == [1, 2]

    async def test_a_parked_job_is_dropped_by_a_cancel(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1))
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.PARKED)
        assert await world.intake.cancel(GLOBEX, id_) is None
        assert await world.intake.cancel(ACME, id_) is JobState.CANCELLED
        assert await world.intake.cancel(ACME, id_) is JobState.CANCELLED
        assert (await _view(world, id_)).state is JobState.CANCELLED
        assert [end.kind for end in await world.ends()] == [EndKind.PARKED, EndKind.CANCELLED]

    async def test_a_job_of_no_replay_is_not_parked(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        held = await world.claim(node)
        with pytest.raises(InvariantBroken):
            await world.settle(node, held, Ending.PARKED)
        assert (await _view(world, id_)).state is JobState.RUNNING

    async def test_a_worker_is_told_how_often_the_message_was_at_fault_in_this_replay(
        self, world: World
    ) -> None:
        node = await world.node()
        id_ = await _dead(world, node, attempts=1, error_class="http_422")
        await world.feed(ReplayedJob(id_, HOOK, b"{}"))
        for error_class in ("http_422", "timeout", "http_400"):
            (held,) = await world.claim(node)
            await world.worker.settle(node, [_failing(held, error_class)])
        (held,) = await world.claim(node)
        assert (held.prior, held.attempt, held.faults) == (1, 4, 2)

    # -- unknown attempts ------------------------------------------------------------------------------

    async def test_a_job_whose_worker_was_lost_goes_back_and_its_replay_is_told(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1, prior=1))
        await _lose(world)
        (end,) = await world.ends()
        lost = (WORKER_LOST, None, LOST_FINGERPRINT)
        assert _short(end) == (id_, EndKind.UNKNOWN, 2, *lost)
        (held,) = await world.claim(await world.node("other"))
        assert (held.attempt, held.number) == (2, 3)

    async def test_a_replay_that_holds_what_is_unknown_parks_it(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1), replay=HOLDING)
        await _lose(world)
        view = await _view(world, id_)
        assert (view.state, view.attempts) == (JobState.PARKED, 1)
        assert view.reason.startswith("unknown:")
        assert [each.error_class for each in view.history] == [WORKER_LOST]
        assert [(end.kind, end.attempts) for end in await world.ends()] == [(EndKind.PARKED, 1)]
        assert await world.claim(await world.node("other")) == []

    async def test_what_was_never_started_is_not_unknown(self, world: World) -> None:
        await world.feed(*messages(1), replay=HOLDING)
        node = await world.node()
        assert await world.hand.claim(node, 1) == 1
        await world.pass_time(START_LEASE + 1.0)
        await world.worker.reclaim(limit=10)
        assert await world.ends() == []
        (held,) = await world.claim(await world.node("other"))
        assert held.attempt == 1

    # -- pausing ---------------------------------------------------------------------------------------

    async def test_a_paused_replay_is_given_nothing_in_any_lane_and_live_work_goes_on(
        self, world: World
    ) -> None:
        await world.submit(job())
        await world.feed(*messages(1), *messages(1, target=OTHER_HOOK))
        await world.feed(*messages(1), replay="r2")
        node = await world.node()
        await world.hand.listen()
        await world.replays.pause_replay(ACME, "r1", paused=True)
        held = await world.claim(node)
        assert sorted(each.replay.id if each.replay else "" for each in held) == ["", "r2"]
        await world.replays.pause_replay(ACME, "r1", paused=False)
        assert len(await world.claim(node)) == 2

    async def test_flows_that_open_while_the_replay_is_paused_are_paused(self, world: World) -> None:
        await world.feed(*messages(1))
        await world.replays.pause_replay(ACME, "r1", paused=True)
        await world.feed(*messages(1, target=OTHER_HOOK))
        assert await world.claim(await world.node()) == []

    async def test_a_planner_that_begins_anew_knows_what_is_paused(self, world: World) -> None:
        await world.feed(*messages(2))
        await world.hand.listen()
        await world.replays.pause_replay(ACME, "r1", paused=True)
        standing = await world.hand.rebuild()
        assert [flow.opened.paused for flow in standing.flows] == [True]
        assert await world.claim(await world.node()) == []

    async def test_a_replay_of_another_tenant_is_not_there_to_be_paused(self, world: World) -> None:
        await world.feed(*messages(1))
        await world.replays.pause_replay(GLOBEX, "r1", paused=True)
        assert len(await world.claim(await world.node())) == 1

    # -- withdrawing -----------------------------------------------------------------------------------

    async def test_what_waits_is_withdrawn_into_dead_letters_and_what_runs_goes_on(
        self, world: World
    ) -> None:
        node = await world.node()
        old = await _dead(world, node, attempts=2)
        ids = [old, *await world.feed(*messages(3, prior=1)), *await world.feed(*messages(1), replay="r2")]
        await world.feed(ReplayedJob(old, HOOK, b"{}"))
        (running,) = await world.claim(node, 1)
        gone = await world.replays.withdraw_replay(ACME, "r1", limit=10)
        assert set(gone) == set(ids[:4]) - {running.id}
        assert await world.replays.withdraw_replay(ACME, "r1", limit=10) == []
        view = await _view(world, old)
        assert (view.state, view.reason, view.attempts) == (JobState.DEAD, RETURNED_REASON, 2)
        assert [each.number for each in view.history] == [1, 2]
        assert [each.id for each in await world.claim(node)] == [ids[4]]
        assert await world.settle(node, [running], Ending.DELIVERED) == 1

    async def test_retries_that_are_not_due_are_withdrawn_with_the_attempts_they_had(
        self, world: World
    ) -> None:
        (id_,) = await world.feed(*messages(1, prior=3))
        node = await world.node()
        (held,) = await world.claim(node)
        await world.worker.settle(node, [settlement(held, Ending.RETRY, retry_for=60.0)])
        assert await world.replays.withdraw_replay(ACME, "r1", limit=10) == [id_]
        view = await _view(world, id_)
        assert (view.state, view.attempts, len(view.history)) == (JobState.DEAD, 4, 1)

    async def test_a_replay_is_withdrawn_in_steps_and_can_be_fed_again(self, world: World) -> None:
        ids = await world.feed(*messages(5))
        node = await world.node()
        await world.hand.listen()
        steps = [await world.replays.withdraw_replay(ACME, "r1", limit=2) for _ in range(4)]
        assert [len(step) for step in steps] == [2, 2, 1, 0]
        assert {id_ for step in steps for id_ in step} == set(ids)
        assert await world.claim(node) == []
        again = await world.feed(*(ReplayedJob(id_, HOOK, b"{}") for id_ in ids), *messages(1))
        assert tuple(each.id for each in await world.claim(node)) == again

    async def test_a_planner_that_begins_anew_finds_nothing_of_a_withdrawn_replay(self, world: World) -> None:
        await world.feed(*messages(5))
        await world.replays.withdraw_replay(ACME, "r1", limit=10)
        await world.hand.begin()
        assert world.hand.waiting() == 0
        await world.feed(*messages(1))
        assert len(await world.claim(await world.node())) == 1

    async def test_a_claim_that_was_planned_before_the_withdrawal_runs_nothing(self, world: World) -> None:
        await world.feed(*messages(3))
        node = await world.node()
        assert await world.hand.claim(node, 2) == 2
        gone = await world.replays.withdraw_replay(ACME, "r1", limit=10)
        assert len(gone) == 1, "what is claimed is as good as running"
        assert len(await world.worker.take(node, LEASE)) == 2


async def _dead(world: World, node: Node, *, attempts: int, error_class: str = "http_503") -> JobId:
    """A job of a live submit that died after so many attempts, its books heard of."""
    (id_,) = await world.submit(job())
    for attempt in range(1, attempts + 1):
        (held,) = await world.claim(node)
        report = _failing(held, error_class)
        dead = replace(report, ending=Ending.DEAD, reason="tried enough")
        await world.worker.settle(node, [dead if attempt == attempts else report])
    await world.room()
    return id_


def _failing(held: ClaimedJob, error_class: str) -> Settlement:
    report = settlement(held, Ending.RETRY)
    assert report.failure is not None
    return replace(report, failure=replace(report.failure, error_class=error_class))


async def _lose(world: World) -> None:
    """A worker takes everything that waits and is never heard of again."""
    node = await world.node()
    assert await world.claim(node, lease_for=2.0)
    await world.pass_time(3.0)
    await world.worker.reclaim(limit=100)


async def _view(world: World, id_: JobId) -> JobView:
    view = await world.intake.job(ACME, id_)
    assert view is not None
    return view


def _short(end: ReplayEnd) -> tuple[object, ...]:
    return end.job, end.kind, end.attempts, end.error_class, end.status, end.fingerprint
