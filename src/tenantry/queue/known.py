"""What the planner's memory knows of one flow and of one start, and what stands for what it does not know."""

from dataclasses import dataclass

from tenantry.algorithms.fair_share import Charge, FairShare
from tenantry.config.tiers import Tier
from tenantry.kernel.tenant import TierName, Weight
from tenantry.lanes.model import Kind, Lane
from tenantry.queue.changes import FlowOpened
from tenantry.queue.flow_log import FlowLog
from tenantry.queue.node_slots import Holder

REMOVED = Tier(TierName("removed"), Weight(1.0))
"""Serves what a tenant left behind that the registry no longer names: accepted work still ends (K1)."""

ASIDE = Kind("")
"""What stands for every kind that no node has announced."""


@dataclass(slots=True)
class KnownFlow:
    """A flow, its line, and the rule of its pool."""

    opened: FlowOpened
    lane: Lane
    log: FlowLog
    rule: FairShare


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """What every job of one pick on one node shares."""

    charge: Charge
    holder: Holder
    rule: FairShare
    lane: Lane
