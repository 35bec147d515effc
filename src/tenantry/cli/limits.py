"""``tenantry limits``: what a tenant may use, whether a call would pass, what is held, whether the books
agree."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tenantry.cli.limits_files import plans_of, used_in
from tenantry.cli.options import Shown, command, group
from tenantry.cli.output import Output, amount
from tenantry.cli.progress import waiting
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.kernel.tenant import TenantId, tenant_id

if TYPE_CHECKING:
    from tenantry.limiter import Limiter, Plan, Verdict
    from tenantry.valkey import ValkeyLeaseAuthority
    from tenantry.valkey.kept import KeptBalance

app = group("How much each tenant may ask for: limits, leases, the ledger. Needs no database.")

AUTHORITY_URL = "TENANTRY_LIMITS_URL"


@dataclass(frozen=True, kw_only=True)
class OfAuthority(Shown):
    """Where the authority is."""

    authority: Annotated[
        str | None,
        typer.Option(
            envvar=AUTHORITY_URL,
            metavar="URL",
            help="redis://host, redis+sentinel://host/name or redis+cluster://host,host.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OfLimits(OfAuthority):
    """And where the plans are."""

    plans: Annotated[Path, typer.Option(metavar="FILE", help="The plans, in TOML; - for standard input.")] = (
        Path("limits.toml")
    )


@dataclass(frozen=True, kw_only=True)
class ShowOptions(OfLimits):
    """One tenant."""

    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant.")]


@dataclass(frozen=True, kw_only=True)
class TryOptions(OfLimits):
    """Calls of one tenant."""

    tenant: Annotated[str, typer.Argument(metavar="TENANT", help="Which tenant.")]
    key: Annotated[str | None, typer.Option(help="Which of its keys.")] = None
    route: Annotated[str | None, typer.Option(help="Which route, as the plan names it.")] = None
    cost: Annotated[float, typer.Option(help="Tokens a call.")] = 1.0
    times: Annotated[int, typer.Option(help="So many calls, one after the other.", min=1)] = 1


@dataclass(frozen=True, kw_only=True)
class WatchOptions(OfAuthority):
    """Some tenants, again and again."""

    tenants: Annotated[list[str], typer.Argument(metavar="TENANTS", help="Which tenants.")]
    every: Annotated[float, typer.Option(metavar="SECONDS", help="Between two looks.", min=0.1)] = 1.0
    times: Annotated[int, typer.Option(help="So many looks; 0 goes on until Ctrl-C.", min=0)] = 0


@dataclass(frozen=True, kw_only=True)
class ReconcileOptions(OfAuthority):
    """An access log of one day."""

    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="CSV or JSON lines: tenant, status, cost; - for stdin.")
    ]
    day: Annotated[str, typer.Option(metavar="DATE", help="Which UTC day of the ledger: 2026-11-30.")]
    within: Annotated[
        float, typer.Option(metavar="PART", help="How far off a tenant may be, as a part of its ledger.")
    ] = 0.01
    tokens: Annotated[float, typer.Option(help="And so many tokens beyond that.")] = 1.0


@command(app, "show", ShowOptions)
def show(options: ShowOptions) -> None:
    """A tenant's plan and, with --authority, what its buckets hold and which nodes hold leases."""
    tenant = tenant_id(options.tenant)
    plan = plans_of(options.plans).plan_of(tenant)
    balances: list[KeptBalance] = []
    if options.authority:
        balances = asyncio.run(_balances(options.authority, [tenant]))[0]
    output = Output.of(options)
    rows = _limits(plan)
    output.data({"tenant": tenant, "limits": [list(row) for row in rows], "buckets": balances})
    if not rows:
        output.line(f"{tenant} has no limit.")
    else:
        output.table(("limit of", "is", "at most at once"), rows)
    if options.authority and not balances:
        output.line("Nothing taken, nothing leased.")
    _tell_balances(output, balances)


@command(app, "try", TryOptions)
def try_it(options: TryOptions) -> None:
    """Whether calls would pass, one after the other. With --authority they are charged there; without, this
    process alone decides. The exit code is 1 when one is refused."""
    plans = plans_of(options.plans)
    if options.authority:
        verdicts = asyncio.run(_tried_shared(options))
    else:
        from tenantry.limiter import Limiter

        verdicts = _tried_alone(Limiter(plans), options)
    output, passed = Output.of(options), sum(verdict.allowed for verdict in verdicts)
    refused = next((verdict for verdict in verdicts if not verdict), None)
    bases = Counter(verdict.basis.value for verdict in verdicts)
    output.data({"passed": passed, "of": len(verdicts), "bases": bases, "refused": _as_data(refused)})
    output.line(f"{passed:,} of {amount(len(verdicts), 'call')} passed.")
    for remark in _remarks(options, plans.plan_of(tenant_id(options.tenant)), bases):
        output.note(remark)
    if refused is not None:
        detail = refused.refusal.detail if refused.refusal else ""
        output.line(f"The first refusal was {detail}.")
        raise typer.Exit(1)


@command(app, "watch", WatchOptions)
def watch(options: WatchOptions) -> None:
    """What the buckets of some tenants hold, again and again."""
    tenants = [tenant_id(each) for each in options.tenants]
    url = _needed(options)
    asyncio.run(_watch(options, url, tenants))


