"""What a window's messages come to: staged once, known again, put aside, or not taken."""

import asyncio
from collections import Counter

from tenantry.lanes.model import Target
from tenantry.queue.model import Ending, JobClass, JobId, JobState
from tenantry.replay.dedup import LIFETIME
from tenantry.replay.model import Fate, HoldRule, Known, OnUnknown, Quotas, ReplayState
from tenantry.replay.repairs import Repair
from tenantry.testing.conformance.replay_world import (
    DAY,
    HOUR,
    ReplayWorld,
    at,
    letter,
    several,
    staged,
    where,
    window_of,
)
from tenantry.testing.conformance.world import ACME, GLOBEX, HOOK, OTHER_HOOK

STAGED, AGAIN, DUPLICATE, PARKED = Fate.STAGED, Fate.AGAIN, Fate.DUPLICATE, Fate.PARKED


class FeedConformance:
    """Windows, their messages, and what of them is remembered."""

    # -- staging ---------------------------------------------------------------------------------------

    async def test_what_is_staged_waits_in_line_as_its_message_says(self, replays: ReplayWorld) -> None:
        lease = await replays.running(park_after=7, on_unknown=OnUnknown.HOLD)
        message = staged("a", b"[1]", target=OTHER_HOOK, headers={"x-trace": "7"}, attempts=4)
        assert await replays.fates(lease, message) == [STAGED]
        (held,) = await replays.claim()
        assert (held.id, held.target, held.payload) == (message.job, OTHER_HOOK, b"[1]")
        assert (held.headers, held.job_class, held.number) == ({"x-trace": "7"}, JobClass.REPLAY, 5)
        assert held.replay is not None
        assert (held.replay.id, held.replay.park_after, held.replay.hold_unknown) == (lease.replay, 7, True)

    async def test_a_window_moves_the_position_and_counts_what_was_not_meant(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, staged("a"), position=at("17"), left=3)
        await replays.offer(lease, position=None, left=2, exhausted=True)
        view = await replays.view(lease)
        assert (view.position, view.exhausted, view.counts.left) == ("17", True, 5)
        assert where(view.counts) == {"waiting": 1}

    async def test_nothing_is_staged_under_a_lease_that_is_lost(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.queue.pass_time(61.0)
        later = await replays.leased(await replays.view(lease), "two")
        assert await replays.store.feed(lease, window_of(staged("a"), position=at("1"))) is None
        assert (await replays.view(lease)).position == ""
        assert await replays.fates(later, staged("a")) == [STAGED]

    async def test_nothing_is_staged_once_a_person_has_paused_the_replay(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.desk.pause(ACME, lease.replay)
        assert await replays.store.feed(lease, window_of(staged("a"))) is None
        assert (await replays.counts(lease)).taken == 0

    async def test_r3_what_comes_again_after_a_restart_was_staged_before(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        first = several(3)
        await replays.offer(lease, *first)
        await replays.queue.pass_time(61.0)
        later = await replays.leased(await replays.view(lease), "two")
        assert await replays.fates(later, *several(4)) == [AGAIN, AGAIN, AGAIN, STAGED]
        assert where(await replays.counts(later)) == {"waiting": 4}

    async def test_of_two_alike_in_one_window_one_is_staged(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        assert await replays.fates(lease, staged("a"), staged("b"), staged("a")) == [STAGED, STAGED, AGAIN]
        assert where(await replays.counts(lease)) == {"waiting": 2}

    # -- what is known ---------------------------------------------------------------------------------

    async def test_r1_of_two_replays_of_the_same_messages_each_has_what_the_other_has_not(
        self, replays: ReplayWorld
    ) -> None:
        one, two = await replays.running(), await replays.running()
        fed = await asyncio.gather(
            *(replays.fates(lease, *several(10)[n : n + 5]) for n in (0, 3, 5) for lease in (one, two))
        )
        fates = Counter(fate for window in fed for fate in window)
        assert fates[STAGED] == 10
        assert len(await replays.claim()) == 10
        taken = await replays.counts(one), await replays.counts(two)
        assert sum(each.in_flight for each in taken) == 10
        assert sum(each.duplicate for each in taken) == fates[DUPLICATE]

    async def test_what_was_delivered_is_a_duplicate_unless_it_is_wanted_again(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, staged("a"))
        await replays.run(Ending.DELIVERED)
        await replays.fold(lease)
        assert await replays.fates(lease, staged("a")) == [AGAIN]
        assert await replays.fates(await replays.running(), staged("a")) == [DUPLICATE]
        assert await replays.fates(await replays.running(again=True), staged("a")) == [STAGED]
        assert await replays.desk.known(ACME, [staged("a").key, staged("b").key]) == {
            staged("a").key: Known.STAGED
        }

    async def test_r5_the_same_id_with_another_body_is_another_message(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        assert await replays.fates(lease, staged("a", b"1"), staged("a", b"2")) == [STAGED, STAGED]

    async def test_another_target_or_another_tenant_makes_another_message(self, replays: ReplayWorld) -> None:
        lease, theirs = await replays.running(), await replays.running(tenant=GLOBEX)
        await replays.offer(lease, staged("a"))
        assert await replays.fates(await replays.running(), staged("a", target=OTHER_HOOK)) == [STAGED]
        assert await replays.fates(theirs, staged("a", tenant=GLOBEX)) == [STAGED]

    async def test_r6_past_its_lifetime_a_message_passes_once_whether_its_generation_lives_or_not(
        self, replays: ReplayWorld
    ) -> None:
        for lifetime, tidied in ((HOUR, False), (HOUR, True), (2 * DAY, False), (2 * DAY, True)):
            message = f"{lifetime} {tidied}"
            first = await replays.running()
            await replays.offer(first, staged(message), lifetime_for=lifetime)
            await replays.run(Ending.DELIVERED)
            await replays.fold(first)
            await replays.queue.pass_time(lifetime - 60.0)
            assert await replays.fates(await replays.running(), staged(message), lifetime_for=lifetime) == [
                DUPLICATE
            ], message
            await replays.queue.pass_time(61.0)
            if tidied:
                await replays.store.tidy(now_kept_for=30 * DAY)
            later = [await replays.running(), await replays.running()]
            fates = [await replays.fates(each, staged(message), lifetime_for=lifetime) for each in later]
            assert fates == [[STAGED], [DUPLICATE]], message
            await replays.run(Ending.DELIVERED)

    async def test_generations_that_no_lifetime_reaches_are_dropped_and_their_keys_free(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(3), lifetime_for=DAY)
        await replays.queue.pass_time(DAY)
        await replays.store.tidy(now_kept_for=30 * DAY)
        assert (await replays.desk.used(ACME)).dedup_keys == 3
        await replays.queue.pass_time(1.5 * DAY)
        await replays.store.tidy(now_kept_for=30 * DAY)
        assert (await replays.desk.used(ACME)).dedup_keys == 0
        assert await replays.desk.known(ACME, [staged("m0").key]) == {}

    async def test_what_failed_before_is_taken_again_and_named(self, replays: ReplayWorld) -> None:
        lease = await replays.running()
        await replays.offer(lease, *several(3))
        await replays.run(Ending.DEAD)
        await replays.fold(lease)
        again = await replays.running()
        assert await replays.fates(again, *several(4)) == [STAGED] * 4
        assert (await replays.counts(again)).seen_failing == 3
        assert (await replays.desk.known(ACME, [staged("m0").key])) == {staged("m0").key: Known.STAGED}

    async def test_what_may_have_been_delivered_is_sent_again_or_held_as_the_replay_says(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        await replays.offer(lease, staged("a"))
        await replays.claim()
        await replays.lose_worker()
        await replays.run(Ending.DEAD)
        await replays.fold(lease)
        assert (await replays.counts(lease)).unknown == 1
        assert await replays.desk.known(ACME, [staged("a").key]) == {staged("a").key: Known.UNKNOWN}
        holding = await replays.running(on_unknown=OnUnknown.HOLD)
        assert await replays.fates(holding, staged("a")) == [PARKED]
        (aside,) = await replays.desk.parked(ACME, holding.replay, limit=10)
        assert (aside.rule, aside.replay) == ("unknown", holding.replay)
        assert await replays.desk.known(ACME, [staged("a").key]) == {staged("a").key: Known.UNKNOWN}
        assert await replays.fates(await replays.running(), staged("a")) == [STAGED]

    # -- put aside -------------------------------------------------------------------------------------

    async def test_r2_what_cannot_be_sent_is_parked_with_its_reason_and_the_rest_goes_on(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        bad = staged("bad", b"\xff\x00", broken="no JSON", headers={"x": "1"}, attempts=3)
        held = staged("held", broken="failures like its own are held", park_rule="class")
        assert await replays.fates(lease, staged("a"), bad, held, staged("b")) == [
            STAGED, PARKED, PARKED, STAGED,
        ]  # fmt: skip
        assert where(await replays.counts(lease)) == {"waiting": 2, "parked": 2}
        aside = {each.job: each for each in await replays.desk.parked(ACME, lease.replay, limit=10)}
        one = aside[bad.job]
        assert (one.rule, one.reason, one.payload, one.headers) == (
            "broken",
            "no JSON",
            b"\xff\x00",
            {"x": "1"},
        )
        assert (one.target, one.attempts, one.replay) == (HOOK, 3, lease.replay)
        assert aside[held.job].rule == "class"
        assert len(await replays.claim()) == 2
        assert await replays.fates(lease, staged("bad", b"\xff\x00")) == [AGAIN]

    # -- dead letters of our own -----------------------------------------------------------------------

    async def test_r4_a_dead_letter_that_fails_again_is_the_same_one_one_attempt_on(
        self, replays: ReplayWorld
    ) -> None:
        (id_,) = await replays.dead_letters(1)
        lease = await replays.running()
        assert await replays.fates(lease, letter(id_)) == [STAGED]
        assert await replays.fates(lease, letter(id_)) == [AGAIN]
        await replays.run(Ending.DEAD)
        view = await replays.queue.intake.job(ACME, id_)
        assert view is not None
        assert (view.state, view.attempts, [each.number for each in view.history]) == (
            JobState.DEAD, 2, [1, 2],
        )  # fmt: skip
        counts = await replays.queue.operator.counts()
        assert counts[JobState.DEAD] == 1
        assert where(await replays.counts(lease)) == {"dead": 1}
        await replays.fold(lease)
        assert await replays.fates(lease, letter(id_)) == [AGAIN]
        assert await replays.fates(await replays.running(), letter(id_)) == [STAGED]

    async def test_a_dead_letter_that_is_not_there_is_gone_and_not_taken(self, replays: ReplayWorld) -> None:
        (id_,) = await replays.dead_letters(1)
        lease, other = await replays.running(), await replays.running()
        await replays.offer(other, letter(id_, target=OTHER_HOOK))
        (theirs,) = await replays.dead_letters(1, tenant=GLOBEX)
        missing = JobId("01890000-0000-7000-8000-000000000000")
        assert await replays.fates(lease, letter(id_), letter(theirs), letter(missing)) == [Fate.GONE] * 3
        assert (await replays.counts(lease)).taken == 0

    async def test_a_dead_letter_that_cannot_be_sent_is_parked_with_its_history(
        self, replays: ReplayWorld
    ) -> None:
        (id_,) = await replays.dead_letters(1)
        lease = await replays.running()
        assert await replays.fates(lease, letter(id_, broken="no such field")) == [PARKED]
        view = await replays.queue.intake.job(ACME, id_)
        assert view is not None
        assert (view.state, view.attempts, len(view.history)) == (JobState.PARKED, 1, 1)
        assert await replays.desk.send_back(ACME, id_, Repair(b"[]"))
        (held,) = await replays.claim()
        assert (held.id, held.payload, held.number) == (id_, b"[]", 2)

    # -- quotas ----------------------------------------------------------------------------------------

    async def test_messages_of_the_day_are_counted_and_over_them_the_window_is_cut(
        self, replays: ReplayWorld
    ) -> None:
        lease, quotas = await replays.running(), Quotas(replayed_a_day=3)
        await replays.offer(lease, staged("a"), position=at("1"), quotas=quotas)
        await replays.offer(await replays.running(), staged("a"), quotas=quotas)
        fed = await replays.offer(lease, *several(4), position=at("5"), left=9, exhausted=True, quotas=quotas)
        assert fed.fates == (STAGED, STAGED, Fate.QUOTA, Fate.QUOTA)
        assert fed.hold is not None
        assert fed.hold.rule is HoldRule.QUOTA
        assert fed.hold.frees_at is not None
        assert fed.hold.frees_at % DAY == 0
        view = await replays.view(lease)
        assert (view.position, view.exhausted, view.counts.left) == ("1", False, 0)
        assert (await replays.desk.used(ACME)).replayed_a_day == 3
        await replays.queue.pass_time(DAY)
        lease = await replays.leased(view, "two")
        assert (await replays.desk.used(ACME)).replayed_a_day == 0
        fed = await replays.offer(lease, *several(4), position=at("5"), left=9, quotas=quotas)
        assert (fed.fates, fed.hold) == ((AGAIN, AGAIN, STAGED, STAGED), None)
        assert (await replays.view(lease)).counts.left == 9

    async def test_remembered_messages_are_counted_until_their_generation_is_dropped(
        self, replays: ReplayWorld
    ) -> None:
        lease, quotas = await replays.running(), Quotas(dedup_keys=2)
        fed = await replays.offer(lease, *several(3), quotas=quotas)
        assert fed.fates == (STAGED, STAGED, Fate.QUOTA)
        assert fed.hold is not None
        assert fed.hold.frees_at is not None
        await replays.run(Ending.DEAD)
        await replays.fold(lease)
        again = await replays.running()
        fed = await replays.offer(again, *several(3), quotas=quotas)
        assert fed.fates == (STAGED, STAGED, Fate.QUOTA), "known ones need no room"
        await replays.queue.pass_time(LIFETIME + DAY)
        again = await replays.leased(await replays.view(again), "two")
        assert (await replays.offer(again, *several(3), quotas=quotas)).fates == (STAGED, STAGED, Fate.QUOTA)

    async def test_another_tenants_use_counts_to_nobody_else(self, replays: ReplayWorld) -> None:
        theirs = await replays.running(tenant=GLOBEX)
        await replays.offer(theirs, *several(3, tenant=GLOBEX))
        used = await replays.desk.used(ACME)
        assert (used.replayed_a_day, used.dedup_keys, used.replays) == (0, 0, 0)
        used = await replays.desk.used(GLOBEX)
        assert (used.replayed_a_day, used.dedup_keys, used.replays) == (3, 3, 1)

    async def test_a_replay_that_feeds_to_many_targets_has_a_flow_in_each_lane(
        self, replays: ReplayWorld
    ) -> None:
        lease = await replays.running()
        targets = [Target(f"https://hooks.example.com/{n}") for n in range(5)]
        await replays.offer(lease, *(staged(f"m{n}", target=targets[n % 5]) for n in range(10)))
        assert Counter(job.target for job in await replays.claim()) == dict.fromkeys(targets, 2)
        assert (await replays.view(lease)).state is ReplayState.RUNNING
