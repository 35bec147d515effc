"""One session over one file. The reading blocks, so it happens in threads, one call at a time."""

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Self

from tenantry.algorithms.reservoir import sampled
from tenantry.brokers.jsonl.mapping import Mapping, unread
from tenantry.brokers.jsonl.sampling import at_chance
from tenantry.brokers.jsonl.stream import (
    LONGEST_LINE,
    Damaged,
    Line,
    blocks,
    from_offset,
    is_plain,
    lines,
    skipped,
)
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import Closed, InvalidValue, SourceUnavailable
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness, SystemRandomness
from tenantry.replay.connections import Connection
from tenantry.replay.model import Batch, Fetched, Membership, Position, SourceAddress, Traits

_HEAD = 65_536
"""Bytes of the file's beginning that are compared with what was there when the membership was frozen."""

_LEAST_WAIT: Seconds = 1.0
"""For a batch of lines; longer is what it takes to come to the middle of a compressed file."""

_COUNT_FOR: Seconds = 5.0
"""For counting the lines of a file; after that the rest is estimated."""

_READ_WHOLE = 67_108_864
"""Bytes of a plain file that a sample is taken from by reading all of it: half a second."""

_BATCH_BYTES = 16_777_216
"""After so many bytes a batch is full, whatever its count."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """The file as it was: so long, and beginning so."""

    size: int
    digest: str

    def __str__(self) -> str:
        return f"{self.size}/{self.digest}"

    @classmethod
    def parsed(cls, text: str) -> Self:
        size, _, digest = text.partition("/")
        if not (size.isascii() and size.isdigit() and digest):
            raise InvalidValue("membership.bound", text, "what survey() gave for a file")
        return cls(int(size), digest)


class JsonLinesSource:
    """A session of one reader of one file; see :class:`~tenantry.replay.ports.Source`. One task only.

    ``connection``: its URL is the directory below which ``address.place`` must lead, links followed. The
    options are those of :data:`~tenantry.brokers.jsonl.mapping.OPTIONS`. Raises :class:`InvalidValue` and
    :class:`UnknownKey` for an address that it cannot read.
    """

    def __init__(
        self,
        connection: Connection,
        address: SourceAddress,
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._mapping = Mapping.of(address.options)
        self._root, self._clock = Path(connection.url), clock or SystemClock()
        self._randomness = randomness or SystemRandomness()
        self._place = _checked_place(address.place)
        self._file: BinaryIO | None = None
        self._lines: Iterator[Line] | None = None
        self._reading: asyncio.Future[Batch] | None = None
        self._over: Batch | None = None
        self._stopped = threading.Event()
        self._damage = ""

    @property
    def traits(self) -> Traits:
        return Traits(counts=True, freezes=True, acknowledges=False)

    async def survey(self) -> Membership:
        """The file's length, the digest of its beginning, and the number of its lines. A file that takes
        longer than :data:`_COUNT_FOR` to read is counted in part, and the rest is estimated from that."""
        return await asyncio.to_thread(self._surveyed)

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """Lines at random, in the file's order. Of a compressed file that takes longer than
        :data:`_COUNT_FOR` to read they are of what was read until then."""
        return await asyncio.to_thread(self._peeked, limit)

    async def arrived(self, membership: Membership) -> int | None:
        """The lines that were appended to a plain file; None for a compressed one that has grown."""
        return await asyncio.to_thread(self._appended, _Bound.parsed(membership.bound))

    async def open(self, membership: Membership, after: Position) -> None:
        """Raises :class:`SourceUnavailable` for a file that is not there, or that has changed since."""
        await asyncio.to_thread(self._opened, _Bound.parsed(membership.bound), _parsed_position(after))

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """The next lines. A file has not to be waited for, but where a compressed one is read from its
        middle: then batches are empty until the place is reached. Raises :class:`SourceUnavailable` where a
        compressed stream is damaged or cut short: what stood before it has been given."""
        if self._lines is None:
            raise Closed("this session is not open")
        if self._over is not None:
            return self._within(self._over, limit)
        if self._reading is None:
            read = asyncio.to_thread(self._fetched, min(limit, self.traits.window), self._lines)
            self._reading = asyncio.ensure_future(read)
        done, _ = await asyncio.wait([self._reading], timeout=max(wait_for, _LEAST_WAIT))
        if not done:
            return Batch(())
        reading, self._reading = self._reading, None
        return self._within(reading.result(), limit)

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """Nothing: the position says how far it was read."""

    async def leave(self, receipts: Sequence[object]) -> None:
        """Nothing: the file keeps them."""

    async def close(self) -> None:
        self._stopped.set()
        self._lines = None
        reading, file = self._reading, self._file
        self._reading = self._file = None
        if reading is not None and not reading.done():
            reading.add_done_callback(partial(_end, file))  # the thread has it yet
        elif file is not None:
            file.close()

    def _within(self, batch: Batch, limit: int) -> Batch:
        """A batch that was begun for a larger limit is given out in parts."""
        if len(batch.messages) <= limit:
            self._over = None
            return batch
        self._over = Batch(batch.messages[limit:], batch.exhausted)
        return Batch(batch.messages[:limit])

    def _surveyed(self) -> Membership:
        until = self._clock.monotonic() + _COUNT_FOR
        count = 0
        with self._read() as file:
            bound, plain = _bound_of(file), is_plain(file)
            with self._told():
                for line in lines(blocks(file, bound.size)):
                    count += 1
                    if count % 64 == 0 and self._clock.monotonic() > until:
                        read = line.end if plain else file.tell()
                        return Membership(str(bound), round(count * bound.size / read), False)
        return Membership(str(bound), count)

    def _peeked(self, limit: int) -> list[Fetched]:
        with self._read() as file, self._told():
            size = os.fstat(file.fileno()).st_size
            uniform = self._randomness.uniform
            if is_plain(file) and size > _READ_WHOLE:
                found = at_chance(file, size, limit, uniform)
            else:
                found = sampled(self._in_time(lines(blocks(file, size))), limit, uniform)
            return [replace(self._entry(line), position=None) for line in found]

    def _in_time(self, found: Iterator[Line]) -> Iterator[Line]:
        """``found`` until it is late: a small compressed file may be very large inside."""
        until = self._clock.monotonic() + _COUNT_FOR
        for number, line in enumerate(found):
            if number % 64 == 0 and number and self._clock.monotonic() > until:
                return
            yield line

    def _appended(self, bound: _Bound) -> int | None:
        with self._read() as file:
            size = os.fstat(file.fileno()).st_size
            if size <= bound.size:
                return 0
            if not is_plain(file):
                return None
            return sum(1 for _ in lines(from_offset(file, bound.size, size)))

    def _opened(self, bound: _Bound, after: tuple[int, int]) -> None:
        file = self._read()
        if (now := _bound_of(file, bound.size)) != bound:
            file.close()
            changed = "it is shorter now" if now.size < bound.size else "its beginning has changed"
            raise SourceUnavailable(
                f"the file {self._place} is not the one that was planned: {changed}. Put the file back, or "
                "plan again"
            )
        offset, number = after
        self._over = None
        self._file, self._damage, self._stopped = file, "", threading.Event()
        content = from_offset(file, offset, bound.size) if is_plain(file) else blocks(file, bound.size)
        content = _until(self._stopped, content)
        left = content if is_plain(file) else skipped(content, offset)
        self._lines = lines(left, start=offset, number=number)

    def _fetched(self, limit: int, left: Iterator[Line]) -> Batch:
        found: list[Fetched] = []
        size = 0
        while len(found) < limit and size < _BATCH_BYTES and not self._damage:
            try:
                line = next(left, None)
            except Damaged as why:
                self._damage = str(why)
                break
            if line is None:
                return Batch(tuple(found), exhausted=True)
            found.append(self._entry(line))
            size += len(line.data)
        if self._damage and not found:  # what stood before it was given
            raise SourceUnavailable(f"the file {self._place}: {self._damage}")
        return Batch(tuple(found))

    def _entry(self, line: Line) -> Fetched:
        name, position = (
            f"byte {line.start}",
            Position(f"{line.end + 1}/{line.number}"),
        )  # behind its line feed
        if line.too_long:
            why = f"the line has more than {LONGEST_LINE:,} bytes; its beginning is kept"
            return unread(line.data, name, why, position)
        return self._mapping.entry(line.data, name, position)

    def _read(self) -> BinaryIO:
        """The file, if it lies below the directory and is one."""
        try:
            root = self._root.resolve(strict=True)
            path = (root / self._place).resolve(strict=True)
            if not path.is_relative_to(root) or not path.is_file():
                raise SourceUnavailable(f"{self._place} is no file below the connection's directory")
            return path.open("rb")
        except OSError as error:
            raise SourceUnavailable(f"the file {self._place}: {error.strerror or 'cannot be read'}") from None
        except RuntimeError:  # what Python 3.11 and 3.12 make of ELOOP
            raise SourceUnavailable(f"the file {self._place}: its links lead back to themselves") from None

    def _told(self) -> "_Told":
        return _Told(self._place)


class _Told:
    """Damage is the source's state, not our bug."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Damaged):
            raise SourceUnavailable(f"the file {self._place}: {error}") from None


