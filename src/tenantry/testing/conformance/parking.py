"""What the queue promises to replays: what is put aside, what is paused, and what is taken back."""

import pytest

from tenantry.kernel.errors import InvariantBroken
from tenantry.queue.lifecycle import RETURNED_REASON, START_LEASE, WORKER_LOST
from tenantry.queue.model import (
    Ending,
    EndKind,
    JobState,
    ReplayedJob,
)
from tenantry.queue.settling import LOST_FINGERPRINT
from tenantry.testing.conformance.replay_stories import HOLDING, dead_letter, failing, lose, short, view_of
from tenantry.testing.conformance.world import (
    ACME,
    GLOBEX,
    HOOK,
    LEASE,
    OTHER_HOOK,
    World,
    job,
    messages,
    settlement,
)


class ParkingConformance:
    """Parking, unknown attempts, pausing and withdrawing."""

    # -- parking ---------------------------------------------------------------------------------------

    async def test_a_parked_job_is_no_end_and_waits_for_nobody(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1))
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.PARKED)
        view = await view_of(world, id_)
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
        assert [each.number for each in (await view_of(world, id_)).history] == [1, 2]
        assert [end.attempts for end in await world.ends()] == [1, 2]

    async def test_a_parked_job_is_dropped_by_a_cancel(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1))
        node = await world.node()
        await world.settle(node, await world.claim(node), Ending.PARKED)
        assert await world.intake.cancel(GLOBEX, id_) is None
        assert await world.intake.cancel(ACME, id_) is JobState.CANCELLED
        assert await world.intake.cancel(ACME, id_) is JobState.CANCELLED
        assert (await view_of(world, id_)).state is JobState.CANCELLED
        assert [end.kind for end in await world.ends()] == [EndKind.PARKED, EndKind.CANCELLED]

    async def test_a_job_of_no_replay_is_not_parked(self, world: World) -> None:
        (id_,) = await world.submit(job())
        node = await world.node()
        held = await world.claim(node)
        with pytest.raises(InvariantBroken):
            await world.settle(node, held, Ending.PARKED)
        assert (await view_of(world, id_)).state is JobState.RUNNING

    async def test_a_worker_is_told_how_often_the_message_was_at_fault_in_this_replay(
        self, world: World
    ) -> None:
        node = await world.node()
        id_ = await dead_letter(world, node, attempts=1, error_class="http_422")
        await world.feed(ReplayedJob(id_, HOOK, b"{}"))
        for error_class in ("http_422", "timeout", "http_400"):
            (held,) = await world.claim(node)
            await world.worker.settle(node, [failing(held, error_class)])
        (held,) = await world.claim(node)
        assert (held.prior, held.attempt, held.faults) == (1, 4, 2)

    # -- unknown attempts ------------------------------------------------------------------------------

    async def test_a_job_whose_worker_was_lost_goes_back_and_its_replay_is_told(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1, prior=1))
        await lose(world)
        (end,) = await world.ends()
        lost = (WORKER_LOST, None, LOST_FINGERPRINT)
        assert short(end) == (id_, EndKind.UNKNOWN, 2, *lost)
        (held,) = await world.claim(await world.node("other"))
        assert (held.attempt, held.number) == (2, 3)

    async def test_a_replay_that_holds_what_is_unknown_parks_it(self, world: World) -> None:
        (id_,) = await world.feed(*messages(1), replay=HOLDING)
        await lose(world)
        view = await view_of(world, id_)
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
        old = await dead_letter(world, node, attempts=2)
        ids = [old, *await world.feed(*messages(3, prior=1)), *await world.feed(*messages(1), replay="r2")]
        await world.feed(ReplayedJob(old, HOOK, b"{}"))
        (running,) = await world.claim(node, 1)
        gone = await world.replays.withdraw_replay(ACME, "r1", limit=10)
        assert set(gone) == set(ids[:4]) - {running.id}
        assert await world.replays.withdraw_replay(ACME, "r1", limit=10) == []
        view = await view_of(world, old)
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
        view = await view_of(world, id_)
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
