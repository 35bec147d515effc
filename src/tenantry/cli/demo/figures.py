"""From the tally and the books to the figures of the summary. Pure but for the tally that it reads."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from tenantry.algorithms.fair_share import cap_slots
from tenantry.cli.demo.scenario import BURST_JOBS, SLOTS, Member
from tenantry.cli.demo.tally import Account, Tally
from tenantry.config.registry import Registry
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TierName
from tenantry.queue.model import JobState
from tenantry.simulation.engine import simulate
from tenantry.simulation.model import Arrival, FlowKey, SimSettings, SimTenant
from tenantry.simulation.report import Report, TenantReport, entitlements, jain
from tenantry.simulation.schedulers import fifo


@dataclass(frozen=True, slots=True)
class Waits:
    """Percentiles in seconds: on the product, and through one line for all. None where no job started."""

    p50: Seconds | None
    p99: Seconds | None
    fifo_p50: Seconds | None
    fifo_p99: Seconds | None


@dataclass(frozen=True, slots=True)
class Group:
    """Some tenants together. ``share`` and ``entitled``: parts of all slot-seconds measured, in [0, 1]."""

    tenants: int
    delivered: int
    refused: int
    waits: Waits
    share: float
    entitled: float


@dataclass(frozen=True, slots=True)
class Books:
    """What the store says of the jobs for which a client holds a ticket. ``faults``: of its audit."""

    accepted: int
    ends: Mapping[JobState, int]
    faults: tuple[str, ...]

    @property
    def lost(self) -> int:
        """Accepted, and without an end (law K1)."""
        return self.accepted - sum(self.ends.values())


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that the summary says. ``tiers`` without the burster. ``jain`` and ``over_floor`` over the
    ``measured`` tenants that had work in line at every moment of ``measured_for``; None where none had."""

    books: Books
    refused: int
    tiers: Mapping[TierName, Group]
    within: Group
    burst: Group
    fifo_p99: Seconds | None
    before_burst: Seconds | None
    after_burst: Seconds | None
    jain: float | None
    over_floor: float | None
    measured: int
    measured_for: Seconds
    ran_for: Seconds


class Measured:
    """The saturated phase: who used what, and who was due what (law F1, with floor and caps)."""

    def __init__(self, tally: Tally, registry: Registry) -> None:
        self.began, self.until = tally.measured_from or Instant(0.0), tally.measured_until or Instant(0.0)
        self.lasted = self.until - self.began
        accounts = tally.accounts.values()
        self.used = {a.member.tenant: max(0.0, a.used) for a in accounts}
        self.total = sum(self.used.values())
        self.always = [a.member for a in accounts if a.always_waiting and self.used[a.member.tenant]]
        self.due = self._due(accounts, registry)
        self.floor = registry.floor * _mean(1 / max(1, n) for n in tally.eligible)

    def _due(self, accounts: Iterable[Account], registry: Registry) -> dict[str, float]:
        """Whoever did not always wait got what it asked for; the others share the rest, up to their caps."""
        tiers = {tier.name: tier for tier in registry.tiers}
        reports = []
        for account in accounts:
            member, tier = account.member, tiers[account.member.tier]
            used = self.used[member.tenant]
            most = cap_slots(tier.cap, SLOTS) * self.lasted if member in self.always else used
            reports.append(TenantReport(SimTenant(member.tenant, weight=tier.weight), demand=most))
        return entitlements(reports, floor=registry.floor, capacity=self.total)

    def jain(self) -> float | None:
        ratios = [self.used[m.tenant] / self.due[m.tenant] for m in self.always]
        return jain(ratios) if ratios else None

    def over_floor(self) -> float | None:
        """The smallest share, over φ/n: n is how many were eligible, again and again, on average."""
        shares = [self.used[m.tenant] / self.total for m in self.always]
        return min(shares) / self.floor if shares and self.floor else None


