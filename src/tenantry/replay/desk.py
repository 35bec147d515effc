"""The side of people, whole: what the command line and the API both call.

A plan is made first: the spec is checked, the source surveyed and sampled, the dedup store asked, and the
report kept under the id that :meth:`ReplayService.start` then runs. Orders answer with the replay as it is
afterwards, or say why they cannot be given now.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from tenantry.kernel.errors import (
    SourceUnavailable,
    TenantryError,
    UnknownTenant,
    UsageError,
)
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.queue.model import JobId
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.events import ReplayOrdered
from tenantry.replay.lifecycle import ENDED, ReplayEvent, commands, ordered
from tenantry.replay.model import (
    Budget,
    Fetched,
    Membership,
    ParkedMessage,
    Quotas,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    Staged,
)
from tenantry.replay.plan import PlanFacts, Report, Seen, refused_target, report, targets_of
from tenantry.replay.ports import ReplayDesk, Sources, Standing
from tenantry.replay.progress import Progress, decoded, done, starting
from tenantry.replay.quotas import quotas_of
from tenantry.replay.repairs import NOWHERE, Repair, checked_repair, fitting
from tenantry.replay.specs import check_spec
from tenantry.replay.staging import Stager


class UnknownReplay(UsageError):
    """There is no such replay for this tenant."""

    def __init__(self, replay: ReplayId) -> None:
        self.replay = replay
        super().__init__(f"there is no replay {replay[:80]!r}")


class NotNow(UsageError):
    """The replay is there, and its state does not allow the order; ``allowed`` are those that do. The text
    names the orders that its state allows."""

    def __init__(self, order: str, state: ReplayState, allowed: Sequence[ReplayState]) -> None:
        self.order, self.state, self.allowed = order, state, tuple(allowed)
        names = ", ".join(sorted(each.value for each in allowed))
        told = f"a replay that is {state.value} cannot be given {order!r}; it must be {names}"
        now = " or ".join(repr(each) for each in commands(state))
        super().__init__(f"{told}. Now it can be given {now}" if now else told)


class PlanTooOld(UsageError):
    """A plan can be started for a day: what it found in its source grows old."""

    def __init__(self, replay: ReplayId) -> None:
        self.replay = replay
        super().__init__("this plan is of more than a day ago, and its source has changed since: plan again")


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """``sample``: messages that a plan looks at; their shares are then off by less than 5 parts in 100.
    ``patience``: seconds for each answer of the source."""

    sample: int = 400
    patience: Seconds = 30.0


DEFAULTS: Final = PlanSettings()


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan as it was kept, and its report."""

    view: ReplayView
    report: Report


