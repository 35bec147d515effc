"""ASGI middleware: a request over the limit is answered 429, every other one told what is left.

Works wherever ASGI does: ``app.add_middleware(LimitMiddleware, limiter=…, tenant=…)`` in Starlette and
FastAPI, ``middleware=[DefineMiddleware(LimitMiddleware, limiter=…, tenant=…)]`` in Litestar."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tenantry.kernel.errors import InvalidValue
from tenantry.limiter.headers import headers_of
from tenantry.limiter.local import Limiter
from tenantry.limiter.model import Verdict
from tenantry.limiter.node import SharedLimiter

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Read = Callable[[Scope], str | None]
"""Reads a name from a request; None where it has none."""


class LimitMiddleware:
    """One decision a request, before the application sees it.

    ``tenant``: who asks, from what authentication has put into the scope; never from a header that a client
    may set (law I1). None: the request is not limited here. ``key``: which of the tenant's keys. ``route``:
    the name of the route in the plan, ``METHOD /path`` unless given. A tenant with an exact limit is decided
    by the authority, which this waits for. WebSocket connections count as one call; refused ones are closed
    with 1008."""

    def __init__(
        self,
        app: App,
        limiter: Limiter,
        tenant: Read,
        *,
        key: Read | None = None,
        route: Read | None = None,
    ) -> None:
        self._app, self._limiter = app, limiter
        self._tenant, self._key, self._route = tenant, key or _nothing, route or method_and_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tenant = self._tenant(scope) if scope["type"] in {"http", "websocket"} else None
        if tenant is None:
            await self._app(scope, receive, send)
            return
        key, route = self._key(scope), self._route(scope)
        verdict = await self._decided(tenant, key, route)
        if scope["type"] == "websocket":
            await (self._app(scope, receive, send) if verdict else _close(receive, send))
            return
        headers = headers_of(verdict, self._limiter.standings(tenant, key=key, route=route))
        encoded = [(name.lower().encode(), value.encode()) for name, value in headers]
        if verdict:
            await self._app(scope, receive, _with_headers(send, encoded))
        else:
            await _refuse(send, verdict, encoded)

    async def _decided(self, tenant: str, key: str | None, route: str | None) -> Verdict:
        plan = self._limiter.plan_of(tenant)
        if plan is not None and plan.exact and isinstance(self._limiter, SharedLimiter):
            return await self._limiter.acquire(tenant, key=key, route=route)
        return self._limiter.try_acquire(tenant, key=key, route=route)


def method_and_path(scope: Scope) -> str | None:
    """``POST /orders``; a connection's method is ``WEBSOCKET``."""
    return f"{scope.get('method', 'WEBSOCKET')} {scope['path']}"


def scope_value(name: str) -> Read:
    """Reads ``scope["state"][name]``, where Starlette, FastAPI and Litestar keep ``request.state``."""
    if not name:
        raise InvalidValue("name", name, "the name of a value in the request's state")
    return lambda scope: scope.get("state", {}).get(name)


def _nothing(scope: Scope) -> str | None:
    return None


def _with_headers(send: Send, headers: list[tuple[bytes, bytes]]) -> Send:
    async def send_with(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return send_with


async def _refuse(send: Send, verdict: Verdict, headers: list[tuple[bytes, bytes]]) -> None:
    """A problem document (RFC 9457)."""
    refusal = verdict.refusal
    problem = {"title": "Too many requests", "status": 429, "detail": refusal.detail if refusal else ""}
    body = json.dumps(problem).encode()
    headers = [
        *headers,
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 429, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _close(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 1008, "reason": "over the rate"})
