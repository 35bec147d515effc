"""Deliveries to real sockets that answer, misbehave, or must not be reached at all."""

import asyncio
import gzip
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tenantry.config.model import TargetSettings
from tenantry.delivery.guard import AddressRule, networks
from tenantry.delivery.http import ANSWER_LIMIT, DeliverySettings, HttpDelivery
from tenantry.delivery.resolver import GuardedResolver
from tenantry.delivery.signature import new_secret
from tenantry.kernel.errors import Closed
from tenantry.kernel.randomness import SystemRandomness
from tenantry.lanes.outcome import Fault, Outcome, excerpt_of
from tenantry.lanes.retry import Step, settle_rule
from tenantry.queue.model import ClaimedJob
from tenantry.testing.jobs import claimed_job
from tenantry.testing.target import Target

OPEN = DeliverySettings(addresses=AddressRule(allow_private=True))
ONLY_127_0_0_1 = AddressRule(allowed=networks(["127.0.0.1/32"]))
PATIENT = TargetSettings(timeout_for=20.0)
HASTY = TargetSettings(timeout_for=0.15)
SECRET = new_secret(SystemRandomness())
HERE = Path(__file__).parent


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with asyncio.timeout(60), Target() as target:
        yield target


async def delivered(
    job: ClaimedJob,
    settings: TargetSettings = PATIENT,
    *,
    node: DeliverySettings = OPEN,
    look_up: Callable[[str], list[str]] | None = None,
) -> Outcome:
    async with HttpDelivery(node, look_up=look_up) if look_up else HttpDelivery(node) as delivery:
        return await delivery.deliver(job, settings)


# what is sent


async def test_a_signed_delivery_verifies_with_the_public_client_library(target: Target) -> None:
    payload = '{"grüße":"wörld", "n": 1.0}'.encode()
    job = claimed_job(target.url + "/hook?a=%2F", payload=payload)
    outcome = await delivered(job, TargetSettings(secret=SECRET))
    assert (outcome.error_class, outcome.status) == ("ok", 200)
    assert outcome.busy_for > 0
    request = target.received[0]
    Webhook(SECRET).verify(request.body, dict(request.headers))
    assert (request.method, request.path, request.body) == ("POST", "/hook?a=%2F", payload)
    assert request.headers["webhook-id"] == job.id
    assert request.headers["user-agent"].startswith("Tenantry/")
    assert request.headers["content-type"] == "application/json"
    assert "cookie" not in request.headers


async def test_the_headers_of_a_replayed_message_are_sent_and_those_that_speak_for_its_sender_are_not(
    target: Target,
) -> None:
    brought = {
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "X-Shop": "berlin",
        "Authorization": "Bearer stolen",
        "Cookie": "session=1",
        "Host": "evil.example.com",
        "Content-Length": "1",
        "Transfer-Encoding": "chunked",
        "Webhook-Id": "forged",
        "webhook-signature": "v1,forged",
        "x-split": "a\r\nHost: evil.example.com",
    }
    job = claimed_job(target.url, headers=brought)
    assert (await delivered(job, TargetSettings(secret=SECRET))).succeeded
    request = target.received[0]
    Webhook(SECRET).verify(request.body, dict(request.headers))
    assert (request.headers["traceparent"], request.headers["x-shop"]) == (brought["traceparent"], "berlin")
    assert request.headers["host"] in target.url
    assert request.headers["content-length"] == str(len(job.payload))
    assert not {"authorization", "cookie", "transfer-encoding", "x-split"} & request.headers.keys()


async def test_while_secrets_rotate_both_receivers_verify(target: Target) -> None:
    newer = new_secret(SystemRandomness())
    await delivered(claimed_job(target.url), TargetSettings(secret=f"{newer} {SECRET}"))
    for secret in (newer, SECRET):
        Webhook(secret).verify(target.received[0].body, dict(target.received[0].headers))


@pytest.mark.parametrize("payload", [b"", b"\x00\xff\r\n\r\n", bytes(1024 * 1024)])
async def test_the_body_is_the_payload_byte_for_byte(target: Target, payload: bytes) -> None:
    job = claimed_job(target.url, payload=payload, content_type="application/octet-stream")
    assert (await delivered(job)).succeeded
    assert target.received[0].body == payload
    assert target.received[0].headers["content-type"] == "application/octet-stream"
    assert target.received[0].headers["content-length"] == str(len(payload))


