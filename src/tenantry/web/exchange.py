"""One request and its answer: every end of the pipeline becomes exactly one answer and one event."""

import asyncio
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from tenantry.kernel.errors import InvalidValue, StoreUnavailable, UnknownTenant
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.telemetry.http_events import RequestFailed, RequestServed
from tenantry.web.calls import Answer, answer_to
from tenantry.web.problems import KINDS, Problem, Refused, of_invalid, refused, refused_with, retry_headers
from tenantry.web.services import Ambient
from tenantry.web.wire import Health

NO_ROUTE: Final = "(none)"

LINGER_FOR: Final[Seconds] = 3.0
LINGER_BYTES: Final = 32 * 1_048_576
"""Closing a connection with unread bytes resets it, and the client may never see why. So after an answer that
closes, a little more is read and thrown away (RFC 9112, section 9.6)."""

_GONE = 499
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class Exchange:
    """One request. ``tenant`` is set once it is known. Used once, by one task."""

    def __init__(self, services: Ambient, scope: Scope, receive: Receive, route: str) -> None:
        self.services, self.scope, self.receive, self.route = services, scope, receive, route
        self.tenant: TenantId | None = None

    async def run(self, methods: "Methods", send: Send) -> None:
        """Answer, and tell that it was answered."""
        began = self.services.clock.monotonic()
        status, problem = _GONE, ""
        try:
            answer = await self._answer(methods)
            status, problem = answer.status, answer.problem
            await self._send(answer, send)
        except ClientDisconnect:
            pass  # nobody is there to be answered
        finally:
            took_for = self.services.clock.monotonic() - began
            self.services.events(
                RequestServed(self._method(), self.route, status, took_for, problem, self.tenant)
            )

    async def _answer(self, methods: "Methods") -> Answer:
        try:
            return await self._step(methods)(self)
        except ClientDisconnect:
            raise
        except Exception as error:  # noqa: BLE001 - the edge: whatever it is, the client gets a problem
            return answer_to(self._problem_of(error))

    def _step(self, methods: "Methods") -> "Step":
        if not methods:
            raise refused("not-found", "There is no such resource. /v1/openapi.json lists those there are.")
        method = self.scope["method"]
        step = methods.get("GET" if method == "HEAD" else method)
        if step is not None:
            return step
        allow = {"allow": allowed(methods)}
        if method == "OPTIONS":
            return _options(allow)
        detail = f"This method is not for this resource; it knows {allow['allow']}."
        raise refused_with("method-not-allowed", detail, allow)

    def _problem_of(self, error: Exception) -> Problem:
        if isinstance(error, Refused):
            return error.problem
        if isinstance(error, InvalidValue):
            return of_invalid(error)
        if isinstance(error, UnknownTenant):
            return Problem(KINDS["unknown-tenant"], "The tenant of this API key is not in the registry.")
        return self._unavailable() if isinstance(error, StoreUnavailable) else self._fault(error)

    def _unavailable(self) -> Problem:
        """The store is away. Clients are spread, so that they do not all come back in one moment."""
        retry_after = self.services.randomness.uniform(1.0, 3.0)
        detail = "The store cannot be reached. Submit again, with the same idempotency key."
        members = {"retry_after": retry_after}
        return Problem(KINDS["store-unavailable"], detail, members, retry_headers(retry_after))

    def _fault(self, error: Exception) -> Problem:
        fault = f"urn:uuid:{self.services.randomness.time_ordered_id()}"
        frames = traceback.format_list(traceback.extract_tb(error.__traceback__))
        self.services.events(RequestFailed(fault, self.route, type(error).__name__, "".join(frames)))
        detail = "This is a fault of ours, not of the request. Tell the operator the instance."
        return Problem(KINDS["internal-fault"], detail, {"instance": fault})

    async def _send(self, answer: Answer, send: Send) -> None:
        if answer.stream is not None:
            await self._send_on(answer, answer.stream, send)
            return
        body = answer.encoded()
        closes = answer.headers.get("connection") == "close"
        await send(
            {"type": "http.response.start", "status": answer.status, "headers": _headers(answer, body)}
        )
        shown = b"" if self.scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": shown, "more_body": closes})
        if closes:
            await self._linger()
            await send({"type": "http.response.body", "body": b""})

    async def _send_on(self, answer: Answer, stream: AsyncIterator[bytes], send: Send) -> None:
        headers = _encoded({**answer.headers, "content-type": answer.media_type})
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        gone = asyncio.create_task(self._gone())
        try:
            async for chunk in stream if self.scope["method"] != "HEAD" else _nothing():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if gone.done():
                    raise ClientDisconnect
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _gone(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _linger(self) -> None:
        read, more = 0, True
        try:
            async with asyncio.timeout(LINGER_FOR):
                while more and read < LINGER_BYTES:
                    message = await self.receive()
                    read, more = read + len(message.get("body", b"")), message.get("more_body", False)
        except TimeoutError:
            return

    def _method(self) -> str:
        """The method as a label: clients may invent any number of others."""
        method = self.scope["method"]
        return method if method in _METHODS else "other"


Step = Callable[[Exchange], Awaitable[Answer]]
"""What a method of a path does; it ends with an answer or raises :class:`Refused`."""

Methods = dict[str, Step]


class Resource:
    """An ASGI application for one path. (A class: Starlette wraps plain functions in its own requests.)"""

    def __init__(self, route: str, methods: Methods, services: Ambient) -> None:
        self._route, self._methods, self._services = route, methods, services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        await Exchange(self._services, scope, receive, self._route).run(self._methods, send)


async def live(exchange: Exchange) -> Answer:
    """The process is there."""
    return Answer(200, Health("live"), {"cache-control": "no-store"})


def allowed(methods: Mapping[str, Step]) -> str:
    """The ``Allow`` header of a resource."""
    names = {*methods, "OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
    return ", ".join(sorted(names))


def _options(headers: Mapping[str, str]) -> Step:
    async def answer(exchange: Exchange) -> Answer:
        return Answer(204, headers=headers)

    return answer


def _headers(answer: Answer, body: bytes) -> list[tuple[bytes, bytes]]:
    headers = dict(answer.headers)
    if answer.status != 204:
        headers |= {"content-type": answer.media_type, "content-length": str(len(body))}
    return _encoded(headers)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    safe = {"x-content-type-options": "nosniff", **headers}
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in safe.items()]


async def _nothing() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for chunk in nothing:
        yield chunk
