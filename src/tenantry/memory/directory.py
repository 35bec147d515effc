"""The tenants in memory: what a file's registry becomes, and what other directories are compared with."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.tenant import TenantId, TierName


@dataclass(frozen=True, slots=True)
class _View:
    """One registry, indexed, with its version. Never changed: replaced as a whole."""

    version: int
    registry: Registry
    documents: Mapping[TenantId, TenantDocument]
    tiers: Mapping[TierName, Tier]


class MemoryDirectory:
    """A :class:`~tenantry.config.ports.TenantDirectory` over one :class:`Registry` at a time.

    Safe to call from any thread. Readers take no lock: a call reads the reference to the current view once
    and answers from that view alone, so it sees the old registry or the new one, never half of each. Writers
    are serialised, so that no version is given twice.
    """

    def __init__(self, registry: Registry) -> None:
        self._writing = threading.Lock()
        self._view = _view(1, registry)

    @property
    def version(self) -> int:
        """1 at first; each :meth:`replace` raises it by one."""
        return self._view.version

    @property
    def registry(self) -> Registry:
        """The registry in force."""
        return self._view.registry

    @property
    def floor(self) -> float:
        """See :attr:`~tenantry.config.ports.TenantDirectory.floor`."""
        return self._view.registry.floor

    def replace(self, registry: Registry) -> int:
        """Puts ``registry`` in force for every call that starts afterwards; returns its version. O(n)."""
        with self._writing:
            self._view = _view(self._view.version + 1, registry)
            return self._view.version

    def tenant(self, tenant: TenantId) -> TenantDocument | None:
        """See :meth:`~tenantry.config.ports.TenantDirectory.tenant`."""
        return self._view.documents.get(tenant)

    def tier_of(self, tenant: TenantId) -> Tier | None:
        """See :meth:`~tenantry.config.ports.TenantDirectory.tier_of`."""
        view = self._view
        document = view.documents.get(tenant)
        return None if document is None else view.tiers[document.tier]

    def tenants(self) -> tuple[TenantDocument, ...]:
        """Every tenant, in the order of their ids."""
        return self._view.registry.tenants

    def tiers(self) -> tuple[Tier, ...]:
        """Every tier, in the registry's order."""
        return self._view.registry.tiers


def _view(version: int, registry: Registry) -> _View:
    documents = {document.tenant: document for document in registry.tenants}
    return _View(version, registry, documents, {tier.name: tier for tier in registry.tiers})
