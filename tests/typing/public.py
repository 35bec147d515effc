"""The public names as a user would write them. Never run; always type-checked."""

from typing import assert_type

from tenantry import (
    FairExecutor,
    FairShare,
    Handlers,
    JobClass,
    NewJob,
    Refusal,
    Reject,
    RetryLater,
    TenantId,
    TenantryClient,
    Tier,
)
from tenantry.algorithms.fair_share import Pick
from tenantry.config.registry import Registry, parse_registry
from tenantry.kernel.tenant import TierName, Weight, tenant_id
from tenantry.lanes.model import Target
from tenantry.memory.directory import MemoryDirectory
from tenantry.partition import Layout, Placement
from tenantry.queue.model import Accepted, ClaimedJob
from tenantry.queue.ports import IntakeStore

handlers = Handlers()


@handlers.register("resize")
async def resize(job: ClaimedJob) -> None:
    if not job.payload:
        raise Reject("an empty image")
    raise RetryLater(30.0)


def tiers() -> MemoryDirectory:
    gold = Tier(TierName("gold"), Weight(4.0), cap=0.5, bound=1_000)
    registry = parse_registry("[tenants.acme]\ntier = 'standard'", format="toml", tiers=(gold,))
    assert_type(registry, Registry)
    return MemoryDirectory(registry)


def share() -> list[Pick]:
    rule = FairShare(floor=0.25)
    rule.set_tenant("acme", weight=2.0)
    rule.open_flow("f", tenant="acme", lane="l")
    rule.add("f", 3)
    return rule.plan({frozenset({""}): 2}, now=0.0)


async def submit(store: IntakeStore) -> tuple[str, ...]:
    job = NewJob(Target("https://hooks.example.com/a"), b"{}", JobClass.BACKGROUND, delay_for=5.0)
    answer = await store.submit(tenant_id("acme"), [job], bound=200)
    assert_type(answer, Accepted | Refusal)
    if isinstance(answer, Refusal):
        assert_type(answer.retry_after, float | None)
        return ()
    return answer.ids


async def executor() -> None:
    async with FairExecutor(slots=4) as fair:
        await fair.run(TenantId("acme"), resize)


async def client() -> None:
    async with TenantryClient("http://127.0.0.1:8080", "tk_…") as tenantry:
        await tenantry.submit(NewJob(Target("https://hooks.example.com/a"), b"{}"))


def place() -> int:
    placement = Placement([Layout(32, spreads={"acme": 4})])
    where = placement.partition_for("acme", "order-1", 1_700_000_000.0)
    assert_type(where, int)
    return where
