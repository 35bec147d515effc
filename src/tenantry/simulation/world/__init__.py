"""A world: many tenants with targets of their own, one pool of slots, one policy; virtual time.

What the product does, its fair-share rule with the shaper of each lane, beside the three models of the seed
documents: first in first out, an equal share for all, and shares by weight alone. ``file`` reads a world from
TOML or JSON; ``builtin`` is an hour that meets everything the documents warn of.
"""

from tenantry.simulation.world.builtin import an_hour
from tenantry.simulation.world.compare import HEADINGS, picture, plain, provisioning, rows
from tenantry.simulation.world.file import parse_world
from tenantry.simulation.world.model import Burst, World, WorldTenant
from tenantry.simulation.world.policies import Policy, policies
from tenantry.simulation.world.run import WorldReport, WorldRun

__all__ = [
    "HEADINGS",
    "Burst",
    "Policy",
    "World",
    "WorldReport",
    "WorldRun",
    "WorldTenant",
    "an_hour",
    "parse_world",
    "picture",
    "plain",
    "policies",
    "provisioning",
    "rows",
]
