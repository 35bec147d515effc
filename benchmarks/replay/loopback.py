"""Everybody replays at once, for real: 50 replays of 200,000 dead letters over HTTP, on a real PostgreSQL.

Two worker processes, each with a coordinator; targets in processes of their own that serve 4, 8 or 16 calls
at once, 0.4 s each: 500 messages a second over 200 slots, which two processors carry, clients, targets and
PostgreSQL among them (at calls of 0.2 s the processors are what is shared). The targets' capacities together
are more than twice the slots, so the pool is what is shared: by the tiers' weights 4, 2, 1, and a floor. One
replay has a backlog ten times the others', and a target of 40. Ten tenants submit live work all the while,
calls of 50 ms; four of them have a replay too.

The yardstick is the fluid schedule of the same targets and of the slots that live work leaves
(:mod:`tenantry.simulation.fluid`), which knows no round trips. When a replay ended is the database's word,
live waits are the targets'.

Alone, one replay of what its target can serve in a minute: the time over backlog / capacity, discovery
included.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured, percentile
from benchmarks.fleet import Runner, RunnerFailed
from benchmarks.lanes.workers import TARGETS, Product, asked, served
from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.tenant import TenantId, TierName, Weight
from tenantry.lanes.model import Target
from tenantry.postgres.database import connect_once
from tenantry.replay.lifecycle import ENDED
from tenantry.replay.model import ReplaySpec, ReplayView, SourceAddress
from tenantry.simulation.fluid import FluidSchedule, FluidTenant, fluid

QUICK = False
SERVICE, FLOOR = 0.4, 0.25
TIERS = {name: Tier(TierName(name), Weight(weight)) for name, weight in
         (("critical", 4.0), ("standard", 2.0), ("basic", 1.0))}  # fmt: skip
STRONG = (4, 8, 16)
LARGE = 40
"""Calls at once that the targets of most replays take, and that of the largest one."""

LIVE = 10
LIVE_RATE, LIVE_SERVICE = 20.0, 0.05
"""Live jobs a second, of all ten tenants, and what the call of one takes: one slot, in the mean."""

LOOK_EVERY = 10.0
"""Seconds between looks at the replays: the process that reads them stamps live jobs, too."""

OWN = SourceAddress(kind="dead_letters")
_LETTERS = """
    INSERT INTO tenantry.dead_letters
           (job_id, tenant_id, target, job_class, payload, content_type, submitted_at, attempts, status,
            reason)
    SELECT gen_random_uuid(), $1, $2, 0, '{}'::bytea, 'application/json', now() - interval '1 hour', 8, 503,
           'http_503 after 8 attempts: the target answered 503 Service Unavailable'
      FROM generate_series(1, $3)
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """``replays`` of ``each`` messages, one of ten times that; ``slots``: of each of two workers."""

    replays: int = 50
    each: int = 3_390
    slots: int = 100
    before: float = 60.0


async def run(context: Context) -> None:
    """One minute's backlog alone, then the incident: a quarter of an hour."""
    await alone(context)
    await incident(context, Scale())


