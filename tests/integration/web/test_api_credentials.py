# ruff: noqa: E501 - a table is read by its rows
"""The verified credential alone names the tenant, there is exactly one, and it is never shown again."""

import asyncio
from unittest import mock

import pytest
from web_world import World

from tenantry.config.api_keys import make_api_key
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.telemetry.http_events import CredentialRefused, RequestServed
from tenantry.web import authenticator

GOOD, OTHER = "GOOD", "OTHER"

TABLE = [
    ("bearer", [("authorization", "Bearer GOOD")], 200, ""),
    ("bearer in lower case", [("Authorization", "bearer GOOD")], 200, ""),
    ("x-api-key", [("x-api-key", "GOOD")], 200, ""),
    ("nothing", [], 401, "unauthenticated"),
    ("an empty header", [("authorization", "")], 401, "unauthenticated"),
    ("an empty key", [("x-api-key", "")], 401, "unauthenticated"),
    ("another scheme", [("authorization", "Basic R09PRA==")], 401, "unauthenticated"),
    ("no scheme", [("authorization", "GOOD")], 401, "unauthenticated"),
    ("two keys in one header", [("x-api-key", "GOOD, GOOD")], 401, "unauthenticated"),
    ("two words", [("authorization", "Bearer GOOD GOOD")], 401, "unauthenticated"),
    ("x-api-key twice", [("x-api-key", "GOOD"), ("x-api-key", "GOOD")], 400, "credential-ambiguous"),
    ("x-api-key of two tenants", [("x-api-key", "GOOD"), ("X-API-Key", "OTHER")], 400, "credential-ambiguous"),
    ("authorization twice", [("authorization", "Bearer GOOD")] * 2, 400, "credential-ambiguous"),
    ("both headers", [("authorization", "Bearer GOOD"), ("x-api-key", "GOOD")], 400, "credential-ambiguous"),
    ("the tenant's own id", [("x-api-key", "GOOD"), ("x-tenant-id", "acme")], 200, ""),
    ("another tenant's id", [("x-api-key", "GOOD"), ("x-tenant-id", "globex")], 403, "tenant-mismatch"),
    ("the id in another case", [("x-api-key", "GOOD"), ("x-tenant-id", "ACME")], 403, "tenant-mismatch"),
    ("an empty id", [("x-api-key", "GOOD"), ("x-tenant-id", "")], 403, "tenant-mismatch"),
    ("one good id and one bad", [("x-api-key", "GOOD"), ("x-tenant-id", "acme"), ("x-tenant-id", "globex")], 403, "tenant-mismatch"),
    ("a key with a slip", [("x-api-key", "GOODx")], 401, "unauthenticated"),
    ("not ASCII", [("x-api-key", "GOOD\xe9")], 401, "unauthenticated"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "status", "problem"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
async def test_exactly_one_credential_names_the_tenant(
    world: World, headers: list[tuple[str, str]], status: int, problem: str
) -> None:
    keys = {GOOD: world.key("acme"), OTHER: world.key("globex")}
    sent = [(name, value.replace(GOOD, keys[GOOD]).replace(OTHER, keys[OTHER])) for name, value in headers]
    reply = await world.ask("GET", "/v1/jobs", sent)
    assert reply.status == status, reply.body
    assert status == 200 or reply.problem == problem
    assert (reply.header("www-authenticate") is not None) == (status == 401)
    assert not any(key.encode() in reply.body for key in keys.values())


QUERIES = [
    "api_key={key}",
    "API-KEY={key}",
    "x_api_key=anything",
    "access_token=a",
    "%61pi_key=a",
    "limit=1;key=a",
    "limit={key}",
    "state={twice}",
    "{key}",
]


@pytest.mark.parametrize("query", QUERIES)
async def test_a_credential_in_the_url_is_refused_and_told_to_nobody(world: World, query: str) -> None:
    encoded = "".join(f"%{byte:02x}" for byte in world.key().encode())
    text = query.format(key=world.key(), twice=encoded.replace("%", "%25"))
    reply = await world.get(f"/v1/jobs?{text}")
    assert (reply.status, reply.problem) == (400, "credential-in-query")
    assert [event.reason for event in world.told(CredentialRefused)] == ["in_query"]
    secret = world.key()[20:]
    assert secret not in reply.body.decode()
    assert secret not in repr(world.events)


async def test_an_unknown_key_and_a_wrong_secret_get_the_same_answer_by_the_same_path(world: World) -> None:
    stranger = make_api_key(SeededRandomness(99))
    known, other = world.made["acme"], world.made["globex"]
    world.keys._keys[stranger.key_id] = world.keys._keys[other.key_id]  # the id exists, the secret is another
    absent = make_api_key(SeededRandomness(98))
    answers, compared = [], []
    for text in (absent.text, stranger.text):
        with mock.patch.object(authenticator, "matches", wraps=authenticator.matches) as matches:
            reply = await world.ask("GET", "/v1/jobs", [("x-api-key", text)])
        compared.append(matches.call_count)
        answers.append((reply.status, reply.body, reply.header("www-authenticate")))
    assert answers[0] == answers[1]
    assert compared == [1, 1]
    assert known.text not in repr(world.events)


async def test_a_thousand_wrong_keys_are_each_looked_up_and_none_is_remembered(world: World) -> None:
    randomness = SeededRandomness(5)
    clock_free = authenticator.Authenticator(world.keys, world.clock, kept_for=5, kept=10)
    with mock.patch.object(authenticator, "matches", wraps=authenticator.matches) as matches:
        for _ in range(1_000):
            verdict = await clock_free.verify(make_api_key(randomness).text)
            assert verdict == authenticator.Rejected("unknown")
    assert matches.call_count == 1_000
    assert len(clock_free._trusted) == 0


async def test_a_verified_key_is_trusted_for_a_few_seconds_and_no_longer(world: World) -> None:
    await world.get("/v1/jobs")
    assert world.keys.revoke(world.made["acme"].key_id)
    world.clock.advance(world.limits.key_kept_for - 0.001)
    assert (await world.get("/v1/jobs")).status == 200
    world.clock.advance(0.001)
    reply = await world.get("/v1/jobs")
    assert (reply.status, reply.problem) == (401, "unauthenticated")
    assert world.told(CredentialRefused)[-1].reason == "revoked"


async def test_a_key_expires_at_its_instant_even_while_it_is_trusted(world: World) -> None:
    expires_at = Timestamp(world.clock.now() + 2)
    made = world.keys.issue(TenantId("acme"), world.randomness, expires_at=expires_at)
    headers = [("x-api-key", made.text)]
    assert (await world.ask("GET", "/v1/jobs", headers)).status == 200
    world.clock.advance(2)
    assert (await world.ask("GET", "/v1/jobs", headers)).status == 401
    assert (await world.ask("GET", "/v1/jobs", headers)).status == 401
    assert {event.reason for event in world.told(CredentialRefused)} == {"expired"}


async def test_so_many_keys_are_trusted_at_most(world: World) -> None:
    few = authenticator.Authenticator(world.keys, world.clock, kept_for=5, kept=2)
    for tenant in ("acme", "globex", "tiny", "slow"):
        assert await few.verify(world.key(tenant)) == authenticator.Verified(TenantId(tenant))
    assert len(few._trusted) == 2


async def test_a_tenant_that_left_the_registry_can_no_longer_submit(world: World) -> None:
    world.forget_tenants()
    reply = await world.post_job()
    assert (reply.status, reply.problem) == (403, "unknown-tenant")


async def test_a_stranger_is_refused_before_the_body_is_asked_for(world: World) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n"
    host, port = world.server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head)
    assert (await reader.readline()).startswith(b"HTTP/1.1 401")
    writer.close()


async def test_events_name_the_tenant_only_once_it_is_proven(world: World) -> None:
    await world.ask("GET", "/v1/jobs", [("x-tenant-id", "acme")])
    await world.get("/v1/jobs")
    assert [event.tenant for event in world.told(RequestServed)] == [None, "acme"]
