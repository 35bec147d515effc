"""Replays over the API: planned, ordered, followed; and what was parked."""

import asyncio
import json
from typing import Any

import pytest
from web_world import Reply, World

from tenantry.queue.model import JobId
from tenantry.replay.model import (
    Hold,
    HoldRule,
    Lease,
    Message,
    MessageKey,
    Quotas,
    ReplayState,
    Staged,
    Window,
)

OWN = {"source": {"kind": "dead_letters"}}
NOBODY = "01900000-0000-7000-8000-000000000000"


async def planned(world: World, tenant: str = "acme", **fields: Any) -> str:
    reply = await world.post("/v1/replays", {**OWN, **fields}, tenant=tenant)
    assert reply.status == 201, reply.body
    return str(reply.json["replay"])


async def order(world: World, replay: str, word: str, tenant: str = "acme") -> Reply:
    return await world.ask("POST", f"/v1/replays/{replay}/{word}", world.credential(tenant))


async def led(world: World, replay: str) -> Lease:
    """A coordinator has taken it."""
    taken = await world.replay_store.take("node", 60.0, limit=10)
    return next(Lease(each.id, each.token) for each in taken if each.id == replay)


async def parked(world: World) -> tuple[str, str]:
    """A running replay, and a message that it has parked."""
    replay = await planned(world)
    await order(world, replay, "start")
    return replay, await aside(world, await led(world, replay))


async def aside(world: World, lease: Lease, name: str = "m1") -> str:
    """One message more of the replay is parked."""
    job, target = JobId(world.randomness.time_ordered_id()), world.pile[0].target
    assert target is not None
    staged = Staged(
        key=MessageKey(name.ljust(20).encode()),
        job=job,
        message=Message(id=name, payload=b"no json", target=target),
        target=target,
        payload=b"no json",
        headers={"region": "eu"},
        broken="it is no JSON",
        park_rule="broken",
    )
    window = Window(
        messages=(staged,), position=None, left=0, exhausted=False, quotas=Quotas(), lifetime_for=600.0
    )
    assert await world.replay_store.feed(lease, window) is not None
    return job


async def test_a_plan_says_what_a_replay_would_meet_and_takes_nothing(world: World) -> None:
    reply = await world.post("/v1/replays", {**OWN, "filters": {"error_classes": ["timeout"]}})
    assert reply.status == 201
    assert reply.header("location") == reply.json["status_url"] == f"/v1/replays/{reply.json['replay']}"
    report = reply.json["report"]
    assert (report["count"], report["meant"]["count"], report["whole"]) == (30, 20, True)
    assert [group["name"] for group in report["by_class"]] == ["timeout"]
    assert reply.json["progress"]["phase"] == "planning"


async def test_orders_answer_with_the_replay_as_it_is_then(world: World) -> None:
    replay = await planned(world)
    for word, state in (
        ("start", "running"),
        ("start", "running"),
        ("pause", "paused"),
        ("resume", "running"),
        ("cancel", "cancelling"),
    ):
        reply = await order(world, replay, word)
        assert (reply.status, reply.json["state"]) == (200, state), word
    assert (await world.get(f"/v1/replays/{replay}")).json["state"] == "cancelling"


async def test_an_order_that_the_state_does_not_allow_is_a_conflict_that_names_it(world: World) -> None:
    reply = await order(world, await planned(world), "resume")
    assert (reply.status, reply.problem, reply.json["state"]) == (409, "not-now", "planned")
    assert "paused" in reply.json["detail"]


async def test_another_tenants_replay_is_not_there(world: World) -> None:
    replay, message = await parked(world)
    for path in (f"/v1/replays/{replay}", f"/v1/replays/{replay}/events", f"/v1/parked/{message}"):
        reply = await world.get(path, tenant="globex")
        assert (reply.status, reply.problem) == (404, "not-found"), path
    for word in ("start", "pause", "resume", "continue", "cancel"):
        assert (await order(world, replay, word, "globex")).status == 404, word
    assert (await world.get("/v1/replays", tenant="globex")).json == {"replays": []}
    assert (await world.get("/v1/parked", tenant="globex")).json["parked"] == []
    assert (await world.post(f"/v1/parked/{message}/send-back", {}, tenant="globex")).status == 404


@pytest.mark.parametrize("replay", ["x", NOBODY, "..", "%00"])
async def test_what_is_no_replay_is_not_found(world: World, replay: str) -> None:
    assert (await world.get(f"/v1/replays/{replay}")).status == 404


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({}, "source.kind"),
        ({"source": {"kind": "rabbit"}}, "source.kind"),
        ({"source": {"kind": "rabbitmq", "connection": "theirs", "place": "q"}}, "source"),
        ({**OWN, "sampel": 0.1}, "sampel"),
        ({**OWN, "sample": 2}, "sample"),
        ({**OWN, "tenant": "globex"}, "tenant"),
        ({**OWN, "park_after": 0}, "park_after"),
        ({**OWN, "filters": {"json": [{"path": "$.[", "equals": 1}]}}, "filters.json[0].path"),
        ({**OWN, "edits": [{"kind": "set", "at": "$.a"}]}, "edits[0].value"),
        ({**OWN, "budget": {"messages": 0}}, "budget.messages"),
    ],
    ids=["nothing", "kind", "not open", "unknown", "sample", "tenant", "park", "path", "edit", "budget"],
)  # fmt: skip
async def test_a_bad_spec_is_refused_with_the_place(world: World, spec: object, path: str) -> None:
    reply = await world.post("/v1/replays", spec)
    assert (reply.status, reply.problem) == (422, "invalid-value"), reply.body
    assert path in [error["path"] for error in reply.json["errors"]]


