"""What JetStream makes of a message, told as an outcome."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import pytest

nats = pytest.importorskip("nats", reason="pip install nats-py")

from cut_wire import Wire  # noqa: E402
from nats.js.api import DiscardPolicy, StreamConfig  # noqa: E402

from tenantry.brokers.nats import NatsSender, StreamSource  # noqa: E402
from tenantry.brokers.targets import BrokerTargets  # noqa: E402
from tenantry.config.model import TargetSettings  # noqa: E402
from tenantry.lanes.outcome import Outcome  # noqa: E402
from tenantry.replay.connections import Connection, Connections  # noqa: E402
from tenantry.replay.model import SourceAddress  # noqa: E402
from tenantry.testing.jobs import claimed_job  # noqa: E402

_names = count(1)


def targets_of(url: str) -> BrokerTargets:
    connection = Connection(name="core", kind="nats", url=url, targets={"acme": ("*",)})
    return BrokerTargets(Connections({"core": connection}), {"nats": NatsSender})


async def sent(targets: BrokerTargets, subject: str, *, timeout_for: float = 10, **changes: Any) -> Outcome:
    job = claimed_job(f"nats:core/{subject}", **changes)
    return await targets.execute(job, TargetSettings(timeout_for=timeout_for))


@pytest.fixture
async def link(nats_url: str) -> AsyncIterator[Any]:
    link = await nats.connect(nats_url)
    yield link
    await link.close()


async def stream(link: Any, **config: Any) -> str:
    name = f"IN{next(_names)}"
    await link.jetstream().add_stream(StreamConfig(name=name, subjects=[f"{name}.>"], **config))
    return name


async def test_an_acknowledged_message_is_in_the_stream_as_it_was(nats_url: str, link: Any) -> None:
    name = await stream(link)
    headers = {"shape": "round", "tenantry-key": "k", "nats-expected-stream": "other", "bad": "a\nb"}
    async with targets_of(nats_url) as targets:
        for _ in range(2):  # JetStream is not to take the second for the first
            outcome = await sent(
                targets, f"{name}.a", headers=headers, payload=b"\x00", content_type="text/plain"
            )
            assert outcome.error_class == "ok"
    connection = Connection(name="core", kind="nats", url=nats_url)
    entries = await StreamSource(connection, SourceAddress("nats", name)).peek(3)
    assert [entry.message.payload for entry in entries] == [b"\x00"] * 2
    assert entries[0].message.headers == {"content-type": "text/plain", "shape": "round", "tenantry-key": "k"}


async def test_each_of_many_at_once_is_told_its_own_end(nats_url: str, link: Any) -> None:
    name = await stream(link, max_msg_size=1_000)
    full = await stream(link, max_msgs=1, discard=DiscardPolicy.NEW)
    await link.jetstream().publish(f"{full}.a", b"1")

    async def answers(message: Any) -> None:
        await message.respond(b"hello")

    await link.subscribe("somebody", cb=answers)
    async with targets_of(nats_url) as targets:
        outcomes = await asyncio.gather(
            *(sent(targets, f"{name}.a") for _ in range(100)),
            sent(targets, f"{name}.a", payload=bytes(1_001)),
            sent(targets, f"{name}.a", payload=bytes(1_048_577)),
            sent(targets, f"{full}.a"),
            sent(targets, "nobody.a"),
            sent(targets, "somebody"),
            sent(targets, f"{name}.*"),
        )
    assert [outcome.error_class for outcome in outcomes] == ["ok"] * 100 + [
        "message_too_large", "message_too_large", "broker_nack", "unroutable", "unroutable", "invalid_url",
    ]  # fmt: skip


async def test_a_server_that_is_lost_is_the_target_s_fault_and_is_found_again(
    nats_url: str, link: Any
) -> None:
    name = await stream(link)
    port = urlsplit(nats_url).port
    assert port
    async with Wire(port) as wire, targets_of(wire.through(nats_url)) as targets:
        assert (await sent(targets, f"{name}.a")).succeeded
        wire.cut()
        while not (outcome := await sent(targets, f"{name}.a", timeout_for=0.5)).succeeded:
            assert outcome.error_class in {"broker_unreachable", "timeout"}


@pytest.mark.parametrize("url", ["nats://u:s3cret@127.0.0.1:1", "nats://u:s3cret@[::bad"])
async def test_a_server_that_cannot_be_reached_is_told_without_the_password(url: str) -> None:
    async with targets_of(url) as targets:
        outcome = await sent(targets, "a", timeout_for=1)
    assert outcome.error_class in {"broker_unreachable", "timeout"}
    assert "s3cret" not in outcome.excerpt