class ReplayService:
    """Any task, any node. Raises :class:`~tenantry.kernel.errors.DependencyError` where the store or a source
    cannot be reached."""

    def __init__(
        self,
        desk: ReplayDesk,
        sources: Sources,
        standing: Standing,
        around: Surroundings,
        *,
        settings: PlanSettings = DEFAULTS,
    ) -> None:
        self._desk, self._sources, self._standing = desk, sources, standing
        self._around, self._settings = around, settings

    # -- plans -------------------------------------------------------------------------------------------

    async def plan(self, spec: ReplaySpec) -> Planned:
        """Look at what a replay would meet, and keep it for a day. Nothing is consumed.

        Raises :class:`~tenantry.config.validation.RegistryErrors` for a spec that cannot be,
        :class:`~tenantry.kernel.errors.UnknownTenant`, and what the source's adapter says of its address."""
        check_spec(spec)
        quotas = self._quotas(spec.tenant)
        membership, entries = await self._looked_at(spec)
        seen = await self._seen(spec, entries)
        facts = PlanFacts(
            now=self._around.clock.now(),
            quotas=quotas,
            used=await self._desk.used(spec.tenant),
            paces=await self._standing.lanes(spec.tenant, targets_of(seen)),
        )
        asked = self._settings.sample if len(seen) == len(entries) else len(seen)
        found = report(membership, seen, facts, asked=asked)
        view = await self._desk.plan(spec, membership, msgspec.json.encode(found).decode())
        self._tell(view, "plan")
        return Planned(view, found)

    async def _looked_at(self, spec: ReplaySpec) -> tuple[Membership, Sequence[Fetched]]:
        source, patience = self._sources.source(spec.tenant, spec.source), self._settings.patience
        try:
            async with asyncio.timeout(patience):
                membership = await source.survey()
            async with asyncio.timeout(patience):
                return membership, await source.peek(self._settings.sample)
        except TimeoutError:
            raise SourceUnavailable(f"the source gave no answer within {patience:g} s") from None
        finally:
            try:
                async with asyncio.timeout(patience):
                    await source.close()
            except (TenantryError, TimeoutError):
                pass  # it was only looked at: nothing is in hand

    async def _seen(self, spec: ReplaySpec, entries: Sequence[Fetched]) -> list[Seen]:
        stager = Stager(spec, self._around.randomness.time_ordered_id)
        staged = await self._sorted(stager, entries)
        known = await self._desk.known(spec.tenant, [each.key for each in staged if each is not None])
        return [
            Seen(meant=False)
            if each is None
            else replace(
                _seen(each),
                known=None if spec.again else known.get(each.key),
                broken=each.broken or self._refused(spec.tenant, each),
            )
            for each in staged
        ]

    def _refused(self, tenant: TenantId, staged: Staged) -> str:
        document = self._around.directory.tenant(tenant)
        url = document.settings_for(staged.target).url if document else None
        return refused_target(staged.target, url)

    async def _sorted(self, stager: Stager, entries: Sequence[Fetched]) -> list[Staged | None]:
        """None for what is not meant. What takes long is done in a thread, and only as much of it as there is
        patience for: the sample is then smaller."""

        def one(each: Fetched) -> Staged | None:
            return stager.staged(each, {}) if stager.is_meant(each) else None

        if not stager.is_slow(entries):
            return [one(each) for each in entries]
        began, found = self._around.clock.monotonic(), list[Staged | None]()
        for each in entries:
            found.append(await asyncio.to_thread(one, each))
            if self._around.clock.monotonic() - began > self._settings.patience:
                break
        return found

    def _quotas(self, tenant: TenantId) -> Quotas:
        tier = self._around.directory.tier_of(tenant)
        if tier is None:
            raise UnknownTenant(tenant)
        return quotas_of(tier)

    # -- orders ------------------------------------------------------------------------------------------

    async def start(self, tenant: TenantId, replay: ReplayId) -> ReplayView:
        """A plan begins to run, or waits for a place where the tenant has its most replays running. Starting
        what runs already answers with it: a start may be repeated. Raises :class:`UnknownReplay`,
        :class:`NotNow` for a replay that has ended or is being cancelled, and :class:`PlanTooOld`."""
        found = await self._desk.start(tenant, replay, self._quotas(tenant))
        if found is None:
            now = await self.replay(tenant, replay)
            if now.state is ReplayState.PLANNED:
                raise PlanTooOld(replay)
            if now.state in ENDED or now.state is ReplayState.CANCELLING:
                raise NotNow("start", now.state, [ReplayState.PLANNED])
            return now
        self._tell(found, "start")
        return found

    async def pause(self, tenant: TenantId, replay: ReplayId) -> ReplayView:
        """What waits is not started any more, what runs goes on. Raises :class:`UnknownReplay` and
        :class:`NotNow`."""
        found = await self._desk.pause(tenant, replay)
        return await self._given((tenant, replay), found, "pause", ReplayEvent.PAUSED)

    async def resume(self, tenant: TenantId, replay: ReplayId) -> ReplayView:
        """What a person paused goes on. Raises as :meth:`pause`."""
        found = await self._desk.resume(tenant, replay)
        return await self._given((tenant, replay), found, "resume", ReplayEvent.RESUMED)

    async def proceed(self, tenant: TenantId, replay: ReplayId) -> ReplayView:
        """`continue`: what a rule held goes on. Raises as :meth:`pause`."""
        found = await self._desk.proceed(tenant, replay)
        return await self._given((tenant, replay), found, "continue", ReplayEvent.CONTINUED)

    async def cancel(self, tenant: TenantId, replay: ReplayId) -> ReplayView:
        """What waits returns to the tenant's dead letters. Raises as :meth:`pause`."""
        found = await self._desk.cancel(tenant, replay)
        return await self._given((tenant, replay), found, "cancel", ReplayEvent.CANCELLED)

    async def rebudget(self, tenant: TenantId, replay: ReplayId, budget: Budget) -> ReplayView:
        """Another budget; where it is larger, a replay that the old one held goes on. Raises as
        :meth:`pause`."""
        before = await self.replay(tenant, replay)
        spec = replace(before.spec, budget=budget)
        check_spec(spec)
        found = await self._desk.rebudget(tenant, replay, spec)
        if found is None:
            raise NotNow("budget", before.state, [each for each in ReplayState if each not in ENDED])
        self._tell(found, "rebudget")
        return found

    async def _given(
        self, who: tuple[TenantId, ReplayId], found: ReplayView | None, order: str, event: ReplayEvent
    ) -> ReplayView:
        """What an order came to."""
        if found is not None:
            self._tell(found, order)
            return found
        now = await self.replay(*who)
        raise NotNow(order, now.state, sorted(ordered(event)))

    # -- looking -----------------------------------------------------------------------------------------

    async def replay(self, tenant: TenantId, replay: ReplayId) -> ReplayView:
        """Raises :class:`UnknownReplay`."""
        found = await self._desk.replay(tenant, replay)
        if found is None:
            raise UnknownReplay(replay)
        return found

    async def replays(
        self, tenant: TenantId | None, *, states: frozenset[ReplayState] | None = None, limit: int = 100
    ) -> list[ReplayView]:
        """As :meth:`~tenantry.replay.ports.ReplayDesk.replays`."""
        return await self._desk.replays(tenant, states=states, limit=limit)

    async def progress(self, tenant: TenantId, replay: ReplayId) -> Progress:
        """The record for people, with the counts as they are now. Raises :class:`UnknownReplay`."""
        return self.progress_of(await self.replay(tenant, replay))

    def progress_of(self, view: ReplayView) -> Progress:
        """The record of a view: its coordinator's last, or one of what is known without it where the state
        has changed since."""
        plain = starting(view, self._around.clock.now())
        try:
            told = decoded(view.progress) if view.progress else plain
        except msgspec.MsgspecError:  # of another version of the product
            return plain
        if told.state is not view.state:
            return replace(plain, new_since_start=told.new_since_start, dry=told.dry)
        return replace(told, counts=view.counts, taken=view.counts.taken, done=done(view.counts, told.dry))

    # -- parked messages ---------------------------------------------------------------------------------

    async def parked(
        self,
        tenant: TenantId,
        replay: ReplayId | None = None,
        *,
        limit: int = 100,
        after: JobId | None = None,
    ) -> list[ParkedMessage]:
        """As :meth:`~tenantry.replay.ports.ReplayDesk.parked`."""
        return await self._desk.parked(tenant, replay, limit=limit, after=after)

    async def parked_message(self, tenant: TenantId, job: JobId) -> ParkedMessage | None:
        """One of them, or None where it is not parked (any more). Raises :class:`ValueError` for an id that
        is no UUID."""
        before = JobId(str(UUID(int=max(0, UUID(job).int - 1))))
        found = await self._desk.parked(tenant, None, limit=1, after=before)
        return next((each for each in found if each.job == job), None)

    async def send_back(
        self,
        tenant: TenantId,
        job: JobId,
        *,
        payload: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        target: Target | None = None,
    ) -> bool:
        """As :meth:`~tenantry.replay.ports.ReplayDesk.send_back`. Raises
        :class:`~tenantry.kernel.errors.InvalidValue` for a payload that no job may have, for headers or a
        target that are none, and for a message that cannot be sent as it would go back."""
        repair = checked_repair(Repair(payload, headers, target))
        message = await self.parked_message(tenant, job)
        if message is None:
            return False
        return await self._desk.send_back(tenant, job, fitting(message, repair))

    async def drop(self, tenant: TenantId, job: JobId) -> bool:
        """As :meth:`~tenantry.replay.ports.ReplayDesk.drop`."""
        return await self._desk.drop(tenant, job)

    def _tell(self, view: ReplayView, order: str) -> None:
        self._around.events(ReplayOrdered(view.spec.tenant, view.id, order))


def _seen(staged: Staged) -> Seen:
    message = staged.message
    return Seen(
        meant=True,
        target=None if staged.target == NOWHERE else staged.target,
        error_class=message.error_class,
        failed_at=message.failed_at,
        broken=staged.broken,
    )