def _bound_of(file: BinaryIO, size: int | None = None) -> _Bound:
    now = os.fstat(file.fileno()).st_size
    size = now if size is None else min(size, now)
    file.seek(0)
    return _Bound(size, hashlib.sha256(file.read(min(size, _HEAD))).hexdigest())


def _until(stopped: threading.Event, content: Iterator[bytes]) -> Iterator[bytes]:
    """A thread that reads for nobody any more ends."""
    for block in content:
        if stopped.is_set():
            return
        yield block


def _end(file: BinaryIO | None, reading: "asyncio.Future[Batch]") -> None:
    if not reading.cancelled():
        reading.exception()  # nobody asks for it any more
    if file is not None:
        file.close()


def _parsed_position(after: Position) -> tuple[int, int]:
    if not after:
        return 0, 0
    offset, _, number = after.partition("/")
    if not (offset.isascii() and offset.isdigit() and number.isascii() and number.isdigit()):
        raise InvalidValue("position", after, "what an entry of a file had: OFFSET/LINE")
    return int(offset), int(number)


def _checked_place(place: str) -> str:
    parts = place.split("/")
    if place and "\x00" not in place and not any(part in {"", ".", ".."} for part in parts):
        return place
    raise InvalidValue(
        "source.place", place, "a file's path below the connection's directory, without . and .."
    )
