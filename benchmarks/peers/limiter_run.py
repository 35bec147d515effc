"""One system's figures for one cell of ``make bench NAME=limiter``: ``SYSTEM CELL COUNT`` -> a JSON object.

Standard library only, besides the system itself: it runs in the peers' environment and in ours, on one core.
How each peer is set up is named in ``benchmarks/limiter/__init__.py``."""

import gc
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Take = Callable[[str], Any]
FAST, ROOM = 1_000_000, 1_000_000_000  # a second, and at once: nothing is refused
CROWD = 100_000


def ours(rate: float = FAST, burst: float = ROOM) -> Take:
    from tenantry.limiter import Limit, Limiter, Plan

    return Limiter(Plan(Limit(rate, burst))).try_acquire


def ours_leased(rate: float = FAST, burst: float = ROOM) -> Take:
    """A node that has been granted a lease large enough for the run."""
    from tenantry.kernel.clock import SystemClock
    from tenantry.limiter import Limit, LimiterSettings, Plan
    from tenantry.limiter.leasing import LeasingLimiter
    from tenantry.limiter.renewal import Renewals
    from tenantry.memory.lease_authority import MemoryLeaseAuthority

    clock = SystemClock()
    renewals = Renewals("bench", clock, LimiterSettings(lease_for=60, term=60))
    authority = MemoryLeaseAuthority(clock)
    limiter = LeasingLimiter(Plan(Limit(rate, burst)), renewals, clock=clock)
    for _ in range(2):  # first contact, then a lease of a minute's worth
        limiter.try_acquire("tenant-0", cost=FAST * 10)
        for pending in renewals.due():
            renewals.answered(pending, authority.exchanged([pending.ask])[0])
    return limiter.try_acquire


def ours_three() -> Callable[[str], Any]:
    from tenantry.limiter import Limit, Limiter, Plan

    wide = Limit(FAST, ROOM)
    acquire = Limiter(Plan(wide, wide, {"POST /orders": wide})).try_acquire
    return lambda tenant: acquire(tenant, key="key-1", route="POST /orders")


def token_bucket(rate: float = FAST, burst: float = ROOM) -> Take:
    import token_bucket as package

    return package.Limiter(rate, int(rate + burst), package.MemoryStorage()).consume


def token_bucket_three() -> Callable[[str], Any]:
    """Three buckets one after the other: not charged together."""
    consume = token_bucket()
    return lambda tenant: consume(tenant) and consume(f"{tenant}:key-1") and consume(f"{tenant}:POST /orders")


def limits(rate: float = FAST, burst: float = ROOM) -> Take:
    from limits import RateLimitItemPerSecond, storage, strategies

    limiter = strategies.FixedWindowRateLimiter(storage.MemoryStorage())
    item = RateLimitItemPerSecond(int(rate + burst))
    return lambda tenant: limiter.hit(item, tenant)


def throttled(rate: float = FAST, burst: float = ROOM) -> Take:
    from throttled import MemoryStore, RateLimiterType, Throttled, per_sec

    options = {"MAX_SIZE": 2 * CROWD}
    limiter = Throttled(
        using=RateLimiterType.TOKEN_BUCKET.value,
        quota=per_sec(int(rate), burst=int(rate + burst)),
        store=MemoryStore(options=options),
    )
    return limiter.limit


def pyrate(rate: float = FAST, burst: float = ROOM) -> Take:
    import pyrate_limiter as package

    class ByTenant(package.BucketFactory):
        """A bucket a tenant, as its page says to do it."""

        def __init__(self) -> None:
            self.buckets: dict[str, Any] = {}
            self.clock = package.MonotonicClock()

        def wrap_item(self, name: str, weight: int = 1) -> Any:
            return package.RateItem(name, self.clock.now(), weight=weight)

        def get(self, item: Any) -> Any:
            bucket = self.buckets.get(item.name)
            if bucket is None:
                rates = [package.Rate(int(rate + burst), package.Duration.SECOND)]
                bucket = package.StateBucket(rates, package.GCRA(), package.InMemoryStateStore())
                self.buckets[item.name] = bucket
            return bucket

    limiter = package.Limiter(ByTenant())
    return lambda tenant: limiter.try_acquire(tenant, blocking=False)


SYSTEMS: dict[str, Callable[..., Take]] = {
    "ours": ours, "ours, leased": ours_leased, "token-bucket": token_bucket, "limits": limits,
    "throttled-py": throttled, "pyrate-limiter": pyrate,
}  # fmt: skip


def rate_of(take: Take, tenants: list[str], count: int) -> float:
    """Calls a second, the loop's own time taken off."""
    calls = [tenants[n % len(tenants)] for n in range(count)]
    for tenant in tenants:
        take(tenant)
    began = time.perf_counter()
    for tenant in calls:
        take(tenant)
    took = time.perf_counter() - began
    began = time.perf_counter()
    for _ in calls:
        pass
    return count / (took - (time.perf_counter() - began))


