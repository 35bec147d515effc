"""What may be used, and what a decision says. Frozen values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isfinite
from types import MappingProxyType
from typing import Final, NamedTuple

from tenantry.algorithms.token_bucket import SLACK, Rate
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Seconds
from tenantry.kernel.verdict import Refusal, Rule

FASTEST: Final = 1e6
"""The highest base rate: above it one token is refilled within the clock's own rounding."""
MOST: Final = 1e12
"""The largest burst and cost."""
SLOWEST: Final = 1e-7
"""The lowest base rate: one token in 115 days."""

_PER: Final = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_TEXT = re.compile(r"(?P<amount>[0-9.]+)/(?P<per>s|min|h|d)(?: burst (?P<burst>[0-9.]+))?(?P<exact> exact)?")


@dataclass(frozen=True, slots=True)
class Limit:
    """``base`` tokens a second, and up to ``burst`` more saved up: at most base + burst at once.

    ``base``: in [1e-7, 1e6]. ``burst``: in [0, 1e12]. ``exact``: every decision is made by the authority, one
    call each; for what is billed. Raises :class:`InvalidValue`.
    """

    base: float
    burst: float = 0.0
    exact: bool = False
    rate: Rate = field(init=False, repr=False, compare=False)
    interval: Seconds = field(init=False, repr=False, compare=False)  # seconds a token
    window: Seconds = field(init=False, repr=False, compare=False)  # seconds from empty to full
    passes_within: Seconds = field(init=False, repr=False, compare=False)  # the same, and the bucket's slack

    def __post_init__(self) -> None:
        if not (_is_number(self.base) and SLOWEST <= self.base <= FASTEST):
            hint = "Leave the limit out (None) for no limit; give larger amounts a larger cost."
            raise InvalidValue(
                "limit.base", self.base, f"tokens a second in [{SLOWEST:g}, {FASTEST:g}]", hint
            )
        if not (_is_number(self.burst) and 0 <= self.burst <= MOST):
            raise InvalidValue("limit.burst", self.burst, f"tokens in [0, {MOST:g}]")
        rate = Rate(float(self.base), float(self.burst))
        for name, value in (
            ("rate", rate),
            ("interval", 1.0 / rate.base),
            ("window", rate.capacity / rate.base),
            ("passes_within", rate.capacity / rate.base + SLACK),
        ):
            object.__setattr__(self, name, value)

    @property
    def capacity(self) -> float:
        """The most that passes at once: base + burst, and at least one."""
        return self.rate.capacity

    @classmethod
    def parse(cls, text: str, *, path: str = "limit") -> "Limit":
        """``100/s``, ``100/min burst 50``, ``1000/d burst 5 exact``; per s, min, h or d.

        Raises :class:`InvalidValue`, naming ``path``.
        """
        found = _TEXT.fullmatch(text.strip())
        try:
            if found:
                base, burst = float(found["amount"]) / _PER[found["per"]], float(found["burst"] or 0)
                return cls(base, burst, bool(found["exact"]))
        except (ValueError, InvalidValue):
            pass  # told below, with the path and the whole text
        accepted = "AMOUNT/s, /min, /h or /d, perhaps with `burst AMOUNT` and `exact`"
        raise InvalidValue(path, text, accepted, "Such as: 100/s burst 200")

    def share(self, nodes: int) -> "Limit":
        """One of ``nodes`` >= 1 equal parts; it can still save one whole token. Pure."""
        return self.part(1.0 / nodes)

    def part(self, share: float) -> "Limit":
        """``share`` of it, in (0, 1]; it can still save one whole token. Pure."""
        return Limit(max(SLOWEST, self.base * share), self.burst * share)

    def __str__(self) -> str:
        per = next((name for name, seconds in _PER.items() if self.base * seconds >= 1), "d")
        text = f"{self.base * _PER[per]:g}/{per}"
        burst = f" burst {self.burst:g}" if self.burst else ""
        return f"{text}{burst}{' exact' if self.exact else ''}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What one tenant may use. Every limit that applies to a call must have room, and all are charged.

    ``tenant``: all of the tenant's calls together. ``key``: each of its keys by itself. ``routes``: calls of
    one route, by its name. None and absent: no such limit. ``ledger``: the authority books what was granted
    and spent by the day; always on for a tenant with an exact limit. Raises :class:`InvalidValue` for what is
    no limit.
    """

    tenant: Limit | None = None
    key: Limit | None = None
    routes: Mapping[str, Limit] = field(default_factory=lambda: MappingProxyType({}))
    ledger: bool = False

    def __post_init__(self) -> None:
        routes = ((f"plan.routes[{name!r}]", limit) for name, limit in self.routes.items())
        for path, limit in (("plan.tenant", self.tenant), ("plan.key", self.key), *routes):
            if not isinstance(limit, Limit | None):
                raise InvalidValue(
                    path, limit, "a Limit, or None", "Limit.parse('100/s burst 200') reads text."
                )

    @property
    def exact(self) -> bool:
        """Whether any limit of it is exact."""
        return any(limit.exact for limit in (self.tenant, self.key, *self.routes.values()) if limit)

    @property
    def plain(self) -> bool:
        """Whether the tenant's own limit is all that there is."""
        return self.key is None and not self.routes


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


class Basis(StrEnum):
    """What a decision stands on. The values are public: in metrics and logs."""

    UNLIMITED = "unlimited"  # no limit applies
    OWN = "own"  # this process is the authority
    LEASE = "lease"  # tokens that the authority has granted
    FIRST = "first_contact"  # the conservative share, until the authority has answered
    SHARE = "share"  # the part of the limit that the authority has assigned to this node
    DOWN = "store_down"  # the conservative share, since the authority cannot be reached
    EXACT = "exact"  # the authority itself decided


class Verdict(NamedTuple):
    """Whether a call may go on; true in a condition when it may.

    ``retry_after``: seconds, > 0; 0 when allowed; infinite where the cost is more than a limit ever holds.
    ``scope``: the limit that refused (``tenant``, ``key``, ``route``), empty when allowed.
    """

    allowed: bool
    basis: Basis
    retry_after: Seconds = 0.0
    scope: str = ""

    def __bool__(self) -> bool:
        return self.allowed

    @property
    def refusal(self) -> Refusal | None:
        """The same as other rooms know it; None when allowed."""
        if self.allowed:
            return None
        if self.retry_after == inf:
            return Refusal(Rule.RATE, f"more at once than the {self.scope}'s limit ever holds", None)
        detail = f"over the {self.scope}'s rate: come back in {self.retry_after:.3f} s"
        return Refusal(Rule.RATE, detail, self.retry_after)


ALLOWED: Final[Mapping[Basis, Verdict]] = {basis: Verdict(True, basis) for basis in Basis}
"""One verdict serves every allowed call of its basis."""


class Standing(NamedTuple):
    """How much of one limit is left, for people and headers: as this node knows it, and stale at once.

    ``remaining``: whole tokens. ``more_in``: seconds until it is one more, 0 when it is full; ``full_in``:
    seconds until it is full, if nobody calls."""

    scope: str
    limit: Limit
    remaining: int
    more_in: Seconds
    full_in: Seconds
