"""A small working world for the coordinator: sources that behave on cue, a store, and targets that take what
is staged. Everything that the loop can be told to its face happens here on purpose: leases that are lost,
stores and sources that do not answer, quotas, messages that cannot be held."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tenantry.config.model import TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.errors import SourceUnavailable, StoreUnavailable
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.randomness import SeededRandomness
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import Target
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.surroundings import Surroundings
from tenantry.replay.coordinator import Coordinator, CoordinatorSettings
from tenantry.replay.kit import RunSettings
from tenantry.replay.lifecycle import ENDED, LIVE, moved_from
from tenantry.replay.model import (
    Batch,
    ClassFailure,
    Counts,
    Fate,
    FedWindow,
    Fetched,
    Hold,
    HoldRule,
    LanePace,
    Lease,
    Membership,
    Message,
    MessageKey,
    Position,
    Quotas,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    SourceAddress,
    Staged,
    Traits,
    Window,
)
from tenantry.replay.progress import Progress, decoded
from tenantry.replay.window import WindowSettings
from tenantry.testing.clock import ManualClock

ACME, GLOBEX = TenantId("acme"), TenantId("globex")
HOOK = Target("https://a.example/hook")
BROKER = Traits(counts=True, freezes=True, acknowledges=True, window=200)
LOG = Traits(counts=True, freezes=True, acknowledges=False)

QUICK = CoordinatorSettings(
    lease_for=15.0,
    keep_every=0.002,
    take_every=0.0,
    measure_every=0.0,
    run=RunSettings(
        window=WindowSettings(soonest=0.0005, latest=0.002, wait_for=0.001),
        tell_every=0.0,
        stand_every=0.0,
        arrived_every=0.005,
        patience=0.2,
        close_within=0.02,
        retry_store_for=0.002,
        rest_for=0.005,
    ),
)
"""As quick as a test: what is one second in the product is a millisecond. Rules go by the manual clock."""


def messages(count: int, **fields: object) -> list[Message]:
    return [
        Message(id=f"m{n}", payload=b'{"n":%d}' % n, target=HOOK, **fields)  # type: ignore[arg-type]
        for n in range(count)
    ]


@dataclass
class Place:
    """Where messages lie. ``faults``: entries that are none, by id. ``down``: not readable; ``silent``: no
    answer ever comes."""

    held: list[Message]
    traits: Traits = BROKER
    faults: Mapping[str, str] = field(default_factory=dict)
    down: bool = False
    silent: bool = False
    new: int | None = 0
    endless: bool = False
    was_down: bool = False
    acknowledged: set[str] = field(default_factory=set)
    opened: int = 0
    fetched: Counter[str] = field(default_factory=Counter)
    most_in_hand: int = 0
    after_fetch: Callable[[], None] = lambda: None

    @property
    def rest(self) -> set[str]:
        return {message.id for message in self.held} - self.acknowledged


class Session:
    """One :class:`tenantry.replay.ports.Source`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._at, self._in_hand = 0, set[str]()
        self._left = set[str]()

    @property
    def traits(self) -> Traits:
        return self._place.traits

    async def _answer(self) -> None:
        if self._place.silent:
            await asyncio.Event().wait()
        if self._place.down:
            raise SourceUnavailable("no route to the broker")

    async def survey(self) -> Membership:
        await self._answer()
        return Membership(str(len(self._place.held)), len(self._place.held))

    async def peek(self, limit: int) -> Sequence[Fetched]:
        await self._answer()
        return [self._entry(message, n) for n, message in enumerate(self._place.held[:limit])]

    async def arrived(self, membership: Membership) -> int | None:
        await self._answer()
        return self._place.new

    async def open(self, membership: Membership, after: Position) -> None:
        await self._answer()
        self._place.opened += 1
        self._at = int(after or 0)

    async def fetch(self, limit: int, wait_for: Seconds) -> Batch:
        await self._answer()
        place, found = self._place, list[Fetched]()
        while self._at < len(place.held) and len(found) < limit:
            message, self._at = place.held[self._at], self._at + 1
            if place.traits.acknowledges and message.id in place.acknowledged:
                continue
            found.append(self._entry(message, self._at))
        place.fetched.update(each.message.id for each in found)
        if place.traits.acknowledges:
            self._in_hand |= {each.message.id for each in found}
            place.most_in_hand = max(place.most_in_hand, len(self._in_hand))
        place.after_fetch()
        if not found and place.endless:
            await asyncio.sleep(wait_for)
        return Batch(tuple(found), exhausted=not place.endless and self._at >= len(place.held))

    async def acknowledge(self, receipts: Sequence[object]) -> None:
        await self._answer()
        self._place.acknowledged |= {str(each) for each in receipts}
        self._in_hand -= {str(each) for each in receipts}

    async def leave(self, receipts: Sequence[object]) -> None:
        await self._answer()
        self._left |= {str(each) for each in receipts}
        self._in_hand -= self._left

    async def close(self) -> None:
        await self._answer()

    def _entry(self, message: Message, at: int) -> Fetched:
        position = None if self._place.traits.acknowledges else Position(str(at))
        return Fetched(message, message.id, position, self._place.faults.get(message.id, ""))