async def test_many_deliveries_share_one_connection_and_no_cookies(target: Target) -> None:
    target.answers(200, {"Set-Cookie": "tenant=a; Path=/"}, b"ok")
    async with HttpDelivery(OPEN) as delivery:
        for _ in range(5):
            assert (await delivery.deliver(claimed_job(target.url), PATIENT)).succeeded
    assert target.connections == 1
    assert not any("cookie" in request.headers for request in target.received)


async def test_the_proxy_environment_is_not_read(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Target() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert (await delivered(claimed_job(target.url))).succeeded
        assert (target.total, proxy.total) == (1, 0)


# what comes back


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_is_not_followed(target: Target, status: int) -> None:
    async with Target() as elsewhere:
        target.answers(status, {"Location": elsewhere.url})
        outcome = await delivered(claimed_job(target.url))
        assert (outcome.error_class, outcome.status, outcome.fault) == ("http_3xx", status, Fault.MESSAGE)
        assert (target.total, elsewhere.total) == (1, 0)


async def test_three_attempts_at_a_target_that_forbids_are_three_requests_then_death(target: Target) -> None:
    target.answers(403, body=b"no")
    settings = replace(PATIENT, max_attempts=3)
    steps = []
    async with HttpDelivery(OPEN) as delivery:
        for attempt in (1, 2, 3):
            outcome = await delivery.deliver(claimed_job(target.url, attempt=attempt), settings)
            steps.append(settle_rule(attempt, outcome, settings, 0.5).step)
    assert steps == [Step.RETRY, Step.RETRY, Step.DEAD]
    assert target.total == 3
    assert len({request.headers["webhook-id"] for request in target.received}) == 1


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("-7", None), ("soon", None), (None, None)])
async def test_a_retry_after_is_read_from_a_failure(
    target: Target, header: str | None, seconds: float | None
) -> None:
    target.answers(429, {"Retry-After": header} if header else {}, b"slow\x00 down")
    outcome = await delivered(claimed_job(target.url))
    assert outcome == replace(
        outcome, error_class="http_429", status=429, retry_after=seconds, excerpt="slow down"
    )
    assert outcome.fault is Fault.TARGET


async def test_a_compressed_answer_is_not_unpacked(target: Target) -> None:
    packed = gzip.compress(b"a" * 50_000_000)
    target.answers(500, {"Content-Encoding": "gzip"}, packed)
    outcome = await delivered(claimed_job(target.url))
    assert (outcome.error_class, outcome.excerpt) == ("http_500", excerpt_of(packed))


@pytest.mark.parametrize(("status", "error_class"), [(200, "ok"), (500, "http_500")])
async def test_an_endless_body_is_cut_at_its_limit_and_the_status_stands(
    target: Target, status: int, error_class: str
) -> None:
    target.floods(status)
    async with HttpDelivery(OPEN) as delivery:
        outcome = await delivery.deliver(claimed_job(target.url), PATIENT)
        assert outcome.error_class == error_class
        assert outcome.busy_for < PATIENT.timeout_for / 2
        target.answers(200)
        assert (await delivery.deliver(claimed_job(target.url), PATIENT)).succeeded
    assert target.connections == 2  # the first one was closed, not reused in the middle of a body


@pytest.mark.parametrize(("status", "error_class"), [(200, "ok"), (503, "http_503")])
async def test_a_body_that_never_ends_is_cut_by_the_timeout_and_the_status_stands(
    target: Target, status: int, error_class: str
) -> None:
    target.drips(status)
    outcome = await delivered(claimed_job(target.url), HASTY)
    assert outcome.error_class == error_class
    assert outcome.excerpt == ("drip" if status == 503 else "")
    assert outcome.busy_for >= 0.14


async def test_a_body_that_breaks_off_leaves_its_status(target: Target) -> None:
    target.says(b"HTTP/1.1 422 X\r\nContent-Length: 100\r\n\r\nbad field")
    outcome = await delivered(claimed_job(target.url))
    assert (outcome.error_class, outcome.excerpt) == ("http_422", "bad field")


# what goes wrong


