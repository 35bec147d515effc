"""What a node keeps of one tenant: the bucket of its own limit and, where its plan has them, of keys and
routes.

Most tenants have a limit of their own and nothing else: for those the record *is* the bucket, and ``more`` is
None. All buckets of a tenant share one turn, so several limits are charged together or not at all.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from tenantry.kernel.instant import Instant
from tenantry.kernel.tenant import TenantId, identifier
from tenantry.limiter.buckets import Crew, Leased, Refilled
from tenantry.limiter.model import Limit, Plan
from tenantry.limiter.turns import Turn

Bucket = Refilled | Leased
Found = list[tuple[str, Bucket]]
"""Buckets that apply to one call, each with the scope of its limit."""
Path = tuple[Bucket, ...]

UNLIMITED: Final = Limit(1.0)
"""Stands in a tenant's record where its plan has limits for keys and routes alone; never consulted."""

LOOKED_AT: Final = 16
"""Past a bound, so many buckets are looked at for one to forget."""


class More:
    """Buckets beyond the tenant's own. ``limited``: whether the tenant's own limit applies. ``gone``: the
    record has left the table, and whoever still holds it must look again. ``paths``: the buckets that apply
    to a key and a route, where all of them are there."""

    __slots__ = ("gone", "keys", "limited", "make", "most_keys", "paths", "plan", "routes")

    def __init__(self, plan: Plan, make: Callable[[Limit, str], Bucket], most_keys: int) -> None:
        self.plan, self.make, self.most_keys = plan, make, most_keys
        self.limited, self.gone = plan.tenant is not None, False
        self.keys: dict[str, Bucket] = {}
        self.routes: dict[str, Bucket] = {}
        self.paths: dict[tuple[str | None, str | None], Path] = {}

    def applying(self, own: Bucket, key: str | None, route: str | None, now: Instant) -> Found:
        """The buckets of one call, made where they are new. Raises :class:`InvalidValue` for a bad key."""
        found: Found = [("tenant", own)] if self.limited else []
        plan = self.plan
        if key is not None and plan.key is not None:
            found.append(("key", self.keys.get(key) or self._new_key(key, plan.key, now)))
        if route is not None and route in plan.routes:
            found.append(("route", self.routes.get(route) or self._new_route(route, plan.routes[route])))
        return found

    def remember(self, key: str | None, route: str | None, found: Found) -> None:
        """The next call of the same key and route finds its buckets at once; at most ``most_keys`` of
        them."""
        if len(self.paths) >= self.most_keys:
            self.paths.clear()
        if not self.gone and found:
            self.paths[self.limited_names(key, route)] = tuple(bucket for _, bucket in found)

    def limited_names(self, key: str | None, route: str | None) -> tuple[str | None, str | None]:
        """The key and the route where they have a limit, else None: other names are the callers' to
        invent."""
        return None if self.plan.key is None else key, route if route in self.plan.routes else None

    def leave(self) -> None:
        """The record has left the table."""
        self.gone = True
        self.paths.clear()

    def replan(self, plan: Plan, now: Instant) -> None:
        """Another plan from now on; buckets whose limit is gone go."""
        self.plan, self.limited = plan, plan.tenant is not None
        self.paths.clear()
        if plan.key is None:
            self.keys.clear()
        for bucket in self.keys.values():
            bucket.replan(plan.key or UNLIMITED, now)
        for route in self.routes.keys() - plan.routes.keys():
            del self.routes[route]
        for route, bucket in self.routes.items():
            bucket.replan(plan.routes[route], now)

    def idle(self, now: Instant) -> bool:
        """Whether none of them says more than a new one would."""
        return all(bucket.idle(now) for bucket in self.buckets())

    def buckets(self) -> Iterator[Bucket]:
        """All of them."""
        yield from self.keys.values()
        yield from self.routes.values()

    def _new_key(self, key: str, limit: Limit, now: Instant) -> Bucket:
        self._forget_idle(now)
        bucket = self.keys[key] = self.make(limit, f"key:{identifier(key, path='key')}")
        return bucket

    def _new_route(self, route: str, limit: Limit) -> Bucket:
        bucket = self.routes[route] = self.make(limit, f"route:{route}")
        return bucket

    def _forget_idle(self, now: Instant) -> None:
        """The oldest keys are looked at in turn: idle ones go, others wait at the end for their next turn."""
        crowded = len(self.keys) >= self.most_keys
        oldest, before = list(islice(self.keys, LOOKED_AT if crowded else 2)), len(self.keys)
        for key in oldest:
            bucket = self.keys.pop(key)
            if not bucket.idle(now):
                self.keys[key] = bucket
        if crowded and len(self.keys) >= self.most_keys:
            del self.keys[min(oldest, key=lambda each: self.keys[each].lacking_for(now))]
        if len(self.keys) < before:
            self.paths.clear()


class OwnTenant(Refilled):
    """A tenant of a limiter that is its own authority."""

    __slots__ = ("more", "turn")

    def __init__(self, limit: Limit, turn: Turn) -> None:
        super().__init__(limit)
        self.turn = turn
        self.more: More | None = None


class LeasedTenant(Leased):
    """A tenant of a limiter that leases. ``sequence``: of the last ask. ``asking``: it is about to ask, or
    waits for the answer."""

    __slots__ = ("asking", "ledger", "more", "sequence", "tenant", "turn")

    def __init__(self, limit: Limit, turn: Turn, tenant: TenantId, crew: Crew) -> None:
        super().__init__(limit, "tenant", crew)
        self.turn, self.tenant = turn, tenant
        self.more: More | None = None
        self.sequence, self.asking, self.ledger = 0, False, False

    def buckets(self) -> Iterator[Leased]:
        """Its own limit's, if it has one, and all others."""
        more = self.more
        if more is None or more.limited:
            yield self
        if more is not None:
            yield from (bucket for bucket in more.buckets() if isinstance(bucket, Leased))
