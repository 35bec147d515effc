"""The way into the queue: in order, charged only for what is accepted, and told."""

from dataclasses import replace
from typing import Any

import pytest

from tenantry.algorithms.shedding import Level
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Shedding, Tier
from tenantry.kernel.errors import InvalidValue, UnknownTenant
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes.model import Target
from tenantry.memory.directory import MemoryDirectory
from tenantry.memory.queue_store import MemoryQueueStore
from tenantry.memory.rate_gate import MemoryRateGate
from tenantry.queue.admission import DEFAULT_LIMITS, Limits
from tenantry.queue.events import BulkStored, JobsAccepted, SubmitRefused
from tenantry.queue.intake import Admission, IntakeSettings
from tenantry.queue.model import Accepted, BulkSet, JobClass, JobState, NewJob, PoolLevel
from tenantry.testing.clock import ManualClock

ACME = TenantId("acme")
JOB = NewJob(Target("https://example.com/hook"), b"{}")


class Desk:
    """An admission over a store in memory; ``tier`` is what its one tenant has."""

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, **tier: Any) -> None:
        self.clock, self.told = ManualClock(), list[Event]()
        self.level: PoolLevel | None = None
        named = Tier(TierName("gold"), **tier)
        registry = Registry(tiers=(named,), tenants=(TenantDocument(ACME, named.name),))
        directory = MemoryDirectory(registry)
        self.store = MemoryQueueStore(self.clock, SeededRandomness(1))
        self.gate = MemoryRateGate(directory, self.clock)
        self.admission = Admission(
            self.store,
            directory,
            self.gate,
            randomness=SeededRandomness(2),
            events=self.told.append,
            settings=IntakeSettings(limits=limits, level_of=lambda pool: self.level),
        )

    async def submit(self, *jobs: NewJob) -> Accepted | Refusal:
        return await self.admission.submit(ACME, jobs)

    async def waiting(self) -> int:
        return (await self.store.counts())[JobState.WAITING]


async def test_an_accepted_batch_is_stored_and_told_by_class() -> None:
    desk = Desk()
    answer = await desk.submit(JOB, JOB, replace(JOB, job_class=JobClass.BACKGROUND))
    assert isinstance(answer, Accepted)
    assert len(answer.ids) == await desk.waiting() == 3
    assert desk.told == [
        JobsAccepted(ACME, TierName("gold"), JobClass.LIVE, 2),
        JobsAccepted(ACME, TierName("gold"), JobClass.BACKGROUND, 1),
    ]


async def test_a_batch_with_one_bad_row_names_the_row_and_accepts_none() -> None:
    desk = Desk(submit_rate=3.0)
    with pytest.raises(InvalidValue, match=r"jobs\[1\]\.cost"):
        await desk.submit(JOB, replace(JOB, cost=-1.0), JOB)
    assert await desk.waiting() == 0
    assert isinstance(await desk.submit(JOB, JOB, JOB), Accepted)  # nor was it charged


async def test_an_unknown_tenant_is_an_error_that_names_no_other() -> None:
    with pytest.raises(UnknownTenant) as caught:
        await Desk().admission.submit(TenantId("acmee"), [JOB])
    assert "'acme'" not in str(caught.value)


async def test_a_refusal_by_rate_stores_nothing_and_sleeping_exactly_so_long_is_enough() -> None:
    desk = Desk(submit_rate=2.0)
    await desk.submit(JOB, JOB)
    refusal = await desk.submit(JOB)
    assert isinstance(refusal, Refusal)
    assert (refusal.rule, refusal.retry_after) == (Rule.RATE, 0.5)
    assert await desk.waiting() == 2
    desk.clock.advance(0.5)
    assert isinstance(await desk.submit(JOB), Accepted)


async def test_a_refusal_by_bound_is_not_charged_to_the_rate_and_its_estimate_is_spread() -> None:
    desk = Desk(submit_rate=4.0, bound=1)
    await desk.submit(JOB)
    estimates = set()
    for _ in range(20):
        refusal = await desk.submit(JOB)
        assert isinstance(refusal, Refusal)
        assert refusal.rule is Rule.BOUND
        assert refusal.retry_after is not None
        estimates.add(refusal.retry_after)
    assert len(estimates) == 20
    told = desk.told[-1]
    assert isinstance(told, SubmitRefused)
    assert (told.rule, told.count) == (Rule.BOUND, 1)


