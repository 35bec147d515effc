"""Messages that are put aside: seen, edited and sent back, dropped."""

from tenantry.lanes.model import Target
from tenantry.queue.model import Ending, JobId, JobState
from tenantry.replay.model import Fate, Known, ReplayState
from tenantry.replay.repairs import AS_IT_IS, Repair
from tenantry.testing.conformance.replay_world import ReplayWorld, several, staged, where
from tenantry.testing.conformance.world import ACME, GLOBEX


class ParkConformance:
    """What a person does with what is parked."""

    async def test_a_poisoned_message_is_parked_and_seen_with_what_failed(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        message = staged("a", b"[1]", headers={"x": "1"})
        await replays.offer(lease, message)
        await replays.run(Ending.PARKED, print_="f")
        (aside,) = await replays.desk.parked(ACME, lease.replay, limit=10)
        assert (aside.job, aside.payload, aside.headers) == (message.job, b"[1]", {"x": "1"})
        assert (aside.rule, aside.fingerprint, aside.attempts) == ("poison", "f", 1)
        assert where(await replays.counts(lease)) == {"parked": 1}
        await replays.fold(lease)
        assert await replays.desk.known(ACME, [message.key]) == {message.key: Known.FAILED}

    async def test_parked_messages_are_listed_page_by_page(self, replays: ReplayWorld) -> None:
        one, two = await replays.running(), await replays.running()
        await replays.offer(one, *several(3, "a", broken="bad"))
        await replays.offer(two, *several(2, "b", broken="bad"))
        page = await replays.desk.parked(ACME, None, limit=2)
        rest = await replays.desk.parked(ACME, None, limit=9, after=page[-1].job)
        assert len({each.job for each in page + rest}) == 5
        assert [each.job for each in page + rest] == sorted(each.job for each in page + rest)
        assert len(await replays.desk.parked(ACME, two.replay, limit=9)) == 2

    async def test_a_parked_message_is_sent_back_edited_and_counted_as_waiting(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        message = staged("a", headers={"x": "1"})
        await replays.offer(lease, message)
        await replays.run(Ending.PARKED)
        assert await replays.desk.send_back(ACME, message.job, Repair(b"edited", {"x": "2"}))
        assert not await replays.desk.send_back(ACME, message.job, AS_IT_IS)
        assert where(await replays.counts(lease)) == {"waiting": 1}
        assert await replays.desk.known(ACME, [message.key]) == {message.key: Known.STAGED}
        assert await replays.fates(await replays.running(), staged("a")) == [Fate.DUPLICATE]
        (held,) = await replays.claim()
        assert (held.id, held.payload, held.headers, held.number) == (message.job, b"edited", {"x": "2"}, 2)
        await replays.settle([held], Ending.DELIVERED)
        await replays.fold(lease)
        assert where(await replays.counts(lease)) == {"delivered": 1}
        assert await replays.desk.parked(ACME, None, limit=9) == []

    async def test_a_parked_message_is_sent_back_to_where_a_person_says(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        message = staged("a", broken="nobody says where it was to go")
        await replays.offer(lease, message)
        repair = Repair(b"{}", target=Target("https://b.example/x"), content_type="application/json")
        assert not await replays.desk.send_back(GLOBEX, message.job, repair)
        (kept,) = await replays.desk.parked(ACME, None, limit=9)
        assert kept.target == message.target
        assert await replays.desk.send_back(ACME, message.job, repair)
        (held,) = await replays.claim()
        assert (held.id, held.target, held.payload) == (message.job, repair.target, b"{}")
        assert held.content_type == "application/json"

    async def test_a_replay_that_ended_drains_again_for_what_is_sent_back(self, replays: ReplayWorld) -> None:
        for ending in (ReplayState.FINISHED, ReplayState.CANCELLED):
            lease = await replays.running()
            message = staged(f"to be {ending}")
            await replays.offer(lease, message)
            await replays.run(Ending.PARKED)
            if ending is ReplayState.CANCELLED:
                await replays.desk.cancel(ACME, lease.replay)
                assert not await replays.desk.send_back(ACME, message.job, AS_IT_IS)
                assert await replays.move(lease, ending)
            else:
                await replays.finish(lease)
            assert await replays.desk.send_back(ACME, message.job, AS_IT_IS)
            view = await replays.view(lease)
            assert (view.state, view.ended_at, view.exhausted) == (ReplayState.DRAINING, None, True)
            later = await replays.leased(view, "two")
            assert [job.id for job in await replays.run(Ending.DELIVERED)] == [message.job]
            finished = await replays.move(later, ReplayState.FINISHED)
            assert finished is not None
            assert where(finished.counts) == {"delivered": 1}

    async def test_a_dropped_message_is_ended_and_stays_counted_as_parked(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        first, second = staged("a"), staged("b", broken="bad")
        await replays.offer(lease, first, second)
        await replays.run(Ending.PARKED)
        assert await replays.desk.drop(ACME, first.job)
        await replays.fold(lease)
        assert await replays.desk.drop(ACME, second.job)
        assert not await replays.desk.drop(ACME, second.job)
        counts = await replays.counts(lease)
        assert (where(counts), counts.dropped) == ({"parked": 2}, 2)
        await replays.fold(lease)
        assert await replays.counts(lease) == counts
        view = await replays.queue.intake.job(ACME, first.job)
        assert view is not None
        assert view.state is JobState.CANCELLED
        assert not await replays.desk.send_back(ACME, first.job, AS_IT_IS)
        assert await replays.fates(await replays.running(), staged("a")) == [Fate.STAGED]

    async def test_what_is_dropped_of_an_ended_replay_is_counted_when_the_store_is_tidied(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        message = staged("a", broken="bad")
        await replays.offer(lease, message)
        await replays.finish(lease)
        assert await replays.desk.drop(ACME, message.job)
        await replays.store.tidy(now_kept_for=86_400.0)
        counts = (await replays.view(lease)).counts
        assert (where(counts), counts.dropped) == ({"parked": 1}, 1)

    async def test_a_waiting_message_that_a_person_cancels_is_put_aside_for_good(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        message = staged("a")
        await replays.offer(lease, message)
        assert await replays.queue.intake.cancel(ACME, message.job) is JobState.CANCELLED
        counts = await replays.counts(lease)
        assert (where(counts), counts.dropped) == ({"parked": 1}, 1)
        await replays.fold(lease)
        assert await replays.counts(lease) == counts

    async def test_a_message_that_another_replay_has_taken_is_not_sent_back(
        self, replays: ReplayWorld
    ) -> None:
        lease, other = await replays.running(), await replays.running()
        message = staged("a")
        await replays.offer(lease, message)
        await replays.run(Ending.PARKED)
        await replays.fold(lease)
        await replays.offer(other, staged("a"))
        assert not await replays.desk.send_back(ACME, message.job, AS_IT_IS)
        await replays.run(Ending.DELIVERED)
        await replays.fold(other)
        assert not await replays.desk.send_back(ACME, message.job, AS_IT_IS)
        assert len(await replays.desk.parked(ACME, lease.replay, limit=9)) == 1

    async def test_dropping_a_message_says_nothing_of_it_to_another_replay_that_has_it(
        self, replays: ReplayWorld
    ) -> None:
        lease, other = await replays.running(), await replays.running()
        message = staged("a")
        await replays.offer(lease, message)
        await replays.run(Ending.PARKED)
        await replays.fold(lease)
        await replays.offer(other, staged("a"))
        assert await replays.desk.drop(ACME, message.job)
        await replays.fold(lease)
        assert await replays.desk.known(ACME, [message.key]) == {message.key: Known.STAGED}

    async def test_what_is_not_there_is_neither_sent_back_nor_dropped(self, replays: ReplayWorld) -> None:
        for job in ("01890000-0000-7000-8000-000000000000", "no id"):
            assert not await replays.desk.send_back(ACME, JobId(job), AS_IT_IS)
            assert not await replays.desk.drop(ACME, JobId(job))