@command(app, "reconcile", ReconcileOptions)
def reconcile(options: ReconcileOptions) -> None:
    """Hold a day of the authority's ledger against an access log: every tenant of either, those that are off
    last. The exit code is 1 when one is."""
    from tenantry.limiter.ledger import reconciled

    try:
        day = date.fromisoformat(options.day)
    except ValueError:
        raise InvalidValue("--day", options.day, "a date such as 2026-11-30") from None
    for option, value in (("--within", options.within), ("--tokens", options.tokens)):
        if not 0 <= value < inf:
            raise InvalidValue(option, value, "a number >= 0")
    url, logged, output = _needed(options), used_in(options.log), Output.of(options)
    booked = asyncio.run(_booked(url, day, output))
    found = reconciled(booked, logged)
    off = {each.tenant for each in found if not each.within(options.within, options.tokens)}
    if not booked:
        output.note(
            f"The ledger has nothing of {day}: only plans with a ledger or an exact limit are booked."
        )
    output.data({"day": options.day, "tenants": found, "off": sorted(off)})
    output.table(
        ("tenant", "ledger", "log", "log less ledger"),
        [
            (each.tenant, f"{each.ledger:,.12g}", f"{each.log:,.12g}", f"{each.off:+,.12g}")
            for each in sorted(found, key=lambda each: each.tenant in off)
        ],
    )
    output.line(f"{amount(len(found), 'tenant')}, {len(off):,} off.")
    if off:
        raise typer.Exit(1)


def _needed(options: OfAuthority) -> str:
    if not options.authority:
        raise UsageError(f"which authority? Give --authority URL, or set {AUTHORITY_URL}")
    return options.authority


def _limits(plan: "Plan | None") -> list[tuple[str, str, str]]:
    if plan is None:
        return []
    named = [("the tenant", plan.tenant), ("each key", plan.key), *plan.routes.items()]
    return [(name, str(limit), f"{limit.capacity:g}") for name, limit in named if limit is not None]


def _tell_balances(output: Output, balances: "Sequence[KeptBalance]") -> None:
    if balances:
        output.table(
            ("bucket", "holds", "of", "leased out", "nodes"),
            [
                (
                    each.name,
                    f"{each.level:.1f}",
                    f"{each.capacity:g}",
                    f"{sum(each.held.values()):.1f}",
                    len(each.held),
                )
                for each in balances
            ],
        )


def _remarks(options: TryOptions, plan: "Plan | None", bases: Counter[str]) -> Iterator[str]:
    """What else whoever tries has to know: which of it no limit was asked about, or not the authority."""
    if plan is None:
        yield f"{options.tenant} has no plan: it has no limit."
    elif options.route is not None and options.route not in plan.routes:
        known = ", ".join(map(repr, sorted(plan.routes))) or "none"
        yield f"Its plan has no limit of the route {options.route!r}; of routes it limits {known}."
    if options.key is not None and plan is not None and plan.key is None:
        yield "Its plan has no limit of each key."
    if down := bases["store_down"]:
        yield (
            f"The authority does not answer: {amount(down, 'call')} decided on the share "
            "that a node has meanwhile."
        )


def _as_data(verdict: "Verdict | None") -> dict[str, object] | None:
    return None if verdict is None else verdict._asdict()


def _tried_alone(limiter: "Limiter", options: TryOptions) -> "list[Verdict]":
    return [
        limiter.try_acquire(options.tenant, key=options.key, route=options.route, cost=options.cost)
        for _ in range(options.times)
    ]


async def _tried_shared(options: TryOptions) -> "list[Verdict]":
    from tenantry.limiter import SharedLimiter

    authority = _authority(_needed(options))
    async with authority, SharedLimiter(plans_of(options.plans), authority, node="cli") as limiter:
        return [
            await limiter.acquire(
                options.tenant, key=options.key, route=options.route, cost=options.cost, timeout=1.0
            )
            for _ in range(options.times)
        ]


async def _balances(url: str, tenants: Sequence[TenantId]) -> "list[list[KeptBalance]]":
    async with _authority(url) as authority:
        return [await authority.balances(tenant) for tenant in tenants]


async def _watch(options: WatchOptions, url: str, tenants: list[TenantId]) -> None:
    output, looks = Output.of(options), 0
    async with _authority(url) as authority:
        while True:
            found = {tenant: await authority.balances(tenant) for tenant in tenants}
            nodes = await authority.nodes()
            output.data({"nodes": nodes, "tenants": found})
            output.line(f"{amount(len(nodes), 'node')}.")
            for tenant, balances in found.items():
                output.line(f"{tenant}:" if balances else f"{tenant}: nothing taken, nothing leased.")
                _tell_balances(output, balances)
            looks += 1
            if looks == options.times:
                return
            await asyncio.sleep(options.every)


async def _booked(url: str, day: date, output: Output) -> dict[TenantId, float]:
    """What the day's ledger says was used, by tenant."""
    booked: dict[TenantId, float] = {}
    with waiting(output, "reading the ledger") as told:
        async with _authority(url) as authority:
            async for line in authority.day_of_all(day):
                booked[line.tenant] = line.used
                if len(booked) % 1_000 == 0:
                    told(f"reading the ledger: {amount(len(booked), 'tenant')}")
    return booked


def _authority(url: str) -> "ValkeyLeaseAuthority":
    from tenantry.valkey import ValkeyLeaseAuthority

    return ValkeyLeaseAuthority(url, timeout=2.0)