async def incident(context: Context, scale: Scale) -> None:
    """Who ended when, beside the fluid schedule; what live work noticed."""
    sizes = {f"r{n}": scale.each * (10 if n == 2 else 1) for n in range(scale.replays)}
    servers = {name: STRONG[n % 3] if n != 2 else LARGE for n, name in enumerate(sizes)}
    tiers = {name: tuple(TIERS)[n % 7 // 3] for n, name in enumerate(sizes)}
    bystanders = {f"live{n}": "standard" for n in range(LIVE - 4)}
    context.say(
        f"loopback: {scale.replays} replays, {sum(sizes.values()):,} messages, {2 * scale.slots} slots"
    )
    async with targets(servers) as ports, served(
        context.server, registry({**tiers, **bystanders}), slots=scale.slots
    ) as at_work:  # fmt: skip
        paths = {
            name: Target(f"http://127.0.0.1:{ports[servers[name]].last['port']}/{name}") for name in sizes
        }
        await letters(at_work.url, {name: (paths[name], size) for name, size in sizes.items()})
        live = asyncio.create_task(_live(at_work, ports[STRONG[0]], [*list(sizes)[:4], *bystanders]))
        await asyncio.sleep(scale.before)
        views, began = await started(at_work, list(sizes))
        ended = await _ended(context, at_work, views)
        live.cancel()
        await asyncio.gather(live, return_exceptions=True)
        told = {strength: await asked(runner) for strength, runner in ports.items()}
    schedule = _fluid(sizes, servers, tiers, 2 * scale.slots - LIVE_RATE * LIVE_SERVICE)
    _judge_ends(context, {name: ended[name] - began for name in sizes}, schedule, tiers)
    calls = [call for runner in told.values() for call in runner["calls"]]
    seen = Seen(calls, told[STRONG[0]]["stamped"], began, min(ended.values()))
    _judge_shares(context, seen, sizes, 2 * scale.slots)
    _judge_live(context, seen, scale.before)


def _path(runner: Runner, name: str) -> Target:
    return Target(f"http://127.0.0.1:{runner.last['port']}/{name}")


def _fluid(
    sizes: Mapping[str, int], servers: Mapping[str, int], tiers: Mapping[str, str], slots: float
) -> FluidSchedule:
    tenants = [
        FluidTenant(name, TIERS[tiers[name]].weight, float(size), SERVICE, float(servers[name]))
        for name, size in sizes.items()
    ]
    return fluid(tenants, slots, floor=FLOOR)


def _judge_ends(
    context: Context, took: Mapping[str, float], schedule: FluidSchedule, tiers: Mapping[str, str]
) -> None:
    over = {name: seconds / schedule.ends[name] for name, seconds in took.items()}
    long = [over[name] for name in over if schedule.ends[name] >= 60.0] or list(over.values())
    most = Measured(
        "loopback: end over the fluid end, a minute and more, at most", "×", "lower", Goal(at_most=1.1)
    )
    most.add(OURS, max(long))
    middle = Measured(f"loopback: the same, median of {len(long)}", "×", "lower")
    middle.add(OURS, percentile(long, 0.5))
    context.judge(most, middle)
    for tier in TIERS:
        mine = [name for name in took if tiers[name] == tier]
        ends = Measured(f"loopback: {tier} tier, median end over the fluid one", "×", "lower")
        ends.add(OURS, percentile([took[each] for each in mine], 0.5)
                 / percentile([schedule.ends[each] for each in mine], 0.5))  # fmt: skip
        context.judge(ends)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the targets saw: ``calls`` as (tenant, when it was served, seconds from its arrival), ``stamped``
    as (path, when it was sent, when it came). Replays began at ``began``, the first ended at ``until``."""

    calls: list[tuple[str, float, float]]
    stamped: list[tuple[str, float, float]]
    began: float
    until: float

    def least_share(self, names: Iterable[str]) -> float:
        """The slot-seconds of whoever had fewest, until the first replay ended."""
        held = dict.fromkeys(names, 0.0)
        for path, ends, took in self.calls:
            if path[1:] in held:
                held[path[1:]] += max(0.0, min(ends, self.until) - max(ends - took, self.began))
        return min(held.values())

    def waits(self, since: float, until: float) -> list[float]:
        """Of live work that was sent then: until it came."""
        return [arrived - sent for _, sent, arrived in self.stamped if since <= sent < until]


def _judge_shares(context: Context, seen: Seen, names: Collection[str], slots: int) -> None:
    floor = FLOOR * slots * (seen.until - seen.began) / len(names)
    least = Measured("loopback: the floor over the smallest share", "×", "lower", Goal(at_most=1.0))
    least.add(OURS, floor / seen.least_share(names))
    context.judge(least)


def _judge_live(context: Context, seen: Seen, before: float) -> None:
    waits = (seen.waits(seen.began - before + 2.0, seen.began), seen.waits(seen.began, seen.until))
    if min(map(len, waits)) < 100:
        raise RunnerFailed(f"too little live work was seen: {[len(each) for each in waits]}")
    first, then = (percentile(each, 0.99) for each in waits)
    answers = Measured(
        "loopback: live p99 from submit to answer, during over before", "×", "lower", Goal(at_most=1.3)
    )
    answers.add(OURS, (then + LIVE_SERVICE) / (first + LIVE_SERVICE))
    context.judge(answers)
    bare = Measured("loopback: the same, until it is in its target", "×", "lower")
    bare.add(OURS, then / first)
    context.judge(bare)
    for name, value in (("before", first), ("during", then)):
        wait = Measured(f"loopback: live p99 until it is in its target, {name}", "ms", "lower")
        wait.add(OURS, 1000 * value)
        context.judge(wait)


async def alone(context: Context) -> None:
    """One target and its backlog of a minute."""
    servers, service, seconds = 20, 0.2, 60
    backlog = int(servers / service * seconds)
    context.say(f"loopback: one replay of {backlog:,} messages")
    async with targets({"one": servers}, service) as ports, served(
        context.server, registry({"one": "standard"}), slots=50
    ) as at_work:  # fmt: skip
        target = _path(ports[servers], "one")
        await letters(at_work.url, {"one": (target, backlog)})
        views, began = await started(at_work, ["one"])
        ended = await _ended(context, at_work, views)
    drained = Measured(
        "loopback: one target's backlog of a minute, over backlog / capacity", "×", "lower", Goal(at_most=1.1)
    )
    drained.add(OURS, (ended["one"] - began) / seconds)
    context.judge(drained)


@asynccontextmanager
async def targets(servers: Mapping[str, int], service: float = SERVICE) -> AsyncIterator[dict[int, Runner]]:
    """A process of targets for each strength."""
    runners = {
        strength: Runner(TARGETS, "serve", {"servers": strength, "service": service, "stamped": LIVE_SERVICE})
        for strength in sorted(set(servers.values()))
    }
    try:
        for runner in runners.values():
            await runner.start()
            await runner.until("port")
        yield runners
    finally:
        for runner in runners.values():
            await runner.end()


def registry(tiers: Mapping[str, str]) -> Registry:
    """These tenants in these tiers, without caps, bounds and quotas."""
    documents = tuple(TenantDocument(TenantId(name), TierName(tier)) for name, tier in tiers.items())
    return Registry(tuple(TIERS.values()), documents, FLOOR)


async def letters(url: str, backlogs: Mapping[str, tuple[Target, int]]) -> None:
    """What lies dead in the database before."""
    connection = await connect_once(url)
    try:
        for tenant, (target, count) in backlogs.items():
            await connection.execute(_LETTERS, tenant, target, count)
        await connection.execute("VACUUM (ANALYZE) tenantry.dead_letters")
    finally:
        await connection.close()


async def started(at_work: Product, tenants: list[str]) -> tuple[dict[str, ReplayView], float]:
    """A replay of each, planned before and started at once; and when."""
    replays = at_work.replays
    plans = {
        name: (await replays.plan(ReplaySpec(tenant=TenantId(name), source=OWN))).view for name in tenants
    }
    began = time.time()
    views = await asyncio.gather(*(replays.start(view.spec.tenant, view.id) for view in plans.values()))
    return dict(zip(plans, views, strict=True)), began


async def _ended(context: Context, at_work: Product, views: Mapping[str, ReplayView]) -> dict[str, float]:
    """When each ended, by the database's clock."""
    replays = at_work.replays
    waiting, ended = dict(views), dict[str, float]()
    told_at = time.monotonic()
    while waiting:
        await asyncio.sleep(LOOK_EVERY)
        for view in await replays.replays(None, limit=1_000):
            name = str(view.spec.tenant)
            if name in waiting and view.state in ENDED:
                if view.counts.delivered != view.counts.taken:
                    raise RunnerFailed(f"{name}: not all were delivered: {view.counts}")
                ended[name] = float(view.ended_at or 0.0)
                del waiting[name]
        if time.monotonic() - told_at > 20.0:
            told_at = time.monotonic()
            context.say(f"loopback: {len(waiting)} of {len(views)} replays go on")
    return ended


async def _live(at_work: Product, runner: Runner, tenants: list[str]) -> None:
    """Stamped jobs, evenly in time, of each tenant in turn."""
    target = _path(runner, "live")
    began, count = time.monotonic(), 0
    while True:
        await asyncio.sleep(max(0.0, began + count / LIVE_RATE - time.monotonic()))
        stamp = b"@%.6f " % time.time()
        await at_work.submit(TenantId(tenants[count % len(tenants)]), target, [stamp])
        count += 1
