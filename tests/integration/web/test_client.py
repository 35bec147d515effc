"""The Python client against the real API, and against servers that misbehave."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from web_world import URL, World

from tenantry.algorithms.shedding import Level
from tenantry.delivery.client import TenantryClient
from tenantry.delivery.client_exchange import Surroundings
from tenantry.delivery.client_sync import SyncTenantryClient
from tenantry.delivery.client_wire import (
    BulkProgress,
    CredentialRefused,
    RequestRefused,
    Retries,
    ServiceFault,
    ServiceUnavailable,
    Ticket,
    json_job,
)
from tenantry.kernel.errors import Closed, InvalidValue, UsageError
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.lanes.model import Target
from tenantry.queue.model import JobClass, JobState, NewJob, PoolLevel
from tenantry.testing.clock import ManualClock


class Patience:
    """Waits without time: the clock moves on, and the pauses are kept."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    async def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)
        self.meanwhile()


@pytest.fixture
def patience(world: World) -> Patience:
    return Patience(world.clock)


@pytest.fixture
async def client(world: World, patience: Patience) -> AsyncIterator[TenantryClient]:
    async with client_of(world, patience) as made:
        yield made


def client_of(world: World, patience: Patience, tenant: str = "acme", url: str = "") -> TenantryClient:
    surroundings = Surroundings(world.clock, SeededRandomness(3), patience)
    return TenantryClient(url or world.server.url, world.key(tenant), surroundings=surroundings)


async def accepted(client: TenantryClient, job: NewJob) -> Ticket:
    ticket = await client.submit(job)
    assert isinstance(ticket, Ticket)
    return ticket


async def test_a_job_is_submitted_found_explained_and_cancelled(world: World, client: TenantryClient) -> None:
    ticket = await accepted(client, json_job(URL, {"n": 1}, delay_for=5, job_class=JobClass.BACKGROUND))
    assert (ticket.state, ticket.existing) == (JobState.DELAYED, False)
    found = await client.job(ticket.id)
    assert found is not None
    assert (found.state, found.target, found.ended) == (JobState.DELAYED, URL, False)
    assert [job.id for job in await client.jobs(state=JobState.DELAYED)] == [ticket.id]
    reasons = await client.explain(ticket.id)
    assert reasons is not None
    assert reasons[0].waits_for == "delay"
    assert await client.cancel(ticket.id) is JobState.CANCELLED
    ended = await client.wait(ticket.id)
    assert ended is not None
    assert (ended.state, ended.ended) == (JobState.CANCELLED, True)


@pytest.mark.parametrize(
    "payload", [b'{"a": 1.0}', b"\x00\xff", b"", b'{"a":\n1}', b'"\\ud800"', b"NaN", b"1 2", b"[" * 5_000]
)
async def test_the_server_gets_exactly_the_bytes_of_the_payload(
    world: World, client: TenantryClient, payload: bytes
) -> None:
    job = NewJob(Target(URL), payload, content_type="application/x-mine", cost=1.5, ordering_key="é")
    await client.submit(job)
    await client.submit_batch([job])
    await client.submit_bulk([job])
    assert [got.payload for got in world.submitted] == [payload] * 3
    assert {(got.content_type, got.cost, got.ordering_key) for got in world.submitted} == {
        ("application/x-mine", 1.5, "é")
    }


async def test_a_batch_gives_its_tickets_in_order_and_a_set_can_be_followed(
    world: World, client: TenantryClient
) -> None:
    jobs = [json_job(URL, n) for n in range(20)]
    tickets = await client.submit_batch(jobs)
    assert isinstance(tickets, tuple)
    assert [(await client.job(ticket.id)) is not None for ticket in tickets] == [True] * 20
    progress = await client.submit_bulk(jobs)
    assert isinstance(progress, BulkProgress)
    assert await client.bulk(progress.id) == progress
    assert (progress.total, progress.stored) == (20, 20)


@pytest.mark.parametrize("missing", ["00000000-0000-7000-8000-000000000000", "a/b?c#d", ".."])
async def test_what_is_not_there_is_none(client: TenantryClient, missing: str) -> None:
    assert await client.job(missing) is None
    assert await client.explain(missing) is None
    assert await client.cancel(missing) is None
    assert await client.bulk(missing) is None
    assert await client.wait(missing) is None


async def test_it_comes_back_when_it_was_told_to_and_never_early(world: World, patience: Patience) -> None:
    async with client_of(world, patience, "slow") as client:
        await accepted(client, json_job(URL, 1))
        await accepted(client, json_job(URL, 2))
    [pause] = patience.pauses
    assert 2.0 <= pause <= 2.2  # one job every two seconds, and a spread of at most a tenth


