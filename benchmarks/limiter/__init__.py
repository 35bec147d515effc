"""The limiter beside ``limits``, ``pyrate-limiter``, ``throttled-py`` and ``token-bucket``; and a simulated
fleet.

Each figure is taken in a process of its own that is bound to one core; the systems take turns. What was done
for whom:

- ours: ``Limiter.try_acquire``, one plan for every tenant, the limiter its own authority. *Leased*: the same
with
  a lease from an authority, as a node among others decides.
- token-bucket: its ``MemoryStorage``. It answers True or False, nothing else. Its three limits are three
calls,
  which are not charged together.
- limits: its fastest strategy, the fixed window, on ``MemoryStorage``.
- pyrate-limiter: GCRA on its state store in memory, its fastest algorithm, a bucket a tenant; never blocking.
- throttled-py: its token bucket on ``MemoryStore``, which is told to hold the crowd.

Limits are so wide that nothing is refused, but for the cell *refused*.
"""

import asyncio
import json
import sys
from pathlib import Path

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured
from benchmarks.fleet import RunnerFailed
from benchmarks.systems import PEERS_PYTHON

SCRIPT = Path(__file__).parents[1] / "peers" / "limiter_run.py"
LEASED, BUCKET, THROTTLED = "ours, leased", "token-bucket", "throttled-py"
PEERS = (BUCKET, "limits", "pyrate-limiter", THROTTLED)
SLOW = {"limits": 4, "pyrate-limiter": 4, THROTTLED: 8}
"""How many times fewer calls these make in a run, so that it lasts about as long."""


async def run(context: Context) -> None:
    """Every cell, one after the other. One that fails is told and keeps no other from its figures."""
    for cell in (speed, three_limits, waits, contention, memory, fleet, skew):
        if context.wanted(cell.__name__):
            try:
                await cell(context)
            except RunnerFailed as error:
                context.fail(cell.__name__, error)


async def speed(context: Context) -> None:
    """Decisions a second of a single limit: one tenant, a thousand, and while everything is refused."""
    calls = 60_000 if context.quick else 400_000
    best = Measured("single limit, one tenant", "decisions/s", goal=Goal(at_least=1.0))
    leased = Measured("the same, from a lease", "decisions/s", goal=Goal(at_least=1.0))
    eight = Measured(
        "single limit beside throttled-py", "decisions/s", goal=Goal(at_least=8.0, against=THROTTLED)
    )
    many = Measured("single limit, 1,000 tenants in turn", "decisions/s", goal=Goal(at_least=1.0))
    refused = Measured("single limit, all refused", "decisions/s")
    for _ in range(context.runs):
        for system in (OURS, *PEERS):
            few = calls // SLOW.get(system, 1)
            one = (await figures(system, "single", few))["rate"]
            best.add(system, one)
            if system != OURS:
                leased.add(system, one)
            if system in {OURS, THROTTLED}:
                eight.add(system, one)
            many.add(system, (await figures(system, "crowd", few))["rate"])
            refused.add(system, (await figures(system, "refusing", few))["rate"])
        leased.add(OURS, (await figures(LEASED, "single", calls))["rate"])
    context.judge(best, leased, eight, many, refused)


async def three_limits(context: Context) -> None:
    """Tenant, key and route together; a goal is stated for where token-bucket does 600,000 single ones."""
    calls = 40_000 if context.quick else 200_000
    found = Measured(
        "tenant + key + route, charged together", "decisions/s", goal=Goal(at_least=1.0, against=BUCKET)
    )
    part = Measured("the same, were token-bucket to do 600,000 single ones", "decisions/s")
    part.goal = Goal(at_least=250_000, against="one")
    for _ in range(context.runs):
        ours = (await figures(OURS, "three", calls))["rate"]
        single = (await figures(BUCKET, "single", calls))["rate"]
        found.add(OURS, ours)
        found.add(BUCKET, (await figures(BUCKET, "three", calls))["rate"])
        part.add(OURS, ours * 600_000 / single)
        part.add("one", 1.0)
    context.judge(found, part)


