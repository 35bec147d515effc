"""What operators do with lanes: look at the table, give orders, read those that stand and those that were."""

import re
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import urlencode

from tenantry.kernel.errors import InvalidValue, UnknownTenant
from tenantry.kernel.tenant import TenantId, tenant_id
from tenantry.lanes.model import Lane, Target
from tenantry.lanes.orders import Action, Order, Scope
from tenantry.lanes.table import LaneQuery, LaneSort, LaneState, row_of
from tenantry.web import bodies, parsing, wire
from tenantry.web.calls import Answer, OperatorCall
from tenantry.web.parameters import parameters
from tenantry.web.problems import refused

NEWEST: Final = 100
_FILTERS = ("tenant", "target", "state", "sort", "limit", "after_tenant", "after_target")

Choice = TypeVar("Choice", bound=StrEnum)


async def list_lanes(call: OperatorCall) -> Answer:
    """`GET /v1/lanes`"""
    query = _query(parameters(call, _FILTERS))
    found = await call.orders.store.lanes(query)
    lanes = [wire.lane_out(row_of(facts, call.orders.directory)) for facts in found]
    last = found[-1].lane if len(found) == query.limit and query.sort is LaneSort.NAME else None
    return Answer(200, wire.LaneList(lanes, None if last is None else _lanes_behind(last, query)), _FRESH)


async def give_order(call: OperatorCall) -> Answer:
    """`POST /v1/orders`"""
    bodies.media_type(call)
    parameters(call, ())
    new = parsing.read_order(await bodies.read(call, call.services.limits.job))
    scope = Scope(
        None if new.tenant is None else TenantId(new.tenant),
        None if new.target is None else Target(new.target),
    )
    order = Order(_one_of(Action, "action", new.action), scope, new.reason, call.by, new.ceiling)
    await _check_tenant(call, scope.tenant)
    return Answer(201, wire.order_out(await call.orders.store.order(order)), _FRESH)


async def list_orders(call: OperatorCall) -> Answer:
    """`GET /v1/orders`"""
    given = parameters(call, ("limit",))
    found = await call.orders.store.orders(limit=_limit(given))
    return Answer(200, wire.OrderList([wire.order_out(each) for each in found], None), _FRESH)


async def list_order_log(call: OperatorCall) -> Answer:
    """`GET /v1/orders/log`"""
    given = parameters(call, ("limit", "before"))
    limit = _limit(given)
    before = _whole("before", given["before"], 1 << 53) if "before" in given else None
    found = await call.orders.store.order_log(limit=limit, before=before)
    on = urlencode({"limit": limit, "before": found[-1].number}) if len(found) == limit else None
    next_url = None if on is None else f"/v1/orders/log?{on}"
    return Answer(200, wire.OrderList([wire.order_out(each) for each in found], next_url), _FRESH)


_FRESH = {"cache-control": "no-store"}


async def _check_tenant(call: OperatorCall, tenant: TenantId | None) -> None:
    """A tenant that the registry names, or one that was removed and has lanes still. Raises InvalidValue."""
    directory = call.orders.directory
    if tenant is None or directory.tenant(tenant) is not None:
        return
    if not await call.orders.store.lanes(LaneQuery(tenant=tenant, limit=1)):
        near = UnknownTenant(tenant, tuple(document.tenant for document in directory.tenants())).hint
        raise InvalidValue("tenant", tenant, "a tenant of the registry, or one that has lanes still", near)


def _query(given: dict[str, str]) -> LaneQuery:
    try:
        return LaneQuery(
            tenant=tenant_id(given["tenant"]) if "tenant" in given else None,
            target=Target(given["target"]) if "target" in given else None,
            state=_one_of(LaneState, "state", given["state"]) if "state" in given else None,
            sort=_one_of(LaneSort, "sort", given.get("sort", LaneSort.NAME)),
            limit=_limit(given),
            after=_after(given),
        )
    except InvalidValue as error:
        raise refused("invalid-parameter", f"{error}.") from None


def _after(given: dict[str, str]) -> Lane | None:
    if "after_tenant" not in given and "after_target" not in given:
        return None
    if not given.get("after_tenant") or "after_target" not in given:
        raise InvalidValue("after_tenant", given.get("after_tenant"), "both after_tenant and after_target")
    return Lane(tenant_id(given["after_tenant"], path="after_tenant"), Target(given["after_target"]))


def _lanes_behind(last: Lane, query: LaneQuery) -> str:
    asked = {"tenant": query.tenant, "target": query.target, "state": query.state, "limit": query.limit}
    place = {"after_tenant": last.tenant, "after_target": last.target}
    return "/v1/lanes?" + urlencode({key: str(value) for key, value in asked.items() if value} | place)


def _one_of(kind: type[Choice], path: str, text: str) -> Choice:
    for each in kind:
        if each.value == text:
            return each
    raise InvalidValue(path, text, "one of " + ", ".join(kind))


def _limit(given: dict[str, str]) -> int:
    return _whole("limit", given["limit"], 1_000) if "limit" in given else NEWEST


def _whole(name: str, text: str, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,16}", text, re.ASCII) or not 1 <= int(text) <= most:
        detail = f"{name}: {text[:40]!r} is not accepted; expected a whole number from 1 to {most:,}."
        raise refused("invalid-parameter", detail)
    return int(text)
