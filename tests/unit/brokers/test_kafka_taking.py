"""What becomes of records that cannot be read, in a consumer whose source is a script."""

import asyncio
from collections.abc import Iterable, Mapping

import pytest

from tenantry.brokers.kafka import ConsumerSettings, FairConsumer, Gate, Handling, Identity, Record, Spot
from tenantry.brokers.kafka.backlog import Room
from tenantry.brokers.kafka.ports import Listener
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId

SPOT = Spot("t", 0)


class Script:
    """A source of one partition that gives out ``records`` once, and remembers what was committed."""

    def __init__(self, *records: Record) -> None:
        self.records, self.committed = list(records), dict[Spot, int]()

    def open(self, listener: Listener) -> None:
        self.listener = listener
        listener.assigned([SPOT])

    def fetch(self, room: Room, wait: Seconds) -> list[Record]:
        given, self.records = self.records[: room.records], self.records[room.records :]
        return given

    def pause(self, spots: Iterable[Spot]) -> None:
        raise AssertionError("nothing is bounded here")

    resume = pause

    def commit(self, positions: Mapping[Spot, int]) -> bool:
        self.committed |= positions
        return True

    def ends(self, spots: Iterable[Spot]) -> dict[Spot, int]:
        return {}

    def passed(self, gates: Iterable[Gate]) -> list[Gate]:
        return []

    def close(self) -> None:
        self.committed |= self.listener.revoked([SPOT])


def by_header(record: Record) -> Identity:
    return Identity(TenantId((record.key or b"").decode()), None)


@pytest.fixture
def source() -> Script:
    return Script(Record(SPOT, 0, b"\xff\xfe", b"", None), Record(SPOT, 1, b"acme", b"", None))


async def test_bytes_that_are_no_text_put_their_record_aside_and_stop_nobody(source: Script) -> None:
    aside: list[tuple[int, str]] = []
    done = asyncio.Event()

    async def handle(_message: object) -> None:
        done.set()

    def put_aside(record: Record, error: Exception) -> None:
        aside.append((record.offset, type(error).__name__))

    handling = Handling(handle, identify=by_header, on_failed=put_aside)
    consumer = FairConsumer(source, handling, ConsumerSettings(slots=2))
    running = asyncio.create_task(consumer.run())
    await asyncio.wait_for(done.wait(), 10)
    consumer.stop()
    await running
    assert aside == [(0, "UnicodeDecodeError")]
    assert source.committed == {SPOT: 2}


async def test_a_fault_of_identify_itself_stops_the_consumer_and_commits_nothing_past_it(
    source: Script,
) -> None:
    def broken(_record: Record) -> Identity:
        raise KeyError("a typing error")

    with pytest.raises(KeyError, match="a typing error"):
        await FairConsumer(source, Handling(print, identify=broken, on_failed=print)).run()
    assert source.committed == {}
