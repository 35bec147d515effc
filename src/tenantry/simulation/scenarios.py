"""Loads with a name, seeded: what the documents reason about and what the field has met."""

from collections.abc import Iterator
from math import log

from tenantry.kernel.randomness import Randomness
from tenantry.simulation.model import ANY, Arrival, FlowKey, SimSettings, SimTenant

Scenario = tuple[list[SimTenant], list[Arrival], SimSettings]


def steady(
    flow: FlowKey, *, every: float, until: float, count: int = 1, busy_for: float = 1.0
) -> list[Arrival]:
    """``count`` jobs each ``every`` seconds from 0 to before ``until``."""
    return [
        Arrival(step * every, flow, count, busy_for)
        for step in range(int(until / every + 1))
        if step * every < until
    ]


def poisson(
    flow: FlowKey, *, rate: float, until: float, busy_for: float, randomness: Randomness
) -> Iterator[Arrival]:
    """Jobs that come independently of each other, ``rate`` a second on average."""
    at = 0.0
    while True:
        at -= log(1.0 - min(randomness.uniform(0.0, 1.0), 1.0 - 1e-12)) / rate
        if at >= until:
            return
        yield Arrival(at, flow, 1, busy_for)


def worked_example() -> Scenario:
    """The long document's: 10 jobs a tick; one burst of 500 beside four tenants of 2 a tick; bound 200."""
    tenants = [SimTenant(name, bound=200) for name in "abcde"]
    arrivals = [Arrival(0.0, FlowKey("a"), 500)]
    for tick in range(100):
        arrivals += [Arrival(float(tick), FlowKey(name), 2) for name in "bcde"]
    return tenants, arrivals, SimSettings({ANY: 10}, until=100.0)


def mass_incident(
    randomness: Randomness, *, tenants: int = 300, bursting: int = 50, slots: int = 100, until: float = 60.0
) -> Scenario:
    """A shared dependency failed: ``bursting`` tenants of all tiers start large replays at once, beside the
    steady traffic of the others."""
    weights = (1.0, 2.0, 4.0, 8.0)
    who = [SimTenant(f"t{n}", weight=weights[n % 4]) for n in range(tenants)]
    arrivals: list[Arrival] = []
    for n, tenant in enumerate(who):
        flow = FlowKey(tenant.id, rank=2 if n < bursting else 0)
        busy_for = randomness.uniform(0.05, 0.2)
        if n < bursting:
            arrivals.append(Arrival(0.0, flow, int(slots * until / busy_for / 4), busy_for))
        else:
            arrivals += poisson(flow, rate=1.0, until=until, busy_for=busy_for, randomness=randomness)
    return who, arrivals, SimSettings({ANY: slots}, until=until)


def one_heavy(
    *, tenants: int = 200_000, heavy_jobs: int = 100_000, slots: int = 1_000, busy_for: float = 0.010
) -> Scenario:
    """One tenant floods first; then very many have one job each, all at one instant."""
    who = [SimTenant("heavy"), *(SimTenant(f"light{n}") for n in range(tenants))]
    arrivals = [Arrival(0.0, FlowKey("heavy"), heavy_jobs, busy_for)]
    arrivals += [Arrival(busy_for / 2, FlowKey(tenant.id), 1, busy_for) for tenant in who[1:]]
    until = 10.0 + 4 * busy_for * (tenants + heavy_jobs) / slots
    return who, arrivals, SimSettings({ANY: slots}, until=until)
