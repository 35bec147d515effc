"""The way into the queue: validate, ask whether the pool sheds, ask the rate, ask the bound, store. One
service, without a loop.

In that order, since each step costs more than the one before. What a later step refuses is not charged to the
rate; of an error of the store the charge stays, because the jobs may have been stored. What a pool sheds is
known already (:class:`tenantry.queue.level_watch.LevelWatch`): no submit waits for it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tenantry.config.model import TenantDocument
from tenantry.config.ports import TenantDirectory
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import UnknownTenant
from tenantry.kernel.events import EventSink
from tenantry.kernel.randomness import Randomness
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.queue.admission import (
    DEFAULT_LIMITS,
    Limits,
    TargetCheck,
    check_batch,
    check_bulk,
    jittered,
    target_of,
)
from tenantry.queue.events import BulkStored, JobsAccepted, SubmitRefused
from tenantry.queue.model import Accepted, BulkSet, NewJob, PoolLevel
from tenantry.queue.overload import refusal_of
from tenantry.queue.ports import IntakeStore, RateGate


def nothing_shed(pool: str) -> PoolLevel | None:
    """For an admission that no planner tells of overload."""
    return None


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """``limits``: what one call may hold. ``targets``: the rule for a tenant's targets, from its document.
    ``level_of``: what a pool sheds now, from memory."""

    limits: Limits = DEFAULT_LIMITS
    targets: Callable[[TenantDocument], TargetCheck] = target_of
    level_of: Callable[[str], PoolLevel | None] = nothing_shed


DEFAULT_SETTINGS = IntakeSettings()


class Admission:
    """Accepts or refuses the jobs of tenants that are already authenticated. Safe for many tasks of one loop.

    All methods raise :class:`~tenantry.kernel.errors.UnknownTenant`,
    :class:`~tenantry.kernel.errors.InvalidValue` (naming the row; nothing of the batch was accepted) and
    :class:`~tenantry.kernel.errors.StoreUnavailable` (then submit again under the same idempotency keys).
    """

    def __init__(
        self,
        store: IntakeStore,
        directory: TenantDirectory,
        rate_gate: RateGate,
        *,
        randomness: Randomness,
        events: EventSink,
        settings: IntakeSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._store, self._directory, self._rate_gate = store, directory, rate_gate
        self._randomness, self._events, self._settings = randomness, events, settings

    async def submit(self, tenant: TenantId, jobs: Sequence[NewJob]) -> Accepted | Refusal:
        """Accept 1 to ``limits.batch`` jobs, all or none. Accepted means durable (law K1).

        A refusal is by OVERLOAD or BOUND (estimates with jitter), RATE (``retry_after`` is exact for a lone
        caller) or KEY_REUSED (law K5). While a pool sheds, a known idempotency key is not looked for.
        """
        document, tier = self._known(tenant)
        check_batch(jobs, self._settings.limits, self._settings.targets(document))
        answer = (
            self._shed(tier, jobs)
            or self._rate_gate.try_acquire(tenant, len(jobs))
            or await self._store_within(tier, tenant, jobs)
        )
        if isinstance(answer, Refusal):
            self._events(SubmitRefused(tenant, tier.name, answer.rule, len(jobs), answer.retry_after))
        else:
            self._tell_accepted(tenant, tier, jobs, answer)
        return answer

    async def submit_bulk(self, tenant: TenantId, jobs: Sequence[NewJob]) -> BulkSet | Refusal:
        """Store 1 to ``limits.bulk`` jobs as one set, to be fed in as the tenant's bound has room.

        The rate is not asked: a set is one call, and what it holds enters no faster than the bound drains.
        A refusal is by BOUND: the tenant has as much stored as ``limits.stored`` allows; or by OVERLOAD.
        """
        document, tier = self._known(tenant)
        check_bulk(jobs, self._settings.limits, self._settings.targets(document))
        answer = self._shed(tier, jobs) or await self._store.submit_bulk(
            tenant, jobs, most=self._settings.limits.stored
        )
        if isinstance(answer, Refusal):
            answer = self._spread(answer)
            self._events(SubmitRefused(tenant, tier.name, answer.rule, len(jobs), answer.retry_after))
        else:
            self._events(BulkStored(tenant, tier.name, len(jobs)))
        return answer

    def _known(self, tenant: TenantId) -> tuple[TenantDocument, Tier]:
        document, tier = self._directory.tenant(tenant), self._directory.tier_of(tenant)
        if document is None or tier is None:
            raise UnknownTenant(tenant)  # without the names of others: the caller may be a tenant
        return document, tier

    async def _store_within(self, tier: Tier, tenant: TenantId, jobs: Sequence[NewJob]) -> Accepted | Refusal:
        answer = await self._store.submit(tenant, jobs, bound=tier.bound)
        not_charged = len(jobs) if isinstance(answer, Refusal) else len(answer.existing)
        if not_charged:
            self._rate_gate.give_back(tenant, not_charged)
        return self._spread(answer) if isinstance(answer, Refusal) else answer

    def _shed(self, tier: Tier, jobs: Sequence[NewJob]) -> Refusal | None:
        level = self._settings.level_of(tier.pool)
        if level is None:
            return None
        return refusal_of(level, tier, jobs, self._randomness.uniform(0.0, 1.0))

    def _spread(self, refusal: Refusal) -> Refusal:
        if refusal.rule is not Rule.BOUND or refusal.retry_after is None:
            return refusal
        return replace(refusal, retry_after=jittered(refusal.retry_after, self._randomness.uniform(0.0, 1.0)))

    def _tell_accepted(
        self, tenant: TenantId, tier: Tier, jobs: Sequence[NewJob], accepted: Accepted
    ) -> None:
        counts = Counter(job.job_class for job in jobs)
        existing = Counter(jobs[position].job_class for position in accepted.existing)
        for job_class, count in counts.items():
            self._events(JobsAccepted(tenant, tier.name, job_class, count, existing[job_class]))
