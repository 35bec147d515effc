"""Tenant to partition: the same tenant, the same place, on every machine, at every replay.

Theory. Every tenant ranks all partitions by rendezvous hashing and uses the first k of its ranking: one for
most, more for a hot one. An event picks a slot among the k by its entity. k, and everything else that may
change, is a :class:`Layout` in force from an instant, and the event's own time says which one holds.

What holds:

- The same tenant, entity, time and history give the same partition, everywhere and for ever.
- A tenant's first k partitions are among its first k + 1.
- The order in which partitions or versions are listed changes nothing.
- A new partition takes its equal part from each old one, and nothing moves between old ones.
- Past placement is never rewritten: a later layout says nothing of earlier events.

What does not: events of one entity may change sides at the instant of a new layout. What will move is
said beforehand, with the drain plan that keeps their order.

Pure: no clock, no chance, no I/O. Clients of brokers are in :mod:`tenantry.brokers`.
"""

from tenantry.algorithms.murmur2 import murmur2, murmur2_partition
from tenantry.partition.choice import Choice, Suggestion, cheaper, choices, suggest, with_spreads
from tenantry.partition.drain import DrainPlan, Wait, drain_plan
from tenantry.partition.file import encode_history, parse_history, spreads_by_tier
from tenantry.partition.heat import heat_map
from tenantry.partition.load import Overlap, crowd, load_of, neighbours, overlap, unevenness
from tenantry.partition.model import FIRST, Layout, Slots, Spread, State, partition_ids
from tenantry.partition.movement import (
    Move,
    Movement,
    Use,
    flows,
    movement,
    murmur2_moved,
    share_moved,
    use_of,
)
from tenantry.partition.placement import Placement
from tenantry.partition.spread import History
from tenantry.partition.traffic import parse_traffic

__all__ = [
    "Choice",
    "DrainPlan",
    "FIRST",
    "History",
    "Layout",
    "Move",
    "Movement",
    "Overlap",
    "Placement",
    "Slots",
    "Spread",
    "State",
    "Suggestion",
    "Use",
    "Wait",
    "cheaper",
    "choices",
    "crowd",
    "drain_plan",
    "encode_history",
    "flows",
    "heat_map",
    "load_of",
    "movement",
    "murmur2",
    "murmur2_moved",
    "murmur2_partition",
    "neighbours",
    "overlap",
    "parse_history",
    "parse_traffic",
    "partition_ids",
    "share_moved",
    "spreads_by_tier",
    "suggest",
    "unevenness",
    "use_of",
    "with_spreads",
]
