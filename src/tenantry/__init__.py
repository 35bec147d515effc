"""Tenantry keeps the tenants of a shared system out of each other's way.

Five sentences to know the house by:

1. Components stand in the middle, pure algorithms and the tenant document below them, databases and
   brokers at the edges, and ``cli`` wires them.
2. In each component: a model, pure rules with telling names, ports, and one loop.
3. A *lane* is one tenant's way to one target. It has one shaper and one breaker. Lanes are never shared.
4. Live work and replays are the same jobs in the same lanes under the same scheduler.
5. A tenant's weight comes from its tier; its tier comes from the operator's registry, never from a request.

The names below are loaded when they are first used: importing one room loads no other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenantry.algorithms.fair_share import FairShare as FairShare
    from tenantry.config.tiers import Tier as Tier
    from tenantry.delivery.client import TenantryClient as TenantryClient
    from tenantry.delivery.handlers import Handlers as Handlers
    from tenantry.delivery.handlers import Reject as Reject
    from tenantry.delivery.handlers import RetryLater as RetryLater
    from tenantry.kernel.tenant import TenantId as TenantId
    from tenantry.kernel.verdict import Refusal as Refusal
    from tenantry.queue.executor import FairExecutor as FairExecutor
    from tenantry.queue.model import JobClass as JobClass
    from tenantry.queue.model import NewJob as NewJob

_HOME = {
    "FairExecutor": "tenantry.queue.executor",
    "FairShare": "tenantry.algorithms.fair_share",
    "Handlers": "tenantry.delivery.handlers",
    "JobClass": "tenantry.queue.model",
    "NewJob": "tenantry.queue.model",
    "Refusal": "tenantry.kernel.verdict",
    "Reject": "tenantry.delivery.handlers",
    "RetryLater": "tenantry.delivery.handlers",
    "TenantId": "tenantry.kernel.tenant",
    "TenantryClient": "tenantry.delivery.client",
    "Tier": "tenantry.config.tiers",
}

__all__ = [
    "FairExecutor",
    "FairShare",
    "Handlers",
    "JobClass",
    "NewJob",
    "Refusal",
    "Reject",
    "RetryLater",
    "TenantId",
    "TenantryClient",
    "Tier",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'tenantry' has no attribute {name!r}") from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
