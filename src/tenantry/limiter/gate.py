"""A limiter as the queue's admission takes it: one that has the methods of its port ``RateGate``."""

from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.limiter.local import Limiter


class LimiterGate:
    """Submit rates by a limiter, so that all nodes that share an authority hold one rate together.

    ``route``: the name under which plans limit submits by themselves; the tenant's own limit counts them too.
    As safe to call as the limiter is.
    """

    def __init__(self, limiter: Limiter, *, route: str | None = "submit") -> None:
        self._limiter, self._route = limiter, route

    def try_acquire(self, tenant: TenantId, cost: int) -> Refusal | None:
        """Charge ``cost`` jobs, or refuse and charge nothing. Never waits."""
        return self._limiter.try_acquire(tenant, route=self._route, cost=cost).refusal

    def give_back(self, tenant: TenantId, cost: int) -> None:
        """Undo a charge."""
        self._limiter.give_back(tenant, route=self._route, cost=cost)
