"""What the limiter tells. Counts are of tokens: a decision that costs more counts for more."""

from dataclasses import dataclass

from tenantry.kernel.events import Event
from tenantry.kernel.instant import Seconds


@dataclass(frozen=True, slots=True)
class LeasesExchanged(Event):
    """One call to one shard of the authority was answered. Of its ``asks`` in sum: tokens ``granted``, and
    since each ask before ``spent`` of leases, spent ``unleased`` (at first contact, or while cut off) and
    ``refused`` by this node. ``owing``: asks that a bucket in debt answered, after something was
    overspent."""

    shard: str
    asks: int
    granted: float
    spent: float
    unleased: float
    refused: float
    owing: int
    took_for: Seconds


@dataclass(frozen=True, slots=True)
class AuthorityLost(Event):
    """A shard of the authority cannot be reached: its tenants are limited to this node's conservative share,
    of ``nodes``. ``error``: the class of the error."""

    shard: str
    error: str
    nodes: int


@dataclass(frozen=True, slots=True)
class AuthorityFound(Event):
    """A shard of the authority answers again, after ``lost_for``."""

    shard: str
    lost_for: Seconds


@dataclass(frozen=True, slots=True)
class ExactDecided(Event):
    """One exact decision. ``basis``: ``exact``, or ``store_down`` when the conservative share decided."""

    allowed: bool
    basis: str
    took_for: Seconds