async def test_a_target_that_hangs_ends_by_the_timeout(target: Target) -> None:
    target.hangs()
    outcome = await delivered(claimed_job(target.url), HASTY)
    assert (outcome.error_class, outcome.fault, outcome.status) == ("timeout", Fault.TARGET, None)
    assert outcome.busy_for >= 0.14


async def test_a_connection_that_breaks_before_the_answer_is_a_reset(target: Target) -> None:
    assert (await delivered(claimed_job(target.resets().url))).error_class == "reset"
    assert (await delivered(claimed_job(target.closes().url))).error_class == "reset"


async def test_a_closed_port_is_refused() -> None:
    target = await Target.start()
    url = target.url
    await target.close()
    outcome = await delivered(claimed_job(url))
    assert (outcome.error_class, outcome.fault) == ("refused", Fault.TARGET)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
    ids=["not http", "bad length", "huge header", "many headers", "switching"],
)
async def test_what_is_not_a_reasonable_answer_is_a_protocol_fault(target: Target, raw: bytes) -> None:
    assert (await delivered(claimed_job(target.says(raw).url))).error_class == "protocol"


async def test_a_name_that_does_not_resolve_is_a_dns_fault() -> None:
    def nowhere(name: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    outcome = await delivered(claimed_job("http://gone.example/"), look_up=nowhere)
    assert (outcome.error_class, outcome.excerpt) == ("dns", "Name or service not known")


async def test_a_plain_server_behind_an_https_url_is_a_tls_fault(target: Target) -> None:
    assert (await delivered(claimed_job(target.url.replace("http:", "https:")))).error_class == "tls"


async def test_certificates_are_verified_and_a_private_authority_can_be_trusted() -> None:
    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    identity = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    identity.load_cert_chain(HERE / "hook.test.pem")
    trusting = ssl.create_default_context(cafile=str(HERE / "hook.test.pem"))
    server = await asyncio.start_server(hello, "127.0.0.1", 0, ssl=identity)
    port = server.sockets[0].getsockname()[1]
    job = claimed_job(f"https://hook.test:{port}/")
    other_name = claimed_job(f"https://other.test:{port}/")
    async with server:
        assert (await delivered(job, look_up=to_loopback)).error_class == "tls"
        node = replace(OPEN, tls=trusting)
        assert (await delivered(job, node=node, look_up=to_loopback)).error_class == "ok"
        assert (await delivered(other_name, node=node, look_up=to_loopback)).error_class == "tls"


def to_loopback(name: str) -> list[str]:
    return ["127.0.0.1"]


# what must not be reached


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::1]", "[::]", "localhost", "LOCALHOST"],
)
async def test_loopback_is_not_reached_however_it_is_written(target: Target, host: str) -> None:
    url = target.url.replace("127.0.0.1", host)
    outcome = await delivered(claimed_job(url), node=DeliverySettings())
    assert outcome.error_class == "address_not_allowed"
    assert (outcome.fault, target.connections) == (Fault.MESSAGE, 0)


@pytest.mark.parametrize(
    "host", ["0x7f.1", "2130706433", "017700000001", "127.1", "127.0.0.1.", "a@127.0.0.1"]
)
async def test_odd_spellings_of_loopback_are_no_urls_even_where_loopback_is_allowed(
    target: Target, host: str
) -> None:
    outcome = await delivered(claimed_job(target.url.replace("127.0.0.1", host)))
    assert (outcome.error_class, target.connections) == ("invalid_url", 0)


async def test_a_public_name_for_a_private_address_is_not_reached(target: Target) -> None:
    url = target.url.replace("127.0.0.1", "innocent.example")
    outcome = await delivered(claimed_job(url), node=DeliverySettings(), look_up=to_loopback)
    assert (outcome.error_class, target.connections) == ("address_not_allowed", 0)
    assert "127" not in outcome.excerpt  # a tenant does not learn what inner names resolve to


async def test_of_several_addresses_only_the_allowed_ones_are_tried(target: Target) -> None:
    node = DeliverySettings(addresses=AddressRule(allowed=networks(["127.0.0.2/32"])))
    url = target.url.replace("127.0.0.1", "both.example")
    outcome = await delivered(claimed_job(url), node=node, look_up=lambda name: ["127.0.0.1", "127.0.0.2"])
    assert (outcome.error_class, target.connections) == ("refused", 0)  # nobody listens on 127.0.0.2


