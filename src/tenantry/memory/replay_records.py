"""The rows of the replays' books in memory. This room's own: nothing outside ``memory`` sees them."""

from collections import Counter
from dataclasses import dataclass, field
from heapq import nlargest

from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.queue.model import JobId
from tenantry.replay.dedup import LIFETIME, Record
from tenantry.replay.model import (
    ClassFailure,
    Counts,
    Hold,
    Known,
    Membership,
    MessageKey,
    Position,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
)
from tenantry.replay.poison import CLASSES_KEPT


@dataclass(slots=True)
class Seen:
    """A key that was seen. ``seen_at``: first; its lifetime counts from there."""

    seen_at: Timestamp
    state: Known
    replay: ReplayId
    failings: int = 0

    @property
    def record(self) -> Record:
        return Record(self.state, self.replay, self.failings)

    def mark(self, state: Known) -> None:
        """Failed says less than unknown: the target may have it."""
        if not (state is Known.FAILED and self.state is Known.UNKNOWN):
            self.state = state


@dataclass(slots=True)
class Fed:
    """A message that was fed and has not ended; parked ones have not."""

    seen: Seen
    key: MessageKey
    origin: str
    parked: bool = False
    unknown: bool = False


@dataclass(slots=True)
class Tally:
    """The counters of a replay; ``unended`` is what waits or is in flight."""

    unended: int = 0
    duplicate: int = 0
    delivered: int = 0
    parked: int = 0
    dropped: int = 0
    dead: int = 0
    returned: int = 0
    unknown: int = 0
    left: int = 0
    seen_failing: int = 0
    failures: int = 0
    message_faults: int = 0

    def counts(self, in_flight: int) -> Counts:
        return Counts(
            duplicate=self.duplicate,
            waiting=self.unended - in_flight,
            in_flight=in_flight,
            delivered=self.delivered,
            parked=self.parked,
            dead=self.dead,
            returned=self.returned,
            dropped=self.dropped,
            unknown=self.unknown,
            left=self.left,
            seen_failing=self.seen_failing,
            failures=self.failures,
            message_faults=self.message_faults,
        )


@dataclass(slots=True)
class Run:
    """A replay, from its plan on. ``placed``: it is one of those that may run at once."""

    id: ReplayId
    spec: ReplaySpec
    membership: Membership
    plan: str
    created_at: Timestamp
    state: ReplayState = ReplayState.PLANNED
    hold: Hold | None = None
    placed: bool = False
    started_at: Timestamp | None = None
    ended_at: Timestamp | None = None
    holder: str = ""
    token: int = 0
    lease_until: float = float("-inf")
    running_for: Seconds = 0.0
    progress: str = ""
    position: Position = Position("")  # noqa: RUF009 - a NewType is a plain str
    exhausted: bool = False
    sampled: bool = False
    tally: Tally = field(default_factory=Tally)
    fed: dict[JobId, Fed] = field(default_factory=dict)
    alike: Counter[tuple[str, str]] = field(default_factory=Counter)  # failures by origin and fingerprint
    examples: dict[tuple[str, str], JobId] = field(default_factory=dict)
    delivered: Counter[str] = field(default_factory=Counter)  # by origin

    @property
    def tenant(self) -> TenantId:
        return self.spec.tenant

    def forget_rare_classes(self) -> None:
        """See :data:`~tenantry.replay.poison.CLASSES_KEPT`."""
        if len(self.alike) + len(self.delivered) <= 4 * CLASSES_KEPT:
            return
        most = nlargest(CLASSES_KEPT, self.alike, self.alike.__getitem__)
        origins = {origin for origin, _ in most} | set(
            nlargest(CLASSES_KEPT, self.delivered, self.delivered.__getitem__)
        )
        self.alike = Counter({each: self.alike[each] for each in most})
        self.examples = {each: self.examples[each] for each in most}
        self.delivered = Counter({each: self.delivered[each] for each in origins & self.delivered.keys()})

    def failures(self) -> list[ClassFailure]:
        found = [
            ClassFailure(origin, mark, count, self.delivered[origin], self.examples[origin, mark])
            for (origin, mark), count in self.alike.items()
        ]
        return sorted(found, key=lambda each: (-each.failures, each.origin, each.fingerprint))

    def view(self, counts: Counts, now: Timestamp) -> ReplayView:
        return ReplayView(
            id=self.id,
            spec=self.spec,
            state=self.state,
            membership=self.membership,
            counts=counts,
            position=self.position,
            created_at=self.created_at,
            started_at=self.started_at,
            ended_at=self.ended_at,
            hold=self.hold,
            exhausted=self.exhausted,
            sampled=self.sampled,
            running_for=self.running_for,
            holder=self.holder if now < self.lease_until else "",
            token=self.token,
            plan=self.plan,
            progress=self.progress,
        )


@dataclass(slots=True)
class Tenure:
    """What is the tenant's rather than one replay's. ``generations``: by the day of the first sight, how many
    keys were stored, and the newest sight of each."""

    lifetime_for: Seconds = LIFETIME
    day: int = 0
    replayed: int = 0  # on that day
    most_running: int | None = None
    generations: dict[int, dict[MessageKey, Seen]] = field(default_factory=dict)
    stored: Counter[int] = field(default_factory=Counter)
