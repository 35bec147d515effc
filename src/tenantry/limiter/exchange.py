"""What travels between a node and the authority, and the authority's rule, pure.

One :class:`Ask` is one tenant's, of one node: for each of its buckets what became of the last lease and what
is wanted next. The rule, :func:`booked`, runs as it is in the authority in memory; the script for Valkey is
held to it by one suite of tests.

The arithmetic of one bucket. Its tokens are what it may grant. A grant moves tokens into the node's lease;
what the node reports as spent leaves the lease for good; what it gives back, and what is left in a lease
whose term has run out, returns to the tokens. So tokens + leases + spent is what was there + what was
refilled, and nothing is granted twice. Where a node may have spent what is returned (it died, or was cut
off), the bound of what can be overspent is that lease; when it comes back with its report, the spending is
charged late.

A *reserved* grant is one that may be used later, when the bucket will have refilled that far: so a node can
say exactly when the next call passes, and keep its word though others compete."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, inf
from typing import Final, NamedTuple

from tenantry.algorithms.token_bucket import Bucket, full, refilled
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.limiter.model import Limit

DUST: Final = 1e-9
"""Sums of tokens are rounded this much; less than it is nothing."""


class Part(NamedTuple):
    """One bucket of an ask; amounts in tokens, >= 0.

    ``need``: the least that is of use, 0 when nothing is wanted. ``want``: the most. Since the last ask:
    ``spent`` and ``returned`` of the lease; ``charge``: spent without a lease and not paid for by the share's
    own refill, to be settled; ``unleased``: all that was spent without a lease, for the ledger; ``demand``:
    all that was tried."""

    name: str
    limit: Limit
    need: float = 0.0
    want: float = 0.0
    spent: float = 0.0
    returned: float = 0.0
    charge: float = 0.0
    unleased: float = 0.0
    demand: float = 0.0


@dataclass(frozen=True, slots=True)
class Ask:
    """``sequence`` rises by one for each new ask of this node for this tenant; a retry keeps it. ``term``:
    how long the leases shall live."""

    tenant: TenantId
    node: str
    sequence: int
    term: Seconds
    parts: tuple[Part, ...]
    ledger: bool = False


class Grant(NamedTuple):
    """What became of one part: ``granted`` tokens, usable in ``ready_in`` seconds. ``level``: what the bucket
    holds after that, negative while it owes. Nothing granted: ``ready_in`` says when it could be.
    ``share``: under static shares, the part of the limit that is this node's; None under leases."""

    granted: float
    ready_in: Seconds
    level: float
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The grants, in the order of the ask's parts."""

    sequence: int
    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class Charge:
    """One exact decision: ``cost`` tokens of each limit in ``parts`` (name, limit). ``id`` makes it charge
    once."""

    tenant: TenantId
    id: str
    cost: float
    parts: tuple[tuple[str, Limit], ...]
    ledger: bool = True


class Decision(NamedTuple):
    """``retry_after``: 0 when allowed. ``name``: the part that refused; empty when allowed."""

    allowed: bool
    retry_after: Seconds = 0.0
    name: str = ""


class Lease(NamedTuple):
    """What one node holds and has not accounted for, until the authority's clock says ``expires_at``."""

    held: float
    expires_at: Instant


class Balance(NamedTuple):
    """One bucket as the authority keeps it, and the leases on it by node."""

    bucket: Bucket
    leases: Mapping[str, Lease]


class Booking(NamedTuple):
    """How one part moved its balance: what the ledger adds up. ``spent``: reported in time; ``late``:
    reported after the lease had returned; ``lapsed``: what leases returned at the end of their term."""

    granted: float = 0.0
    spent: float = 0.0
    returned: float = 0.0
    lapsed: float = 0.0
    late: float = 0.0
    unleased: float = 0.0
    exact: float = 0.0


class Booked(NamedTuple):
    """The balance after a part, what the node is answered, what the ledger adds."""

    balance: Balance
    grant: Grant
    booking: Booking


def opened(limit: Limit, now: Instant) -> Balance:
    """The balance of a bucket that nobody has used. Pure."""
    return Balance(full(limit.rate, now), {})


def current(balance: Balance, limit: Limit, now: Instant) -> tuple[Balance, float]:
    """The balance at ``now``, refilled, expired leases returned; and how much those were. Pure, O(leases)."""
    here = refilled(balance.bucket, limit.rate, now)
    over = [node for node, lease in balance.leases.items() if lease.expires_at <= now]
    if not over:
        return Balance(_with(here, here.tokens, limit), balance.leases), 0.0
    lapsed = sum(balance.leases[node].held for node in over)
    leases = {node: lease for node, lease in balance.leases.items() if node not in over}
    return Balance(_with(here, here.tokens + lapsed, limit), leases), lapsed


def booked(balance: Balance, part: Part, node: str, *, term: Seconds, now: Instant) -> Booked:
    """One part of one ask. Pure, O(leases)."""
    balance, lapsed = current(balance, part.limit, now)
    held = balance.leases[node].held if node in balance.leases else 0.0
    spent = min(part.spent, held)
    returned = min(part.returned, held - spent)
    late = part.spent - spent
    tokens = min(balance.bucket.tokens + returned, part.limit.capacity) - late - part.charge
    grant = granted(tokens, part, term)
    bucket = _with(balance.bucket, grant.level, part.limit)
    leases = dict(balance.leases)
    leases.pop(node, None)
    keeps = held - spent - returned + grant.granted
    if keeps > DUST:
        reserved_for = grant.ready_in if grant.granted else 0.0
        leases[node] = Lease(keeps, Instant(now + reserved_for + term))
    booking = Booking(grant.granted, spent, returned, lapsed, late, part.unleased)
    return Booked(Balance(bucket, leases), grant, booking)


def granted(tokens: float, part: Part, term: Seconds) -> Grant:
    """What a bucket of ``tokens`` grants: whole tokens that it has; else what is needed, reserved, where it
    will have that within half a term or where nobody has reserved before. Pure, O(1)."""
    if part.need <= 0:
        return Grant(0.0, 0.0, tokens)
    if tokens >= part.need - DUST:
        amount = max(part.need, min(part.want, floor(tokens + DUST)))
        return Grant(amount, 0.0, tokens - amount)
    if part.need > part.limit.capacity:
        return Grant(0.0, inf, tokens)
    ready_in = (part.need - tokens) * part.limit.interval
    if ready_in <= term / 2 or tokens >= 0:
        return Grant(part.need, ready_in, tokens - part.need)
    return Grant(0.0, ready_in, tokens)


def shortfall(balance: Balance, limit: Limit, cost: float) -> Seconds:
    """Seconds until a current balance has ``cost``; 0 when it has. Pure, O(1)."""
    if cost > limit.capacity:
        return inf
    return max(0.0, cost - DUST - balance.bucket.tokens) * limit.interval


def taken(balance: Balance, cost: float) -> Balance:
    """A current balance after an exact decision took ``cost``. Pure, O(1)."""
    bucket = balance.bucket
    return balance._replace(bucket=Bucket(bucket.tokens - cost, bucket.at))


def idle(balance: Balance, limit: Limit, now: Instant) -> bool:
    """Whether an balance says no more than a new one would. Pure, O(leases)."""
    if any(lease.expires_at > now for lease in balance.leases.values()):
        return False
    balance, _ = current(balance, limit, now)
    return balance.bucket.tokens >= limit.capacity - DUST


def _with(bucket: Bucket, tokens: float, limit: Limit) -> Bucket:
    return Bucket(min(tokens, limit.capacity), bucket.at)