async def test_a_name_that_rebinds_between_two_deliveries_is_refused_the_second_time(target: Target) -> None:
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])
    job = claimed_job(target.url.replace("127.0.0.1", "rebinds.example"))
    node = DeliverySettings(addresses=ONLY_127_0_0_1, keepalive_for=0)
    target.answers(200, {"Connection": "close"})
    async with HttpDelivery(node, look_up=lambda name: next(answers)) as delivery:
        assert (await delivery.deliver(job, PATIENT)).succeeded
        assert (await delivery.deliver(job, PATIENT)).error_class == "address_not_allowed"
    assert target.total == 1


async def test_a_check_that_saw_another_address_does_not_help_at_the_socket(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resolver is told a public address when it checks, and the socket is about to get a private one."""
    honest = GuardedResolver.resolve

    async def swapped(self: GuardedResolver, host: str, *rest: object, **more: object) -> object:
        results = await honest(self, host, *rest, **more)  # type: ignore[arg-type]
        return [{**result, "host": "127.0.0.1"} for result in results]

    monkeypatch.setattr(GuardedResolver, "resolve", swapped)
    job = claimed_job(target.url.replace("127.0.0.1", "rebinds.example"))
    outcome = await delivered(job, node=DeliverySettings(), look_up=lambda name: ["8.8.8.8"])
    assert (outcome.error_class, target.connections) == ("address_not_allowed", 0)


# many at once


async def test_waiting_for_a_free_connection_is_charged_to_nobody(target: Target) -> None:
    target.at("/slow").hangs()
    async with HttpDelivery(replace(OPEN, connections=1)) as delivery:
        slow = asyncio.create_task(delivery.deliver(claimed_job(target.url + "/slow"), HASTY))
        await target.received_count(1)
        outcome = await delivery.deliver(claimed_job(target.url + "/quick"), HASTY)
        assert outcome.succeeded
        assert outcome.busy_for < 0.15
        assert (await slow).error_class == "timeout"


async def test_one_look_up_serves_all_who_wait_for_it_and_outlives_the_hasty(target: Target) -> None:
    looked_up: list[str] = []
    loop = asyncio.get_running_loop()
    started, release = asyncio.Event(), asyncio.Event()

    def slow(name: str) -> list[str]:
        looked_up.append(name)
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(20)
        return ["127.0.0.1"]

    job = claimed_job(target.url.replace("127.0.0.1", "slow.example"))
    async with HttpDelivery(OPEN, look_up=slow) as delivery:
        patient = asyncio.create_task(delivery.deliver(job, PATIENT))
        await started.wait()
        assert (await delivery.deliver(job, HASTY)).error_class == "connect_timeout"
        release.set()
        assert (await patient).succeeded
    assert looked_up == ["slow.example"]


async def test_cancelling_a_delivery_closes_its_connection_and_frees_its_place(target: Target) -> None:
    target.at("/hangs").hangs()
    async with HttpDelivery(replace(OPEN, connections=1)) as delivery:
        task = asyncio.create_task(delivery.deliver(claimed_job(target.url + "/hangs"), PATIENT))
        await target.received_count(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await delivery.deliver(claimed_job(target.url), PATIENT)).succeeded
    assert target.connections == 2


async def test_it_is_a_context_manager_and_says_so() -> None:
    with pytest.raises(Closed, match="async with"):
        await HttpDelivery().deliver(claimed_job(), PATIENT)


# secrets


async def test_no_secret_or_signature_shows_in_logs_outcomes_or_representations(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    settings = replace(HASTY, secret=SECRET)
    told: list[object] = [settings]
    async with HttpDelivery(OPEN) as delivery:
        for story in (target.answers, target.hangs, target.resets, target.closes, target.floods):
            story()
            told.append(await delivery.deliver(claimed_job(target.url), settings))
        told.append(await delivery.deliver(claimed_job(target.url), replace(settings, secret=SECRET + "!")))
        told.append(delivery)
    text = caplog.text + repr(told)
    signatures = [request.headers["webhook-signature"] for request in target.received]
    assert len(signatures) == 5
    assert SECRET.removeprefix("whsec_") not in text
    assert not any(signature.removeprefix("v1,") in text for signature in signatures)


def test_the_answers_limit_is_the_documented_one() -> None:
    assert ANSWER_LIMIT == 64 * 1024
