"""The lane's identity, and what a target's text means."""

from dataclasses import dataclass
from typing import NewType

from tenantry.kernel.tenant import TenantId
from tenantry.lanes.address import scheme_of

Target = NewType("Target", str)
"""Where work goes: an ``http(s)://`` URL, ``handler:NAME``, a place in a broker
(:mod:`tenantry.lanes.address`), or a name that the tenant document declares."""

Kind = NewType("Kind", str)
"""What a slot must be able to run: ``http``, the ``handler:NAME`` itself, or a broker's connection such as
``amqp:mq``."""

HTTP = Kind("http")
HANDLER_PREFIX = "handler:"


def kind_of(target: Target) -> Kind:
    """The kind of slot that ``target`` needs. Names and URLs are delivered over HTTP. Pure, O(length)."""
    if target.startswith(HANDLER_PREFIX):
        return Kind(target)
    return HTTP if scheme_of(target) is None else Kind(target.partition("/")[0])


@dataclass(frozen=True, slots=True)
class Lane:
    """One tenant's way to one target."""

    tenant: TenantId
    target: Target
