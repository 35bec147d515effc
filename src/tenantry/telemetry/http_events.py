"""What the HTTP API tells. Defined here, below ``web``, so that the mapping to metrics and logs can name it.

A path is told as its route's template (``/v1/jobs/{id}``), never as it was sent: a raw path or query may hold
a credential, and is without bound as a label.
"""

from dataclasses import dataclass

from tenantry.kernel.events import Event
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId


@dataclass(frozen=True, slots=True)
class RequestServed(Event):
    """One request was answered. ``route``: its template, or ``(none)``. ``problem``: the name of the problem
    that it was answered with, or empty. ``tenant``: who asked, once authenticated."""

    method: str
    route: str
    status: int
    took_for: Seconds
    problem: str = ""
    tenant: TenantId | None = None


@dataclass(frozen=True, slots=True)
class CredentialRefused(Event):
    """A request showed no credential that is good. ``reason``: ``missing``, ``malformed``, ``ambiguous``,
    ``in_query``, ``unknown`` (no such key, or not its secret), ``expired``, ``revoked`` or
    ``other_tenant``."""

    reason: str


@dataclass(frozen=True, slots=True)
class RequestFailed(Event):
    """A fault of ours answered 500. ``fault``: the id that the client was shown. ``trace``: where it was
    raised, without the error's own text, which may hold what a client sent."""

    fault: str
    route: str
    error: str
    trace: str
