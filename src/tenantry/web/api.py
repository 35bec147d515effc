"""The tenants' application: what is reached where, and who may reach it."""

from collections import defaultdict
from functools import lru_cache
from importlib.metadata import version

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Scope

from tenantry.telemetry.http_events import CredentialRefused
from tenantry.web import openapi
from tenantry.web.authenticator import Authenticator, Rejected
from tenantry.web.calls import Answer, Call
from tenantry.web.credentials import Missing, Unusable, credential_of, query_holds_credential, tenant_hints
from tenantry.web.exchange import NO_ROUTE, Exchange, Methods, Resource, Step, live
from tenantry.web.health import ReadinessCheck, readiness_step
from tenantry.web.operations import OPERATIONS, Handler
from tenantry.web.problems import Refused, refused, refused_with
from tenantry.web.services import ApiServices

_CHALLENGE = {"www-authenticate": 'Bearer realm="tenantry"'}
_WAYS = "as Authorization: Bearer KEY or as X-API-Key: KEY"


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
        checked: Methods = {method: self._without_query_credential(step) for method, step in methods.items()}
        return Resource(route, checked, self._services)

    def _without_query_credential(self, step: Step) -> Step:
        async def checked(exchange: Exchange) -> Answer:
            if query_holds_credential(exchange.scope["query_string"]):
                self._services.events(CredentialRefused("in_query"))
                detail = f"URLs end in logs: send the key {_WAYS}, and replace the one in the URL."
                raise refused("credential-in-query", detail)
            return await step(exchange)

        return checked

    def _for_tenants(self, handler: Handler) -> Step:
        async def authenticated(exchange: Exchange) -> Answer:
            text = self._shown(exchange.scope)
            verdict = await self._authenticator.verify(text)
            if isinstance(verdict, Rejected):
                raise self._unauthenticated(verdict.reason, "The API key is not known, or no longer valid.")
            exchange.tenant = verdict.tenant
            self._check_hints(exchange.scope, verdict.tenant)
            return await handler(Call(self._services, exchange.scope, exchange.receive, verdict.tenant))

        return authenticated

    def _shown(self, scope: Scope) -> str:
        credential = credential_of(scope["headers"])
        if isinstance(credential, Missing):
            raise self._unauthenticated("missing", f"Send an API key {_WAYS}.")
        if not isinstance(credential, Unusable):
            return credential.text
        if credential.reason == "malformed":
            raise self._unauthenticated("malformed", credential.detail)
        self._services.events(CredentialRefused(credential.reason))
        raise refused("credential-ambiguous", credential.detail)

    def _unauthenticated(self, reason: str, detail: str) -> Refused:
        self._services.events(CredentialRefused(reason))
        return refused_with("unauthenticated", detail, _CHALLENGE)

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
    return msgspec.json.encode(openapi.document(version("tenantry")))
