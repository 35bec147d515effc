"""Operators over HTTP: the table of lanes, orders and their log, on a real server over a store in memory."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from operator_world import Operators
from schema_run import run_against

from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.queue.model import NewJob
from tenantry.telemetry.http_events import CredentialRefused, RequestFailed
from tenantry.web.operator import operator_document

X, Y = "handler:x", "handler:y"


@pytest.fixture
async def world() -> AsyncIterator[Operators]:
    made = Operators()
    async with made.server:
        yield made


async def submit(world: Operators, tenant: str, target: str, count: int = 1) -> None:
    jobs = [NewJob(Target(target), b"1")] * count
    await world.store.submit(TenantId(tenant), jobs, bound=None)


async def test_an_order_is_answered_as_it_is_kept_with_the_name_of_the_key(world: Operators) -> None:
    given = await world.order("pause", tenant="acme", target=X)
    assert given.status == 201
    assert given.json == {
        "number": 1,
        "action": "pause",
        "tenant": "acme",
        "target": X,
        "ceiling": None,
        "reason": "maintenance",
        "by": "ada",
        "at": given.json["at"],
    }
    assert await world.look("/v1/orders") == {"orders": [given.json], "next_url": None}


async def test_a_paused_target_is_seen_in_the_table_and_told_to_the_tenants_who_wait(
    world: Operators,
) -> None:
    await submit(world, "acme", X)
    await submit(world, "globex", Y)
    await world.order("pause", target=X)
    lanes = (await world.look("/v1/lanes"))["lanes"]
    assert [(each["tenant"], each["state"], each["waiting"]) for each in lanes] == [
        ("acme", "paused", 1),
        ("globex", "open", 1),
    ]
    assert lanes[0]["reason"].startswith("paused by ada since ")
    assert lanes[0]["reason"].endswith(": maintenance")
    (job,) = await world.store.jobs(TenantId("acme"), state=None, limit=1)
    explained = await world.explanation("acme", job.id)
    assert explained["reasons"][0]["waits_for"] == "lane_paused"
    assert "by ada since" in explained["reasons"][0]["detail"]


async def test_a_ceiling_is_shown_as_the_limit_until_it_is_lifted(world: Operators) -> None:
    await submit(world, "acme", "orders")
    assert (await world.order("ceiling", target="orders", ceiling=2)).status == 201
    (lane,) = (await world.look("/v1/lanes"))["lanes"]
    assert (lane["limit"], lane["ceiling"]) == (2, 2)
    await world.order("lift", target="orders")
    (lane,) = (await world.look("/v1/lanes"))["lanes"]
    assert (lane["limit"], lane["ceiling"]) == (3, None), "the document's limit is 3"


async def test_the_table_goes_on_where_its_next_url_says_and_ends(world: Operators) -> None:
    for tenant, target in (("acme", X), ("acme", Y), ("globex", X), ("globex", Y), ("tiny", X)):
        await submit(world, tenant, target)
    url, seen = "/v1/lanes?limit=2", []
    while url is not None:
        page = await world.look(url)
        seen += [(each["tenant"], each["target"]) for each in page["lanes"]]
        url = page["next_url"]
    assert seen == [("acme", X), ("acme", Y), ("globex", X), ("globex", Y), ("tiny", X)]
    narrowed = await world.look(f"/v1/lanes?target={Y}&limit=1")
    assert f"target={Y}".replace(":", "%3A") in narrowed["next_url"]


async def test_the_busiest_lanes_come_first_when_asked_and_have_no_next(world: Operators) -> None:
    await submit(world, "acme", X)
    await submit(world, "globex", X, 3)
    page = await world.look("/v1/lanes?sort=backlog&limit=1")
    assert [each["tenant"] for each in page["lanes"]] == ["globex"]
    assert page["next_url"] is None


async def test_the_log_is_read_page_by_page(world: Operators) -> None:
    for _ in range(3):
        await world.order("pause", tenant="acme")
        await world.order("resume", tenant="acme")
    url, seen = "/v1/orders/log?limit=4", []
    while url is not None:
        page = await world.look(url)
        seen += [each["number"] for each in page["orders"]]
        url = page["next_url"]
    assert seen == [6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("order", "path", "told"),
    [
        ({"action": "halt", "tenant": "acme"}, "action", "pause, resume, ceiling, lift, reset"),
        ({"action": "pause"}, "scope", "a tenant, a target, or both"),
        ({"action": "pause", "tenant": "acmee"}, "tenant", "Did you mean 'acme'?"),
        ({"action": "pause", "tenant": "no tenant"}, "tenant", "1 to 63 letters"),
        ({"action": "pause", "target": ""}, "target", "text of 1 to 2,048 bytes"),
        ({"action": "pause", "tenant": "acme", "reason": ""}, "reason", "Say why"),
        ({"action": "pause", "tenant": "acme", "reason": "a\nb"}, "reason", "one line"),
        ({"action": "pause", "tenant": "acme", "ceiling": 3}, "ceiling", "nothing with the action pause"),
        ({"action": "ceiling", "tenant": "acme"}, "ceiling", "from 1 to 1,000,000"),
        ({"action": "ceiling", "tenant": "acme", "ceiling": 0}, "ceiling", "pause instead"),
        ({"action": "pause", "tenant": "acme", "by": "eve"}, "by", "one of action, ceiling, reason"),
        ({"action": "pause", "tenant": 7}, "tenant", "text or null"),
    ],
)
async def test_an_order_that_cannot_be_says_where_and_what_is_accepted(
    world: Operators, order: dict[str, Any], path: str, told: str
) -> None:
    reply = await world.post("/v1/orders", {"reason": "why", **order}, tenant="ada")
    assert (reply.status, reply.problem) == (422, "invalid-value")
    assert reply.json["errors"][0]["path"] == path
    assert told in reply.body.decode()
    assert (await world.look("/v1/orders/log"))["orders"] == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("lanes?limit=0", "from 1 to 1,000"),
        ("lanes?sort=size", "name, backlog, in_flight"),
        ("lanes?state=closed", "open, paused, held"),
        ("lanes?tenant=no%20tenant", "1 to 63 letters"),
        ("lanes?after_tenant=acme", "both after_tenant and after_target"),
        ("lanes?sort=backlog&after_tenant=acme&after_target=x", "after"),
        ("lanes?colour=red", "Unknown query parameter 'colour'"),
        ("orders?before=3", "Unknown query parameter 'before'"),
        ("orders/log?before=0", "from 1 to"),
        ("orders/log?limit=x", "from 1 to 1,000"),
    ],
)
async def test_a_query_that_cannot_be_says_what_is_accepted(world: Operators, query: str, told: str) -> None:
    reply = await world.get(f"/v1/{query}", tenant="ada")
    assert (reply.status, reply.problem) == (400, "invalid-parameter")
    assert told in reply.json["detail"]


async def test_a_key_that_stands_twice_in_an_order_is_refused(world: Operators) -> None:
    body = b'{"action": "pause", "reason": "why", "tenant": "acme", "tenant": "globex"}'
    assert (await world.post("/v1/orders", body, tenant="ada")).problem == "malformed-request"


@pytest.mark.parametrize("path", ["/v1/lanes", "/v1/orders", "/v1/orders/log"])
async def test_only_an_operators_key_opens_and_a_tenants_never(world: Operators, path: str) -> None:
    assert (await world.get(path, tenant="ada")).status == 200
    refused = [await world.get(path, tenant="acme"), await world.ask("GET", path)]
    world.operator_keys.revoke(world.ada.key_id)
    refused.append(await world.get(path, tenant="ada"))
    assert [(reply.status, reply.problem) for reply in refused] == [(401, "unauthenticated")] * 3
    assert [event.reason for event in world.told(CredentialRefused)] == ["unknown", "missing", "revoked"]


async def test_a_refused_key_orders_nothing(world: Operators) -> None:
    body = {"action": "pause", "reason": "why", "tenant": "globex"}
    assert (await world.post("/v1/orders", body, tenant="acme")).status == 401
    assert (await world.look("/v1/orders/log"))["orders"] == []


async def test_an_operators_key_opens_no_tenants_resource(world: Operators) -> None:
    assert (await world.tenants_reply(world.credential("ada"))).status == 401


async def test_the_document_is_served_without_a_key_and_describes_every_operation(world: Operators) -> None:
    reply = await world.ask("GET", "/v1/openapi.json")
    assert (reply.status, reply.body) == (200, operator_document())
    paths = json.loads(reply.body)["paths"]
    assert set(paths) == {"/v1/lanes", "/v1/orders", "/v1/orders/log", "/health", "/health/ready",
                          "/v1/openapi.json"}  # fmt: skip


async def test_schemathesis_finds_no_answer_that_the_document_does_not_allow(
    world: Operators, tmp_path: Path
) -> None:
    pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install --group dev")
    code, told = await run_against(world.server.url, world.ada.text, tmp_path)
    assert code == 0, told.decode()[-5_000:]
    assert b" passed" in told
    assert world.told(RequestFailed) == []
