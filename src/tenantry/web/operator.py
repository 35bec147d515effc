"""The operator's application: metrics and health. It knows no tenants and takes none of their keys.

Bind it to an address that tenants do not reach: whoever reaches it may read it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.events import EventSink, ignore
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.web.calls import Answer
from tenantry.web.exchange import NO_ROUTE, Exchange, Methods, Resource, live
from tenantry.web.health import ReadinessCheck, readiness_step


@dataclass(frozen=True, slots=True)
class OperatorServices:
    """``exposition``: the metrics as they are scraped, and their content type
    (:meth:`tenantry.telemetry.prometheus.Metrics.exposition`). ``ready``: shared with the tenants'
    application."""

    exposition: Callable[[], tuple[bytes, str]]
    ready: ReadinessCheck
    events: EventSink = ignore
    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=SystemRandomness)


def create_operator_app(services: OperatorServices) -> ASGIApp:
    """``/metrics``, ``/health`` and ``/health/ready``, as an ASGI application for one event loop."""

    async def metrics(exchange: Exchange) -> Answer:
        body, media_type = services.exposition()
        return Answer(200, body, {"cache-control": "no-store"}, media_type)

    steps = {"/metrics": metrics, "/health": live, "/health/ready": readiness_step(services.ready)}
    routes = [Route(path, _resource(path, {"GET": step}, services)) for path, step in steps.items()]
    return Router(routes, redirect_slashes=False, default=_resource(NO_ROUTE, {}, services))


def _resource(route: str, methods: Methods, services: OperatorServices) -> ASGIApp:
    return Resource(route, methods, services)
