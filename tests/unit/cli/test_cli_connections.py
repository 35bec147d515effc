"""What a node makes of the operator's document of connections."""

import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tenantry.brokers.jsonl import JsonLinesSource
from tenantry.brokers.kafka.replay_source import TopicSource
from tenantry.brokers.nats import StreamSource
from tenantry.brokers.rabbitmq import RabbitSource
from tenantry.brokers.sqs import SqsSource
from tenantry.brokers.sqs import link as sqs
from tenantry.cli.connections import NodeSources, broker_targets, read_connections
from tenantry.cli.settings import NodeSettings, Role
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import InvalidValue, MissingExtra, UsageError
from tenantry.kernel.tenant import TenantId
from tenantry.postgres.dead_letter_source import DeadLetterSource
from tenantry.postgres.table_source import TableSource
from tenantry.replay.connections import NO_CONNECTIONS, Connections, parse_connections
from tenantry.replay.model import SourceAddress

ACME, OTHER = TenantId("acme"), TenantId("other")
DOCUMENT = "\n".join(
    f'[connections.my-{kind}]\nkind = "{kind}"\nurl = "https://u:s3cret@sqs.eu-west-1.amazonaws.com/"\n[connections.my-{kind}.tenants.acme]\n'
    f'sources = ["a.b", "A"]\ntargets = ["a/*"]'
    for kind in ("jsonl", "table", "rabbitmq", "kafka", "nats", "sqs")
)


class NoDatabase:
    tenant = None


def sources(connections: Connections) -> NodeSources:
    return NodeSources(cast(Any, NoDatabase()), connections)


def address(kind: str, **options: str) -> SourceAddress:
    return SourceAddress(kind, "a.b", f"my-{kind}", options)


def test_each_kind_of_source_has_its_adapter() -> None:
    node = sources(parse_connections(DOCUMENT))
    columns = {"key_columns": "id", "payload_column": "body"}
    assert isinstance(node.source(ACME, address("jsonl")), JsonLinesSource)
    assert isinstance(node.source(ACME, address("table", **columns)), TableSource)
    assert isinstance(node.source(ACME, address("rabbitmq")), RabbitSource)
    assert isinstance(node.source(ACME, address("kafka")), TopicSource)
    assert isinstance(node.source(ACME, SourceAddress("nats", "A", "my-nats")), StreamSource)
    assert isinstance(node.source(ACME, SourceAddress("sqs", "A", "my-sqs")), SqsSource)
    assert isinstance(node.source(OTHER, SourceAddress("dead_letters")), DeadLetterSource)
    with pytest.raises(InvalidValue, match=r"source\.kind.*dead_letters"):
        node.source(ACME, address("carrier-pigeon"))


@pytest.mark.parametrize("kind", ["jsonl", "table", "rabbitmq", "kafka", "nats", "sqs"])
def test_a_tenant_without_a_grant_gets_no_source_of_any_kind(kind: str) -> None:
    for node in (sources(parse_connections(DOCUMENT)), sources(NO_CONNECTIONS)):
        with pytest.raises(InvalidValue, match="open to other for reading") as raised:
            node.source(OTHER, address(kind))
        assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "module"),
    [("rabbitmq", "aiormq"), ("kafka", "confluent_kafka"), ("nats", "nats"), ("sqs", "aiobotocore.session")],
)
def test_a_client_that_is_not_installed_is_named_with_its_extra_at_the_start(
    monkeypatch: pytest.MonkeyPatch, kind: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    sqs.session.cache_clear()
    connections = parse_connections(DOCUMENT)
    with pytest.raises(MissingExtra, match=rf"tenantry\[{kind}\]"):
        broker_targets(connections, SystemClock())
    with pytest.raises(MissingExtra, match=rf"tenantry\[{kind}\]"):
        sources(connections).source(ACME, address(kind))


def test_a_file_that_is_not_there_or_not_sound_is_named(tmp_path: Path) -> None:
    assert read_connections(None) is NO_CONNECTIONS
    path = tmp_path / "connections.toml"
    with pytest.raises(UsageError, match=r"connections\.toml: No such file"):
        read_connections(path)
    path.write_text('[connections.a]\nkind = "amqp"\nurl = "amqp://u:s3cret@h/"\n')
    with pytest.raises(UsageError, match=r"connections\.toml: connections\.a\.kind") as raised:
        read_connections(path)
    assert "s3cret" not in str(raised.value)


def test_a_worker_that_only_writes_to_brokers_is_one() -> None:
    outside = parse_connections(DOCUMENT)
    assert NodeSettings(roles=frozenset({Role.WORKER}), http=False, outside=outside)
    with pytest.raises(InvalidValue, match="It could run nothing"):
        NodeSettings(roles=frozenset({Role.WORKER}), http=False)