async def test_a_job_known_by_its_key_is_not_charged() -> None:
    desk = Desk(submit_rate=1.0)
    keyed = replace(JOB, idempotency_key="k")
    await desk.submit(keyed)
    desk.clock.advance(1.0)
    for _ in range(5):
        assert isinstance(await desk.submit(keyed), Accepted)
    assert isinstance(await desk.submit(JOB), Accepted)
    assert desk.told[1] == JobsAccepted(ACME, TierName("gold"), JobClass.LIVE, 1, existing=1)


async def test_a_reused_key_is_refused_for_good() -> None:
    desk = Desk()
    await desk.submit(replace(JOB, idempotency_key="k"))
    refusal = await desk.submit(JOB, replace(JOB, idempotency_key="k", payload=b"other"))
    assert isinstance(refusal, Refusal)
    assert (refusal.rule, refusal.retry_after) == (Rule.KEY_REUSED, None)
    assert "jobs[1]" in refusal.detail


async def test_a_set_beyond_what_a_tenant_may_have_stored_is_refused_with_jitter_and_told() -> None:
    desk = Desk(limits=Limits(stored=3))
    await desk.admission.submit_bulk(ACME, [JOB] * 2)
    refusal = await desk.admission.submit_bulk(ACME, [JOB] * 2)
    assert isinstance(refusal, Refusal)
    assert refusal.rule is Rule.BOUND
    assert desk.told[1:] == [SubmitRefused(ACME, TierName("gold"), Rule.BOUND, 2, refusal.retry_after)]


async def test_a_bulk_set_passes_bound_and_rate_and_is_told() -> None:
    desk = Desk(submit_rate=1.0, bound=1)
    stored = await desk.admission.submit_bulk(ACME, [JOB] * 2_000)
    assert isinstance(stored, BulkSet)
    assert (stored.total, stored.stored) == (2_000, 2_000)
    assert desk.told == [BulkStored(ACME, TierName("gold"), 2_000)]
    with pytest.raises(InvalidValue, match=r"jobs\[0\]\.idempotency_key"):
        await desk.admission.submit_bulk(ACME, [replace(JOB, idempotency_key="k")])


BACKGROUND = replace(JOB, job_class=JobClass.BACKGROUND)
OVERLOADED = PoolLevel("shared", Level.BACKGROUND, 9.0, 1.0, 15.0)


async def test_under_overload_background_work_of_a_free_tier_is_refused_uncharged_and_told() -> None:
    desk = Desk(submit_rate=1.0, shedding=Shedding.FIRST)
    desk.level = OVERLOADED
    refusals = [await desk.submit(BACKGROUND) for _ in range(20)]
    assert all(isinstance(each, Refusal) and each.rule is Rule.OVERLOAD for each in refusals)
    waits = {each.retry_after for each in refusals if isinstance(each, Refusal)}
    assert len(waits) == 20
    assert all(wait is not None and 15.0 <= wait <= 30.0 for wait in waits)
    told = desk.told[-1]
    assert isinstance(told, SubmitRefused)
    assert told.rule is Rule.OVERLOAD
    assert isinstance(await desk.submit(JOB), Accepted)  # live work is not, and the rate was not charged
    desk.level = None
    desk.clock.advance(1.0)
    assert isinstance(await desk.submit(BACKGROUND), Accepted)


async def test_a_batch_with_one_job_that_is_shed_is_refused_whole_and_names_it() -> None:
    desk = Desk(shedding=Shedding.FIRST)
    desk.level = OVERLOADED
    refusal = await desk.submit(JOB, BACKGROUND)
    assert isinstance(refusal, Refusal)
    assert refusal.detail.startswith("jobs[1]: ")
    assert await desk.waiting() == 0


async def test_a_bulk_set_is_shed_as_a_batch_is() -> None:
    desk = Desk(shedding=Shedding.FIRST)
    desk.level = OVERLOADED
    refusal = await desk.admission.submit_bulk(ACME, [JOB, BACKGROUND])
    assert isinstance(refusal, Refusal)
    assert refusal.rule is Rule.OVERLOAD
    assert isinstance(await desk.admission.submit_bulk(ACME, [JOB]), BulkSet)


async def test_a_protected_tier_is_accepted_at_every_level() -> None:
    desk = Desk(shedding=Shedding.LAST)
    for level in Level:
        desk.level = replace(OVERLOADED, level=level)
        assert isinstance(await desk.submit(JOB, BACKGROUND), Accepted)