def single(system: str, count: int) -> dict[str, float]:
    """Decisions a second over one tenant."""
    return {"rate": rate_of(SYSTEMS[system](), ["tenant-0"], count)}


def crowd(system: str, count: int) -> dict[str, float]:
    """Decisions a second over a thousand tenants."""
    return {"rate": rate_of(SYSTEMS[system](), [f"tenant-{n}" for n in range(1_000)], count)}


def refusing(system: str, count: int) -> dict[str, float]:
    """Decisions a second of a bucket that is empty."""
    return {"rate": rate_of(SYSTEMS[system](1, 0), ["tenant-0"], count)}


def three(system: str, count: int) -> dict[str, float]:
    """Decisions a second over tenant, key and route."""
    take = {"ours": ours_three, "token-bucket": token_bucket_three}[system]()
    return {"rate": rate_of(take, ["tenant-0"], count)}


def waits(system: str, count: int) -> dict[str, float]:
    """Microseconds of one decision among 100,000 live tenants: p99.9 and the median."""
    take, tenants = SYSTEMS[system](), [f"tenant-{n}" for n in range(CROWD)]
    for tenant in tenants:
        take(tenant)
    gc.collect()
    return percentiles(timed(take, [tenants[n * 7919 % CROWD] for n in range(count)]))


def contended(system: str, count: int) -> dict[str, float]:
    """Decisions a second, and microseconds of one, of eight threads at one bucket."""
    take, found, start = SYSTEMS[system](), [], threading.Barrier(9)
    take("tenant-0")

    def run() -> None:
        start.wait()
        found.append(timed(take, ["tenant-0"] * (count // 8)))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    return {"rate": count / took, **percentiles([wait for waits in found for wait in waits])}


def timed(take: Take, calls: list[str]) -> list[float]:
    """Seconds of each call, the clock's own time in them."""
    clock, found = time.perf_counter, []
    for tenant in calls:
        began = clock()
        take(tenant)
        found.append(clock() - began)
    return found


def percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {"p50": 1e6 * ordered[len(ordered) // 2], "p999": 1e6 * ordered[int(len(ordered) * 0.999)]}


def plans(system: str, count: int) -> dict[str, float]:
    """MiB that so many plans add to the process."""
    from tenantry.limiter import Limit, Plan, Plans

    tiers = [Plan(Limit(10 * (n + 1), 100)) for n in range(4)]
    before = resident()
    kept = Plans((f"t-{n:07d}", tiers[n % 4]) for n in range(count))
    return {"mib": resident() - before, "count": len(kept)}


def buckets(system: str, count: int) -> dict[str, float]:
    """MiB that so many live buckets add to the process, their tenants' ids among them."""
    take = SYSTEMS[system](100, 900)
    take("t-first")
    before = resident()
    for n in range(count):
        take(f"t-{n:07d}")
    return {"mib": resident() - before}


def resident() -> float:
    """MiB that the process holds now."""
    gc.collect()
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def fleet(system: str, seconds: int) -> dict[str, float]:
    """Twenty nodes, 100,000 calls a second, 50,000 active tenants: after two seconds, what they are at."""
    from tenantry.limiter import Basis, Limit
    from tenantry.simulation.limits import LimiterFleet, Traffic

    gc.disable()  # the simulation keeps a million records; collecting among them is not what is measured
    run = LimiterFleet(Limit(100, 900))
    report = run.run(2 + seconds, Traffic(rate=100_000, tenants=50_000))
    worst = max(report.overspent.values(), default=0.0)
    return {
        "decisions_a_call": report.decisions_a_call,
        "calls_for_20": 20 / report.decisions_a_call,
        "asks_for_20": 20 * report.asks / report.decisions,
        "first_contacts": 100 * report.first_contacts,
        "down": report.bases[Basis.DOWN],
        "overspent": worst,
    }


def skew(system: str, seconds: int) -> dict[str, float]:
    """A tenant that comes to two of twenty nodes, after it came to all: per cent of its limit it gets there,
    in the first second and after it."""
    from tenantry.limiter import Limit
    from tenantry.simulation.limits import LimiterFleet, Traffic

    run = LimiterFleet(Limit(100, 900), watched=["tenant-0"])
    run.run(15, Traffic(rate=2_000, tenants=1))
    report = run.run(2 + seconds, Traffic(rate=2_000, tenants=1, places=(3, 11)))
    passed = report.passed_by_second["tenant-0"]
    return {"first": passed[15], "then": sum(passed[16 + n] for n in range(seconds)) / seconds}


CELLS: dict[str, Callable[[str, int], dict[str, float]]] = {
    "single": single, "crowd": crowd, "refusing": refusing, "three": three, "waits": waits,
    "contended": contended, "plans": plans, "buckets": buckets, "fleet": fleet, "skew": skew,
}  # fmt: skip

if __name__ == "__main__":
    name, cell, number = sys.argv[1:]
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps(CELLS[cell](name, int(number))))
    sys.stdout.flush()
    os._exit(0)  # peers leave timers behind that would keep the process
