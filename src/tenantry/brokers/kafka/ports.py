"""What the consumer's loop needs of a client of Kafka, and what that tells back."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tenantry.brokers.kafka.backlog import Room
from tenantry.brokers.kafka.model import Record, Spot
from tenantry.brokers.kafka.reorder import Gate
from tenantry.kernel.instant import Seconds


class Listener(Protocol):
    """Called by the source during :meth:`Source.fetch` and :meth:`Source.close`, in its thread."""

    def assigned(self, spots: Sequence[Spot]) -> None:
        """These are ours; fetching starts when this returns."""
        ...

    def revoked(self, spots: Sequence[Spot]) -> Mapping[Spot, int]:
        """These will be another's when this returns and what it returns is committed. May take a while."""
        ...

    def lost(self, spots: Sequence[Spot]) -> None:
        """These are another's already."""
        ...

    def complained(self, code: str, doing: str) -> None:
        """A fault that passes."""
        ...


class Source(Protocol):
    """One member of a consumer group. All calls are made from one thread, and may block it."""

    def open(self, listener: Listener) -> None:
        """Join the group. Raises :class:`MissingExtra`, :class:`BrokerFailed`, and
        :class:`InvalidValue` for a configuration that the client refuses."""
        ...

    def fetch(self, room: Room, wait: Seconds) -> list[Record]:
        """At most ``room``, after at most ``wait`` if there is nothing. Of partitions that are owned and not
        paused as it returns, in rising offsets a partition. Raises :class:`BrokerFailed`."""
        ...

    def pause(self, spots: Iterable[Spot]) -> None:
        """Fetch nothing of these."""
        ...

    def resume(self, spots: Iterable[Spot]) -> None:
        """Fetch these again, from where they were paused."""
        ...

    def commit(self, positions: Mapping[Spot, int]) -> bool:
        """Whether the broker has these now; if not, the listener was told."""
        ...

    def ends(self, spots: Iterable[Spot]) -> dict[Spot, int]:
        """The offset after the last record of each, as far as it is known here. Asks nobody."""
        ...

    def passed(self, gates: Iterable[Gate]) -> list[Gate]:
        """Those whose partition the group has finished up to the gate's time. Asks the broker."""
        ...

    def close(self) -> None:
        """Leave the group; revokes what is owned first."""
        ...
