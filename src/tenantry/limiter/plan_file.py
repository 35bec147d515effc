"""Plans in a TOML file. Pure.

::

    default = "free"                      # of tenants that are not named; leave out for no limit

    [plans.free]
    tenant = "10/s"

    [plans.gold]
    tenant = "500/s burst 1000"
    key = "50/s burst 100"
    routes = { "POST /orders" = "100/s burst 100" }
    ledger = true

    [tenants]
    acme = "gold"
"""

import tomllib
from collections.abc import Mapping
from typing import Any, Final

from tenantry.kernel.errors import InvalidValue, UnknownKey, nearest
from tenantry.limiter.model import Limit, Plan
from tenantry.limiter.plans import Plans

_TOP: Final = ("default", "plans", "tenants")
_PLAN: Final = ("tenant", "key", "routes", "ledger")


def parse_plans(text: str) -> Plans:
    """The plans of a file. Raises :class:`InvalidValue`, with the path of what is not accepted."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue("plans", "this text", f"TOML: {error}") from None
    _known(found, _TOP, "")
    plans = {name: _plan(table, f"plans.{name}") for name, table in _table(found, "plans").items()}
    tenants = _table(found, "tenants")
    pairs = [(tenant, _named(plans, name, f"tenants.{tenant}")) for tenant, name in tenants.items()]
    default = _named(plans, found["default"], "default") if "default" in found else None
    return Plans(pairs, default=default)


def _plan(table: Any, path: str) -> Plan:
    if not isinstance(table, dict):
        raise InvalidValue(path, table, "a table with " + ", ".join(_PLAN))
    _known(table, _PLAN, path)
    routes = table.get("routes", {})
    if not isinstance(routes, dict):
        raise InvalidValue(f"{path}.routes", routes, 'a table such as { "POST /orders" = "10/s" }')
    ledger = table.get("ledger", False)
    if not isinstance(ledger, bool):
        raise InvalidValue(f"{path}.ledger", ledger, "true or false")
    limits = {route: _limit(value, f"{path}.routes.{route}") for route, value in routes.items()}
    tenant, key = (_optional(table, name, path) for name in ("tenant", "key"))
    return Plan(tenant, key, limits, ledger)


def _optional(table: Mapping[str, Any], name: str, path: str) -> Limit | None:
    return _limit(table[name], f"{path}.{name}") if name in table else None


def _limit(value: Any, path: str) -> Limit:
    if not isinstance(value, str):
        raise InvalidValue(path, value, "a limit in quotes", "Such as: '100/s burst 200'")
    return Limit.parse(value, path=path)


def _named(plans: Mapping[str, Plan], name: Any, path: str) -> Plan:
    if isinstance(name, str) and name in plans:
        return plans[name]
    near = nearest(str(name), tuple(plans))
    known = ", ".join(plans) or "(none is defined)"
    raise InvalidValue(path, name, f"the name of a plan: {known}", f"Did you mean {near!r}?" if near else "")


def _table(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = found.get(name, {})
    if not isinstance(table, dict):
        raise InvalidValue(name, table, "a table")
    return table


def _known(table: Mapping[str, Any], known: tuple[str, ...], path: str) -> None:
    for key in table:
        if key not in known:
            raise UnknownKey(path, key, known)