async def test_every_fault_of_a_spec_is_told_at_once(world: World) -> None:
    reply = await world.post("/v1/replays", {**OWN, "sample": 2, "park_after": 0, "note": 3})
    assert {error["path"] for error in reply.json["errors"]} == {"sample", "park_after", "note"}


@pytest.mark.parametrize("body", [b"{", b"[]", b'"x"', b"\xff", b"null"])
async def test_what_is_no_object_is_refused(world: World, body: bytes) -> None:
    assert (await world.post("/v1/replays", body)).status == 422


async def test_a_source_that_is_away_is_not_our_store(world: World) -> None:
    world.source_is_away = True
    reply = await world.post("/v1/replays", OWN)
    assert (reply.status, reply.problem) == (503, "source-unavailable")
    assert "the broker does not answer" in reply.json["detail"]


async def test_a_budget_is_replaced_and_its_faults_are_told(world: World) -> None:
    replay = await planned(world)
    path, credential = f"/v1/replays/{replay}/budget", world.credential("acme")
    typed = [*credential, ("content-type", "application/json")]
    assert (await world.ask("PUT", path, typed, b'{"messages": 10}')).status == 200
    reply = await world.ask("PUT", path, typed, b'{"messages": "ten", "mesages": 3}')
    assert {error["path"] for error in reply.json["errors"]} == {"messages", "mesages"}


async def test_progress_comes_as_events_until_the_end(world: World) -> None:
    replay = await planned(world)
    await order(world, replay, "start")
    following = asyncio.create_task(world.get(f"/v1/replays/{replay}/events"))
    lease = await led(world, replay)
    hold = Hold(HoldRule.SAMPLE, "the sample was run")
    await world.replay_store.move(lease, ReplayState.HELD, hold=hold, running_for=1.0, progress="")
    await order(world, replay, "cancel")
    await world.replay_store.move(lease, ReplayState.CANCELLED, running_for=1.0, progress="")
    reply = await following
    assert (reply.status, reply.header("content-type")) == (200, "text/event-stream")
    assert reply.header("content-length") is None
    told = [part for part in _events(reply) if part[0] == "progress"]
    assert told[0][1]["replay"] == replay
    assert told[-1][1]["state"] == "cancelled"
    assert _events(reply)[-1] == ("end", {})


async def test_a_reader_who_leaves_ends_the_stream(world: World) -> None:
    replay = await planned(world)
    await order(world, replay, "start")
    host, port = world.server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET /v1/replays/{replay}/events HTTP/1.1", "host: t", f"authorization: Bearer {world.key()}"]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    await reader.readuntil(b"event: progress")
    writer.close()
    await asyncio.wait_for(world.server.stop(), 8)  # it waits for streams that somebody reads


async def test_parked_messages_are_seen_edited_sent_back_and_dropped(world: World) -> None:
    replay = await planned(world)
    await order(world, replay, "start")
    lease = await led(world, replay)
    message = await aside(world, lease)
    page = (await world.get(f"/v1/parked?replay={replay}")).json
    assert [each["id"] for each in page["parked"]] == [message]
    one = (await world.get(f"/v1/parked/{message}")).json
    assert (one["rule"], one["payload"], one["headers"]) == ("broken", "no json", {"region": "eu"})
    sent = await world.post(f"/v1/parked/{message}/send-back", {"payload": {"n": 1}, "headers": {"a": "b"}})
    assert sent.json == {"id": message, "done": "sent back"}
    assert (await world.get(f"/v1/replays/{replay}")).json["counts"]["waiting"] == 1
    again = await world.post(f"/v1/parked/{message}/send-back", {})
    assert (again.status, again.problem) == (404, "not-found")
    other = await aside(world, lease, "m2")
    dropped = await world.ask("POST", f"/v1/parked/{other}/drop", world.credential("acme"))
    assert dropped.json == {"id": other, "done": "dropped"}
    assert (await world.get("/v1/parked")).json["parked"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"payload": 1, "payload_base64": ""}',
        b'{"payload_base64": "!"}',
        b'{"x": 1}',
        b'{"headers": {"a": "\\u0000"}}',
        b'{"headers": {"a": "x\\r\\ny: z"}}',
        b'{"headers": {"a b": "x"}}',
        b'{"headers": {"": "x"}}',
        b'{"headers": {"a": "' + b"x" * 40_000 + b'"}}',
    ],
)
async def test_a_message_is_not_sent_back_as_nonsense(world: World, body: bytes) -> None:
    _, message = await parked(world)
    reply = await world.post(f"/v1/parked/{message}/send-back", body)
    assert (reply.status, reply.problem) == (422, "invalid-value"), reply.body
    assert (await world.get(f"/v1/parked/{message}")).status == 200


async def test_the_list_is_of_the_states_that_were_asked_for(world: World) -> None:
    first, second = await planned(world), await planned(world)
    await order(world, second, "start")
    assert [each["replay"] for each in (await world.get("/v1/replays")).json["replays"]] == [second, first]
    running = await world.get("/v1/replays?state=running&limit=5")
    assert [each["replay"] for each in running.json["replays"]] == [second]
    assert (await world.get("/v1/replays?state=runing")).problem == "invalid-parameter"
    assert (await world.get("/v1/replays?limit=0")).problem == "invalid-parameter"


def _events(reply: Reply) -> list[tuple[str, Any]]:
    found = []
    for block in reply.body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found
