"""What tenants do over HTTP, when all is well."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from web_world import URL, World

from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.queue.admission import over_stored
from tenantry.queue.explain import Facts
from tenantry.queue.model import JobClass, JobId, JobState, NewJob
from tenantry.telemetry.http_events import RequestServed


async def test_a_job_is_accepted_with_the_place_where_its_state_can_be_read(world: World) -> None:
    reply = await world.post_job()
    assert reply.status == 202
    accepted = reply.json
    assert accepted == {"id": accepted["id"], "state": "waiting", "status_url": f"/v1/jobs/{accepted['id']}"}
    assert reply.header("location") == accepted["status_url"]
    found = await world.get(accepted["status_url"])
    assert (found.status, found.json["state"], found.json["target"]) == (200, "waiting", URL)
    assert found.json["submitted_at"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "payload",
    [
        b'{ "b" : 1.0,\n "a" : 12345678901234567890123456789 }',
        b"1e400",
        b'"\\u0000"',
        b"[ ]",
        b"null",
        b"-0.0",
    ],
)
async def test_the_target_gets_the_payload_s_bytes_exactly_as_they_were_sent(
    world: World, payload: bytes
) -> None:
    reply = await world.post("/v1/jobs", b'{"payload":%s, "target":"%s"}' % (payload, URL.encode()))
    assert reply.status == 202, reply.body
    assert world.submitted[-1].payload == payload
    assert world.submitted[-1].content_type == "application/json"


async def test_any_bytes_can_be_sent_in_base64(world: World) -> None:
    data = bytes(range(256))
    encoded = base64.b64encode(data).decode()
    assert (await world.post_job(payload=None, payload_base64=encoded)).status == 202
    assert world.submitted[-1].payload == data
    assert world.submitted[-1].content_type == "application/octet-stream"
    assert (await world.post_job(payload=None, payload_base64="", content_type="text/plain")).status == 202
    assert (world.submitted[-1].payload, world.submitted[-1].content_type) == (b"", "text/plain")


async def test_every_field_reaches_the_queue(world: World) -> None:
    fields = {"class": "background", "delay_for": 60, "cost": 2.5, "ordering_key": "k", "content_type": "a/b"}
    reply = await world.post_job(target="orders", **fields)
    assert (reply.status, reply.json["state"]) == (202, "delayed")
    job = world.submitted[-1]
    assert (job.job_class, job.delay_for, job.cost) == (JobClass.BACKGROUND, 60.0, 2.5)
    assert (job.ordering_key, job.content_type, job.target) == ("k", "a/b", "orders")


@pytest.mark.parametrize("second", ["k-1", '"k-1"'])
async def test_a_second_submit_with_the_same_key_answers_with_the_first_job(
    world: World, second: str
) -> None:
    body = {"target": URL, "payload": 1}
    first = await world.post("/v1/jobs", body, headers=[("idempotency-key", '"k-1"')])
    again = await world.post("/v1/jobs", body, headers=[("idempotency-key", second)])
    assert (first.status, again.status) == (202, 202)
    assert again.json == {**first.json, "existing": True}
    assert (await world.post_job(payload=1, idempotency_key="k-1")).json["id"] == first.json["id"]


async def test_a_repeated_submit_tells_the_state_that_the_job_is_in_now(world: World) -> None:
    first = (await world.post_job(idempotency_key="k")).json
    await world.post(f"{first['status_url']}/cancel", b"")
    assert (await world.post_job(idempotency_key="k")).json["state"] == "cancelled"


async def test_a_key_with_another_body_is_refused_for_good(world: World) -> None:
    await world.post_job(idempotency_key="k", payload=1)
    reply = await world.post_job(idempotency_key="k", payload=2)
    assert (reply.status, reply.problem) == (422, "idempotency-key-reused")
    assert reply.json["rule"] == "idempotency_key_reused"
    assert reply.header("retry-after") is None
    assert "jobs[0]" not in reply.json["detail"]


async def test_over_the_rate_the_answer_says_when_to_come_back_and_coming_back_then_works(
    world: World,
) -> None:
    assert (await world.post_job("slow")).status == 202
    world.clock.advance(0.5)
    reply = await world.post_job("slow")
    assert (reply.status, reply.problem, reply.json["rule"]) == (429, "over-rate", "rate")
    assert reply.json["retry_after"] == pytest.approx(1.5)
    assert reply.header("retry-after") == "2"
    world.clock.advance(reply.json["retry_after"])
    assert (await world.post_job("slow")).status == 202


async def test_at_the_bound_the_answer_says_when_to_come_back(world: World) -> None:
    for _ in range(5):
        assert (await world.post_job("tiny")).status == 202
    reply = await world.post_job("tiny")
    assert (reply.status, reply.problem, reply.json["rule"]) == (429, "over-bound", "bound")
    assert int(reply.header("retry-after") or 0) >= reply.json["retry_after"] > 0


async def test_a_batch_is_accepted_whole_in_the_order_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    for name in ("job", "states"):
        monkeypatch.setattr(world.store, name, _counted(name, getattr(world.store, name), counted))
    rows = [{"target": URL, "payload": n, "idempotency_key": f"k{n}"} for n in range(300)]
    reply = await world.post("/v1/batches", {"jobs": rows})
    assert reply.status == 202
    assert [job.payload for job in world.submitted] == [str(n).encode() for n in range(300)]
    counted.clear()
    again = await world.post("/v1/batches", {"jobs": rows})
    assert counted == ["states"], "one look at the store, however many are known"
    assert [entry["id"] for entry in again.json["jobs"]] == [entry["id"] for entry in reply.json["jobs"]]
    assert all(entry["existing"] for entry in again.json["jobs"])


async def test_a_batch_larger_than_the_bound_is_refused_whole_and_sent_to_the_bulk_path(world: World) -> None:
    rows = [{"target": URL, "payload": n} for n in range(6)]
    reply = await world.post("/v1/batches", {"jobs": rows}, tenant="tiny")
    assert (reply.status, reply.problem, reply.json["bulk_url"]) == (413, "batch-over-bound", "/v1/bulk")
    assert reply.header("retry-after") is None
    assert (await world.get("/v1/jobs", tenant="tiny")).json == {"jobs": []}


async def test_a_batch_that_does_not_fit_now_is_refused_whole_and_may_come_back(world: World) -> None:
    await world.post_job("tiny")
    rows = [{"target": URL, "payload": n} for n in range(5)]
    reply = await world.post("/v1/batches", {"jobs": rows}, tenant="tiny")
    assert (reply.status, reply.problem, reply.json["bulk_url"]) == (429, "over-bound", "/v1/bulk")
    assert reply.header("retry-after")
    assert len((await world.get("/v1/jobs", tenant="tiny")).json["jobs"]) == 1


@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson"])
async def test_a_set_larger_than_the_bound_is_stored_once_and_can_be_followed(
    world: World, form: str
) -> None:
    rows = [{"target": URL, "payload": n} for n in range(50)]
    lines = "\r\n\n".join(json.dumps(row) for row in rows).encode()
    body = json.dumps({"jobs": rows}).encode() if form == "application/json" else lines
    reply = await world.post("/v1/bulk", body, tenant="tiny", headers=[("content-type", form)])
    assert reply.status == 202, reply.body
    assert reply.header("location") == reply.json["status_url"]
    found = (await world.get(reply.json["status_url"], tenant="tiny")).json
    assert (found["total"], found["stored"], found["queued"]) == (50, 50, 0)
    assert [job.payload for job in world.submitted] == [str(n).encode() for n in range(50)]


async def test_ndjson_is_read_in_whatever_pieces_it_arrives(world: World) -> None:
    body = b'{"target":"orders","payload":1}\n{"target":"orders","payload":2}'
    chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    headers = [
        *world.credential("acme"),
        ("content-type", "application/x-ndjson"),
        ("transfer-encoding", "chunked"),
    ]
    reply = await world.ask("POST", "/v1/bulk", headers, chunked)
    assert (reply.status, reply.json["total"]) == (202, 2)


async def test_jobs_are_listed_newest_first_by_state(world: World) -> None:
    ids = [(await world.post_job(delay_for=delay)).json["id"] for delay in (0, 5, 0)]
    listed = (await world.get("/v1/jobs")).json["jobs"]
    assert [job["id"] for job in listed] == ids[::-1]
    assert [job["id"] for job in (await world.get("/v1/jobs?state=delayed")).json["jobs"]] == [ids[1]]
    assert [job["id"] for job in (await world.get("/v1/jobs?limit=1")).json["jobs"]] == [ids[2]]


async def test_a_waiting_job_explains_what_it_waits_for(world: World) -> None:
    accepted = (await world.post_job(delay_for=60)).json
    reply = await world.get(f"{accepted['status_url']}/explanation")
    assert (reply.status, reply.json["state"]) == (200, "delayed")
    assert [reason["waits_for"] for reason in reply.json["reasons"]] == ["delay"]
    assert reply.json["reasons"][0]["until"] == "2026-01-01T00:01:00Z"


async def test_an_explanation_names_the_lanes_limit_and_the_tenants_share(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await world.post_job(target="orders")).json
    await world.post_job("globex")
    read = world.store.facts

    async def busy(tenant: TenantId, job: JobId, *, pool: str) -> Facts | None:
        facts = await read(tenant, job, pool=pool)
        slots = {"pool_slots": 4, "pool_slots_of_kind": 4, "pool_in_flight": 4}
        return facts and replace(facts, lane_in_flight=3, planner_live=True, **slots)

    monkeypatch.setattr(world.store, "facts", busy)
    reasons = (await world.get(f"{first['status_url']}/explanation")).json["reasons"]
    assert [reason["waits_for"] for reason in reasons] == ["lane_limit", "share"]
    assert "3 of the 3" in reasons[0]["detail"]
    assert "2 tenants wait; this one's share is 50 %" in reasons[1]["detail"]


async def test_a_set_beyond_what_a_tenant_may_have_stored_is_429(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(tenant: TenantId, jobs: Sequence[NewJob]) -> Refusal:
        return over_stored(most=2, stored=2, wanted=len(jobs))

    monkeypatch.setattr(world.admission, "submit_bulk", full)
    reply = await world.post("/v1/bulk", {"jobs": [{"target": URL, "payload": 1}]})
    assert (reply.status, reply.problem) == (429, "over-bound")
    assert reply.header("retry-after") == "5"


async def test_cancelling_twice_is_the_same_as_once(world: World) -> None:
    accepted = (await world.post_job()).json
    for _ in range(2):
        reply = await world.post(f"{accepted['status_url']}/cancel", b"")
        assert (reply.status, reply.json) == (200, {"id": accepted["id"], "state": "cancelled"})


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.DELIVERED, JobState.DEAD])
async def test_a_job_that_runs_or_has_ended_is_not_cancelled(
    world: World, state: JobState, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*_: object) -> JobState:
        return state

    monkeypatch.setattr(world.store, "cancel", found)
    accepted = (await world.post_job()).json
    reply = await world.post(f"{accepted['status_url']}/cancel", b"")
    assert (reply.status, reply.problem, reply.json["state"]) == (409, "not-cancellable", state.value)


async def test_another_tenant_s_jobs_are_not_there(world: World) -> None:
    accepted = (await world.post_job()).json
    url = accepted["status_url"]
    replies = [
        await world.get(url, tenant="globex"),
        await world.get(f"{url}/explanation", tenant="globex"),
        await world.post(f"{url}/cancel", b"", tenant="globex"),
    ]
    assert {(reply.status, reply.problem) for reply in replies} == {(404, "not-found")}
    assert (await world.get("/v1/jobs", tenant="globex")).json == {"jobs": []}
    view = await world.store.job(world.submitted and (await _tenant(world)), JobId(accepted["id"]))
    assert view is not None
    assert view.state is JobState.WAITING


async def _tenant(world: World):  # type: ignore[no-untyped-def]
    return next(document.tenant for document in world.directory.tenants() if document.tenant == "acme")


async def test_each_request_is_told_once_by_its_route_and_not_by_its_path(world: World) -> None:
    accepted = (await world.post_job()).json
    await world.get(accepted["status_url"] + "?nothing=1")
    served = world.told(RequestServed)
    assert [(event.method, event.route, event.status, event.problem) for event in served] == [
        ("POST", "/v1/jobs", 202, ""),
        ("GET", "/v1/jobs/{id}", 400, "invalid-parameter"),
    ]
    assert {event.tenant for event in served} == {"acme"}


def _counted(name: str, asked: Any, into: list[str]) -> Any:
    async def ask(*words: Any, **named: Any) -> Any:
        into.append(name)
        return await asked(*words, **named)

    return ask
