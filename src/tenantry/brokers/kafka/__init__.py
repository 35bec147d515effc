"""Kafka: producers that place events by tenant, and a consumer that is fair inside a partition.

Theory. A partition is a log in which many tenants' records are mixed. A plain consumer works it in order: one
slow tenant delays all behind it, and the lag it shows has no name. Here records are taken in order and worked
side by side: per entity in offset order and one at a time, between tenants by the one rule of fairness. What
is committed is the longest run of finished records, so that a crash repeats work and loses none.

Authority: the broker says who owns a partition; this process remembers only what it took from those it owns.

What holds:

- Nothing at or above a record that is not finished is ever committed (:mod:`offsets`).
- Of one entity in one partition one record runs at a time, in offset order (:mod:`backlog`).
- What is held is bounded, per partition and in all; what is over it stays with the broker, paused.
- Across a change of layout an entity's records wait for the earlier partition, for a bounded time
  (:mod:`reorder`).
- On revocation what runs is given a bounded time to finish, what waits is dropped, and what is contiguous is
  committed.

What does not: a crash repeats what was not committed (at least once); a record that failed and was given to
``on_failed`` no longer stands before its successors. A tenant whose backlog fills the partition's bound
delays the others of that partition: spread it.

The core (offsets, backlog, reorder, lag) is pure. One loop (:mod:`consumer`) drives it; one thread
(:mod:`confluent`) owns the client.
"""

from tenantry.brokers.kafka.backlog import Limits
from tenantry.brokers.kafka.confluent import ConfluentSource
from tenantry.brokers.kafka.consumer import FairConsumer
from tenantry.brokers.kafka.errors import BrokerFailed, HandlingFailed
from tenantry.brokers.kafka.identity import entity_key, from_key
from tenantry.brokers.kafka.lag import PartitionLag, TenantLag
from tenantry.brokers.kafka.model import Identity, Message, Record, Spot
from tenantry.brokers.kafka.producer import AioPlacedProducer, KeyPartitioner, PlacedProducer
from tenantry.brokers.kafka.reorder import Gate, gates_of
from tenantry.brokers.kafka.settings import ConsumerSettings, Handling

__all__ = [
    "AioPlacedProducer",
    "BrokerFailed",
    "ConfluentSource",
    "ConsumerSettings",
    "FairConsumer",
    "Gate",
    "Handling",
    "HandlingFailed",
    "Identity",
    "KeyPartitioner",
    "Limits",
    "Message",
    "PartitionLag",
    "PlacedProducer",
    "Record",
    "Spot",
    "TenantLag",
    "entity_key",
    "from_key",
    "gates_of",
]
