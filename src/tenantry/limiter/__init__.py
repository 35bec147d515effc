"""How much each tenant may ask for: every decision local, every total honest.

Theory. A limit is a token bucket. The *authority* keeps one bucket a limit and grants from it in *leases*: so
many tokens, to be spent by one node before an instant. A node decides from its lease, in memory, and asks for
the next one behind the caller's back before it runs dry. Where it has no answer from the authority (first
contact, the store is down) it decides from its *conservative share*, the limit over the number of live nodes,
and tells the authority afterwards what that came to.

Authority. The bucket belongs to the authority and to its clock (law K4). A node trusts a lease for less than
its term, and counts from the moment when it began to ask.

Invariants. For each limit, over any stretch of T seconds, no more than ``capacity + rate * T`` pass, plus:

- nothing, while nodes and authority reach each other: the authority grants only what it has;
- after first contact, at most each node's opening share, ``max(1, capacity / nodes)``, as far as the bucket
did
  not hold it; it is charged at the first answer, so what follows is less by as much;
- after a node died or was cut off, at most what its lease held, which returns to the bucket at the end of its
  term although it may have been spent: 20 nodes with leases of 10 are 200;
- while the store is down, at most what leases held and the shares give: together the limit, and one token a
node
  where the limit is less than one token a node;
- after the store has lost its last writes (a failover), at most what was granted in those writes; all of a
  bucket, where it lost the bucket.

What is settled late makes the bucket owe, never more than that; so long-run totals are the limit's. Refused
calls are never charged.

Failures. A lost answer is asked for again under its number and charges once. A dead node's leases return
after their term. A store that is gone changes "exact" into "approximately right" and never refuses by itself.

``model``      limits, plans, verdicts
``exchange``   what travels, and the authority's rule, pure; ``shares``: another rule, that divides instead
``ledger``     what was granted and spent, by the day
``buckets``    the local ones, ``tenants`` the record of one tenant, ``plans`` a million plans in flat arrays,
``plan_file`` in TOML
``local``      :class:`Limiter`: decisions; ``leasing``: from leases; ``renewal``: what is asked for;
``node``       :class:`SharedLimiter`: the loop around both
``ports``      where plans come from, and who grants
``headers``, ``asgi``, ``decorators``, ``gate``   how a decision is shown to HTTP, to functions, to admission
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenantry.limiter.local import Limiter as Limiter
    from tenantry.limiter.model import Basis as Basis
    from tenantry.limiter.model import Limit as Limit
    from tenantry.limiter.model import Plan as Plan
    from tenantry.limiter.model import Standing as Standing
    from tenantry.limiter.model import Verdict as Verdict
    from tenantry.limiter.node import SharedLimiter as SharedLimiter
    from tenantry.limiter.plans import Plans as Plans
    from tenantry.limiter.settings import LimiterSettings as LimiterSettings

_HOME = {
    "Basis": "model",
    "Limit": "model",
    "Limiter": "local",
    "LimiterSettings": "settings",
    "Plan": "model",
    "Plans": "plans",
    "SharedLimiter": "node",
    "Standing": "model",
    "Verdict": "model",
}

__all__ = [
    "Basis",
    "Limit",
    "Limiter",
    "LimiterSettings",
    "Plan",
    "Plans",
    "SharedLimiter",
    "Standing",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tenantry.limiter' has no attribute {name!r}")
    return getattr(import_module(f"tenantry.limiter.{_HOME[name]}"), name)
