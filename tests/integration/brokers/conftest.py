"""The brokers that the suite runs on: all kinds that install, or the one that ``KAFKA_BOOTSTRAP`` names."""

import os
from collections.abc import Iterator

import pytest

pytest.importorskip("confluent_kafka", reason="pip install 'tenantry[kafka]'")

from kafka_world import Broker, brokers

KINDS = ("bootstrap",) if "KAFKA_BOOTSTRAP" in os.environ else ("tansu", "mock")  # noqa: TID251


@pytest.fixture(scope="session")
def _first() -> Iterator[Broker]:
    with brokers(KINDS[0]) as broker:
        yield broker


@pytest.fixture(scope="session", params=KINDS)
def any_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Every kind in turn."""
    with brokers(request.param) as broker:
        yield broker


@pytest.fixture(scope="session")
def broker(_first: Broker) -> Broker:
    """The first kind."""
    return _first


@pytest.fixture(scope="session")
def timed_broker() -> Iterator[Broker]:
    """One that says which offset a time begins at: Tansu answers 0 for every time."""
    with brokers("noida" if KINDS[0] == "tansu" else KINDS[0]) as broker:
        yield broker
