"""Live work and replays are the same jobs in the same lanes under the same scheduler (laws F2 and F8)."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenantry.kernel.instant import Seconds
from tenantry.lanes.model import Target
from tenantry.queue.model import ClaimedJob, JobClass
from tenantry.testing.conformance.dispatch import A, B, C, Dispatch, Open, equals, few, jobs
from tenantry.testing.conformance.world import HOOK, OTHER_HOOK

TARGETS = [Target(f"https://hooks.example.com/{number}") for number in range(20)]


class ReplaySharingConformance:
    """Who gets a tenant's slots: its live work, and each of its replays."""

    # -- F2: in turns, by slot-seconds -------------------------------------------------------------------

    async def test_f2_the_replays_of_one_lane_take_turns_by_slot_seconds(self, opened: Open) -> None:
        """Whatever a job of each takes: 1, 2 and 4 s."""
        queue = await opened(equals(A))
        queue.length = lambda job: {"r1": 1.0, "r2": 2.0, "r4": 4.0}[_replay(job)]
        await queue.node(slots=3)
        for replay in ("r1", "r2", "r4"):
            await queue.feed(A, replay, 100)
        await queue.run(72.0)
        for used in _used(queue).values():
            assert used == pytest.approx(72.0, abs=4.0 + 1.0)

    async def test_f2_lanes_take_turns_before_the_replays_in_them(self, opened: Open) -> None:
        """Three replays in one lane and one in another: the lanes have half each."""
        queue = await opened(equals(A))
        await queue.node(slots=6)
        for replay in ("r1", "r2", "r3"):
            await queue.feed(A, replay, 200)
        await queue.feed(A, "alone", 200, target=OTHER_HOOK)
        await queue.run(40.0)
        used = _used(queue)
        assert used["alone"] == pytest.approx(120.0, abs=2.0)
        for replay in ("r1", "r2", "r3"):
            assert used[replay] == pytest.approx(40.0, abs=2.0)

    async def test_f2_a_replay_in_several_lanes_has_its_turn_in_each(self, opened: Open) -> None:
        queue = await opened(equals(A))
        await queue.node(slots=4)
        for target in (HOOK, OTHER_HOOK):
            for replay in ("r1", "r2"):
                await queue.feed(A, replay, 60, target=target)
        await queue.run(40.0)
        for used in Counter((_replay(job), job.target) for job in queue.started).values():
            assert used == pytest.approx(40, abs=2)

    @pytest.mark.parametrize("lanes", [1, 20])
    async def test_f2_twenty_replays_of_a_tenant_gain_nothing_over_one(
        self, opened: Open, lanes: int
    ) -> None:
        """In one lane or in twenty, beside one replay of another tenant and live work of a third."""
        queue = await opened(equals(A, B, C))
        await queue.node(slots=6)
        for number in range(20):
            await queue.feed(A, f"a{number}", 20, target=TARGETS[number % lanes])
        await queue.feed(B, "b", 200)
        await queue.submit(C, jobs(200))
        await queue.run(60.0)
        for tenant in (A, B, C):
            assert queue.used(tenant) == pytest.approx(120.0, abs=2.0)

    @given(lengths=st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=2, max_size=4), two=st.booleans())
    @few
    async def test_f2_of_any_replays_none_is_behind_by_more_than_its_longest_jobs(
        self, opened: Open, lengths: list[Seconds], two: bool
    ) -> None:
        """In one lane or two: what each got, when all of them always waited, is an equal part of its lane."""
        queue = await opened(equals(A))
        queue.length = lambda job: lengths[int(_replay(job))]
        slots, lasts = 4, 30.0
        await queue.node(slots=slots)
        targets = [TARGETS[number % (2 if two else 1)] for number in range(len(lengths))]
        for number, target in enumerate(targets):
            await queue.feed(A, str(number), 300, target=target)
        await queue.run(lasts)
        lanes = Counter(targets)
        used = _used(queue)
        for number, target in enumerate(targets):
            due = lasts * slots / len(lanes) / lanes[target]
            assert used[str(number)] == pytest.approx(due, abs=slots * max(lengths) + 1.0)

    # -- F8: classes -----------------------------------------------------------------------------------

    async def test_f8_live_goes_before_background_before_replays_and_each_keeps_one_in_ten(
        self, opened: Open
    ) -> None:
        """In one lane, with several replays: together they are one class."""
        queue = await opened(equals(A))
        await queue.node(slots=1)
        await queue.submit(A, [*jobs(200), *jobs(200, job_class=JobClass.BACKGROUND)])
        for replay in ("r1", "r2", "r3"):
            await queue.feed(A, replay, 50)
        await queue.run(120.0)
        classes = Counter(job.job_class for job in queue.started)
        for lower in (JobClass.BACKGROUND, JobClass.REPLAY):
            assert classes[lower] >= 12
        assert classes[JobClass.LIVE] >= 0.75 * classes.total()
        replays = Counter(_replay(job) for job in queue.started if job.replay)
        assert max(replays.values()) - min(replays.values()) <= 1

    async def test_f8_live_goes_before_replays_across_the_lanes_of_a_tenant(self, opened: Open) -> None:
        queue = await opened(equals(A))
        await queue.node(slots=1)
        for number in range(10):
            await queue.feed(A, f"r{number}", 20, target=TARGETS[number])
        await queue.submit(A, jobs(100, target=TARGETS[10]))
        await queue.run(50.0)
        live = sum(job.replay is None for job in queue.started)
        assert live >= 0.85 * len(queue.started)
        assert live <= 0.9 * len(queue.started) + 1

    async def test_f8_replays_alone_have_every_slot(self, opened: Open) -> None:
        queue = await opened(equals(A))
        await queue.node(slots=4)
        await queue.feed(A, "r1", 40)
        await queue.run(10.0)
        assert queue.used(A) == 40.0

    async def test_f8_a_paused_replay_accrues_nothing(self, opened: Open) -> None:
        """It was away while another used 40 slot-seconds; from then on they are equal."""
        queue = await opened(equals(A))
        await queue.node(slots=2)
        for replay in ("r1", "r2"):
            await queue.feed(A, replay, 100)
        await queue.round()
        await queue.world.replays.pause_replay(A, "r1", paused=True)
        await queue.run(20.0)
        assert _used(queue)["r1"] == pytest.approx(1.0, abs=1.0)
        await queue.world.replays.pause_replay(A, "r1", paused=False)
        before = _used(queue)
        await queue.run(20.0)
        gained = {replay: used - before[replay] for replay, used in _used(queue).items()}
        assert gained["r1"] == pytest.approx(20.0, abs=2.0)
        assert gained["r2"] == pytest.approx(20.0, abs=2.0)

    async def test_f8_a_withdrawn_replay_leaves_its_turns_to_the_others(self, opened: Open) -> None:
        queue = await opened(equals(A))
        await queue.node(slots=2)
        for replay in ("r1", "r2"):
            await queue.feed(A, replay, 50)
        await queue.run(5.0)
        gone = await queue.world.replays.withdraw_replay(A, "r1", limit=1_000)
        assert len(gone) >= 40
        started = len(queue.started)
        await queue.run(20.0)
        later = [_replay(job) for job in queue.started[started:]]
        assert later.count("r2") >= 38
        assert "r1" not in later

    # -- what live work feels ----------------------------------------------------------------------------

    @pytest.mark.parametrize("replays", [1, 20])
    async def test_a_tenants_live_wait_is_one_job_of_a_slot_however_many_replays_it_runs(
        self, opened: Open, replays: int
    ) -> None:
        """Live jobs come one a second to a tenant whose replays fill all ten slots. Nothing is interrupted:
        the most that a live job waits is for the next slot that comes free."""
        queue = await opened(equals(A, B))
        queue.length = lambda job: 1.0 if job.replay else 0.1
        await queue.node(slots=10)
        for number in range(replays):
            await queue.feed(A, f"r{number}", 600 // replays)
        await queue.run(2.0)
        waits = []
        for _ in range(40):
            (id_,) = await queue.submit(A, jobs(1))
            began = queue.at
            while not any(job.id == id_ for job in await queue.round()):
                await queue.next_end()
            waits.append(queue.at - began)
            await queue.run(1.0)
        assert max(waits) <= 1.0

    async def test_a_rebuild_in_mid_run_keeps_the_turns_of_replays(self, opened: Open) -> None:
        queue = await opened(equals(A))
        queue.length = lambda job: 3.0 if _replay(job) == "r1" else 1.0
        await queue.node(slots=4)
        for replay in ("r1", "r2"):
            await queue.feed(A, replay, 200)
        await queue.run(24.0)
        await queue.rebuild()
        await queue.run(24.0)
        used = _used(queue)
        assert used["r1"] / sum(used.values()) == pytest.approx(0.5, abs=0.06)


def _replay(job: ClaimedJob) -> str:
    return job.replay.id if job.replay else ""


def _used(queue: Dispatch) -> Counter[str]:
    """Slot-seconds of each replay's jobs that were started, those that run as far as they came."""
    used: Counter[str] = Counter()
    running = {(job.flow, job.seq, job.attempt) for job in queue.held()}
    for job in queue.started:
        if (job.flow, job.seq, job.attempt) not in running:
            used[_replay(job)] += queue.length(job)  # type: ignore[assignment]  # seconds, counted as such
    return used
