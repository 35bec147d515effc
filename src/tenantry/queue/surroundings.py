"""What the loops of this room are given by whoever wires them."""

from dataclasses import dataclass

from tenantry.config.ports import TenantDirectory
from tenantry.kernel.clock import Clock
from tenantry.kernel.events import EventSink
from tenantry.kernel.randomness import Randomness


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a loop reads and tells: tenants, time, chance, and where its events go."""

    directory: TenantDirectory
    clock: Clock
    randomness: Randomness
    events: EventSink
