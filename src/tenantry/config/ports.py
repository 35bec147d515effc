"""How rooms read tenants and tiers, whoever keeps them (a file, a table, later a signed snapshot)."""

from collections.abc import Iterable
from typing import Protocol

from tenantry.config.model import TenantDocument
from tenantry.config.tiers import Tier
from tenantry.kernel.tenant import TenantId


class TenantDirectory(Protocol):
    """A consistent view of the tenants. Calls answer from memory: they never wait and never fail.

    Safe to call from any thread. A view may be replaced as a whole between two calls; one call never sees
    half of two views.
    """

    @property
    def version(self) -> int:
        """Rises whenever the view is replaced."""
        ...

    @property
    def floor(self) -> float:
        """φ of every pool, in [0, 1]: nobody gets less than this part of an equal share (law F1)."""
        ...

    def tenant(self, tenant: TenantId) -> TenantDocument | None:
        """The tenant's document, or None for a tenant that does not exist. O(1)."""
        ...

    def tier_of(self, tenant: TenantId) -> Tier | None:
        """The tenant's tier, or None for a tenant that does not exist. O(1)."""
        ...

    def tenants(self) -> Iterable[TenantDocument]:
        """Every tenant, in the order of their ids."""
        ...

    def tiers(self) -> Iterable[Tier]:
        """Every tier, in the registry's order."""
        ...
