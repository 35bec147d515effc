"""One replay under a coordinator's lease: look, rule, act, tell, and again, until it has ended.

A turn is a pipeline over one view of the replay:

1. *fold*: the store takes up the ends that were told since the last turn;
2. *look*: counts, rate, lanes, classes;
3. *act*, by state: take a window, hold, free, drain, return, or nothing;
4. *tell* the record for people, at most once a second.

Every write names the lease's token. Where the store says that the lease is not ours, everything is dropped at
once (:class:`Lost`); where it says that a person's order came first, the turn ends and the next one sees it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final

from tenantry.kernel.errors import DependencyError, SourceUnavailable, UsageError
from tenantry.kernel.instant import Instant, Seconds, Timestamp
from tenantry.queue.events import StoreFailed
from tenantry.replay import budget, events, window
from tenantry.replay.feeding import Fed, Feeder, Superseded, cancelled
from tenantry.replay.kit import Kit, Lost, placed
from tenantry.replay.lanes_ahead import LanesAhead
from tenantry.replay.lifecycle import ENDED
from tenantry.replay.model import Hold, HoldRule, Lease, ReplayState, ReplayView
from tenantry.replay.progress import DryRun, Progress, encoded, in_circles, is_circling
from tenantry.replay.quotas import gone
from tenantry.replay.reading import Reader, arrived
from tenantry.replay.watch import Watch

_S: Final = ReplayState


class Run:
    """One replay, from the taking of its lease to its end. :meth:`serve` in one task; :meth:`see` from the
    same event loop."""

    def __init__(self, view: ReplayView, kit: Kit, *, trusted_until: Instant) -> None:
        self.view, self.trusted_until = view, trusted_until
        self._kit, self._around = kit, kit.around
        self._store, self._settings = kit.store, kit.settings
        self.lease: Final = Lease(view.id, view.token)
        self._reader = Reader(
            kit.sources, view, patience=kit.settings.patience, close_within=kit.settings.close_within
        )
        self._feeder = Feeder(view, self._reader, kit)
        self._watch = Watch(view, self._now())
        self._ahead = LanesAhead(view, kit.store, kit.standing, kit.around.events)
        self._woken, self._ordered = asyncio.Event(), asyncio.Event()
        self._changed_at = self._now()
        self._source_failures = 0
        self._faults = 0
        self._circling = self.is_ending = False
        self._acts: Final[Mapping[ReplayState, Callable[[], Awaitable[Seconds]]]] = {
            _S.RUNNING: self._running,
            _S.HELD: self._held,
            _S.PAUSED: self._resting,
            _S.DRAINING: self._draining,
            _S.CANCELLING: self._cancelling,
        }

    @property
    def phase(self) -> str:
        """Where it is, for a count of all."""
        return str(self._record().phase)

    async def serve(self) -> None:
        """Until the replay has ended. Raises :class:`Lost`. Cancelling it drops everything at once; what was
        in hand is the source's again."""
        arrivals = asyncio.create_task(self._watch_arrivals())
        try:
            while True:
                pause = await self._tried()
                if self.view.state in ENDED:
                    return
                await self._nap(pause)
        finally:
            await cancelled([arrivals])
            await self._reader.close()

    def see(self, view: ReplayView, asked_at: Instant) -> None:
        """The replay as a renewal that was asked ``asked_at`` found it: people's orders come this way."""
        if asked_at < self._changed_at:
            return  # it may be from before our own last write
        if (view.state, view.spec) != (self.view.state, self.view.spec):
            self._ordered.set()
            self._woken.set()
        if (self.view.state, view.state) == (_S.HELD, _S.RUNNING):
            self._continued()
        self._adopt(view)

    def _continued(self) -> None:
        """A person let it go on, whatever held it: the store counts its classes anew."""
        if self.view.hold is not None and self.view.hold.rule is HoldRule.POISON:
            self._watch.continued()
        self._ahead.forget_classes()

    # -- a turn ------------------------------------------------------------------------------------------

    async def _tried(self) -> Seconds:
        """One turn; the seconds until the next. Whatever goes wrong gives back what is in hand."""
        try:
            pause = await self._turn()
        except Superseded:
            await self._reader.close()
            return self._settings.window.soonest
        except DependencyError as error:
            await self._reader.close()
            wait = self._settings.retry_store_for * self._around.randomness.uniform(0.5, 1.0)
            self._around.events(StoreFailed("replay", type(error).__name__, wait))
            return wait
        except Lost:
            raise
        except Exception as error:  # noqa: BLE001 - told with its place; other replays go on
            await self._reader.close()
            return self._faulted(error)
        self._faults = 0
        return pause

    async def _turn(self) -> Seconds:
        self._ordered.clear()
        await self._fold()
        await self._look()
        pause = await self._acts[self.view.state]()
        await self._tell()
        return pause

    async def _fold(self) -> None:
        more: bool | None = True
        while more:
            more = await self._store.fold(self.lease)
            if more is None:
                raise Lost

    async def _look(self) -> None:
        counts = (await self._store.counts([self.lease.replay])).get(self.lease.replay)
        if counts is None:
            raise Lost
        now = self._now()
        self._watch.look(counts, self.view.state, now)
        self.view = replace(self.view, counts=counts)
        await self._ahead.look(counts, now, every=self._settings.stand_every)
        self._watch.shares, self._watch.held_classes = self._ahead.shares, self._ahead.held_classes
        self._tell_circles()

    async def _running(self) -> Seconds:
        hold = self._rule() or self._tenantless()
        if hold is not None:
            return await self._hold(hold)
        if self.view.exhausted:
            await self._write(_S.DRAINING)
            return 0.0
        outlook = self._outlook()
        more = self._room(outlook)
        return await self._feed(more) if more else window.look_again(outlook, self._settings.window)

    def _rule(self) -> Hold | None:
        """The rule that holds it now. What a draining replay cannot reach any more does not hold it."""
        view, now = self.view, self._around.clock.now()
        found = (
            budget.reached(view.spec.budget, view.counts, running_for=self._watch.running_for, now=now)
            or self._watch.poison()
        )
        if view.exhausted:
            return found if found is not None and found.stops and view.counts.unended else None
        return found or budget.sample_run(view.spec, view.membership, view.counts, sampled=view.sampled)

    def _tenantless(self) -> Hold | None:
        """Nothing more is taken for a tenant that is gone: no tier says what it may use, and no key of it
        can stop it. What was taken ends."""
        view = self.view
        if view.exhausted or self._around.directory.tier_of(view.spec.tenant) is not None:
            return None
        again_at = Timestamp(self._around.clock.now() + self._settings.retry_source_cap)
        return gone(again_at)

    def _outlook(self) -> window.Outlook:
        return window.Outlook(self.view.counts.unended, self._ahead.permits, self._watch.rate)

    def _room(self, outlook: window.Outlook) -> int:
        """How many messages to fetch now. A budget and a sample are exact; the window is not, so that where
        most is left in the source it is passed over in good time. A dry run puts nothing under way."""
        view, settings = self.view, self._settings.window
        if view.spec.dry_run:
            return settings.most
        room, counts = window.room(outlook, settings), view.counts
        allowed = budget.room(view.spec, view.membership, counts, sampled=view.sampled)
        if allowed is not None or not room:
            return room if allowed is None else min(room, allowed)
        seen = counts.taken + counts.left
        return window.widened(room, outlook, counts.taken / seen if seen else 1.0, settings)

    async def _feed(self, limit: int) -> Seconds:
        try:
            fed = await self._fed(limit)
        except (SourceUnavailable, UsageError) as error:
            return await self._hold(self._source_failed(error))
        self._source_failures = 0
        self._ahead.heads_for(fed.targets)
        self._changed_at = self._now()
        if fed.hold is not None:
            return await self._hold(fed.hold)
        if fed.exhausted:
            self.view = replace(self.view, exhausted=True)
        return 0.0 if fed.full or fed.exhausted else self._settings.window.soonest

    async def _fed(self, limit: int) -> Fed:
        if not self.view.spec.dry_run:
            return await self._feeder.feed(self.view, limit, self._ahead.held_classes, self._ordered)
        fed, self._watch.dry = await self._feeder.look_over(
            self.view, limit, self._watch.dry or DryRun(), self._ordered
        )
        if fed.exhausted:
            await self._write(_S.RUNNING)  # what was found is in the record, before nothing more comes
            await self._feeder.exhaust()
        return fed

    async def _held(self) -> Seconds:
        """What held it may hold it no longer."""
        await self._reader.close()
        hold, now = self.view.hold, self._around.clock.now()
        if hold is None or (hold.frees_at is not None and hold.frees_at <= now):
            return await self._free()
        if hold.rule is HoldRule.CONCURRENCY:
            return await self._admit()
        if hold.rule is HoldRule.BUDGET and not self._is_over_budget(now):
            return await self._free()
        return self._rest() if hold.frees_at is None else min(self._rest(), hold.frees_at - now)

    def _is_over_budget(self, now: Timestamp) -> bool:
        view, ran = self.view, self._watch.running_for
        return budget.reached(view.spec.budget, view.counts, running_for=ran, now=now) is not None

    async def _admit(self) -> Seconds:
        view = await self._store.admit(self.lease, self._feeder.quotas)
        if view is None:
            raise Lost
        if view.state is _S.RUNNING:
            self._changed(view)
            self._around.events(events.ReplayFreed(view.spec.tenant, view.id, HoldRule.CONCURRENCY))
            return 0.0
        return self._rest()

    async def _free(self) -> Seconds:
        hold = self.view.hold
        await self._write(_S.RUNNING)
        if hold is not None:
            self._around.events(events.ReplayFreed(self.view.spec.tenant, self.view.id, hold.rule))
        return 0.0

    async def _hold(self, hold: Hold) -> Seconds:
        await self._reader.close()
        await self._write(_S.HELD, hold)
        frees_in = None if hold.frees_at is None else hold.frees_at - self._around.clock.now()
        tenant, replay = self.view.spec.tenant, self.view.id
        self._around.events(events.ReplayHeld(tenant, replay, hold.rule, hold.reason, frees_in))
        return 0.0

    async def _resting(self) -> Seconds:
        await self._reader.close()
        return self._rest()

    def _rest(self) -> Seconds:
        return self._settings.window.latest if self.view.counts.unended else self._settings.rest_for

    async def _draining(self) -> Seconds:
        await self._reader.close()
        hold = self._rule()
        if hold is not None:
            return await self._hold(hold)
        if not self.view.counts.unended:
            await self._end(_S.FINISHED)
        return window.look_again(self._outlook(), self._settings.window)

    async def _cancelling(self) -> Seconds:
        await self._reader.close()
        returned = await self._store.return_waiting(self.lease, limit=self._settings.return_batch)
        if returned is None:
            raise Lost
        if not returned and not self.view.counts.unended:
            await self._end(_S.CANCELLED)
        return 0.0 if returned else self._settings.window.soonest

    # -- writing -----------------------------------------------------------------------------------------

    async def _end(self, state: ReplayState) -> None:
        self.is_ending = True
        try:
            await self._write(state)
        finally:
            self.is_ending = self.view.state in ENDED
        view, counts = self.view, self.view.counts
        self._around.events(
            events.ReplayEnded(
                view.spec.tenant,
                view.id,
                state,
                counts.taken,
                counts.delivered,
                counts.parked,
                counts.dead,
                self._watch.running_for,
            )
        )

    async def _tell(self) -> None:
        """The record for people, if it is news; an end has told its own."""
        settings, view = self._settings, self.view
        often, seldom = settings.tell_every, settings.tell_at_least_every
        if self._watch.is_news(view, self._now(), every=often, at_least_every=seldom):
            await self._write(view.state, view.hold)

    async def _write(self, state: ReplayState, hold: Hold | None = None) -> None:
        if self.view.state in ENDED:
            return
        ran = self._watch.running_for
        record = self._watch.record(
            replace(self.view, state=state, hold=hold, running_for=ran), self._around.clock.now()
        )
        view = await self._store.move(
            self.lease,
            state,
            seen=self.view.state,
            hold=hold,
            running_for=ran,
            progress=encoded(record),
        )
        if view is None:
            raise Superseded
        self._changed(view)
        self._watch.told(self.view, self._now())

    def _record(self) -> Progress:
        view = replace(self.view, running_for=self._watch.running_for)
        return self._watch.record(view, self._around.clock.now())

    def _changed(self, view: ReplayView) -> None:
        """By our own write: what was asked before it is older."""
        self._changed_at = self._now()
        self._adopt(view)

    def _adopt(self, view: ReplayView) -> None:
        before = self.view
        # Counts are read each turn, at one instant; and a source that has ended does not begin again.
        self.view = replace(view, counts=before.counts, exhausted=view.exhausted or before.exhausted)

    # -- failures, and what is beside the turns ----------------------------------------------------------

    def _source_failed(self, error: Exception) -> Hold:
        settings = self._settings
        most = min(settings.retry_source_cap, settings.retry_source_for * 2.0**self._source_failures)
        wait = most * self._around.randomness.uniform(0.75, 1.0)
        self._source_failures = min(self._source_failures + 1, 30)
        view = self.view
        self._around.events(
            events.SourceFailed(view.spec.tenant, view.id, view.spec.source.kind, type(error).__name__, wait)
        )
        frees_at = Timestamp(self._around.clock.now() + wait)
        return Hold(HoldRule.SOURCE, f"its source cannot be read: {error}", frees_at)

    def _faulted(self, error: Exception) -> Seconds:
        wait = min(self._settings.retry_source_cap, self._settings.retry_source_for * 2.0**self._faults)
        self._faults = min(self._faults + 1, 30)
        self._around.events(events.ReplayFaulted(self.view.spec.tenant, self.view.id, placed(error), wait))
        return wait

    def _tell_circles(self) -> None:
        view, circling = self.view, is_circling(self.view.counts)
        if circling and not self._circling:
            part = in_circles(view.counts)
            self._around.events(events.ReplayInCircles(view.spec.tenant, view.id, part))
        self._circling = circling

    async def _watch_arrivals(self) -> None:
        """What fails while the replay runs is counted beside it (case R8); a source that is slow to say so
        holds nothing up."""
        settings = self._settings
        while True:
            found = await arrived(
                self._kit.sources, self.view, patience=settings.patience, close_within=settings.close_within
            )
            self._watch.new = self._watch.new if found is None else found
            await asyncio.sleep(settings.arrived_every)

    async def _nap(self, seconds: Seconds) -> None:
        """Until the time is over or an order comes."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
        finally:
            self._woken.clear()

    def _now(self) -> Instant:
        return self._around.clock.monotonic()
