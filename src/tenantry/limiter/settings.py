"""How a limiter behaves. Frozen; validated once."""

from dataclasses import dataclass

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterSettings:
    """``lease_for``: a lease is at most so many seconds of the limit, in (0, 60], and at least one token.
    ``term``: how long the authority lets a lease live, in [0.1, 60] seconds. ``trust``: which part of the
    term, counted from when the ask was sent, this node spends it, in (0, 1): the rest is for clocks that run
    unlike. ``every``: asks are sent together so often, in [0.001, 1] seconds. ``sync_every``: under static
    shares, how often demand is reported, in [0.05, 60] seconds. ``most_tenants`` and ``most_keys`` (of one
    tenant): live buckets, >= 1; past that, of the next sixteen the one nearest to full is forgotten.
    ``gone_after``: a node that has not been heard for so long, in [1, 600] seconds, is not counted.
    ``nodes``: how many to assume until the authority has said, >= 1."""

    lease_for: Seconds = 0.1
    term: Seconds = 2.0
    trust: float = 0.9
    every: Seconds = 0.02
    sync_every: Seconds = 1.0
    most_tenants: int = 1_000_000
    most_keys: int = 10_000
    gone_after: Seconds = 5.0
    nodes: int = 1

    def __post_init__(self) -> None:
        _check("lease_for", self.lease_for, 1e-6, 60.0)
        _check("term", self.term, 0.1, 60.0)
        _check("every", self.every, 0.001, 1.0)
        _check("sync_every", self.sync_every, 0.05, 60.0)
        _check("gone_after", self.gone_after, 1.0, 600.0)
        _check("trust", self.trust, 0.01, 0.99)
        for name in ("most_tenants", "most_keys", "nodes"):
            if getattr(self, name) < 1:
                raise InvalidValue(name, getattr(self, name), "an integer >= 1")


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidValue(name, value, f"a number in [{least:g}, {most:g}]")
