"""What the queue promises to replays: the same jobs in the same lanes, told to their replay and not counted
to their tenant's bound."""

from dataclasses import replace

import pytest

from tenantry.kernel.errors import InvariantBroken
from tenantry.queue.model import (
    Ending,
    EndKind,
    JobClass,
    JobState,
    ReplayedJob,
    ReplayTerms,
)
from tenantry.testing.conformance.replay_stories import HOLDING, dead_letter, short, view_of
from tenantry.testing.conformance.world import (
    ACME,
    FINGERPRINT,
    HOOK,
    OTHER_HOOK,
    World,
    batch,
    job,
    messages,
    settlement,
)


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

    async def test_a_submit_of_class_replay_is_no_replays_job_and_counts_to_the_bound(
        self, world: World
    ) -> None:
        again = replace(job(), job_class=JobClass.REPLAY)
        (id_,) = await world.submit(again, bound=1)
        await world.refused(again, bound=1)
        node = await world.node()
        (held,) = await world.claim(node)
        assert (held.id, held.job_class, held.replay) == (id_, JobClass.REPLAY, None)
        await world.settle(node, [held], Ending.DELIVERED)
        await world.room()
        await world.submit(again, bound=1)

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
        assert {short(end) for end in await world.ends()} == {
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
        id_ = await dead_letter(world, node, attempts=2)
        died = await view_of(world, id_)
        await world.feed(ReplayedJob(id_, HOOK, b"{}"))
        waits = await view_of(world, id_)
        assert (waits.state, waits.attempts, len(waits.history)) == (JobState.WAITING, 2, 2)
        assert waits.submitted_at == pytest.approx(died.submitted_at, abs=0.001)
        (held,) = await world.claim(node)
        assert (held.prior, held.attempt) == (2, 1)
        await world.settle(node, [held], Ending.RETRY)
        await world.settle(node, await world.claim(node), Ending.DEAD)
        view = await view_of(world, id_)
        assert (view.state, view.attempts) == (JobState.DEAD, 4)
        assert [each.number for each in view.history] == [1, 2, 3, 4]
        assert [each.id for each in await world.intake.jobs(ACME, state=None, limit=10)] == [id_]

    async def test_a_replayed_dead_letter_that_is_delivered_is_no_dead_letter(self, world: World) -> None:
        node = await world.node()
        id_ = await dead_letter(world, node, attempts=1)
        await world.feed(ReplayedJob(id_, OTHER_HOOK, b'{"edited": true}'))
        (held,) = await world.claim(node)
        assert (held.target, held.payload) == (OTHER_HOOK, b'{"edited": true}')
        await world.settle(node, [held], Ending.DELIVERED)
        view = await view_of(world, id_)
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
