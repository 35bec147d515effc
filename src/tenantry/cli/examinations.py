"""The doctor's examinations: each asks the database one thing and hands it to a check."""

from collections.abc import Awaitable, Callable

from tenantry.cli import checks
from tenantry.cli.checks import Check
from tenantry.cli.desk import Desk
from tenantry.config.registry import Registry
from tenantry.config.warnings import warnings
from tenantry.kernel.clock import SystemClock
from tenantry.postgres.inspection import Inspection


async def _server(desk: Desk) -> Check:
    return checks.server_check(await Inspection(desk.database).server())


async def _disk(desk: Desk) -> Check:
    return checks.durability_check(await Inspection(desk.database).server())


async def _migrations(desk: Desk) -> Check:
    return checks.migrations_check(await Inspection(desk.database).pending())


async def _logins(desk: Desk) -> Check:
    return checks.logins_check(await Inspection(desk.database).logins())


async def _policies(desk: Desk) -> Check:
    return checks.policies_check(await Inspection(desk.database).unprotected())


async def _registry(desk: Desk) -> Check:
    directory = desk.directory
    tenants = tuple(directory.tenants())
    doubts = warnings(Registry(tuple(directory.tiers()), tenants, directory.floor)) if tenants else ()
    return checks.registry_check(len(tenants), directory.version, [doubt.message for doubt in doubts])


async def _planner(desk: Desk) -> Check:
    return checks.planner_check(await Inspection(desk.database).life())


async def _workers(desk: Desk) -> Check:
    tiers = {tier.name: tier.pool for tier in desk.directory.tiers()}
    pools = sorted({tiers[document.tier] for document in desk.directory.tenants()}) or ["shared"]
    return checks.workers_check(await Inspection(desk.database).workers(), pools)


async def _shedding(desk: Desk) -> Check:
    return checks.shedding_check(await desk.operator.levels())


async def _partitions(desk: Desk) -> Check:
    return checks.partitions_check(await Inspection(desk.database).life())


async def _books(desk: Desk) -> Check:
    return checks.audit_check(await desk.operator.audit())


async def _clock(desk: Desk) -> Check:
    clock = SystemClock()
    before = clock.now()
    server = await Inspection(desk.database).server()
    after = clock.now()
    return checks.clock_check((before + after) / 2 - server.now, after - before)


EXAMINATIONS: dict[str, Callable[[Desk], Awaitable[Check]]] = {
    "server": _server,
    "disk": _disk,
    "migrations": _migrations,
    "logins": _logins,
    "row policies": _policies,
    "registry": _registry,
    "planner": _planner,
    "workers": _workers,
    "shedding": _shedding,
    "partitions": _partitions,
    "books": _books,
    "clock": _clock,
}
"""By name, in the order in which they are shown."""
