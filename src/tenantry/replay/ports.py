"""What a replay needs of sources and of its store. One conformance suite holds every source to the first, one
every store to the second.

All calls raise :class:`~tenantry.kernel.errors.DependencyError` when the other side cannot be reached (a
source: :class:`~tenantry.kernel.errors.SourceUnavailable`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.queue.model import JobId
from tenantry.replay.model import (
    Batch,
    ClassFailure,
    Counts,
    FedWindow,
    Fetched,
    Hold,
    Known,
    LanePace,
    Lease,
    Membership,
    MessageKey,
    ParkedMessage,
    Position,
    Quotas,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    SourceAddress,
    Traits,
    Window,
)
from tenantry.replay.repairs import Repair


class Source(Protocol):
    """Where messages lie: one session of one reader. One task only.

    The order of use: any of ``survey``, ``peek``, ``arrived`` (they open what they need themselves and leave
    nothing in hand); or ``open``, then ``fetch`` with ``acknowledge`` and ``leave`` in any order, and
    ``close``.
    """

    @property
    def traits(self) -> Traits: ...

    async def survey(self) -> Membership:
        """Freeze the membership, as far as the source can, and count it. Nothing is consumed."""
        ...

    async def peek(self, limit: int) -> Sequence[Fetched]:
        """``limit`` entries or all, for a plan's sample; drawn at random where that is cheap, else
        the oldest; broken ones with their fault. Their receipts mean nothing. They lie there afterwards as
        before (a broker may mark them as redelivered: the adapter's docs say so)."""
        ...

    async def arrived(self, membership: Membership) -> int | None:
        """How many came after ``membership`` was frozen; None where the source cannot tell."""
        ...

    async def open(self, membership: Membership, after: Position) -> None:
        """Begin to read ``membership`` behind ``after`` ('' is its beginning)."""
        ...

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        """Up to ``limit`` messages, waiting at most so long for the first. The same message is not fetched
        twice in one session unless the source itself gives it again. Never holds more than ``traits.window``
        in hand: while that many are neither acknowledged nor left it answers with an empty batch, at once.
        Of a source that is read by position nothing is in hand."""
        ...

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        """We have these durably: the source may forget them. Contiguous offsets are the adapter's to keep."""
        ...

    async def leave(self, receipts: Sequence[object]) -> None:
        """These are not meant. They stay in the source, and this session does not fetch them again."""
        ...

    async def close(self) -> None:
        """Give back what is in hand and neither acknowledged nor left, and what was left. Idempotent."""
        ...


class Sources(Protocol):
    """Makes sessions. ``cli`` wires one with the connections that the operator has configured."""

    def source(self, tenant: TenantId, address: SourceAddress) -> Source:
        """A session, not opened. Raises :class:`~tenantry.kernel.errors.InvalidValue` for an address that no
        adapter reads, with its path (``source.options.id_field``), and
        :class:`~tenantry.kernel.errors.MissingExtra` where the kind's client is not installed."""
        ...


class ReplayDesk(Protocol):
    """The side of people: any task, any node. The tenant is bound for each call that names one; a replay of
    another tenant is not there. An order answers None where there is nothing to give it to: no such replay,
    or one whose state does not allow it (:func:`tenantry.replay.lifecycle.ordered`); it is then as
    :meth:`replay` says."""

    async def plan(self, spec: ReplaySpec, membership: Membership, report: str) -> ReplayView:
        """Keep a plan. ``report``: JSON text for people, as it was shown. It can be started for 24 h."""
        ...

    async def replay(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None: ...

    async def replays(
        self, tenant: TenantId | None, *, states: Collection[ReplayState] | None, limit: int
    ) -> list[ReplayView]:
        """The newest first, of one tenant or (the operator's side) of all. 1 <= limit <= 1,000."""
        ...

    async def start(self, tenant: TenantId, replay: ReplayId, quotas: Quotas) -> ReplayView | None:
        """A planned replay begins to run; one over ``quotas.replays`` is HELD by CONCURRENCY, and begins
        when a place is free, in the order of the starts. Two starts of one plan: one wins."""
        ...

    async def pause(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        """At once: what waits is not started any more (its flows are paused)."""
        ...

    async def resume(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        """To RUNNING, whatever it was when it was paused: a rule that held it holds it again."""
        ...

    async def proceed(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        """A person's `continue` of a held replay; what waits for a place goes on waiting (None). Its classes
        are counted anew: what failed alike until now may have been repaired, and is tried again."""
        ...

    async def rebudget(self, tenant: TenantId, replay: ReplayId, spec: ReplaySpec) -> ReplayView | None:
        """Another budget, for a replay that has not ended. Raises
        :class:`~tenantry.kernel.errors.InvalidValue` where anything else of the spec differs."""
        ...

    async def cancel(self, tenant: TenantId, replay: ReplayId) -> ReplayView | None:
        """Take no more; what waits returns to our own dead letters, what is in flight ends. A plan that was
        not started is cancelled at once."""
        ...

    async def known(self, tenant: TenantId, keys: Collection[MessageKey]) -> Mapping[MessageKey, Known]:
        """What the dedup store knows of these, as far as its lifetime reaches: for a plan's report."""
        ...

    async def used(self, tenant: TenantId) -> Quotas:
        """How much of each quota is used now (no field is None)."""
        ...

    async def parked(
        self, tenant: TenantId, replay: ReplayId | None, *, limit: int, after: JobId | None = None
    ) -> list[ParkedMessage]: ...

    async def send_back(self, tenant: TenantId, job: JobId, repair: Repair) -> bool:
        """Put a parked message back in line in its replay's flow, as ``repair`` has it. A
        replay that has ended is DRAINING again until it is through, and reads no more of its source. False:
        it is not there, its replay is being cancelled, or another replay has the message now or has delivered
        it."""
        ...

    async def drop(self, tenant: TenantId, job: JobId) -> bool:
        """End a parked message as cancelled. False: it is not there."""
        ...


class ReplayStore(Protocol):
    """The coordinator's side: each call names the lease under which it acts."""

    async def take(self, holder: str, lease_for: Seconds, *, limit: int) -> list[ReplayView]:
        """Take leases on replays that need a coordinator (RUNNING, PAUSED, HELD, DRAINING, CANCELLING) and
        have none: tokens rise."""
        ...

    async def keep(
        self, holder: str, leases: Mapping[ReplayId, int], lease_for: Seconds
    ) -> Mapping[ReplayId, ReplayView]:
        """Renew. The views as they are now, of those still held: orders of people are seen here."""
        ...

    async def release(self, holder: str, leases: Mapping[ReplayId, int]) -> None: ...

    async def feed(self, lease: Lease, window: Window) -> FedWindow | None:
        """Stage a window, all in one transaction: dedup (asked in every live generation, under the tenant's
        lock), jobs, position, counts. None: the lease is lost, or the replay is not RUNNING
        (a person's order came first), and nothing was written.

        Where a quota is reached in the middle, the messages from there on are ``Fate.QUOTA``. Where one is
        ``Fate.QUOTA`` or ``Fate.BROKEN``, neither position nor ``left`` nor ``exhausted`` is written: the
        source is to be read from the old place again, or the window is offered again with the broken ones
        marked, and what was staged is ``Fate.AGAIN`` then and counted once."""
        ...

    async def fold(self, lease: Lease) -> bool | None:
        """Take up the ends that were told since the last call: dedup states, counts, classes. True: there may
        be more. None: the lease is lost."""
        ...

    async def failures(self, replay: ReplayId, *, limit: int) -> list[ClassFailure]:
        """The classes with most failures alike, most first."""
        ...

    async def counts(self, replays: Collection[ReplayId]) -> Mapping[ReplayId, Counts]:
        """Exact at one instant: what was told and not yet folded is in them."""
        ...

    async def move(
        self,
        lease: Lease,
        state: ReplayState,
        *,
        seen: ReplayState | None = None,
        hold: Hold | None = None,
        running_for: Seconds,
        progress: str,
    ) -> ReplayView | None:
        """The coordinator's own moves (:func:`tenantry.replay.lifecycle.moved_from`), and its record for
        people, which it writes at most once a second where the state stays. None: the lease is lost, or a
        person's order came first, so that the state is not the one ``seen`` (None: any that leads there).
        HELD needs a ``hold``; that of a replay that waits for a place stays. An end folds what was told, and
        raises :class:`~tenantry.kernel.errors.InvariantBroken` while anything is under way."""
        ...

    async def admit(self, lease: Lease, quotas: Quotas) -> ReplayView | None:
        """A replay that is HELD by CONCURRENCY begins to run, where the tenant's running replays are fewer
        than ``quotas.replays`` and none that was started before it waits. The view as it is afterwards. None:
        the lease is lost."""
        ...

    async def return_waiting(self, lease: Lease, *, limit: int) -> int | None:
        """Of a CANCELLING replay, take up to ``limit`` messages out of line into our own dead letters. 0:
        none waits now (one that is in flight may come back). None: the lease is lost."""
        ...

    async def tidy(self, *, now_kept_for: Seconds) -> None:
        """Make the coming generations of the dedup store and drop, whole, those that no lifetime reaches.
        Forget plans that nobody started, and replays that ended ``now_kept_for`` seconds ago and have no
        parked messages."""
        ...


class Standing(Protocol):
    """What a replay wants to know of its lanes, for its window and for people."""

    async def shares(self, tenant: TenantId) -> tuple[float, float] | None:
        """The tenant's due share of its pool and its actual one, each in [0, 1]; None while nobody plans."""
        ...

    async def lanes(self, tenant: TenantId, targets: Collection[str]) -> Mapping[str, LanePace]:
        """What the lanes to ``targets`` can take now, as far as their shapers know: a lane that nobody has
        used is not there."""
        ...