def figures(tally: Tally, registry: Registry, books: Books, *, burst: Member, began: Instant) -> Figures:
    """The summary's figures. Takes about a second: the whole load goes through a FIFO in virtual time."""
    accounts = list(tally.accounts.values())
    measured, line = Measured(tally, registry), _through_fifo(tally, burst, began)

    def group(members: Sequence[Account]) -> Group:
        return _group(members, measured, line)

    steady = [a for a in accounts if a.member is not burst]
    burst_at = tally.burst_at if tally.burst_at is not None else measured.until
    within = [a for a in steady if a.member.within]
    return Figures(
        books=books,
        refused=sum(a.refused for a in accounts),
        tiers={tier.name: group(_of(steady, tier.name)) for tier in reversed(registry.tiers)},
        within=group(within),
        burst=group([tally.accounts[burst.tenant]]),
        fifo_p99=group(steady).waits.fifo_p99,
        before_burst=percentile(_waits(within, until=burst_at), 99),
        after_burst=percentile(_waits(within, since=burst_at), 99),
        jain=measured.jain(),
        over_floor=measured.over_floor(),
        measured=len(measured.always),
        measured_for=measured.lasted,
        ran_for=max((at for a in accounts for at, _ in a.ends), default=began) - began,
    )


def percentile(values: Collection[float], percent: float) -> float | None:
    """Nearest rank; None of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(percent / 100 * len(ordered)))] if ordered else None


def _group(accounts: Sequence[Account], measured: Measured, line: Report) -> Group:
    names = [a.member.tenant for a in accounts]
    waits = [wait for a in accounts for _, wait in a.waits]
    lined = [wait for name in names for wait in line.tenants[name].waits]
    total = measured.total or 1.0
    return Group(
        tenants=len(accounts),
        delivered=sum(a.delivered for a in accounts),
        refused=sum(a.refused for a in accounts),
        waits=Waits(
            percentile(waits, 50), percentile(waits, 99), percentile(lined, 50), percentile(lined, 99)
        ),
        share=sum(measured.used[name] for name in names) / total,
        entitled=sum(measured.due.get(name, 0.0) for name in names) / total,
    )


def _waits(accounts: Sequence[Account], *, since: float = -inf, until: float = inf) -> list[Seconds]:
    """Of the jobs that started from ``since`` on and before ``until``."""
    return [wait for a in accounts for at, wait in a.waits if since <= at < until]


def _through_fifo(tally: Tally, burst: Member, began: Instant) -> Report:
    """The same arrivals at the same instants, each job as long as its tenant's were, through one line over
    as many slots. The queue itself costs nothing there, and the burst is let in, as nothing would refuse it.

    In virtual time: to deliver the burst really takes longer than the demo, and a line that is cut off looks
    shorter than it is."""
    arrivals = [
        Arrival(at - began, FlowKey(a.member.tenant), count, _usual(a))
        for a in tally.accounts.values()
        for at, count in (_before(a, tally) if a.member is burst else a.arrivals)
    ]
    account = tally.accounts[burst.tenant]
    if tally.burst_at is not None:
        flow = FlowKey(burst.tenant)
        arrivals.append(Arrival(tally.burst_at - began, flow, BURST_JOBS, _usual(account)))
    tenants = [SimTenant(tenant) for tenant in tally.accounts]
    settings = SimSettings(slots={frozenset({""}): SLOTS}, until=inf)
    return simulate(tenants, arrivals, fifo(), settings)


def _before(account: Account, tally: Tally) -> list[tuple[Instant, int]]:
    """What the burster sent before it burst."""
    until = tally.burst_at
    return [each for each in account.arrivals if until is None or each[0] < until]


def _usual(account: Account) -> Seconds:
    return _mean(busy for _, busy in account.ends) or account.member.answer_for


def _of(accounts: Sequence[Account], tier: TierName) -> list[Account]:
    return [a for a in accounts if a.member.tier == tier]


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
