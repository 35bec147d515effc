"""Places in brokers as targets: which connection a job goes through, and whether its tenant may.

Each system has a *sender*; what is here is the same for all. A node announces a kind for each connection that
the operator opened for writing, so a job only comes to a node that has its connection.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Protocol, Self

from tenantry.config.model import TargetSettings
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import InvalidValue
from tenantry.lanes.address import BrokerAddress, parse
from tenantry.lanes.model import Kind
from tenantry.lanes.outcome import Outcome, excerpt_of
from tenantry.queue.model import ClaimedJob
from tenantry.replay.connections import Connection, Connections

SCHEMES: Final[Mapping[str, str]] = {"rabbitmq": "amqp", "kafka": "kafka", "sqs": "sqs", "nats": "nats"}
"""The scheme of a target for each kind of connection that can be written to."""


class Sender(Protocol):
    """Writes to one system through one connection. Many tasks at once, one event loop."""

    async def send(self, address: BrokerAddress, job: ClaimedJob) -> Outcome:
        """Returns once the broker has confirmed the message, or why it did not. Raises nothing for a fault of
        the broker or the message; no credential is in an outcome. Where it is cancelled, whether the broker
        has the message is unknown."""
        ...

    async def close(self) -> None: ...


class BrokerTargets:
    """Executes jobs whose target is a place in a broker; see :class:`tenantry.queue.attempts.Executor`.

    ``senders``: makes the sender for a connection, by the connection's kind; a connection of a kind that is
    not there is not served. A sender is made, and connects, at its first job. Enter it (``async with``) to
    have the senders closed.
    """

    def __init__(
        self,
        connections: Connections,
        senders: Mapping[str, Callable[[Connection], Sender]],
        *,
        clock: Clock | None = None,
    ) -> None:
        self._connections, self._make = connections, senders
        self._clock = clock or SystemClock()
        self._served = {
            f"{SCHEMES[each.kind]}:{each.name}"
            for each in connections
            if each.kind in SCHEMES and each.kind in senders and any(each.targets.values())
        }
        self._senders: dict[str, Sender] = {}

    @property
    def kinds(self) -> frozenset[Kind]:
        """What a node with these connections can run."""
        return frozenset(map(Kind, self._served))

    async def execute(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        """One attempt, within ``settings.timeout_for``."""
        began = self._clock.monotonic()
        outcome = await self._sent(job, settings)
        return outcome.lasting(self._clock.monotonic() - began)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        senders, self._senders = self._senders, {}
        for sender in senders.values():
            await sender.close()

    async def _sent(self, job: ClaimedJob, settings: TargetSettings) -> Outcome:
        try:
            address = parse(settings.url or job.target)
        except InvalidValue as refused:
            return Outcome("invalid_url", excerpt=excerpt_of(str(refused)))
        if f"{address.scheme}:{address.connection}" not in self._served:
            return Outcome("unknown_connection", excerpt=f"this node does not serve {address.connection!r}")
        connection = self._connections.for_target(
            job.tenant, connection=address.connection, place=address.place
        )
        if connection is None:
            return Outcome("address_not_allowed")
        try:
            async with asyncio.timeout(settings.timeout_for):
                return await self._sender(connection).send(address, job)
        except TimeoutError:
            return Outcome("timeout", excerpt="the broker did not confirm in time")

    def _sender(self, connection: Connection) -> Sender:
        sender = self._senders.get(connection.name)
        if sender is None:
            sender = self._senders[connection.name] = self._make[connection.kind](connection)
        return sender
