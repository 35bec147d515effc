"""The feeder's loop: tenant by tenant, and one tenant's trouble is nobody else's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.events import Event
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.events import FeedFailed, JobDied, JobsDied, JobsFed
from tenantry.queue.feeder import Feeder, FeederSettings
from tenantry.queue.model import Fed, JobId
from tenantry.testing.clock import ManualClock

ACME, BROKEN, GLOBEX = TenantId("acme"), TenantId("broken"), TenantId("globex")


@dataclass
class Store:
    """Answers as told; ``asked``: whom it fed, with which bound and limit."""

    answers: Mapping[TenantId, Fed | Exception]
    asked: list[tuple[TenantId, int | None, int]] = field(default_factory=list)

    async def stored_tenants(self) -> Sequence[TenantId]:
        return list(self.answers)

    async def feed(self, tenant: TenantId, *, bound: int | None, limit: int) -> Fed:
        self.asked.append((tenant, bound, limit))
        answer = self.answers[tenant]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def tidy(self, *, keep_days: int) -> None:
        raise AssertionError


class Desk:
    def __init__(self, store: Store) -> None:
        self.clock, self.told = ManualClock(), list[Event]()
        tier = Tier(TierName("gold"), bound=9)
        registry = Registry((tier,), (TenantDocument(ACME, tier.name), TenantDocument(BROKEN, tier.name)))
        self.feeder = Feeder(
            store,  # type: ignore[arg-type]
            MemoryDirectory(registry),
            clock=self.clock,
            randomness=SeededRandomness(1),
            events=self.told.append,
            settings=FeederSettings(batch=5, put_off_for=30.0),
        )


async def test_each_tenant_is_fed_by_its_own_bound_and_a_removed_one_without() -> None:
    store = Store({ACME: Fed(5), GLOBEX: Fed(0)})
    desk = Desk(store)
    assert await desk.feeder.feed() == 5
    assert store.asked == [(ACME, 9, 5), (GLOBEX, None, 5)]
    assert desk.told == [JobsFed(5)]


async def test_what_dies_on_the_way_is_told_by_job_and_reason_and_not_as_fed() -> None:
    desk = Desk(Store({ACME: Fed(3, ((JobId("j"), "over bound"),)), GLOBEX: Fed(1, ((JobId("k"), "why"),))}))
    assert await desk.feeder.feed() == 4
    assert desk.told == [
        JobsFed(2),
        JobsDied(None, (JobDied(JobId("j"), ACME, "over bound"),)),
        JobsDied(None, (JobDied(JobId("k"), GLOBEX, "why"),)),
    ]


async def test_an_error_with_one_tenant_is_told_and_put_off_while_the_others_go_on() -> None:
    store = Store({BROKEN: InvariantBroken("a row"), GLOBEX: Fed(2)})
    desk = Desk(store)
    assert [await desk.feeder.feed() for _ in range(2)] == [2, 2]
    assert [tenant for tenant, _, _ in store.asked] == [BROKEN, GLOBEX, GLOBEX]
    assert desk.told == [FeedFailed(BROKEN, "InvariantBroken", 30.0), JobsFed(2), JobsFed(2)]
    desk.clock.advance(30.0)
    await desk.feeder.feed()
    assert store.asked[-2][0] == BROKEN
