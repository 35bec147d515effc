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
from tenantry.limiter import Basis, Limit, Limiter, Plan, Plans, SharedLimiter, Standing, Verdict
from tenantry.limiter.asgi import LimitMiddleware, scope_value
from tenantry.limiter.decorators import limited
from tenantry.limiter.gate import LimiterGate
from tenantry.limiter.ports import Authority
from tenantry.memory.directory import MemoryDirectory
from tenantry.partition import Layout, Placement
from tenantry.queue.model import Accepted, ClaimedJob, EndKind, JobId, ReplayedJob, ReplayTerms
from tenantry.queue.ports import IntakeStore, RateGate, ReplayFlows
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.coordinator import Coordinator, CoordinatorSettings
from tenantry.replay.desk import ReplayService
from tenantry.replay.filters import Filter
from tenantry.replay.model import Message, ReplaySpec
from tenantry.replay.ports import ReplayDesk, ReplayStore, Sources
from tenantry.replay.ports import Standing as LanesStanding
from tenantry.replay.progress import Progress, lines
from tenantry.replay.specs import spec_from_toml
from tenantry.rls import Catalogue, Declared, Facts, Finding, Report, Rule, Scope, Severity, audit, named
from tenantry.rls.apply import Applied
from tenantry.rls.apply import Surroundings as Around
from tenantry.rls.apply import apply as apply_policies
from tenantry.rls.declaration import Declaration, parse_declaration
from tenantry.rls.explain.asking import Asker, Planner
from tenantry.rls.explain.asking import explain as explain_query
from tenantry.rls.explain.model import Explanation
from tenantry.rls.ground import Ground
from tenantry.rls.plan import Plan as PolicyPlan
from tenantry.rls.plan import plan as plan_policies
from tenantry.rls.script import Bounds, sql_file
from tenantry.rls.workbench import Workbench
from tenantry.valkey import ValkeyLeaseAuthority

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


async def replayed(flows: ReplayFlows, tenant: TenantId) -> list[JobId]:
    message = ReplayedJob(
        JobId("0198"), Target("handler:resize"), b"{}", headers={"x-shop": "berlin"}, prior=3
    )
    await flows.feed_replay(tenant, ReplayTerms("r1", park_after=3, hold_unknown=True), [message])
    await flows.pause_replay(tenant, "r1", paused=True)
    ends = await flows.take_ends("r1", limit=100)
    parked = [end.job for end in ends if end.kind is EndKind.PARKED]
    return parked + await flows.withdraw_replay(tenant, "r1", limit=1_000)


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


def limits() -> None:
    plans = Plans([("acme", Plan(Limit(100, 900), routes={"POST /orders": Limit.parse("10/min")}))])
    limiter = Limiter(plans)
    verdict = limiter.try_acquire("acme", key="k", route="POST /orders", cost=2)
    assert_type(verdict, Verdict)
    assert_type(verdict.basis, Basis)
    assert_type(verdict.refusal, Refusal | None)
    assert_type(limiter.standings("acme"), list[Standing])
    gate: RateGate = LimiterGate(limiter)
    assert_type(gate.try_acquire(TenantId("acme"), 1), Refusal | None)

    @limited(limiter, tenant="tenant")
    def report(tenant: str) -> int:
        return len(tenant)

    assert_type(report("acme"), int)


async def shared_limits() -> None:
    authority: Authority = ValkeyLeaseAuthority("redis://localhost")
    async with SharedLimiter(Plan(Limit(100)), authority) as limiter:
        assert_type(await limiter.acquire("acme", timeout=0.5), Verdict)

    async def app(scope: object, receive: object, send: object) -> None: ...

    LimitMiddleware(app, Limiter(Plan(Limit(1))), scope_value("tenant"))


async def lead(store: ReplayStore, sources: Sources, standing: LanesStanding, around: Surroundings) -> None:
    settings = CoordinatorSettings(lease_for=15.0, most=100)
    await Coordinator(store, sources, standing, around, holder="node-1", settings=settings).run()


async def replay(desk: ReplayDesk, sources: Sources, standing: LanesStanding, around: Surroundings) -> None:
    spec = spec_from_toml(tenant_id("acme"), '[source]\nkind = "dead_letters"')
    assert_type(spec, ReplaySpec)
    assert_type(Filter(spec.filters).matches(Message(id="1", payload=b"{}")), bool)
    service = ReplayService(desk, sources, standing, around)
    planned = await service.plan(spec)
    assert_type(planned.report.count, int | None)
    view = await service.start(spec.tenant, planned.view.id)
    record = await service.progress(spec.tenant, view.id)
    assert_type(record, Progress)
    assert_type(lines(record), list[str])


async def row_policies(facts: Facts, bench: Workbench, planner: Planner, around: Around) -> None:
    declared = parse_declaration('roles = ["app_user"]\n[tables]\ninvoices = {}')
    assert_type(declared, Declaration)
    found = plan_policies(declared, facts)
    assert_type(found, PolicyPlan)
    assert_type(sql_file(found.steps, Bounds(lock_wait=1.0)), str)
    assert_type(await apply_policies(declared, bench, Bounds(), around), Applied)
    asker = Asker("app_user", "42", declared.setting)
    told = await explain_query("SELECT * FROM invoices", Ground(declared, facts), asker, planner)
    assert_type(told, Explanation)


async def row_policies_audited(catalogue: Catalogue) -> None:
    facts = await catalogue.facts()
    assert_type(facts, Facts)
    declared = Declared(application_roles=("app",), service_roles={"engine": "serves all tenants"})
    report = audit(facts, declared, baseline={"rls-off: table shop.orders": "until Friday"})
    assert_type(report, Report)
    assert_type(report.scope, Scope)
    assert_type(report.at_least(Severity.HIGH), tuple[Finding, ...])
    assert_type(report.counts(), dict[Severity, int])
    assert_type(named("rls-off"), Rule)
