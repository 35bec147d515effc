"""The tenant document: who a tenant is, its tier, and where its work may go. Frozen records.

Parsing and validation are in :mod:`tenantry.config.documents`; these records are trusted to be valid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tenantry.kernel.tenant import TenantId, TierName


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """How deliveries to one target behave. Durations in seconds.

    ``url``: where a named target leads (None: the target's own text is the URL or handler).
    ``timeout_for``: (0, 900], for the whole exchange. ``max_attempts``: 1 to 100. ``backoff_base`` and
    ``backoff_cap``: see :class:`tenantry.algorithms.backoff.Backoff`. ``limit``: most in flight, >= 1, or
    None. ``adaptive``: whether the lane finds out itself how much the target can take, and stops while it is
    dead (None: deliveries over HTTP do, handlers do not). ``secret``: signs deliveries as Standard Webhooks
    specifies (``whsec_`` and base64); several, the new one first and a space between them, while one is
    rotated; never shown.
    """

    url: str | None = None
    timeout_for: float = 15.0
    max_attempts: int = 8
    backoff_base: float = 2.0
    backoff_cap: float = 600.0
    limit: int | None = None
    adaptive: bool | None = None
    secret: str | None = field(default=None, repr=False)


NO_SETTINGS = TargetSettings()
"""What applies where nobody has said anything."""


@dataclass(frozen=True, slots=True)
class TenantDocument:
    """One tenant. ``targets`` maps a target's name or text to its settings; ``defaults`` serves the rest."""

    tenant: TenantId
    tier: TierName
    defaults: TargetSettings = TargetSettings()
    targets: Mapping[str, TargetSettings] = field(default_factory=lambda: MappingProxyType({}))

    def settings_for(self, target: str) -> TargetSettings:
        """What applies to ``target``: its own settings, else the document's defaults. O(1)."""
        return self.targets.get(target, self.defaults)
