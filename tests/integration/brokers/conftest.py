"""The brokers that the suite runs on: all kinds that install, or the one that ``KAFKA_BOOTSTRAP`` names.

Where a kind cannot do what a test is about, the test asks for one that can: noida-db never notices that a
member of a group died, and gets stuck where one joins while another leaves; Tansu answers 0 for the offset of
every time.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafka_world import Broker  # which skips whatever imports it where no client is installed

_OWN = "KAFKA_BOOTSTRAP" in os.environ  # noqa: TID251 - where the tests' broker is


@pytest.fixture(scope="session", params=("bootstrap",) if _OWN else ("noida", "tansu", "mock"))
def any_broker(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """Every kind in turn."""
    from kafka_world import brokers

    with brokers(request.param) as broker:
        yield broker


@pytest.fixture(scope="session")
def broker() -> "Iterator[Broker]":
    """One that tells which offset a time begins at."""
    from kafka_world import brokers

    with brokers("bootstrap" if _OWN else "noida") as broker:
        yield broker


@pytest.fixture(scope="session")
def watchful_broker() -> "Iterator[Broker]":
    """One that takes a dead member's partitions away when its session has ended."""
    from kafka_world import brokers

    with brokers("bootstrap" if _OWN else "tansu") as broker:
        yield broker


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[str]:
    """The URL of a RabbitMQ."""
    from rabbitmq_server import rabbitmq_url

    with rabbitmq_url() as url:
        yield url


@pytest.fixture(scope="session")
def nats_url() -> Iterator[str]:
    """The URL of a NATS server with JetStream."""
    from nats_server import jetstream_url

    with jetstream_url() as url:
        yield url


@pytest.fixture(scope="session")
def sqs_endpoint() -> Iterator[str]:
    """The endpoint of something that speaks SQS."""
    from sqs_server import sqs_url

    with sqs_url() as url:
        yield url
