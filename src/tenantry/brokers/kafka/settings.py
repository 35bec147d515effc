"""What the user says, checked once and frozen."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from tenantry.algorithms.backoff import Backoff
from tenantry.brokers.kafka.backlog import Limits
from tenantry.brokers.kafka.identity import from_key
from tenantry.brokers.kafka.model import Identify, Message, Record
from tenantry.brokers.kafka.reorder import Gates
from tenantry.config.ports import TenantDirectory
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.queue.executor import Settings as ExecutorSettings
from tenantry.queue.executor import TierLookup

EQUAL = Tier(TierName("equal"), cap=0.5)
"""For those who name no tiers: equal shares, and nobody holds more than half of the slots.

Handlers are not interrupted: without a cap a tenant with slow ones takes every slot that falls free, and the
others wait for one of those to end.
"""


@dataclass(frozen=True, slots=True)
class Handling:
    """What is done with records.

    ``handle``: a coroutine function, run on the loop, or a function, run in a thread. What it raises fails
    the attempt. ``identify``: whose a record is; by its key unless given. ``on_failed``: puts aside, for
    good, a record whose attempts all failed or that is nobody's; sync or async, given the record and the
    error. Without one the consumer stops there. ``gates``: where an entity was in earlier layouts,
    :func:`~tenantry.brokers.kafka.reorder.gates_of`; without it records never wait for another partition.
    """

    handle: Callable[[Message], Any]
    identify: Identify = from_key
    on_failed: Callable[[Record, Exception], Any] | None = None
    gates: Gates | None = None


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Durations in seconds, > 0 where not said otherwise.

    ``slots``: most handlers at once, >= 1. ``tiers``: as of the fair executor (the tiers' bounds are not
    applied: ``limits`` bound what is held). ``commit_every``: how often what is contiguous is committed.
    ``finish_within``, >= 0: how long a revocation waits for what runs; keep it well under
    ``max.poll.interval.ms``, and under the group's rebalance timeout. ``attempts``, >= 1, and ``backoff``
    between them. ``hold_for``, >= 0: the reorder window. ``report_every``: how often lag is told.
    """

    slots: int = 8
    tiers: TenantDirectory | TierLookup | Tier = EQUAL
    limits: Limits = field(default_factory=Limits)
    commit_every: Seconds = 1.0
    finish_within: Seconds = 5.0
    attempts: int = 3
    backoff: Backoff = field(default_factory=lambda: Backoff(base=0.1, cap=10.0))
    hold_for: Seconds = 30.0
    report_every: Seconds = 10.0

    def __post_init__(self) -> None:
        ExecutorSettings(self.slots, self.tiers)  # raises for slots
        for name, least in (("commit_every", 1e-3), ("report_every", 1e-3), ("finish_within", 0.0),
                            ("hold_for", 0.0)):  # fmt: skip
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not least <= value < inf:
                raise InvalidValue(name, value, f"seconds >= {least:g}")
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            raise InvalidValue("attempts", self.attempts, "a whole number >= 1")

    def unbounded_tiers(self) -> TierLookup:
        """The tiers without their bounds: a record that was fetched cannot be refused."""
        lookup = ExecutorSettings(self.slots, self.tiers).lookup()

        def tier_of(tenant: TenantId) -> Tier | None:
            tier = lookup(tenant)
            return tier if tier is None or tier.bound is None else replace(tier, bound=None)

        return tier_of
