"""The lane's identity, and what a target's text means."""

from dataclasses import dataclass
from typing import NewType

from tenantry.kernel.tenant import TenantId

Target = NewType("Target", str)
"""Where work goes: an ``http(s)://`` URL, ``handler:NAME``, or a name that the tenant document declares."""

Kind = NewType("Kind", str)
"""What a slot must be able to run: ``http``, or the ``handler:NAME`` itself."""

HTTP = Kind("http")
HANDLER_PREFIX = "handler:"


def kind_of(target: Target) -> Kind:
    """The kind of slot that ``target`` needs. Names and URLs are delivered over HTTP. Pure, O(1)."""
    return Kind(target) if target.startswith(HANDLER_PREFIX) else HTTP


@dataclass(frozen=True, slots=True)
class Lane:
    """One tenant's way to one target."""

    tenant: TenantId
    target: Target
