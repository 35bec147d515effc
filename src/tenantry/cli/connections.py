"""What the operator's document of connections opens: sources for replays, and senders for targets."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tenantry.brokers.targets import BrokerTargets, Sender
from tenantry.config.validation import RegistryErrors
from tenantry.kernel.clock import Clock
from tenantry.kernel.errors import InvalidValue, UsageError
from tenantry.kernel.tenant import TenantId
from tenantry.postgres.database import Database
from tenantry.postgres.hints import Hints
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.connections import NO_CONNECTIONS, Connection, Connections, parse_connections
from tenantry.replay.desk import ReplayService
from tenantry.replay.model import SourceAddress
from tenantry.replay.ports import Source

OWN: Final = "dead_letters"
"""The kind of source that needs no connection."""


def read_connections(path: Path | None) -> Connections:
    """The connections in a TOML file; none without one. Raises :class:`UsageError` naming the file, for one
    that cannot be read or says what it must not."""
    if path is None:
        return NO_CONNECTIONS
    try:
        return parse_connections(path.read_bytes())
    except OSError as error:
        raise UsageError(f"--connections-file {path}: {error.strerror or error}") from None
    except (InvalidValue, RegistryErrors) as error:
        raise UsageError(f"--connections-file {path}: {error}") from None


def broker_targets(connections: Connections, clock: Clock) -> BrokerTargets:
    """The targets in brokers of one node. Raises :class:`MissingExtra` where the client of a connection that
    is open for writing is not installed: found at the start, not at the first job."""
    targets = BrokerTargets(connections, _SENDERS, clock=clock)
    for each in connections:
        if each.kind in _CLIENTS and any(each.targets.values()):
            _CLIENTS[each.kind]()
    return targets


class NodeSources:
    """Every kind of source; see :class:`tenantry.replay.ports.Sources`. A tenant's own dead letters are
    always there for it, everything else as the operator's connections say."""

    def __init__(self, database: Database, connections: Connections) -> None:
        self._database, self._connections = database, connections

    def source(self, tenant: TenantId, address: SourceAddress) -> Source:
        if address.kind == OWN:
            from tenantry.postgres.dead_letter_source import DeadLetterSource

            return DeadLetterSource(self._database, tenant, address)
        make = _SOURCES.get(address.kind)
        if make is None:
            raise InvalidValue("source.kind", address.kind, " or ".join((OWN, *sorted(_SOURCES))))
        connection = self._connections.for_source(
            tenant, kind=address.kind, connection=address.connection, place=address.place
        )
        return make(tenant, connection, address)


def replay_service(
    database: Database, hints: Hints, around: Surroundings, connections: Connections
) -> ReplayService:
    """Opens, changes and shows the replays of a database, over the sources of ``connections``."""
    from tenantry.postgres.replay_desk import PostgresReplayDesk
    from tenantry.postgres.replay_standing import PostgresStanding

    return ReplayService(
        PostgresReplayDesk(database, hints, around.randomness),
        NodeSources(database, connections),
        PostgresStanding(database, hints, around.directory, around.clock),
        around,
    )


def _jsonl(tenant: TenantId, connection: Connection, address: SourceAddress) -> Source:
    from tenantry.brokers.jsonl import JsonLinesSource

    return JsonLinesSource(connection, address)


def _table(tenant: TenantId, connection: Connection, address: SourceAddress) -> Source:
    from tenantry.postgres.table_source import TableSource

    return TableSource(connection, tenant, address)


def _rabbitmq(tenant: TenantId, connection: Connection, address: SourceAddress) -> Source:
    from tenantry.brokers.rabbitmq import RabbitSource, link

    link.client()
    return RabbitSource(connection, address)


def _kafka(tenant: TenantId, connection: Connection, address: SourceAddress) -> Source:
    from tenantry.brokers.kafka.replay_source import TopicSource

    return TopicSource(connection, tenant, address)


def _to_kafka(connection: Connection) -> Sender:
    from tenantry.brokers.kafka.target import KafkaSender

    return KafkaSender(connection)


def _kafka_client() -> None:
    from tenantry.brokers.kafka.replay_source import client

    client()


def _nats(tenant: TenantId, connection: Connection, address: SourceAddress) -> Source:
    from tenantry.brokers.nats import StreamSource

    return StreamSource(connection, address)


def _to_nats(connection: Connection) -> Sender:
    from tenantry.brokers.nats import NatsSender

    return NatsSender(connection)


def _nats_client() -> None:
    from tenantry.brokers.nats.link import client

    client()


def _sqs(tenant: TenantId, connection: Connection, address: SourceAddress) -> Source:
    from tenantry.brokers.sqs import SqsSource

    return SqsSource(connection, address)


def _to_sqs(connection: Connection) -> Sender:
    from tenantry.brokers.sqs import SqsSender

    return SqsSender(connection)


def _sqs_client() -> None:
    from tenantry.brokers.sqs.link import session

    session()


def _to_rabbitmq(connection: Connection) -> Sender:
    from tenantry.brokers.rabbitmq import RabbitSender

    return RabbitSender(connection)


def _rabbitmq_client() -> None:
    from tenantry.brokers.rabbitmq import link

    link.client()


_SOURCES: Final[Mapping[str, Callable[[TenantId, Connection, SourceAddress], Source]]] = {
    "jsonl": _jsonl,
    "table": _table,
    "rabbitmq": _rabbitmq,
    "kafka": _kafka,
    "nats": _nats,
    "sqs": _sqs,
}
_SENDERS: Final[Mapping[str, Callable[[Connection], Sender]]] = {
    "rabbitmq": _to_rabbitmq,
    "kafka": _to_kafka,
    "nats": _to_nats,
    "sqs": _to_sqs,
}
_CLIENTS: Final[Mapping[str, Callable[[], None]]] = {
    "rabbitmq": _rabbitmq_client,
    "kafka": _kafka_client,
    "nats": _nats_client,
    "sqs": _sqs_client,
}
