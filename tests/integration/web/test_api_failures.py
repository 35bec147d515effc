"""What clients see when something behind the API fails, and what they never see."""

import asyncio
import json

import pytest
from web_world import World

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.telemetry.http_events import RequestFailed, RequestServed
from tenantry.telemetry.prometheus import Metrics
from tenantry.web.api import openapi_document
from tenantry.web.health import ReadinessCheck
from tenantry.web.operator import create_operator_app
from tenantry.web.server import HttpServer
from tenantry.web.services import OperatorServices


async def test_an_unreachable_store_is_503_with_the_time_to_come_back(world: World) -> None:
    world.store_is_away = True
    reply = await world.post_job()
    assert (reply.status, reply.problem) == (503, "store-unavailable")
    assert 1 <= reply.json["retry_after"] <= int(reply.header("retry-after") or 0) <= 3
    assert "10.0.0.7" not in reply.body.decode()
    assert "tk_secret" not in reply.body.decode()


@pytest.mark.parametrize(("retry_after", "header"), [(0.0, "0"), (0.001, "1"), (1.0, "1"), (1.01, "2")])
async def test_retry_after_is_rounded_up(world: World, retry_after: float, header: str) -> None:
    world.refusal = Refusal(Rule.RATE, "over the rate", retry_after)
    assert (await world.post_job()).header("retry-after") == header


@pytest.mark.parametrize("bug", [InvariantBroken("tk_secret"), ValueError("tk_secret"), RecursionError()])
async def test_a_fault_of_ours_is_500_with_an_id_that_the_operator_finds(
    world: World, bug: Exception
) -> None:
    world.bug = bug
    reply = await world.post_job()
    assert (reply.status, reply.problem) == (500, "internal-fault")
    [failed] = world.told(RequestFailed)
    assert failed.fault == reply.json["instance"]
    assert (failed.error, failed.route) == (type(bug).__name__, "/v1/jobs")
    assert "web_world.py" in failed.trace
    assert "tk_secret" not in reply.body.decode() + failed.trace
    world.bug = None
    assert (await world.post_job()).status == 202


async def test_liveness_needs_no_store_and_readiness_does(world: World) -> None:
    world.store_is_away = True
    live, ready = await world.ask("GET", "/v1/health"), await world.ask("GET", "/v1/health/ready")
    assert (live.status, live.json) == (200, {"status": "live"})
    assert (ready.status, ready.problem, ready.header("retry-after")) == (503, "store-unavailable", "1")
    world.store_is_away = False
    assert (await world.ask("GET", "/v1/health/ready")).status == 503  # the answer is kept for a second
    world.clock.advance(1)
    back = await world.ask("GET", "/v1/health/ready")
    assert (back.status, back.json) == (200, {"status": "ready"})


async def test_a_client_that_leaves_in_mid_body_costs_nothing(world: World) -> None:
    host, port = world.server.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    key = world.key()
    writer.write(
        f"POST /v1/jobs HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n"
        "content-type: application/json\r\ncontent-length: 100\r\n\r\n{".encode()
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    while not world.told(RequestServed):  # the server notices by itself
        await world.ask("GET", "/v1/health")
        if any(event.status == 499 for event in world.told(RequestServed)):
            break
    assert world.submitted == []
    assert world.told(RequestFailed) == []


async def test_the_operator_s_metrics_are_on_an_application_of_their_own(world: World) -> None:
    metrics = Metrics()
    for event in (await world.get("/v1/jobs"), *world.events)[1:]:
        metrics(event)
    ready = ReadinessCheck(world.services)
    app = create_operator_app(OperatorServices(metrics.exposition, ready, world.events.append, world.clock))
    async with HttpServer(app) as server:
        world.server, tenants = server, world.server
        scraped = await world.ask("GET", "/metrics")
        healthy = [await world.ask("GET", path) for path in ("/health", "/health/ready")]
        missing = await world.get("/v1/jobs")
        world.server = tenants
    assert scraped.status == 200
    assert b'tenantry_http_requests_total{method="GET",route="/v1/jobs",status="200"} 1.0' in scraped.body
    assert [reply.status for reply in healthy] == [200, 200]
    assert (missing.status, missing.problem) == (404, "not-found")


async def test_the_document_is_served_without_a_key(world: World) -> None:
    reply = await world.ask("GET", "/v1/openapi.json")
    assert (reply.status, reply.body) == (200, openapi_document())
    assert json.loads(reply.body)["openapi"] == "3.1.0"