async def test_clients_that_were_told_the_same_come_back_apart(world: World) -> None:
    world.refusal = Refusal(Rule.RATE, "over the rate", 10.0)
    pauses = []
    for seed in range(20):
        patience = Patience(world.clock)
        surroundings = Surroundings(world.clock, SeededRandomness(seed), patience)
        client = TenantryClient(world.server.url, world.key(), retries=Retries(2), surroundings=surroundings)
        async with client:
            assert isinstance(await client.submit(json_job(URL, 1)), Refusal)
        pauses += patience.pauses
    assert len(pauses) == 20
    assert min(pauses) >= 10.0
    assert max(pauses) - min(pauses) > 0.5


async def test_a_refusal_that_outlasts_the_deadline_is_the_answer_and_is_not_waited_for(
    world: World, client: TenantryClient, patience: Patience
) -> None:
    world.refusal = Refusal(Rule.BOUND, "the bound is 5", 61.0)
    answer = await client.submit(json_job(URL, 1))
    assert answer == Refusal(Rule.BOUND, "the bound is 5", 61.0)
    assert patience.pauses == []


async def test_a_set_refused_under_overload_was_surely_not_stored_and_is_sent_again(
    world: World, patience: Patience
) -> None:
    world.level = PoolLevel("shared", Level.STANDARD, 9.0, 1.0, 15.0)
    patience.meanwhile = lambda: setattr(world, "level", None)
    async with client_of(world, patience, "acme") as client:
        stored = await client.submit_bulk([json_job(URL, 1)])
    assert not isinstance(stored, Refusal)
    (pause,) = patience.pauses
    assert pause >= 15.0


async def test_a_key_used_with_another_body_is_a_refusal_that_is_not_repeated(
    client: TenantryClient, patience: Patience
) -> None:
    await client.submit(json_job(URL, 1, idempotency_key="k"))
    answer = await client.submit(json_job(URL, 2, idempotency_key="k"))
    assert isinstance(answer, Refusal)
    assert (answer.rule, answer.retry_after, patience.pauses) == (Rule.KEY_REUSED, None, [])


async def test_a_batch_over_the_bound_is_a_refusal_that_names_the_bulk_path(
    world: World, patience: Patience
) -> None:
    async with client_of(world, patience, "tiny") as client:
        answer = await client.submit_batch([json_job(URL, n) for n in range(6)])
    assert isinstance(answer, Refusal)
    assert (answer.rule, answer.retry_after) == (Rule.BOUND, None)
    assert "bulk" in answer.detail


async def test_an_unreachable_store_is_waited_for(
    world: World, client: TenantryClient, patience: Patience
) -> None:
    world.store_is_away = True

    def back() -> None:
        world.store_is_away = len(patience.pauses) < 3

    patience.meanwhile = back
    await accepted(client, json_job(URL, 1))
    assert len(patience.pauses) == 3
    assert len(world.submitted) == 1


async def test_a_store_that_stays_away_ends_in_an_error_after_the_attempts(
    world: World, client: TenantryClient
) -> None:
    world.store_is_away = True
    with pytest.raises(ServiceUnavailable) as raised:
        await client.submit(json_job(URL, 1))
    assert raised.value.attempts == 8
    assert world.key() not in str(raised.value)


async def test_a_set_that_may_have_been_stored_is_not_sent_again(
    world: World, client: TenantryClient, patience: Patience
) -> None:
    world.store_is_away = True
    with pytest.raises(ServiceUnavailable) as raised:
        await client.submit_bulk([json_job(URL, 1)])
    assert (raised.value.attempts, patience.pauses) == (1, [])


async def test_a_lost_answer_never_makes_two_jobs(world: World, patience: Patience) -> None:
    """The proxy lets the first two requests through and drops their answers."""
    dropped = 0

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal dropped
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        request = head + await reader.readexactly(int(length.split(b":")[1]))
        reply = await world.raw(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        if dropped < 2:
            dropped += 1
            writer.transport.abort()
            return
        await answer(writer, reply.status, reply.body)

    async with serving(proxy) as url, client_of(world, patience, url=url) as client:
        ticket = await accepted(client, json_job(URL, 1))
        again = await client.submit_batch([json_job(URL, 2), json_job(URL, 3)])
    assert (dropped, ticket.existing) == (2, True)
    assert isinstance(again, tuple)
    assert len(await world.store.jobs(_acme(world), state=None, limit=100)) == 3


async def test_a_server_that_is_not_there_is_tried_until_it_is(world: World, patience: Patience) -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    client = client_of(world, patience, url=f"http://127.0.0.1:{port}")
    async with client:
        with pytest.raises(ServiceUnavailable) as raised:
            await client.submit_bulk([json_job(URL, 1)])  # never received, so even a set is tried again
    assert raised.value.attempts == 8
    assert len(patience.pauses) == 7


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (302, b"", ServiceFault),
        (200, b"<html>", ServiceFault),
        (202, b'{"id": 7}', ServiceFault),
        (500, b"<html>", ServiceFault),
        (404, b"<html>", ServiceFault),
        (418, b'{"type":"urn:tenantry:problem:teapot","detail":"d"}', RequestRefused),
        (403, b"<html>", CredentialRefused),
    ],
)
async def test_answers_that_are_no_tenantry_server_s_are_typed_errors(  # noqa: PLR0917
    world: World, patience: Patience, status: int, body: bytes, error: type[Exception]
) -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answer(writer, status, body)

    async with serving(odd) as url, client_of(world, patience, url=url) as client:
        with pytest.raises(error):
            await client.submit(json_job(URL, 1))
        with pytest.raises((ServiceFault, RequestRefused, CredentialRefused)):
            await client.job("00000000-0000-7000-8000-000000000000")
    assert patience.pauses == []


