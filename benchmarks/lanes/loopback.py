"""Fifty lanes over real HTTP, two worker processes, real PostgreSQL: what each lane gets out of its target.

Each target serves four calls at once, 0.4 s each: ten a second, and whatever is more waits in its line. The
lanes know none of this. The floor is what a plain closed loop gets out of the same targets from two
processes, with nothing in between and the number in flight chosen by hand: the best of those whose p50
stays within the goal. Shares of capacity and the latencies are the targets' own: from a call's arrival
until it has been served.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.context import Context
from benchmarks.figures import FLOOR, OURS, Goal, Measured
from benchmarks.fleet import Fleet, Runner
from benchmarks.lanes.workers import LOOP, asked, product, targets
from tenantry.config.model import TargetSettings
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target

QUICK = True
LANES, SERVERS, SERVICE = 50, 4, 0.4
CAPACITY = SERVERS / SERVICE
SLOTS = 200
LIMITS = (4, 5, 6)
"""What the plain loop is tried with: below four a server idles, with eight p50 is twice the reference."""

WHOLE = "the capacity"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the targets saw. ``share``: of their capacity that was served, all together; ``least``: of the
    lane that got least; in percent. ``wait``: the median over lanes of their p50, as a multiple of the
    reference."""

    share: float
    least: float
    wait: float


async def run(context: Context) -> None:
    """Ours settles and is watched, then the loop at each limit; so many times over."""
    warm, seconds = (8.0, 2.0) if context.quick else (15.0, 8.0)
    goal = Goal(at_least=0.85, against=WHOLE)
    share = Measured(
        f"{LANES} lanes of {CAPACITY:g}/s each over HTTP: served of the capacity", "%", goal=goal
    )
    least = Measured("of the lane that gets least", "%")
    wait = Measured("p50 of a call in its target, of the reference", "×", "lower", Goal(at_most=2.0))
    for _ in range(1 if context.quick else context.runs):
        mine = await ours(context, warm, seconds)
        loops = [await loop(limit, seconds) for limit in (LIMITS[1:] if context.quick else LIMITS)]
        best = max((each for each in loops if each.wait <= 2.0), key=lambda each: each.share)
        share.add(WHOLE, 100.0)
        for system, seen in ((OURS, mine), (FLOOR, best)):
            share.add(system, seen.share)
            least.add(system, seen.least)
            wait.add(system, seen.wait)
    context.judge(share, least, wait)


async def ours(context: Context, warm: float, seconds: float) -> Seen:
    """``seconds`` after ``warm`` seconds. Each lane has more waiting than can be served by then."""
    tenants = {TenantId(f"t{n}"): TargetSettings() for n in range(LANES)}
    jobs = [b"{}"] * int(1.5 * CAPACITY * (warm + seconds))
    async with targets(SERVERS, SERVICE) as target, product(context.server, tenants, slots=SLOTS) as queue:
        for n, tenant in enumerate(tenants):
            await queue.submit(tenant, Target(f"http://127.0.0.1:{target.last['port']}/{n}"), jobs)
        await asyncio.sleep(warm)
        return await watched(target, seconds)


async def loop(limit: int, seconds: float) -> Seen:
    """The same of a closed loop with ``limit`` in flight a lane, from two processes."""
    async with targets(SERVERS, SERVICE) as target:
        paths = [f"/{n}" for n in range(LANES)]
        even = {"port": target.last["port"], "lanes": paths[::2], "limit": limit}
        async with (
            Fleet(LOOP, "work", even) as one,
            Fleet(LOOP, "work", {**even, "lanes": paths[1::2]}) as two,
        ):
            one.go()
            two.go()
            await asyncio.sleep(3 * SERVICE)
            return await watched(target, seconds)


async def watched(target: Runner, seconds: float) -> Seen:
    """What the targets serve within ``seconds`` from now."""
    since = time.time()
    await asyncio.sleep(seconds)
    told = await asked(target)
    return seen_in(told["calls"], since, since + seconds)


def seen_in(calls: Sequence[tuple[str, float, float]], since: float, until: float) -> Seen:
    """The figures of those of ``calls`` that were served from ``since`` to ``until``. Pure."""
    by_lane: dict[str, list[float]] = defaultdict(list)
    for path, ends, took in calls:
        if since <= ends < until:
            by_lane[path].append(took)
    whole = CAPACITY * (until - since) / 100.0
    served = [len(took) / whole for took in by_lane.values()]
    waits = [median(took) / SERVICE for took in by_lane.values()]
    return Seen(sum(served) / LANES, min(served) if len(served) == LANES else 0.0, median(waits))
