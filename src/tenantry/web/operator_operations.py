"""The table of what operators can do over HTTP."""

from tenantry.lanes.table import MOST_LANES, LaneSort, LaneState
from tenantry.web import orders, wire
from tenantry.web.calls import JSON, OperatorCall
from tenantry.web.surface import Operation, Parameter, Surface

_TENANT = Parameter("tenant", "query", "Only lanes of this tenant", {"type": "string"})
_TARGET = Parameter("target", "query", "Only lanes to this target, as jobs name it", {"type": "string"})
_STATE = Parameter("state", "query", "Only lanes in this state", {"enum": [each.value for each in LaneState]})
_SORT = Parameter(
    "sort",
    "query",
    "By tenant and target, in pages; or the first so many by backlog or by jobs in flight",
    {"enum": [each.value for each in LaneSort], "default": LaneSort.NAME.value},
)
_LIMIT = Parameter(
    "limit",
    "query",
    "At most so many",
    {"type": "integer", "minimum": 1, "maximum": MOST_LANES, "default": orders.NEWEST},
)
_AFTER = (
    Parameter("after_tenant", "query", "With after_target: behind this lane", {"type": "string"}),
    Parameter("after_target", "query", "With after_tenant: behind this lane", {"type": "string"}),
)
_BEFORE = Parameter("before", "query", "Those numbered below this", {"type": "integer", "minimum": 1})

OPERATOR_SURFACE: Surface[OperatorCall] = Surface(
    title="Tenantry, for operators",
    summary="Look at lanes; pause and bound them, and see who did",
    operations=(
        Operation(
            "listLanes",
            "GET",
            "/v1/lanes",
            orders.list_lanes,
            "The table of lanes: state and why, limit, latencies, breaker, rate and backlog",
            200,
            wire.LaneList,
            parameters=(_TENANT, _TARGET, _STATE, _SORT, _LIMIT, *_AFTER),
        ),
        Operation(
            "giveOrder",
            "POST",
            "/v1/orders",
            orders.give_order,
            "Order something of lanes. 201 means that it is kept; the planner acts within a round",
            201,
            wire.Order,
            body={JSON: wire.NewOrder},
            problems=("request-timeout", "body-too-large", "unsupported-media-type", "invalid-value"),
        ),
        Operation(
            "listOrders",
            "GET",
            "/v1/orders",
            orders.list_orders,
            "The orders that stand",
            200,
            wire.OrderList,
            parameters=(_LIMIT,),
        ),
        Operation(
            "listOrderLog",
            "GET",
            "/v1/orders/log",
            orders.list_order_log,
            "Every order that was ever given",
            200,
            wire.OrderList,
            parameters=(_LIMIT, _BEFORE),
        ),
    ),
    always=(
        "malformed-request",
        "invalid-parameter",
        "credential-ambiguous",
        "credential-in-query",
        "unauthenticated",
        "internal-fault",
        "store-unavailable",
    ),
    health=("/health", "/health/ready"),
)
