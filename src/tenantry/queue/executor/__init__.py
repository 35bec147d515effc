"""In-process fairness: many tenants' callables on a few slots, with no database.

The rule is the queue's, :mod:`tenantry.algorithms.fair_share`, by name a deficit round robin: ``quantum``,
``deficit`` and the ``active`` list can be seen, idle tenants cost nothing. :class:`ExecutorCore` decides;
:class:`FairExecutor` drives it from one event loop, :class:`ThreadFairExecutor` from threads.

Authority: this process; nothing survives it. Invariants: at most ``slots`` callables at once; of one tenant
at most its tier's cap; at most its bound waiting. Failures: what a callable raises is its handle's; it never
ends the executor.
"""

from tenantry.queue.executor.core import DEFAULT_TIER, ExecutorCore, FlowKey, Settings, Stats, TierLookup
from tenantry.queue.executor.coroutines import FairExecutor
from tenantry.queue.executor.threads import ThreadFairExecutor

__all__ = [
    "DEFAULT_TIER",
    "ExecutorCore",
    "FairExecutor",
    "FlowKey",
    "Settings",
    "Stats",
    "ThreadFairExecutor",
    "TierLookup",
]
