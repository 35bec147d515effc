"""How a replay's messages are counted, returned and forgotten."""

from tenantry.queue.model import Ending, JobState
from tenantry.replay.model import ClassFailure, Fate, Known, ReplayId, ReplayState
from tenantry.replay.poison import CLASSES_KEPT
from tenantry.testing.conformance.replay_world import (
    DAY,
    ReplayWorld,
    letter,
    several,
    staged,
    where,
    window_of,
)
from tenantry.testing.conformance.world import ACME

S = ReplayState
NOWHERE = ReplayId("nowhere")


class EndConformance:
    """Cancelling, counts, failures alike, tidying."""

    # -- cancelling ------------------------------------------------------------------------------------

    async def test_a_cancelled_replay_returns_what_waits_and_lets_what_runs_end(
        self, replays: ReplayWorld
    ) -> None:
        (dead,) = await replays.dead_letters(1)
        lease = await replays.running()
        await replays.offer(lease, letter(dead), *several(4))
        held = await replays.claim(2)
        view = await replays.desk.cancel(ACME, lease.replay)
        assert view is not None
        assert view.state is S.CANCELLING
        assert await replays.store.feed(lease, window_of(staged("z"))) is None
        assert await replays.store.return_waiting(lease, limit=2) == 2
        assert await replays.store.return_waiting(lease, limit=2) == 1
        assert await replays.store.return_waiting(lease, limit=2) == 0
        assert where(await replays.counts(lease)) == {"in_flight": 2, "returned": 3}
        await replays.settle(held[:1], Ending.DELIVERED)
        await replays.settle(held[1:], Ending.RETRY)
        assert await replays.store.return_waiting(lease, limit=2) == 1
        ended = await replays.move(lease, S.CANCELLED)
        assert ended is not None
        assert where(ended.counts) == {"delivered": 1, "returned": 4}
        assert (await replays.queue.operator.counts())[JobState.DEAD] == 4
        assert await replays.claim() == []

    async def test_what_was_returned_can_be_replayed_and_did_not_fail(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        first = staged("a")
        await replays.offer(lease, first)
        await replays.desk.cancel(ACME, lease.replay)
        await replays.store.return_waiting(lease, limit=5)
        await replays.move(lease, S.CANCELLED)
        again = await replays.running()
        assert await replays.fates(again, staged("a")) == [Fate.STAGED]
        assert (await replays.counts(again)).seen_failing == 0

    async def test_a_message_that_may_be_delivered_stays_unknown_when_it_is_returned(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, staged("a"))
        await replays.claim()
        await replays.lose_worker()
        await replays.desk.cancel(ACME, lease.replay)
        assert await replays.store.return_waiting(lease, limit=5) == 1
        assert await replays.desk.known(ACME, [staged("a").key]) == {staged("a").key: Known.UNKNOWN}
        assert (await replays.counts(lease)).unknown == 1

    # -- counts, failures, tidying ---------------------------------------------------------------------

    async def test_counts_are_the_same_before_and_after_what_was_told_is_taken_up(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(8), staged("x", broken="bad"))
        await replays.run(Ending.DELIVERED, 2)
        await replays.run(Ending.DEAD, 1)
        await replays.run(Ending.PARKED, 1)
        await replays.run(Ending.RETRY, 1, retry_for=600.0)
        await replays.run(Ending.RELEASED, 1)
        await replays.claim(2)
        before = await replays.counts(lease)
        assert where(before) == {"waiting": 2, "in_flight": 2, "delivered": 2, "parked": 2, "dead": 1}
        assert (before.taken, before.failures, before.message_faults) == (9, 3, 3)
        await replays.fold(lease)
        assert await replays.counts(lease) == before
        assert (await replays.view(lease)).counts == before
        assert await replays.store.counts([NOWHERE]) == {}

    async def test_failures_alike_are_counted_by_origin_and_only_those_of_the_message(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(3, origin="a"), *several(4, "n", origin="b"))
        held = {job.id: job for job in await replays.claim()}
        jobs = list(held.values())
        await replays.settle(jobs[:2], Ending.DEAD, print_="p")
        await replays.settle(jobs[2:3], Ending.DELIVERED)
        await replays.settle(jobs[3:4], Ending.PARKED, print_="q")
        await replays.settle(jobs[4:5], Ending.RETRY, print_="p")
        await replays.settle(jobs[5:6], Ending.DEAD, error="http_503", print_="t")
        await replays.fold(lease)
        found = await replays.store.failures(lease.replay, limit=10)
        assert [(each.origin, each.fingerprint, each.failures, each.delivered) for each in found] == [
            ("a", "p", 2, 1),
            ("b", "p", 1, 0),
            ("b", "q", 1, 0),
        ]
        assert found[0].example in {job.id for job in jobs[:2]}
        assert await replays.store.failures(lease.replay, limit=1) == found[:1]
        assert isinstance(found[0], ClassFailure)
        counts = await replays.counts(lease)
        assert (counts.failures, counts.message_faults) == (5, 4)

    async def test_of_failures_that_are_each_worded_anew_the_rare_ones_are_forgotten(
        self, replays: ReplayWorld
    ) -> None:
        lease, rows = await replays.running(), 4 * CLASSES_KEPT
        await replays.offer(lease, *several(30, "r", origin="real"))
        await replays.run(Ending.DELIVERED, 2)
        await replays.run(Ending.PARKED, print_="p")
        await replays.fold(lease)
        for part in range(2):
            single = [staged(f"{part}.{n}", origin=f"o{part}.{n:03}") for n in range(rows // 2)]
            await replays.offer(lease, *single)
            await replays.run(Ending.DEAD, print_="p")
            await replays.fold(lease)
        found = await replays.store.failures(lease.replay, limit=1_000)
        assert len(found) == CLASSES_KEPT
        assert (found[0].origin, found[0].failures, found[0].delivered) == ("real", 28, 2)
        assert (await replays.counts(lease)).message_faults == 28 + rows

    async def test_ended_replays_and_old_plans_are_forgotten_in_time(self, replays: ReplayWorld) -> None:
        lease, old = await replays.running(), await replays.planned()
        kept = await replays.running()
        await replays.offer(kept, staged("a", broken="bad"))
        await replays.finish(lease)
        await replays.finish(kept)
        await replays.queue.pass_time(2 * DAY)
        young = await replays.planned()
        await replays.store.tidy(now_kept_for=3 * DAY)
        assert {each.id for each in await replays.desk.replays(ACME, states=None, limit=9)} == {
            lease.replay, kept.replay, young.id,
        }  # fmt: skip
        assert await replays.desk.replay(ACME, old.id) is None
        await replays.store.tidy(now_kept_for=DAY)
        left = {each.id for each in await replays.desk.replays(ACME, states=None, limit=9)}
        assert left == {kept.replay, young.id}, "one with a parked message stays"
