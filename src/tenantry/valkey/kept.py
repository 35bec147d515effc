"""What a tenant's key holds, for people: the other side of ``lua/balance.lua``'s packing. Pure."""

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class KeptBalance:
    """One bucket. ``level``: tokens that may be granted, negative while it owes or has promised. ``held``:
    tokens of live leases, by node."""

    name: str
    base: float
    capacity: float
    level: float
    held: dict[str, float]


def kept_balance(name: str, packed: bytes, now: float) -> KeptBalance:
    """A bucket as it is at ``now``, seconds since 1970 on the server's clock."""
    tokens, at, base, capacity, leases = msgspec.msgpack.decode(packed)
    flat = list(leases)
    triples = list(zip(flat[0::3], flat[1::3], flat[2::3], strict=True))
    lapsed = sum(held for _, held, expires_at in triples if expires_at <= now)
    level = min(capacity, min(capacity, tokens + max(0.0, now - at) * base) + lapsed)
    held = {node: amount for node, amount, expires_at in triples if expires_at > now}
    return KeptBalance(name, base, capacity, level, held)
