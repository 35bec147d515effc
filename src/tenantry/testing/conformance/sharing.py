"""Who gets how much of the slots: the laws of share, of credit and of cost (F1, F2, F5, F6)."""

from collections import Counter
from typing import Any

import pytest

from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.queue.model import Ending, JobClass
from tenantry.testing.conformance.dispatch import A, B, C, Open, equals, jobs, registry, tier
from tenantry.testing.conformance.world import HOOK, OTHER_HOOK

TARGETS = [Target(f"https://hooks.example.com/{number}") for number in range(20)]


class SharingConformance:
    """Shares, in slot-seconds."""

    # -- F1: share --------------------------------------------------------------------------------------

    @pytest.mark.parametrize("slots", [7, 3])
    async def test_f1_capacity_divides_exactly_as_the_weights_1_2_4(self, opened: Open, slots: int) -> None:
        weights = {A: 1.0, B: 2.0, C: 4.0}
        queue = await opened(registry({each: tier(each, weight) for each, weight in weights.items()}))
        await queue.node(slots=slots)
        for each in weights:
            await queue.submit(each, jobs(300))
        await queue.run(70.0)
        for each, weight in weights.items():
            entitled = 70.0 * slots * weight / 7.0
            assert queue.used(each) == pytest.approx(entitled, abs=1.5), "a quantum, and a job that runs"

    async def test_f1_the_floor_is_a_quarter_of_an_equal_share_whatever_the_weights(
        self, opened: Open
    ) -> None:
        queue = await opened(registry({A: tier("light", 1.0), B: tier("heavy", 100.0)}))
        await queue.node(slots=8)
        for each in (A, B):
            await queue.submit(each, jobs(500))
        await queue.run(40.0)
        assert queue.share(A) == pytest.approx(0.25 / 2, abs=0.005)

    async def test_f1_with_more_tenants_than_slots_the_shares_hold_over_time(self, opened: Open) -> None:
        tenants = [TenantId(f"t{number}") for number in range(12)]
        queue = await opened(equals(*tenants))
        await queue.node(slots=2)
        for each in tenants:
            await queue.submit(each, jobs(30))
        await queue.run(60.0)
        assert {round(queue.used(each)) for each in tenants} == {10}

    async def test_f1_what_an_idle_tenant_leaves_goes_to_the_others_by_the_same_weights(
        self, opened: Open
    ) -> None:
        queue = await opened(registry({A: tier("a", 1.0), B: tier("b", 2.0), C: tier("c", 4.0)}))
        await queue.node(slots=6)
        for each in (A, B):
            await queue.submit(each, jobs(200))
        await queue.run(30.0)
        assert queue.used(A) == pytest.approx(60.0, abs=1.5)
        assert queue.used(B) == pytest.approx(120.0, abs=1.5)

    # -- F2: tenant first -------------------------------------------------------------------------------

    @pytest.mark.parametrize("how", ["targets", "keys", "classes"])
    async def test_f2_splitting_work_over_twenty_gains_nothing(self, opened: Open, how: str) -> None:
        queue = await opened(equals(A, B))
        await queue.node(slots=4)
        for number in range(20):
            splits: dict[str, dict[str, Any]] = {
                "targets": {"target": TARGETS[number]},
                "keys": {"ordering_key": f"key {number}"},
                "classes": {"target": TARGETS[number], "job_class": JobClass(number % 3)},
            }
            await queue.submit(A, jobs(20, **splits[how]))
        await queue.submit(B, jobs(400))
        await queue.run(50.0)
        assert queue.used(A) == pytest.approx(queue.used(B), abs=4.0)

    async def test_f2_a_tenants_lanes_take_turns_by_slot_seconds(self, opened: Open) -> None:
        queue = await opened(equals(A))
        queue.length = lambda job: 4.0 if job.target == HOOK else 1.0
        await queue.node(slots=2)
        await queue.submit(A, jobs(100))
        await queue.submit(A, jobs(200, target=OTHER_HOOK))
        await queue.run(100.0)
        starts = Counter(job.target for job in queue.started)
        assert starts[OTHER_HOOK] == pytest.approx(4 * starts[HOOK], abs=8)

    @pytest.mark.parametrize("targets", [1, 20])
    async def test_f2_a_light_tenants_wait_does_not_depend_on_the_flooders_targets(
        self, opened: Open, targets: int
    ) -> None:
        """Case Q3."""
        queue = await opened(equals(A, B))
        await queue.node(slots=4)
        for target in TARGETS[:targets]:
            await queue.submit(A, jobs(400 // targets, target=target))
        await queue.run(10.0)
        (light,) = await queue.submit(B, jobs(1))
        await queue.next_end()
        assert light in {job.id for job in await queue.round()}

    # -- F5: no wind-up ---------------------------------------------------------------------------------

    async def test_f5_one_busy_tenant_of_ten_has_the_pool_and_the_others_return_within_one_job_time(
        self, opened: Open
    ) -> None:
        """Case Q4."""
        tenants = [TenantId(f"t{number}") for number in range(10)]
        queue = await opened(equals(*tenants))
        await queue.node(slots=20)
        await queue.submit(tenants[0], jobs(600))
        await queue.run(10.0)
        assert queue.running(tenants[0]) == 20
        for each in tenants[1:]:
            await queue.submit(each, jobs(50))
        returned = queue.at
        await queue.run(1.0)
        assert min(queue.running(each) for each in tenants[1:]) >= 2
        await queue.run(19.0)
        for each in tenants:
            assert queue.used(each, since=returned) == pytest.approx(40.0, abs=2.5)

    async def test_f5_offered_load_that_rises_gets_equal_shares_at_once(self, opened: Open) -> None:
        """Case Q5: 2/s and 1/s against 3/s for 20 s, then 2/s each: idle credit is at most one quantum."""
        queue = await opened(equals(A, B))
        await queue.node(slots=3)
        for second in range(40):
            if second == 20:
                risen = queue.at
            await queue.submit(A, jobs(2))
            await queue.submit(B, jobs(1 if second < 20 else 2))
            await queue.run(1.0)
        assert queue.used(A, since=risen) == pytest.approx(30.0, abs=1.5)
        assert queue.used(B, since=risen) == pytest.approx(30.0, abs=1.5)

    # -- F6: cost ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize(("slow", "quick"), [(None, None), (1.0, 20.0)])
    async def test_f6_jobs_of_20_s_beside_jobs_of_1_s_share_50_to_50_whatever_the_estimates(
        self, opened: Open, slow: float | None, quick: float | None
    ) -> None:
        queue = await opened(equals(A, B))
        queue.length = lambda job: 20.0 if job.tenant == A else 1.0
        await queue.node(slots=4)
        await queue.submit(A, jobs(150, cost=slow))
        for _ in range(2):
            await queue.submit(B, jobs(800, cost=quick))
        await queue.run(400.0)
        assert queue.share(A) == pytest.approx(0.5, abs=0.02)

    @pytest.mark.parametrize("ending", [Ending.RETRY, Ending.RELEASED, Ending.DEAD])
    async def test_f6_failed_attempts_cost_what_they_used(self, opened: Open, ending: Ending) -> None:
        """A tenant whose jobs never succeed has the same share as one whose jobs do."""
        queue = await opened(equals(A, B))
        queue.ending = lambda job: ending if job.tenant == A else Ending.DELIVERED
        await queue.node(slots=4)
        for each in (A, B):
            await queue.submit(each, jobs(150))
        await queue.run(50.0)
        assert queue.share(A) == pytest.approx(0.5, abs=0.02)

    @pytest.mark.parametrize("slots", [1, 100])
    async def test_f6_claims_of_one_give_the_same_shares_as_claims_of_a_hundred(
        self, opened: Open, slots: int
    ) -> None:
        """Case Q6."""
        queue = await opened(registry({A: tier("a", 1.0), B: tier("b", 3.0)}))
        queue.length = lambda _: slots / 100.0
        await queue.node(slots=slots)
        for each in (A, B):
            await queue.submit(each, jobs(400))
        await queue.run(4.0)
        assert queue.share(B) == pytest.approx(0.75, abs=0.01)

    async def test_f6_a_weight_changed_while_a_backlog_waits_acts_on_the_backlog(self, opened: Open) -> None:
        """Case Q8."""
        queue = await opened(registry({A: tier("a"), B: tier("b")}))
        await queue.node(slots=4)
        for each in (A, B):
            await queue.submit(each, jobs(300))
        await queue.run(20.0)
        assert queue.share(A) == pytest.approx(0.5, abs=0.02)
        queue.directory.replace(registry({A: tier("a"), B: tier("b", 3.0)}))
        changed = queue.at
        await queue.run(50.0)
        assert queue.share(B, since=changed) == pytest.approx(0.75, abs=0.02)
