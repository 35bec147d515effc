"""What callers see: headers, middleware in three frameworks, decorators, admission's gate."""

import asyncio
import re
from typing import Any

import httpx
import pytest
from litestar import Litestar, get
from litestar.middleware import DefineMiddleware
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Rule
from tenantry.limiter import Limit, Limiter, Plan, SharedLimiter
from tenantry.limiter.asgi import LimitMiddleware, Scope, scope_value
from tenantry.limiter.decorators import RateLimited, limited
from tenantry.limiter.gate import LimiterGate
from tenantry.limiter.headers import headers_of
from tenantry.memory.lease_authority import MemoryLeaseAuthority
from tenantry.queue.ports import RateGate
from tenantry.testing.clock import ManualClock

PLAN = Plan(Limit(2), key=Limit(1), routes={"GET /heavy": Limit(1)})


def who(scope: Scope) -> str | None:
    """Stands for what authentication has found."""
    return dict(scope["headers"]).get(b"x-test-tenant", b"").decode() or None


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse("served")


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("hello")
    await socket.close()


@get(["/", "/heavy"])
async def litestar_home() -> str:
    return "served"


def starlette_app(limiter: Limiter) -> Any:
    app = Starlette(routes=[Route("/", home), Route("/heavy", home), WebSocketRoute("/talk", talk)])
    app.add_middleware(LimitMiddleware, limiter=limiter, tenant=who)
    return app


def litestar_app(limiter: Limiter) -> Any:
    return Litestar(
        [litestar_home], middleware=[DefineMiddleware(LimitMiddleware, limiter=limiter, tenant=who)]
    )


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://test", headers={"x-test-tenant": "acme"}
    )


@pytest.mark.parametrize("make", [starlette_app, litestar_app])
async def test_over_the_rate_a_request_is_answered_429_and_passes_after_the_time_it_was_told(
    make: Any,
) -> None:
    clock = ManualClock()
    async with client(make(Limiter(PLAN, clock=clock))) as http:
        first = await http.get("/")
        assert first.status_code == 200
        assert first.headers["ratelimit-policy"] == '"tenant";q=2;w=1'
        assert first.headers["ratelimit"] == '"tenant";r=1;t=1'
        assert "retry-after" not in first.headers
        await http.get("/")
        refused = await http.get("/")
        assert refused.status_code == 429
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.headers["ratelimit"] == '"tenant";r=0;t=1'
        clock.advance(int(refused.headers["retry-after"]))
        assert (await http.get("/")).status_code == 200


async def test_a_route_with_a_limit_of_its_own_is_told_beside_the_tenant_s() -> None:
    async with client(starlette_app(Limiter(PLAN, clock=ManualClock()))) as http:
        answer = await http.get("/heavy")
        assert answer.headers["ratelimit-policy"] == '"tenant";q=2;w=1, "route";q=1;w=1'
        assert (await http.get("/heavy")).status_code == 429
        assert (await http.get("/")).status_code == 200


async def test_requests_of_nobody_pass_unlimited_and_untold() -> None:
    async with client(starlette_app(Limiter(PLAN, clock=ManualClock()))) as http:
        for _ in range(5):
            answer = await http.get("/", headers={"x-test-tenant": ""})
            assert answer.status_code == 200
            assert "ratelimit" not in answer.headers


def test_a_connection_over_the_rate_is_closed_before_it_opens() -> None:
    app = TestClient(starlette_app(Limiter(Plan(Limit(1)), clock=ManualClock())))
    with app.websocket_connect("/talk", headers={"x-test-tenant": "acme"}) as socket:
        assert socket.receive_text() == "hello"
    with (
        pytest.raises(WebSocketDisconnect) as closed,
        app.websocket_connect("/talk", headers={"x-test-tenant": "acme"}),
    ):
        pass
    assert closed.value.code == 1008


def test_a_tenant_may_be_read_from_the_request_s_state() -> None:
    read = scope_value("tenant")
    assert read({"state": {"tenant": "acme"}}) == "acme"
    assert read({}) is None


def test_a_refusal_for_good_names_no_time() -> None:
    limiter = Limiter(PLAN, clock=ManualClock())
    names = [name for name, _ in headers_of(limiter.try_acquire("a", cost=3), limiter.standings("a"))]
    assert names == ["RateLimit-Policy", "RateLimit"]


def test_headers_are_structured_fields() -> None:
    """Items of RFC 8941: a quoted name, parameters that are integers of at most fifteen digits."""
    limiter = Limiter(Plan(Limit(1e-7, 1e12), Limit(3.3)), clock=ManualClock())
    limiter.try_acquire("a", key="k")
    for _, value in headers_of(limiter.try_acquire("a", key="k", cost=5), limiter.standings("a", key="k")):
        for item in value.split(", "):
            assert re.fullmatch(r'"[a-z]+"(;[a-z]=\d{1,15})+|\d+', item)


async def test_a_decorated_function_is_called_within_the_rate_and_refused_by_name_beyond() -> None:
    limiter = Limiter(Plan(Limit(3), key=Limit(2)), clock=ManualClock())

    @limited(limiter, tenant="tenant", key=lambda tenant, user: user)
    def plain(tenant: str, user: str) -> str:
        """Its doc."""
        return f"{tenant}/{user}"

    @limited(limiter, tenant="tenant", cost=lambda tenant: 2)
    async def waiting(tenant: str) -> str:
        return tenant

    assert [plain("a", user="u"), plain("a", "u")] == ["a/u", "a/u"]
    with pytest.raises(RateLimited, match=r"a is over the key's rate: come back in 0\.500 s") as refused:
        plain("a", "u")
    assert refused.value.verdict.scope == "key"
    with pytest.raises(RateLimited):
        await waiting("a")
    assert await waiting("b") == "b"
    assert (plain.__name__, plain.__doc__) == ("plain", "Its doc.")


async def test_a_decorated_coroutine_may_wait_for_its_tokens() -> None:
    from tenantry.kernel.clock import SystemClock

    async with SharedLimiter(Plan(Limit(20)), MemoryLeaseAuthority(SystemClock())) as limiter:

        @limited(limiter, tenant="tenant", timeout=10)
        async def call(tenant: str) -> float:
            return limiter.clock.monotonic()

        began = limiter.clock.monotonic()
        ends = await asyncio.gather(*(call("a") for _ in range(30)))
    assert len(ends) == 30
    assert max(ends) - began >= 10 / 20 - 0.001  # twenty at once, ten more at twenty a second


def test_a_decorator_names_a_parameter_that_is_not_there() -> None:
    with pytest.raises(InvalidValue, match="a parameter of call: who"):

        @limited(Limiter(PLAN), tenant="tenant")
        def call(who: str) -> None: ...


def test_a_function_that_cannot_wait_is_given_no_timeout() -> None:
    with pytest.raises(InvalidValue, match="timeout"):

        @limited(Limiter(PLAN), tenant="tenant", timeout=1)
        def call(tenant: str) -> None: ...


def test_admission_takes_a_limiter_for_its_gate() -> None:
    clock = ManualClock()
    gate: RateGate = LimiterGate(Limiter(Plan(routes={"submit": Limit(5)}), clock=clock))
    assert gate.try_acquire(TenantId("a"), 5) is None
    refusal = gate.try_acquire(TenantId("a"), 1)
    assert refusal is not None
    assert refusal.rule is Rule.RATE
    assert refusal.retry_after == pytest.approx(0.2)
    gate.give_back(TenantId("a"), 1)
    assert gate.try_acquire(TenantId("a"), 1) is None
