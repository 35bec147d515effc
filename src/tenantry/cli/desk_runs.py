"""One operator's command, run to its end: open the desk, look or do, close it."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tenantry.cli.desk import Desk, opened
from tenantry.cli.eventloop import run
from tenantry.cli.options import OnDatabase
from tenantry.kernel.tenant import TenantId

T = TypeVar("T")


def at_desk(options: OnDatabase, look: Callable[[Desk], Coroutine[Any, Any, T]]) -> T:
    """What ``look`` finds at the desk of ``options``. Raises as :func:`tenantry.cli.desk.opened`."""

    async def go() -> T:
        async with opened(options) as desk:
            return await look(desk)

    return run(go())


def for_tenant(
    options: OnDatabase, tenant: str, look: Callable[[Desk, TenantId], Coroutine[Any, Any, T]]
) -> T:
    """As :func:`at_desk`, for one tenant, which must exist. Raises :class:`UnknownTenant`."""
    return at_desk(options, lambda desk: look(desk, desk.known(tenant)))
