"""What one consumer holds: bounded, per entity in order, and what of it may be committed. Pure.

A line is one entity of one tenant in one partition. Its head is running (or waits for a gate); the rest wait
behind it. An item leaves when it is finished, or with its partition.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tenantry.brokers.kafka.model import Identity, Record, Spot
from tenantry.brokers.kafka.offsets import OffsetTracker
from tenantry.kernel.errors import InvalidValue

_LineKey = tuple[str, str] | int
"""(tenant, entity), or the offset of a record that has no order to keep."""

UNIDENTIFIED: _LineKey = ("", "")
"""The line of records that are nobody's: one at a time a partition. No tenant has an empty id."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Most records and bytes held, per partition and in all; all >= 1. A byte bound is exceeded by at most
    the one record that reached it. ``resume_at`` in (0, 1): a full partition is fetched again when what it
    holds fell to that part of its bound."""

    records_per_partition: int = 1_000
    records: int = 10_000
    bytes_per_partition: int = 16 << 20
    bytes: int = 64 << 20
    resume_at: float = 0.5

    def __post_init__(self) -> None:
        for name in ("records_per_partition", "records", "bytes_per_partition", "bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidValue(f"limits.{name}", value, "a whole number >= 1")
        if not 0.0 < self.resume_at < 1.0:
            raise InvalidValue("limits.resume_at", self.resume_at, "a number in (0, 1)")


class Room(NamedTuple):
    """The most that one fetch may bring."""

    records: int
    bytes: int


@dataclass(slots=True, eq=False)
class Item:
    """One held record. ``identity`` is None when it is nobody's; ``fault`` says why, or what its last attempt
    failed by: then it is to be put aside."""

    record: Record
    identity: Identity | None
    share: "Share"
    fault: Exception | None = None
    attempts: int = 0

    @property
    def line(self) -> _LineKey:
        if self.identity is None:
            return UNIDENTIFIED
        tenant, entity = self.identity
        return self.record.offset if entity is None else (tenant, entity)


@dataclass(slots=True, eq=False)
class Share:
    """What is held of one partition, from its assignment to its revocation. ``live`` until then."""

    spot: Spot
    live: bool = True
    full: bool = False
    held: int = 0
    tracker: OffsetTracker = field(default_factory=OffsetTracker)
    items: dict[int, Item] = field(default_factory=dict)  # by offset, rising
    lines: dict[_LineKey, deque[Item]] = field(default_factory=dict)
    committed: int | None = None


class Backlog:
    """For one thread. Every call is O(1) but those over partitions, O(partitions)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._shares: dict[Spot, Share] = {}
        self._records = self._bytes = 0
        self._closed = False  # the bound over all partitions was reached

    @property
    def records(self) -> int:
        """How many are held."""
        return self._records

    @property
    def bytes(self) -> int:
        """What those count for."""
        return self._bytes

    def __contains__(self, spot: Spot) -> bool:
        return spot in self._shares

    def shares(self) -> Iterator[Share]:
        """The partitions that are owned."""
        return iter(self._shares.values())

    def assign(self, spots: Iterable[Spot]) -> None:
        """These are owned from now on, with nothing held."""
        for spot in spots:
            self.revoke((spot,))
            self._shares[spot] = Share(spot)

    def stop(self, spots: Iterable[Spot]) -> list[Item]:
        """Start nothing more of these. Returns what of them is not finished, and still may be."""
        shares = [self._shares[spot] for spot in spots if spot in self._shares]
        for share in shares:
            share.live = False
        return [item for share in shares for item in share.items.values()]

    def revoke(self, spots: Iterable[Spot]) -> dict[Spot, int]:
        """These are owned no more; what is held of them is dropped. Returns what may be committed."""
        positions: dict[Spot, int] = {}
        for spot in spots:
            share = self._shares.pop(spot, None)
            if share is None:
                continue
            share.live = False
            self._records -= len(share.items)
            self._bytes -= share.held
            if share.tracker.position is not None and share.tracker.position != share.committed:
                positions[spot] = share.tracker.position
        return positions

    def accept(self, record: Record, identity: Identity | Exception) -> Item | None:
        """Hold one more record, or one that is nobody's, and why. Returns it at the head of its line: start
        it.

        A record of a partition that is not owned is dropped: its owner has it.
        """
        share = self._shares.get(record.spot)
        if share is None:
            return None
        share.tracker.fetched(record.offset)
        if isinstance(identity, Exception):
            item = Item(record, None, share, fault=identity)
        else:
            item = Item(record, identity, share)
        share.items[record.offset] = item
        share.held += record.size
        self._records += 1
        self._bytes += record.size
        line = share.lines.setdefault(item.line, deque())
        line.append(item)
        return item if len(line) == 1 else None

    def finished(self, item: Item) -> Item | None:
        """Done for good. Returns the next of its line, if it is to be started. Late ones change nothing."""
        share = item.share
        if self._shares.get(share.spot) is not share:
            return None
        share.tracker.finished(item.record.offset)
        del share.items[item.record.offset]
        share.held -= item.record.size
        self._records -= 1
        self._bytes -= item.record.size
        line = share.lines[item.line]
        line.popleft()
        if line:
            return line[0] if share.live else None
        del share.lines[item.line]
        return None

    def room(self) -> Room:
        """What the next fetch may bring, whichever partition it comes from; at least one record."""
        limits, open_ = self._limits, [share for share in self._shares.values() if not share.full]
        records = [limits.records_per_partition - len(share.items) for share in open_]
        held = [limits.bytes_per_partition - share.held for share in open_]
        return Room(
            max(1, min([limits.records - self._records, *records])),
            max(1, min([limits.bytes - self._bytes, *held])),
        )

    def steer(self, awaited: Collection[Spot] = ()) -> tuple[list[Spot], list[Spot]]:
        """Which partitions to pause and which to resume now; each is told once.

        The bound over all partitions pauses none that is ``awaited``: what fills it may be waiting for
        records there. Their own bounds hold, so that by so much, at most, the bound over all is exceeded.
        """
        self._closed = self._over(self._closed, self._records, self._bytes, of_all=True)
        pause: list[Spot] = []
        resume: list[Spot] = []
        for share in self._shares.values():
            own = self._over(share.full and not self._closed, len(share.items), share.held, of_all=False)
            full = own or (self._closed and share.spot not in awaited)
            if full != share.full:
                share.full = full
                (pause if full else resume).append(share.spot)
        return pause, resume

    def positions(self) -> dict[Spot, int]:
        """What may be committed and is not yet known to be."""
        return {
            share.spot: position
            for share in self._shares.values()
            if (position := share.tracker.position) is not None and position != share.committed
        }

    def committed(self, positions: Mapping[Spot, int]) -> None:
        """The broker has these."""
        for spot, position in positions.items():
            if spot in self._shares:
                self._shares[spot].committed = position

    def _over(self, was: bool, records: int, held: int, *, of_all: bool) -> bool:
        """Over a bound; once it was, until it fell to the part at which it is fetched again."""
        limits = self._limits
        most = limits.records if of_all else limits.records_per_partition
        most_bytes = limits.bytes if of_all else limits.bytes_per_partition
        part = limits.resume_at if was else 1.0
        if was:
            return records > part * most or held > part * most_bytes
        return records >= most or held >= most_bytes
