"""What a coordinator remembers does not grow with the messages that it leads."""

import gc
from dataclasses import replace

import psutil
import pytest
from replay_world import HOOK, LOG, QUICK, Place, Record, Session, World, WorldStore

from tenantry.kernel.events import ignore
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.replay.model import (
    Batch,
    Counts,
    Fate,
    FedWindow,
    Fetched,
    Lease,
    Membership,
    Message,
    Position,
    ReplayState,
    SourceAddress,
    Window,
)

MIB = 1 << 20


class Stream(Session):
    """So many messages, made as they are read."""

    def __init__(self, place: Place, total: int) -> None:
        super().__init__(place)
        self._total = total

    async def survey(self) -> Membership:
        return Membership(str(self._total), self._total)

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        until = min(self._total, self._at + limit)
        found = tuple(self._made(n) for n in range(self._at, until))
        self._at = until
        return Batch(found, exhausted=until >= self._total)

    def _made(self, n: int) -> Fetched:
        message = Message(id=f"m{n}", payload=b'{"n":%d}' % n, target=HOOK, error_class="timeout")
        return Fetched(message, n, Position(str(n + 1)))

    async def acknowledge(self, receipts: object) -> None:
        """Nothing is kept of them."""


class Tally(WorldStore):
    """A store that counts and keeps no message; all that waits is delivered at the next fold."""

    waiting = delivered_count = 0

    async def feed(self, lease: Lease, window: Window) -> FedWindow | None:
        record = self._led(lease)
        if record is None or record.view.state is not ReplayState.RUNNING:
            return None
        self.waiting += len(window.messages)
        record.view = replace(
            record.view,
            position=window.position or record.view.position,
            exhausted=record.view.exhausted or window.exhausted,
        )
        return FedWindow((Fate.STAGED,) * len(window.messages))

    def count(self, record: Record) -> Counts:
        return Counts(waiting=self.waiting, delivered=self.delivered_count)

    def _work(self, record: Record) -> None:
        self.clock.advance(0.05)  # what passes between two looks, so that there is a rate
        self.delivered_count, self.waiting = self.delivered_count + self.waiting, 0


class Flood(World):
    """One replay of so many messages."""

    def __init__(self, total: int) -> None:
        super().__init__(replace(QUICK, lease_for=1e9))
        self.store, self.total = Tally(self.clock), total
        self.around = replace(self.around, events=ignore)

    def source(self, tenant: TenantId, address: SourceAddress) -> Session:
        return Stream(self.places[address.place], self.total)


@pytest.mark.parametrize("total", [60_000, pytest.param(5_000_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(3_600)
async def test_memory_is_flat_whatever_the_number_of_messages(total: int) -> None:
    world, process = Flood(total), psutil.Process()
    replay = world.start(Place([], LOG))
    world.launch()
    await world.until(lambda: world.store.count(world.store.records[replay]).delivered > total // 6)
    gc.collect()
    before = process.memory_info().rss
    view = await world.ended(replay)
    gc.collect()
    assert view.counts.delivered == total
    assert process.memory_info().rss - before < 8 * MIB
    assert total < 5_000_000 or process.memory_info().rss < 200 * MIB
    print(f"{process.memory_info().rss / MIB:.0f} MiB after {total:,}, {before / MIB:.0f} MiB after a sixth")
    await world.stop()