async def test_a_wrong_value_is_named_by_its_path(client: TenantryClient) -> None:
    with pytest.raises(InvalidValue) as raised:
        await client.submit_batch([json_job(URL, 1), json_job(URL, 1, cost=-1)])
    assert raised.value.path == "jobs[1].cost"
    assert "above 0" in str(raised.value)
    with pytest.raises(UsageError, match="longer than"):
        await client.submit(NewJob(Target(URL), b"x" * 1_048_577))


async def test_a_revoked_key_is_a_typed_error_without_the_key(world: World, client: TenantryClient) -> None:
    world.keys.revoke(world.made["acme"].key_id)
    with pytest.raises(CredentialRefused) as raised:
        await client.submit(json_job(URL, 1))
    assert raised.value.problem == "unauthenticated"
    assert world.key() not in str(raised.value) + repr(client)


@pytest.mark.parametrize(
    ("url", "key", "path"),
    [
        ("ftp://a.example", None, "base_url"),
        ("https://a.example?api_key=tk_secret", None, "base_url"),
        ("https://u:p@a.example", None, "base_url"),
        ("https://a.example", "tk_secret", "api_key"),
    ],
)
def test_a_client_that_cannot_work_is_not_made(url: str, key: str | None, path: str) -> None:
    good = World().key()
    with pytest.raises(InvalidValue) as raised:
        TenantryClient(url, key or good)
    assert raised.value.path == path
    assert "tk_secret" not in str(raised.value)


async def test_waiting_ends_with_the_job_or_with_the_time(
    world: World, client: TenantryClient, patience: Patience
) -> None:
    ticket = await accepted(client, json_job(URL, 1))
    found = await client.wait(ticket.id, at_most=10)
    assert found is not None
    assert not found.ended
    assert sum(patience.pauses) == pytest.approx(10)
    assert max(patience.pauses) <= 2.4


async def test_a_closed_client_says_so(world: World, patience: Patience) -> None:
    client = client_of(world, patience)
    await client.close()
    await client.close()
    with pytest.raises(Closed):
        await client.jobs()


async def test_code_without_asyncio_has_the_same_client(world: World) -> None:
    def story() -> tuple[Ticket, JobState | None]:
        with SyncTenantryClient(world.server.url, world.key()) as client:
            ticket = client.submit(json_job(URL, 1))
            assert isinstance(ticket, Ticket)
            assert client.job(ticket.id) is not None
            assert len(client.jobs()) == 1
            assert client.explain(ticket.id)
            assert isinstance(client.submit_batch([json_job(URL, 1)]), tuple)
            progress = client.submit_bulk([json_job(URL, 1)])
            assert isinstance(progress, BulkProgress)
            assert client.bulk(progress.id) is not None
            state = client.cancel(ticket.id)
            ended = client.wait(ticket.id)
            assert ended is not None
            assert world.key() not in repr(client)
        client.close()
        with pytest.raises(Closed):
            client.jobs()
        return ticket, state

    ticket, state = await asyncio.to_thread(story)
    assert state is JobState.CANCELLED
    assert ticket.id


async def test_closing_ends_calls_that_are_still_running(world: World) -> None:
    waiting = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting.set()
        await reader.read()
        writer.close()

    async with serving(silent) as url:
        client = SyncTenantryClient(url, world.key())
        call = loop.run_in_executor(None, client.jobs)
        await waiting.wait()
        await loop.run_in_executor(None, client.close)
        with pytest.raises(Closed):
            await call


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class serving:
    """A server of one's own on loopback; its address."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()


async def answer(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    writer.write(
        b"HTTP/1.1 %d X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (status, len(body)) + body
    )
    await writer.drain()
    writer.close()


def _acme(world: World):  # type: ignore[no-untyped-def]
    return next(document.tenant for document in world.directory.tenants() if document.tenant == "acme")
