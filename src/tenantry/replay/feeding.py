"""One window: fetch, sort, stage in one transaction, and only then acknowledge.

The order is what keeps messages. Until the commit they are the source's; after it they are ours, and the
source is told. Killed in between, the source gives them once more, and the store answers ``again`` (case R3).
A message that the store cannot hold is offered again as broken, and parked (case R2).
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds
from tenantry.replay import window
from tenantry.replay.dedup import LIFETIME
from tenantry.replay.events import MessagesParked, WindowFed
from tenantry.replay.kit import Kit
from tenantry.replay.model import (
    Batch,
    Fate,
    FedWindow,
    Fetched,
    Hold,
    Lease,
    Position,
    Quotas,
    ReplayView,
    Staged,
    Window,
)
from tenantry.replay.progress import DryRun
from tenantry.replay.quotas import quotas_of
from tenantry.replay.reading import Reader
from tenantry.replay.staging import REFUSED, Sorted, Stager, broken
from tenantry.replay.window import Habits

_OFFERS: Final = 3
"""A window is offered so often while the store refuses messages of it: one such message a time is usual."""


class Superseded(Exception):
    """A person's order came first, or the lease is another's: nothing was written, and what was fetched goes
    back."""


@dataclass(frozen=True, slots=True)
class Fed:
    """What one feed did. ``seen``: messages fetched. ``full``: as many as could be in hand. ``hold``: the
    quota that was reached. ``targets``: where the staged ones go."""

    seen: int = 0
    full: bool = False
    exhausted: bool = False
    hold: Hold | None = None
    targets: frozenset[str] = frozenset()


class Feeder:
    """Of one replay, under one lease. One task only."""

    def __init__(self, view: ReplayView, reader: Reader, kit: Kit) -> None:
        self._view, self._reader, self._store = view, reader, kit.store
        self._around, self._settings = kit.around, kit.settings.window
        self._lease = Lease(view.id, view.token)
        self._compiled: Stager | None = None
        self._position, self._habits = view.position, Habits()
        self._left_before = 0

    async def feed(
        self, view: ReplayView, limit: int, held: Mapping[str, str], ordered: asyncio.Event
    ) -> Fed:
        """Take up to ``limit`` messages. ``held``: the classes that are held. ``ordered``: set when a
        person's order came, which ends the fetch. Raises :class:`Superseded`,
        :class:`~tenantry.kernel.errors.DependencyError` and
        :class:`~tenantry.kernel.errors.UsageError`; the session is then to be closed."""
        batch, full = await self._fetched(view, limit, ordered)
        found = await self._sorted(batch.messages, held)
        position, left = self._after(batch.messages), self._newly_left(len(found.left))
        if not (batch.messages or batch.exhausted):
            return Fed()
        staged, fed = await self._stage(found.staged, self._window(position, left, exhausted=batch.exhausted))
        over = Fate.QUOTA in fed.fates
        safe = [
            each.receipt for each, fate in zip(found.taken, fed.fates, strict=True) if fate is not Fate.QUOTA
        ]
        if not over:
            self._position = position or self._position
        await self._reader.settle(safe, [each.receipt for each in found.left])
        return Fed(
            seen=len(batch.messages),
            full=full,
            exhausted=batch.exhausted and not over,
            hold=fed.hold if over else None,
            targets=frozenset(each.target for each in staged),
        )

    async def look_over(
        self, view: ReplayView, limit: int, dry: DryRun, ordered: asyncio.Event
    ) -> tuple[Fed, DryRun]:
        """A dry run's window: read, matched and counted; nothing is taken, sent or acknowledged."""
        fresh = not self._reader.is_open
        batch, full = await self._fetched(view, limit, ordered)
        # A source that forgets what is acknowledged begins anew with each session.
        dry = DryRun() if fresh and not self._position else dry
        found = await self._sorted(batch.messages, {})
        bad = sum(bool(each.broken) for each in found.staged)
        dry = DryRun(dry.matched + len(found.staged), dry.left + len(found.left), dry.broken + bad)
        await self._reader.settle((), [each.receipt for each in batch.messages])
        self._position = self._after(batch.messages) or self._position
        return Fed(seen=len(batch.messages), full=full, exhausted=batch.exhausted), dry

    async def exhaust(self) -> None:
        """Say that nothing more will come. Raises :class:`Superseded`."""
        await self._stage((), self._window(None, 0, exhausted=True))

    async def _sorted(self, messages: Sequence[Fetched], held: Mapping[str, str]) -> Sorted:
        """What takes long is done one by one in a thread: leases and other replays wait for none of it."""
        stager = self._stager()
        if not stager.is_slow(messages):
            return stager.sorted(messages, held)
        each_alone = [await asyncio.to_thread(stager.sorted, (each,), held) for each in messages]
        return Sorted(
            *(tuple(chain.from_iterable(part)) for part in zip(*map(_parts, each_alone), strict=True))
        )

    def _stager(self) -> Stager:
        """Compiled when it is first needed: a spec that cannot be is a fault of its replay alone."""
        if self._compiled is None:
            self._compiled = Stager(self._view.spec, self._around.randomness.time_ordered_id)
        return self._compiled

    @property
    def quotas(self) -> Quotas:
        """The tenant's, as its tier says now."""
        return quotas_of(self._around.directory.tier_of(self._view.spec.tenant))

    def _window(self, position: Position | None, left: int, *, exhausted: bool) -> Window:
        """One without its messages."""
        tier = self._around.directory.tier_of(self._view.spec.tenant)
        return Window(
            messages=(),
            position=position,
            left=left,
            exhausted=exhausted,
            quotas=self.quotas,
            lifetime_for=LIFETIME if tier is None else tier.dedup_for,
        )

    async def _fetched(self, view: ReplayView, limit: int, ordered: asyncio.Event) -> tuple[Batch, bool]:
        """A batch, and whether it is as large as it could be: then there is more."""
        is_new = not self._reader.is_open
        traits = await self._reader.open(view.membership, self._position)
        if is_new and traits.acknowledges:
            # What was left in an earlier session comes again in this one, and is counted already.
            self._left_before = view.counts.left
        asked = window.fetch_limit(limit, traits, self._habits)
        wait_for = window.fetch_wait(traits, self._settings)
        batch = await _unless(ordered, self._reader.fetch(asked, wait_for))
        if batch.messages:
            size = sum(len(each.message.payload) for each in batch.messages) / len(batch.messages)
            self._habits = replace(self._habits, size=size)
        return batch, len(batch.messages) >= asked

    def _newly_left(self, left: int) -> int:
        again = min(left, self._left_before)
        self._left_before -= again
        return left - again

    def _after(self, fetched: Sequence[Fetched]) -> Position | None:
        """Where the source is to be read on; None for one without positions."""
        told = (each.position for each in reversed(fetched) if each.position is not None)
        return next(told, self._position or None)

    async def _stage(self, staged: tuple[Staged, ...], plain: Window) -> tuple[tuple[Staged, ...], FedWindow]:
        """Offer the window until the store holds all of it. What an earlier offer staged is ``again``."""
        for _ in range(_OFFERS):
            began = self._around.clock.monotonic()
            fed = await self._store.feed(self._lease, replace(plain, messages=staged))
            if fed is None:
                raise Superseded
            self._tell(staged, fed, plain.left, self._around.clock.monotonic() - began)
            if Fate.BROKEN not in fed.fates:
                return staged, fed
            pairs = zip(staged, fed.fates, strict=True)
            staged = tuple(broken(each, REFUSED) if fate is Fate.BROKEN else each for each, fate in pairs)
        raise InvariantBroken("the store refuses a message that is marked as broken")

    def _tell(self, staged: Sequence[Staged], fed: FedWindow, left: int, took_for: Seconds) -> None:
        if not staged and not left:
            return
        if staged and took_for > 0:
            self._habits = replace(self._habits, feeds=len(staged) / took_for)
        tenant, replay = self._view.spec.tenant, self._view.id
        self._around.events(WindowFed(tenant, replay, Counter(fed.fates), left, took_for))
        parked = (each for each, fate in zip(staged, fed.fates, strict=True) if fate is Fate.PARKED)
        for rule, count in Counter(each.park_rule or "unknown" for each in parked).items():
            self._around.events(MessagesParked(tenant, replay, rule, count))


def _parts(found: Sorted) -> tuple[Sequence[Any], ...]:
    return found.taken, found.staged, found.left


async def _unless(ordered: asyncio.Event, fetch: Coroutine[Any, Any, Batch]) -> Batch:
    """The fetch, unless an order comes first: people are not to wait for a source."""
    fetching, order = asyncio.create_task(fetch), asyncio.create_task(ordered.wait())
    try:
        await asyncio.wait({fetching, order}, return_when=asyncio.FIRST_COMPLETED)
        if not fetching.done():
            raise Superseded
        return fetching.result()
    finally:
        await cancelled([fetching, order])


async def cancelled(tasks: Sequence["asyncio.Task[Any]"]) -> None:
    """End these, and wait until they have."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
