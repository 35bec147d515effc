# ruff: noqa: E501 - a table is read by its rows
"""Each bad input has one exact answer, and nothing of it is accepted."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from web_world import URL, Reply, World

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[World]:
    """One API for the whole table: no row of it leaves anything behind."""
    made = World()
    async with made.server:
        yield made


def job(**fields: Any) -> bytes:
    return json.dumps({"target": URL, "payload": 1, **fields}).encode()


def batch(row: object) -> bytes:
    good = {"target": URL, "payload": 1}
    return json.dumps({"jobs": [good, good, good, row]}).encode()


@dataclass(frozen=True)
class Bad:
    """One row: what is sent, and the status, problem and words of the answer."""

    name: str
    body: bytes
    status: int
    problem: str
    where: str = ""
    says: str = ""
    path: str = "/v1/jobs"
    headers: tuple[tuple[str, str], ...] = ()
    members: dict[str, Any] = field(default_factory=dict)


INVALID, MALFORMED = (422, "invalid-value"), (400, "malformed-request")
NDJSON = (("content-type", "application/x-ndjson"),)
DEEP = b"[" * 100_000

TABLE = [
    # text that is not JSON
    Bad("an empty body", b"", *MALFORMED, says="empty"),
    Bad("a body of spaces", b" \n", *MALFORMED, says="empty"),
    Bad("a missing value", b'{\n"target": }', *MALFORMED, says="line 2, column 11", members={"line": 2, "column": 11}),
    Bad("a body cut short", b'{"target":"a"', *MALFORMED, says="line 1, column 14", members={"column": 14}),
    Bad("more after the value", job() + b"x", *MALFORMED, says="trailing"),
    Bad("NaN", b'{"target":"a","cost":NaN}', *MALFORMED, says="column 22"),
    Bad("bytes that are not UTF-8", b'{"target":"\xff"}', *MALFORMED, says="not UTF-8 at byte 12"),
    Bad("bytes that are not UTF-8 inside the payload", b'{"target":"orders","payload":"\xff"}', *MALFORMED, says="UTF-8"),
    Bad("a byte order mark", b"\xef\xbb\xbf" + job(), *MALFORMED, says="column 1"),
    Bad("UTF-16", job().decode().encode("utf-16"), *MALFORMED, says="UTF-8"),
    Bad("half a surrogate pair", b'{"target":"\\ud800","payload":1}', *MALFORMED, says="surrogate"),
    Bad("half a surrogate pair inside the payload", b'{"target":"orders","payload":"\\ud800"}', *MALFORMED, says="surrogate"),
    Bad("half a pair and no end", b'{"target":"\\ud800', *MALFORMED, says="line 1"),
    Bad("a nesting bomb in the payload", b'{"target":"a","payload":' + DEEP, *MALFORMED, says="nested too deeply"),
    Bad("a closed nesting bomb", b'{"payload":' + DEEP + b"]" * 100_000 + b"}", *MALFORMED, says="nested too deeply"),
    Bad("a nesting bomb", DEEP, *INVALID, says="an object"),
    Bad("objects nested beyond reason", b'{"payload":' + b'{"a":' * 100_000, *MALFORMED, says="nested too deeply"),
    Bad("a key that stands twice", b'{"target":"orders","target":"globex","payload":1}', *MALFORMED, says="target stands twice"),
    Bad("a key twice, once in escapes", b'{"cost":1,"co\\u0073t":2,"target":"orders","payload":1}', *MALFORMED, says="cost stands twice"),
    Bad("a payload twice", b'{"target":"orders","payload":{"payload":1},"payload":2}', *MALFORMED, says="payload stands twice"),
    # the wrong shape
    Bad("an array", b"[]", *INVALID, says="an array is not accepted; expected an object"),
    Bad("null", b"null", *INVALID, says="null"),
    Bad("text", b'"job"', *INVALID, says="text"),
    Bad("an unknown field", job(delay_four=1), *INVALID, "delay_four", "Did you mean 'delay_for'?"),
    Bad("an unknown field like none", job(zzzzzz=1), *INVALID, "zzzzzz", "unknown key 'zzzzzz'"),
    Bad("Python's name of the class", job(job_class="live"), *INVALID, "job_class", "unknown key"),
    Bad("no target", b'{"payload":1}', *INVALID, "target", "required"),
    Bad("no payload", b'{"target":"orders"}', *INVALID, "payload", "one of payload and payload_base64"),
    Bad("both payloads", job(payload_base64="AA=="), *INVALID, "payload", "one of payload and payload_base64"),
    # the wrong values
    Bad("a number as target", job(target=1), *INVALID, "target", "a number is not accepted; expected text"),
    Bad("an empty target", job(target=""), *INVALID, "target"),
    Bad("a target with NUL", job(target="https://a.example/\x00"), *INVALID, "target", "NUL"),
    Bad("a target that nobody declared", job(target="oders"), *INVALID, "target", "Did you mean 'orders'?"),
    Bad("a target of another scheme", job(target="ftp://a.example"), *INVALID, "target"),
    Bad("a URL with a password", job(target="https://u:pw@a.example"), *INVALID, "target", "password"),
    Bad("a negative cost", job(cost=-1), *INVALID, "cost", "above 0"),
    Bad("a cost of nothing", job(cost=0), *INVALID, "cost", "above 0"),
    Bad("a cost as text", job(cost="1"), *INVALID, "cost", "text is not accepted; expected a number or null"),
    Bad("a cost beyond all numbers", b'{"target":"orders","payload":1,"cost":1e400}', *INVALID, "cost", "out of range"),
    Bad("a cost of true", job(cost=True), *INVALID, "cost", "a number"),
    Bad("a negative delay", job(delay_for=-0.001), *INVALID, "delay_for"),
    Bad("a delay until the year 9999", job(delay_for=251_000_000_000), *INVALID, "delay_for", "31,622,400"),
    Bad("a date as delay", job(delay_for="9999-12-31T00:00:00Z"), *INVALID, "delay_for", "a number"),
    Bad("a delay of null", job(delay_for=None), *INVALID, "delay_for", "a number"),
    Bad("a class that does not exist", job(**{"class": "life"}), *INVALID, "class", "Did you mean 'live'?"),
    Bad("a class as number", job(**{"class": 0}), *INVALID, "class", "text"),
    Bad("an ordering key with NUL", job(ordering_key="a\x00b"), *INVALID, "ordering_key", "NUL"),
    Bad("an ordering key too long", job(ordering_key="é" * 128), *INVALID, "ordering_key", "255 bytes"),
    Bad("an empty idempotency key", job(idempotency_key=""), *INVALID, "idempotency_key"),
    Bad("a content type that splits headers", job(content_type="a/b\r\nx: y"), *INVALID, "content_type"),
    Bad("base64 with a wrong character", job(payload=None, payload_base64="A!=="), *INVALID, "payload"),
    Bad("wrong base64", b'{"target":"orders","payload_base64":"A!=="}', *INVALID, "payload_base64", "RFC 4648"),
    Bad("base64 without padding", b'{"target":"orders","payload_base64":"AA"}', *INVALID, "payload_base64"),
    # batches: the row is named and none is accepted
    Bad("a bad row", batch({"target": URL, "payload": 1, "cost": -1}), *INVALID, "jobs[3].cost", path="/v1/batches"),
    Bad("an unknown field in a row", batch({"target": URL, "payload": 1, "kost": 1}), *INVALID, "jobs[3].kost", "'cost'", "/v1/batches"),
    Bad("a class in a row", batch({"target": URL, "payload": 1, "class": "l"}), *INVALID, "jobs[3].class", path="/v1/batches"),
    Bad("a row that is no object", batch(7), *INVALID, "jobs[3]", "an object", "/v1/batches"),
    Bad("a row with a key twice", b'{"jobs":[{"target":"orders","payload":1,"cost":1,"cost":2}]}', *MALFORMED, "", "jobs[0].cost stands twice", "/v1/batches"),
    Bad("jobs twice", b'{"jobs":[],"jobs":[{"target":"orders","payload":1}]}', *MALFORMED, "", "jobs must stand once", "/v1/batches"),
    Bad("no jobs", b'{"jobs":[]}', *INVALID, "jobs", "at least one", "/v1/batches"),
    Bad("jobs missing", b"{}", *INVALID, "jobs", "required", "/v1/batches"),
    Bad("jobs that is no array", b'{"jobs":{}}', *INVALID, "jobs", "an array", "/v1/batches"),
    Bad("a bare array", b"[]", *INVALID, "", "an object", "/v1/batches"),
    Bad("too many rows", json.dumps({"jobs": [{"target": "orders", "payload": 1}] * 1_001}).encode(), *INVALID, "jobs", "bulk", "/v1/batches"),
    Bad("one key for a batch", batch({"target": URL, "payload": 1}), 400, "invalid-parameter", "", "idempotency_key", "/v1/batches", (("idempotency-key", "k"),)),
    # bulk sets
    Bad("a bad line", job() + b"\n\n" + job(cost=0), *INVALID, "jobs[1].cost", path="/v1/bulk", headers=NDJSON),
    Bad("a broken line", job() + b"\n{\n", *MALFORMED, "", "jobs[1]: not JSON", "/v1/bulk", NDJSON, {"line": 2}),
    Bad("an unknown field in a line", job() + b"\n" + job(kost=0), *INVALID, "jobs[1].kost", "", "/v1/bulk", NDJSON),
    Bad("no lines", b"\n\n", *INVALID, "jobs", "at least one", "/v1/bulk", NDJSON),
    Bad("a key in a bulk set", b'{"jobs":[{"target":"orders","payload":1,"idempotency_key":"k"}]}', *INVALID, "jobs[0].idempotency_key", "", "/v1/bulk"),
    # headers
    Bad("a form", b"a=1", 415, "unsupported-media-type", says="application/json", headers=(("content-type", "application/x-www-form-urlencoded"),)),
    Bad("another charset", job(), 415, "unsupported-media-type", headers=(("content-type", "application/json; charset=latin-1"),)),
    Bad("two content types", job(), *MALFORMED, headers=(("content-type", "application/json"), ("content-type", "text/plain"))),
    Bad("a compressed body", job(), 415, "unsupported-media-type", says="Content-Encoding", headers=(("content-encoding", "gzip"),)),
    Bad("two idempotency keys", job(), 400, "invalid-parameter", headers=(("idempotency-key", "a"), ("idempotency-key", "a"))),
    Bad("an empty idempotency header", job(), 400, "invalid-parameter", headers=(("idempotency-key", '""'),)),
    Bad("an idempotency header with spaces", job(), 400, "invalid-parameter", headers=(("idempotency-key", "a b"),)),
    Bad("two keys that differ", job(idempotency_key="a"), 400, "invalid-parameter", says="differ", headers=(("idempotency-key", "b"),)),
    Bad("a bulk set's form for one job", job(), 415, "unsupported-media-type", headers=NDJSON),
    # paths and parameters
    Bad("a body for cancel", b"{}", *MALFORMED, says="no body", path="/v1/jobs/00000000-0000-7000-8000-000000000000/cancel"),
    Bad("cancelling a job that is not there", b"", 404, "not-found", says="seven days", path="/v1/jobs/00000000-0000-7000-8000-000000000000/cancel"),
    Bad("cancelling what is no id", b"", 404, "not-found", path="/v1/jobs/%00/cancel"),
]  # fmt: skip


@pytest.mark.parametrize("bad", TABLE, ids=lambda bad: bad.name)
async def test_bad_input_has_one_clear_answer(shared: World, bad: Bad) -> None:
    reply = await shared.post(bad.path, bad.body, headers=bad.headers)
    assert (reply.status, reply.problem) == (bad.status, bad.problem), reply.json
    assert bad.says in reply.json["detail"], reply.json
    assert reply.json.items() >= bad.members.items()
    if bad.status == 422:
        assert reply.json["errors"][0]["path"] == bad.where
        assert reply.json["errors"][0]["accepted"]
    assert (await shared.get("/v1/jobs")).json == {"jobs": []}
    assert "Traceback" not in reply.body.decode()


GETS = [
    ("/v1/jobs?state=done", 400, "invalid-parameter", "waiting, delayed, running"),
    ("/v1/jobs?limit=0", 400, "invalid-parameter", "from 1 to 1,000"),
    ("/v1/jobs?limit=1001", 400, "invalid-parameter", "from 1 to 1,000"),
    ("/v1/jobs?limit=%D9%A1", 400, "invalid-parameter", "from 1 to 1,000"),
    ("/v1/jobs?limit=-1", 400, "invalid-parameter", "from 1 to 1,000"),
    ("/v1/jobs?limit=1&limit=2", 400, "invalid-parameter", "stands twice"),
    ("/v1/jobs?stat=waiting", 400, "invalid-parameter", "Did you mean 'state'?"),
    ("/v1/jobs?state=%ff", 400, "invalid-parameter", "UTF-8"),
    ("/v1/jobs/no-id", 404, "not-found", "seven days"),
    ("/v1/jobs/%00", 404, "not-found", ""),
    ("/v1/jobs/00000000-0000-7000-8000-000000000000", 404, "not-found", "seven days"),
    ("/v1/jobs/00000000-0000-7000-8000-000000000000/explanation", 404, "not-found", "seven days"),
    ("/v1/jobs/00000000-0000-7000-8000-00000000000A", 404, "not-found", ""),
    ("/v1/bulk/00000000-0000-7000-8000-000000000000", 404, "not-found", "bulk set"),
    ("/v1/bulk/%00", 404, "not-found", "bulk set"),
    ("/v1/bulk/" + "a" * 300, 404, "not-found", "bulk set"),
    ("/v1/jobs/", 404, "not-found", "openapi.json"),
    ("/v2/jobs", 404, "not-found", "openapi.json"),
    ("/", 404, "not-found", ""),
    ("/metrics", 404, "not-found", ""),
]


@pytest.mark.parametrize(("path", "status", "problem", "says"), GETS)
async def test_what_is_not_there_and_what_cannot_be_asked_is_said(  # noqa: PLR0917
    shared: World, path: str, status: int, problem: str, says: str
) -> None:
    reply = await shared.get(path)
    assert (reply.status, reply.problem) == (status, problem)
    assert says in reply.json["detail"]


METHODS = [
    ("/v1/jobs", "PUT", "GET, HEAD, OPTIONS, POST"),
    ("/v1/jobs", "PROPFIND", "GET, HEAD, OPTIONS, POST"),
    ("/v1/batches", "GET", "OPTIONS, POST"),
    ("/v1/batches", "HEAD", "OPTIONS, POST"),
    ("/v1/jobs/x", "DELETE", "GET, HEAD, OPTIONS"),
    ("/v1/health", "POST", "GET, HEAD, OPTIONS"),
]


@pytest.mark.parametrize(("path", "method", "allow"), METHODS)
async def test_a_wrong_method_is_told_the_right_ones(
    shared: World, path: str, method: str, allow: str
) -> None:
    reply = await shared.ask(method, path, shared.credential("acme"))
    assert (reply.status, reply.header("allow")) == (405, allow)
    assert method == "HEAD" or reply.problem == "method-not-allowed"
    assert method != "HEAD" or reply.body == b""


async def test_options_names_the_methods_and_needs_no_key(shared: World) -> None:
    reply = await shared.ask("OPTIONS", "/v1/jobs")
    assert (reply.status, reply.header("allow"), reply.body) == (204, "GET, HEAD, OPTIONS, POST", b"")


async def test_head_is_get_without_its_body(shared: World) -> None:
    got = await shared.get("/v1/jobs")
    head = await shared.ask("HEAD", "/v1/jobs", shared.credential("acme"))
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == got.header("content-length") == str(len(got.body))


async def test_a_body_announced_as_too_long_is_refused_before_it_is_asked_for(shared: World) -> None:
    limit = shared.limits.job
    expecting = [
        *shared.credential("acme"),
        ("content-type", "application/json"),
        ("content-length", str(limit + 1)),
        ("expect", "100-continue"),
    ]
    head = "".join(f"{name}: {value}\r\n" for name, value in expecting)
    raw = f"POST /v1/jobs HTTP/1.1\r\nhost: a\r\n{head}\r\n".encode()
    reply = await _first(shared, raw)
    assert (reply.status, reply.problem, reply.json["limit"]) == (413, "body-too-large", limit)
    assert reply.header("connection") == "close"


async def test_a_body_that_turns_out_too_long_is_refused_when_it_does(shared: World) -> None:
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    headers = [
        *shared.credential("acme"),
        ("content-type", "application/json"),
        ("transfer-encoding", "chunked"),
    ]
    endless = chunk * 17  # a little over 1 MiB, and its end never comes
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    raw = f"POST /v1/jobs HTTP/1.1\r\nhost: a\r\n{head}\r\n".encode() + endless
    reply = await _first(shared, raw)
    assert (reply.status, reply.problem) == (413, "body-too-large")


async def test_a_client_that_sends_everything_before_it_reads_still_learns_why(shared: World) -> None:
    reply = await shared.post("/v1/jobs", b" " * 20_000_000)
    assert (reply.status, reply.problem) == (413, "body-too-large")


async def test_a_body_of_just_the_limit_is_read(shared: World) -> None:
    start = b'{"target":"orders","cost":-1,"payload":"'
    body = start + b"x" * (shared.limits.job - len(start) - 2) + b'"}'
    assert len(body) == shared.limits.job
    reply = await shared.post("/v1/jobs", body)
    assert (reply.status, reply.json["errors"][0]["path"]) == (422, "cost")


async def test_a_line_longer_than_a_job_may_be_is_refused_by_its_number(shared: World) -> None:
    body = job() + b"\n" + b" " * (shared.limits.line + 1)
    reply = await shared.post("/v1/bulk", body, headers=NDJSON)
    assert (reply.status, reply.problem) == (413, "body-too-large")
    assert "Line 2" in reply.json["detail"]


async def _first(world: World, raw: bytes) -> Reply:
    """The answer to a request that is never finished."""
    import asyncio

    from web_world import read_reply

    host, port = world.server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(raw)
    head = await reader.readuntil(b"\r\n\r\n")
    feed = asyncio.StreamReader()
    feed.feed_data(head)
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    feed.feed_data(await reader.readexactly(int(length.split(b":")[1])))
    feed.feed_eof()
    writer.close()
    return await read_reply(feed)