async def waits(context: Context) -> None:
    """One decision among 100,000 live tenants."""
    calls = 50_000 if context.quick else 300_000
    found = Measured("p99.9 of a decision, 100,000 live tenants", "µs", "lower", Goal(at_most=50.0))
    for _ in range(context.runs):
        for system in (OURS, *PEERS):
            found.add(system, (await figures(system, "waits", calls // SLOW.get(system, 1)))["p999"])
    context.judge(found)


async def contention(context: Context) -> None:
    """Eight threads at one bucket."""
    calls = 40_000 if context.quick else 200_000
    late = Measured("p99.9, eight threads at one bucket", "µs", "lower", Goal(at_most=50.0))
    rate = Measured("eight threads at one bucket", "decisions/s", goal=Goal(at_least=1.0))
    for _ in range(context.runs):
        for system in (OURS, *PEERS):
            told = await figures(system, "contended", calls // SLOW.get(system, 1))
            late.add(system, told["p999"])
            rate.add(system, told["rate"])
    context.judge(late, rate)


async def memory(context: Context) -> None:
    """What a million plans and 50,000 live buckets add to a process, beside the document's marks."""
    count = 200_000 if context.quick else 1_000_000
    plans = Measured(f"memory of {count:,} plans", "MiB", "lower", Goal(at_most=61 * count / 1_000_000))
    buckets = Measured("memory of 50,000 live buckets", "MiB", "lower", Goal(at_most=9.5))
    for _ in range(1 if context.quick else 3):
        plans.add(OURS, (await figures(OURS, "plans", count))["mib"])
        for system in (OURS, BUCKET, "limits"):
            buckets.add(system, (await figures(system, "buckets", 50_000))["mib"])
    context.judge(plans, buckets)


async def fleet(context: Context) -> None:
    """Twenty nodes under the document's load, in virtual time."""
    told = await figures(OURS, "fleet", 1 if context.quick else 8)
    calls = Measured("calls of the store for 20 decisions", "calls", "lower", Goal(at_most=1.0))
    calls.add(OURS, told["calls_for_20"])
    asks = Measured("tenants asked about for 20 decisions", "asks", "lower")
    asks.add(OURS, told["asks_for_20"])
    first = Measured("decisions at first contact", "%", "lower")
    first.add(OURS, told["first_contacts"])
    over = Measured("the most overspent of any tenant, of a second's limit", "%", "lower", Goal(at_most=1.0))
    over.add(OURS, told["overspent"])  # tokens, of a limit of 100 a second
    down = Measured("decisions by other fallbacks", "decisions", "lower", Goal(at_most=0.0))
    down.add(OURS, told["down"])
    context.judge(calls, asks, first, over, down)


async def skew(context: Context) -> None:
    """A tenant on two of twenty nodes: within a second it has its whole limit."""
    told = await figures(OURS, "skew", 2 if context.quick else 10)
    missing = Measured(
        "of its limit, a tenant on 2 of 20 nodes misses after a second", "%", "lower", Goal(at_most=2.0)
    )
    missing.add(OURS, max(0.0, 100 - told["then"]))
    first = Measured("and in the first second", "%", "lower")
    first.add(OURS, max(0.0, 100 - told["first"]))
    context.judge(missing, first)


async def figures(system: str, cell: str, number: int) -> dict[str, float]:
    """One process's figures. Raises :class:`RunnerFailed` with what it said."""
    python = sys.executable if system.startswith(OURS) else str(PEERS_PYTHON)
    child = await asyncio.create_subprocess_exec(
        python, str(SCRIPT), system, cell, str(number),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await child.communicate()
    if child.returncode:
        raise RunnerFailed(f"{system}, {cell}: {err.decode()[-300:]}")
    found: dict[str, float] = json.loads(out)
    return found
