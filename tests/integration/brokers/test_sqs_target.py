"""What SQS makes of a message, told as an outcome: on ministack, an emulator, or on ``SQS_ENDPOINT``."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

pytest.importorskip("aiobotocore", reason="pip install aiobotocore")

from tenantry.brokers.sqs import SqsSender, SqsSource, link, reading
from tenantry.brokers.targets import BrokerTargets
from tenantry.config.model import TargetSettings
from tenantry.lanes.outcome import Outcome
from tenantry.replay.connections import Connection, Connections
from tenantry.replay.model import SourceAddress
from tenantry.testing.jobs import claimed_job

_names = count(1)
OPTIONS = {"region": "eu-central-1", "access_key_id": "test", "secret_access_key": "s3cret"}


def connection_to(url: str) -> Connection:
    return Connection(name="eu", kind="sqs", url=url, options=OPTIONS, targets={"acme": ("*",)})


def targets_of(url: str) -> BrokerTargets:
    return BrokerTargets(Connections({"eu": connection_to(url)}), {"sqs": SqsSender})


async def sent(targets: BrokerTargets, queue: str, *, timeout_for: float = 20, **changes: Any) -> Outcome:
    return await targets.execute(
        claimed_job(f"sqs:eu/{queue}", **changes), TargetSettings(timeout_for=timeout_for)
    )


@pytest.fixture
async def client(sqs_endpoint: str) -> AsyncIterator[Any]:
    async with link.opened(connection_to(sqs_endpoint)) as client:
        yield client


async def made(client: Any, suffix: str = "", **attributes: str) -> str:
    name = f"in-{next(_names)}{suffix}"
    await client.create_queue(QueueName=name, Attributes=attributes)
    return name


def source(url: str, queue: str) -> SqsSource:
    return SqsSource(connection_to(url), SourceAddress("sqs", queue, "eu"))


async def test_a_message_is_in_the_queue_as_it_was_however_many_headers_it_has(
    sqs_endpoint: str, client: Any
) -> None:
    queue = await made(client)
    headers = {f"h{n}": str(n) for n in range(14)} | {"a b": "odd name", "tenantry-key": "k", "empty": ""}
    async with targets_of(sqs_endpoint) as targets:
        outcome = await sent(targets, queue, headers=headers, payload="ä".encode(), content_type="text/plain")
    assert outcome.error_class == "ok", outcome
    (entry,) = await source(sqs_endpoint, queue).peek(1)
    assert entry.message.payload == "ä".encode()
    assert entry.message.content_type == "text/plain"
    assert entry.message.headers == headers


async def test_what_came_from_a_group_goes_back_to_it_and_a_repeat_on_purpose_is_no_repeat(
    sqs_endpoint: str, client: Any
) -> None:
    queue = await made(client, ".fifo", FifoQueue="true")
    async with targets_of(sqs_endpoint) as targets:
        for claim in (1, 2):
            outcome = await sent(
                targets, queue, headers={reading.GROUP: "g1", "sqs-binary-raw": "/w=="}, claim=claim
            )
            assert outcome.succeeded
    assert (await source(sqs_endpoint, queue).survey()).count == 2
    entry = (await source(sqs_endpoint, queue).peek(1))[0]
    assert entry.message.headers == {reading.GROUP: "g1", "sqs-binary-raw": "/w=="}


async def test_each_of_many_is_told_its_own_end(sqs_endpoint: str, client: Any) -> None:
    queue = await made(client)
    async with targets_of(sqs_endpoint) as targets:
        outcomes = await asyncio.gather(
            *(sent(targets, queue) for _ in range(40)),
            sent(targets, "absent"),
            sent(targets, queue, payload=b"\xff"),
            sent(targets, queue, payload=b"\x00"),
            sent(targets, queue, payload=b""),
            sent(targets, queue, payload=b"x" * 1_048_577),
            sent(targets, "a/b"),
        )
    assert [outcome.error_class for outcome in outcomes] == ["ok"] * 40 + [
        "unroutable", "unsuitable", "unsuitable", "unsuitable", "message_too_large", "invalid_url",
    ]  # fmt: skip


async def test_an_endpoint_that_is_not_there_is_the_target_s_fault() -> None:
    for url in ("http://127.0.0.1:1", "s3cret"):
        async with targets_of(url) as targets:
            outcome = await sent(targets, "q")
        assert outcome.error_class == "broker_unreachable"
        assert "s3cret" not in outcome.excerpt