@dataclass
class Job:
    staged: Staged
    state: str = "waiting"
    failures: int = 0


@dataclass
class Record:
    """One replay of the store's."""

    view: ReplayView
    lease_until: float = float("-inf")
    jobs: dict[MessageKey, Job] = field(default_factory=dict)
    duplicate: int = 0
    left: int = 0
    failing_before: int = 0
    since: Counter[str] = field(default_factory=Counter)
    delivered_of: Counter[str] = field(default_factory=Counter)
    returned: int = 0
    faults: int = 0
    moves: list[ReplayState] = field(default_factory=list)


class WorldStore:
    """A :class:`tenantry.replay.ports.ReplayStore`, with targets behind it: at each fold ``permits`` waiting
    jobs of a replay are tried, and ``outcome`` says how each ends: ``ok``, ``bad`` (by its own fault),
    ``down`` (by the target's: it waits on)."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.records: dict[ReplayId, Record] = {}
        self.outcome: Callable[[Staged], str] = lambda staged: "ok"
        self.permits = 50
        self.sent: Counter[str] = Counter()
        self.delivered: set[MessageKey] = set()
        self.failed: set[MessageKey] = set()
        self.down = False
        self.unholdable: frozenset[str] = frozenset()
        self.quota_after: int | None = None
        self.most_running: int | None = None
        self.before_commit: Callable[[], None] = lambda: None
        self.after_commit: Callable[[], None] = lambda: None
        self.before_move: Callable[[], None] = lambda: None
        self.happened = asyncio.Event()
        self.calls: Counter[str] = Counter()

    # the port

    async def take(self, holder: str, lease_for: Seconds, *, limit: int) -> list[ReplayView]:
        self._called("take")
        now = self.clock.now()
        alone = [r for r in self.records.values() if r.view.state in LIVE and r.lease_until <= now][:limit]
        for record in alone:
            record.view = replace(record.view, holder=holder, token=record.view.token + 1)
            record.lease_until = now + lease_for
        return [self.view(record) for record in alone]

    async def keep(
        self, holder: str, leases: Mapping[ReplayId, int], lease_for: Seconds
    ) -> Mapping[ReplayId, ReplayView]:
        self._called("keep")
        kept = {}
        for replay, token in leases.items():
            record = self._led(Lease(replay, token))
            if record is not None and record.view.state in LIVE:
                record.lease_until = self.clock.now() + lease_for
                kept[replay] = self.view(record)
        return kept

    async def release(self, holder: str, leases: Mapping[ReplayId, int]) -> None:
        self._called("release")
        for replay, token in leases.items():
            record = self._led(Lease(replay, token))
            if record is not None:
                record.lease_until = float("-inf")

    async def feed(self, lease: Lease, window: Window) -> FedWindow | None:
        self._called("feed")
        record = self._led(lease)
        if record is None or record.view.state is not ReplayState.RUNNING:
            return None
        self.before_commit()
        fates = [self._fate(record, staged) for staged in window.messages]
        hold = None
        if Fate.QUOTA in fates:
            hold = Hold(HoldRule.QUOTA, "used up", Timestamp(self.clock.now() + 3_600))
        if not {Fate.QUOTA, Fate.BROKEN} & set(fates):
            record.left += window.left
            position = record.view.position if window.position is None else window.position
            exhausted = record.view.exhausted or window.exhausted
            record.view = replace(record.view, position=position, exhausted=exhausted)
        self.after_commit()
        return FedWindow(tuple(fates), hold)

    async def fold(self, lease: Lease) -> bool | None:
        self._called("fold")
        record = self._led(lease)
        if record is None:
            return None
        if not self._is_stopped(record):
            self._work(record)
        self.happened.set()
        return False

    async def failures(self, replay: ReplayId, *, limit: int) -> list[ClassFailure]:
        self._called("failures")
        record = self.records[replay]
        return [
            ClassFailure(origin, "f", failures, record.delivered_of[origin])
            for origin, failures in record.since.most_common(limit)
        ]

    async def counts(self, replays: Collection[ReplayId]) -> Mapping[ReplayId, Counts]:
        self._called("counts")
        return {each: self.count(self.records[each]) for each in replays if each in self.records}

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
        self.before_move()
        self._called("move")
        record = self._led(lease)
        if record is None or record.view.state not in moved_from(state):
            return None
        if seen not in {None, record.view.state}:
            return None
        assert (state is ReplayState.HELD) is (hold is not None)
        assert state not in ENDED or not self.count(record).unended
        if state is not record.view.state:
            record.moves.append(state)
        record.view = replace(record.view, state=state, hold=hold, running_for=running_for, progress=progress)
        self.happened.set()
        return self.view(record)

    async def admit(self, lease: Lease, quotas: Quotas) -> ReplayView | None:
        self._called("admit")
        record = self._led(lease)
        if record is None:
            return None
        running = sum(each.view.state is ReplayState.RUNNING for each in self.records.values())
        if self.most_running is None or running < self.most_running:
            record.view = replace(record.view, state=ReplayState.RUNNING, hold=None)
        return self.view(record)

    async def return_waiting(self, lease: Lease, *, limit: int) -> int | None:
        self._called("return_waiting")
        record = self._led(lease)
        if record is None:
            return None
        waiting = [key for key, job in record.jobs.items() if job.state == "waiting"][:limit]
        for key in waiting:
            del record.jobs[key]
        record.returned += len(waiting)
        return len(waiting)

    async def tidy(self, *, now_kept_for: Seconds) -> None:
        raise AssertionError

    # what stands behind it

    def view(self, record: Record) -> ReplayView:
        return replace(record.view, counts=self.count(record))

    def count(self, record: Record) -> Counts:
        states = Counter(job.state for job in record.jobs.values())
        return Counts(
            duplicate=record.duplicate,
            waiting=states["waiting"],
            delivered=states["delivered"],
            parked=states["parked"],
            returned=record.returned,
            left=record.left,
            seen_failing=record.failing_before,
            failures=record.faults,
            message_faults=record.faults,
        )

    def _called(self, name: str) -> None:
        self.calls[name] += 1
        self.happened.set()
        if self.down:
            raise StoreUnavailable("the store is down")

    def _led(self, lease: Lease) -> Record | None:
        record = self.records.get(lease.replay)
        alive = record is not None and record.view.token == lease.token
        return record if record is not None and alive and self.clock.now() < record.lease_until else None

    def _fate(self, record: Record, staged: Staged) -> Fate:
        if staged.message.id in self.unholdable and not staged.broken:
            return Fate.BROKEN
        if staged.key in record.jobs:
            return Fate.AGAIN
        if staged.key in self.delivered and not record.view.spec.again:
            record.duplicate += 1
            return Fate.DUPLICATE
        if self.quota_after is not None and len(record.jobs) >= self.quota_after:
            return Fate.QUOTA
        record.failing_before += staged.key in self.failed
        record.jobs[staged.key] = Job(staged, "parked" if staged.broken else "waiting")
        return Fate.PARKED if staged.broken else Fate.STAGED

    def _is_stopped(self, record: Record) -> bool:
        view = record.view
        return view.state is ReplayState.PAUSED or (view.hold is not None and view.hold.stops)

    def _work(self, record: Record) -> None:
        waiting = [job for job in record.jobs.values() if job.state == "waiting"]
        for job in waiting[: self.permits]:
            outcome = self.outcome(job.staged)
            if outcome == "down":
                continue
            self.sent[job.staged.message.id] += 1
            if outcome == "ok":
                job.state = "delivered"
                self.delivered.add(job.staged.key)
                record.delivered_of[job.staged.origin] += 1
                continue
            job.failures += 1
            record.faults += 1
            record.since[job.staged.origin] += 1
            if job.failures >= record.view.spec.park_after:
                job.state = "parked"
                self.failed.add(job.staged.key)


class Lanes:
    """What lanes say of themselves."""

    def __init__(self) -> None:
        self.permits, self.down = 4, False

    async def shares(self, tenant: TenantId) -> tuple[float, float] | None:
        if self.down:
            raise StoreUnavailable("the planner's record cannot be read")
        return 0.5, 0.25

    async def lanes(self, tenant: TenantId, targets: Collection[str]) -> Mapping[str, LanePace]:
        return {target: LanePace(self.permits, 0.1) for target in targets}


class World:
    """All of it, with verbs for what people do."""

    def __init__(self, settings: CoordinatorSettings = QUICK) -> None:
        self.clock, self.told = ManualClock(), list[Event]()
        self.store, self.lanes = WorldStore(self.clock), Lanes()
        self.places: dict[str, Place] = {}
        tier = Tier(TierName("gold"), replays=3, replayed_a_day=1_000_000)
        documents = (TenantDocument(ACME, tier.name), TenantDocument(GLOBEX, tier.name))
        self.directory = MemoryDirectory(Registry((tier,), documents))
        self.around = Surroundings(self.directory, self.clock, SeededRandomness(1), self.told.append)
        self.settings = settings
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.coordinators: dict[str, Coordinator] = {}

    def source(self, tenant: TenantId, address: SourceAddress) -> Session:
        return Session(self.places[address.place])

    def start(self, place: Place, *, tenant: TenantId = ACME, name: str = "", **spec: object) -> ReplayId:
        """A replay of all that lies in ``place``."""
        replay = ReplayId(name or f"r{len(self.store.records) + 1}")
        self.places[replay] = place
        count = len(place.held) if place.traits.counts else None
        view = ReplayView(
            id=replay,
            spec=ReplaySpec(tenant=tenant, source=SourceAddress("jsonl", replay), **spec),  # type: ignore[arg-type]
            state=ReplayState.RUNNING,
            membership=Membership(str(len(place.held)), count),
            counts=Counts(),
            position=Position(""),
            created_at=self.clock.now(),
        )
        self.store.records[replay] = Record(view)
        return replay

    def order(self, replay: ReplayId, state: ReplayState, **fields: object) -> None:
        """What a person orders, as the store carries it out."""
        record = self.store.records[replay]
        if state is ReplayState.RUNNING and record.view.state is ReplayState.HELD:
            record.since.clear()
            record.delivered_of.clear()
        record.view = replace(record.view, state=state, hold=None, **fields)  # type: ignore[arg-type]

    def launch(self, holder: str = "n1") -> Coordinator:
        """A coordinator begins."""
        coordinator = Coordinator(
            self.store, self, self.lanes, self.around, holder=holder, settings=self.settings
        )
        self.coordinators[holder] = coordinator
        self._tasks[holder] = asyncio.create_task(coordinator.run())
        return coordinator

    async def stop(self, holder: str = "n1") -> None:
        """It is asked to go: leases are freed."""
        task = self._tasks.pop(holder)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def kill(self, holder: str = "n1") -> None:
        """It dies: what it would do on its way out reaches nobody, and its leases run out."""
        store, places = self.store, list(self.places.values())
        store.down = True
        for place in places:
            place.down, place.was_down = True, place.down
        await self.stop(holder)
        store.down = False
        for place in places:
            place.down = place.was_down
        self.clock.advance(20.0)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Until the store was told something after which ``holds``. The test's own timeout ends it."""
        while not holds():
            for task in self._tasks.values():
                if task.done():
                    task.result()
            self.store.happened.clear()
            await self.store.happened.wait()

    async def rounds(self, replay: ReplayId, count: int = 5) -> None:
        """So many more looks at a replay."""
        goal = self.store.calls["fold"] + count
        await self.until(lambda: self.store.calls["fold"] >= goal)

    async def ended(self, replay: ReplayId) -> ReplayView:
        await self.until(lambda: self.view(replay).state in ENDED)
        return self.view(replay)

    async def held(self, replay: ReplayId) -> Hold:
        await self.until(lambda: self.view(replay).hold is not None)
        hold = self.view(replay).hold
        assert hold is not None
        return hold

    def view(self, replay: ReplayId) -> ReplayView:
        return self.store.view(self.store.records[replay])

    def progress(self, replay: ReplayId) -> Progress:
        return decoded(self.view(replay).progress)

    def events(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.told if isinstance(event, kind)]

    def jobs(self, replay: ReplayId) -> Iterable[Job]:
        return self.store.records[replay].jobs.values()
