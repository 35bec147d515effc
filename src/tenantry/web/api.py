"""The tenants' application: what is reached where, and who may reach it."""

from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import lru_cache
from importlib.metadata import version

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Scope

from tenantry.telemetry.http_events import CredentialRefused
from tenantry.web import openapi
from tenantry.web.authenticator import Authenticator, Rejected
from tenantry.web.calls import Answer, Call
from tenantry.web.credentials import tenant_hints
from tenantry.web.doors import shown, unauthenticated, without_query_credential
from tenantry.web.exchange import NO_ROUTE, Exchange, Methods, Resource, Step, live
from tenantry.web.health import ReadinessCheck, readiness_step
from tenantry.web.operations import OPERATIONS, TENANT_SURFACE
from tenantry.web.problems import refused
from tenantry.web.services import ApiServices


def create_api(services: ApiServices, ready: ReadinessCheck | None = None) -> ASGIApp:
    """The HTTP API of tenants over ``services``, as an ASGI application for one event loop.

    ``ready``: given where the operator's application shares it. Construction alone: nothing is opened,
    started or read here, and nothing has to be closed.
    """
    return _Api(services, ready or ReadinessCheck(services)).router


class _Api:
    def __init__(self, services: ApiServices, ready: ReadinessCheck) -> None:
        limits = services.limits
        self._services, self._ready = services, ready
        self._authenticator = Authenticator(
            services.keys, services.clock, kept_for=limits.key_kept_for, kept=limits.keys_kept
        )
        self.router = Router(self._routes(), redirect_slashes=False, default=self._serving(NO_ROUTE, {}))

    def _routes(self) -> list[Route]:
        paths: dict[str, Methods] = defaultdict(dict)
        for operation in OPERATIONS:
            paths[operation.path][operation.method] = self._for_tenants(operation.handler)
        paths["/v1/health"]["GET"] = live
        paths["/v1/health/ready"]["GET"] = readiness_step(self._ready)
        paths["/v1/openapi.json"]["GET"] = _openapi
        return [Route(path, self._serving(path, methods)) for path, methods in paths.items()]

    def _serving(self, route: str, methods: Methods) -> ASGIApp:
        events = self._services.events
        checked: Methods = {
            method: without_query_credential(step, events) for method, step in methods.items()
        }
        return Resource(route, checked, self._services)

    def _for_tenants(self, handler: Callable[[Call], Awaitable[Answer]]) -> Step:
        async def authenticated(exchange: Exchange) -> Answer:
            text = shown(exchange.scope, self._services.events)
            verdict = await self._authenticator.verify(text)
            if isinstance(verdict, Rejected):
                detail = "The API key is not known, or no longer valid."
                raise unauthenticated(verdict.reason, detail, self._services.events)
            exchange.tenant = verdict.tenant
            self._check_hints(exchange.scope, verdict.tenant)
            return await handler(Call(self._services, exchange.scope, exchange.receive, verdict.tenant))

        return authenticated

    def _check_hints(self, scope: Scope, tenant: str) -> None:
        if any(hint != tenant for hint in tenant_hints(scope["headers"])):
            self._services.events(CredentialRefused("other_tenant"))
            detail = "The X-Tenant-Id header names another tenant than the API key's. It can be left out."
            raise refused("tenant-mismatch", detail)


async def _openapi(exchange: Exchange) -> Answer:
    return Answer(200, openapi_document())


@lru_cache(maxsize=1)
def openapi_document() -> bytes:
    """The OpenAPI document as it is served."""
    return msgspec.json.encode(openapi.document(version("tenantry"), TENANT_SURFACE))
