"""The built-in world: an hour of 300 tenants that meets everything the seed documents warn of."""

from tenantry.simulation.shaping.targets import Spell, TargetModel
from tenantry.simulation.world.model import Burst, World, WorldTenant

WEIGHTS = (1.0, 2.0, 4.0)
"""Of free, standard and enterprise tenants, who take turns."""


def an_hour(*, tenants: int = 300, rate: float = 50.0, lasts: float = 3_600.0) -> World:
    """``tenants`` who submit ``rate`` jobs a second in all, of half a second each.

    A tenth of them burst, one after the other: 1,000 jobs at once. Another tenth's targets are a black hole
    from a third of the time to two thirds. One in thirty has a target with a rate limit of its own.
    """
    usual = TargetModel("usual", servers=((0.0, 20.0),), service=0.45, spread=0.2, network=0.05)
    hole = TargetModel(
        "black hole",
        servers=usual.servers,
        service=usual.service,
        spread=usual.spread,
        network=usual.network,
        spells=((lasts / 3.0, 2.0 * lasts / 3.0, Spell.HOLE),),
    )
    limited = TargetModel(
        "rate limit", servers=usual.servers, service=0.45, network=0.05, rate=1.0, burst=5.0
    )
    models = {1: hole, 2: limited}
    found = []
    for place in range(tenants):
        bursts = (Burst(lasts / 10.0 + place * lasts / 3_000.0, 1_000),) if place % 10 == 0 else ()
        model = models.get(place % 10, usual) if place % 10 == 1 or place % 30 == 2 else usual
        found.append(
            WorldTenant(
                f"tenant-{place + 1}",
                rate / tenants,
                model,
                weight=WEIGHTS[place % 3],
                cap=0.2,
                bound=2_000,
                bursts=bursts,
            )
        )
    return World("an hour", found, lasts=lasts)
