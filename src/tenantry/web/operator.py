"""The operator's application: metrics, health, and the hand on the lanes. It takes no tenant's key.

Bind it to an address that tenants do not reach: whoever reaches it may read metrics and health. Lanes and
orders take an operator's key, whose name is in the log of orders as the one who gave it.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import lru_cache
from importlib.metadata import version

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from tenantry.config.api_keys import parse_api_key
from tenantry.kernel.errors import InvalidValue
from tenantry.web import openapi
from tenantry.web.authenticator import Rejected, proven
from tenantry.web.calls import Answer, OperatorCall
from tenantry.web.doors import shown, unauthenticated, without_query_credential
from tenantry.web.exchange import NO_ROUTE, Exchange, Methods, Resource, Step, live
from tenantry.web.health import readiness_step
from tenantry.web.operator_operations import OPERATOR_SURFACE
from tenantry.web.services import OperatorServices, OrderServices

OperatorHandler = Callable[[OperatorCall], Awaitable[Answer]]


def create_operator_app(services: OperatorServices) -> ASGIApp:
    """``/metrics``, ``/health`` and ``/health/ready``; with ``services.orders`` lanes and orders too, under
    ``/v1``. An ASGI application for one event loop."""

    async def metrics(exchange: Exchange) -> Answer:
        body, media_type = services.exposition()
        return Answer(200, body, {"cache-control": "no-store"}, media_type)

    paths: dict[str, Methods] = defaultdict(dict)
    paths["/metrics"]["GET"] = metrics
    paths["/health"]["GET"] = live
    paths["/health/ready"]["GET"] = readiness_step(services.ready)
    if services.orders is not None:
        paths["/v1/openapi.json"]["GET"] = _openapi
        for operation in OPERATOR_SURFACE.operations:
            paths[operation.path][operation.method] = _for_operators(
                operation.handler, services, services.orders
            )
    routes = [Route(path, _resource(path, methods, services)) for path, methods in paths.items()]
    return Router(routes, redirect_slashes=False, default=_resource(NO_ROUTE, {}, services))


def _resource(route: str, methods: Methods, services: OperatorServices) -> ASGIApp:
    checked = {name: without_query_credential(step, services.events) for name, step in methods.items()}
    return Resource(route, checked, services)


def _for_operators(handler: OperatorHandler, services: OperatorServices, orders: OrderServices) -> Step:
    async def authenticated(exchange: Exchange) -> Answer:
        text = shown(exchange.scope, services.events)
        who = await _who(text, services, orders)
        if isinstance(who, Rejected):
            detail = "This is no operator's key, or one that is no longer valid."
            raise unauthenticated(who.reason, detail, services.events)
        return await handler(OperatorCall(services, exchange.scope, exchange.receive, who, orders))

    return authenticated


async def _who(text: str, services: OperatorServices, orders: OrderServices) -> str | Rejected:
    """The name of the operator who shows the key. Asked of the store each time: orders are few, and whoever
    lost the right to give them has lost it at once."""
    try:
        presented = parse_api_key(text)
    except InvalidValue:
        return Rejected("malformed")
    found = proven(presented, await orders.keys.find(presented.key_id), services.clock.now())
    return found if isinstance(found, Rejected) else found.name


async def _openapi(exchange: Exchange) -> Answer:
    return Answer(200, operator_document())


@lru_cache(maxsize=1)
def operator_document() -> bytes:
    """The OpenAPI document of lanes and orders, as it is served."""
    return msgspec.json.encode(openapi.document(version("tenantry"), OPERATOR_SURFACE))
