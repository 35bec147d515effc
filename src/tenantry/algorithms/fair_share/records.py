"""What the rule remembers of tenants, lanes and flows. Plain records; the rule is in the other files.

::

    Domain (a kind of work: everyone who competes for the slots that can run it)
    └── Band (one weight in it)          takes turns:  Line    a tenant's work of one kind
        └── Line.ranks (live, …)         takes turns:  Berth   a lane's work of one class
            └── Berth                    takes turns:  Flow    the live work, or one replay, of that lane
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf

from tenantry.algorithms.fair_share.turns import Member, Turns

RANKS = 3
REPLAY = RANKS - 1  # the rank that leaves the headroom free

Kind = Hashable
Kinds = frozenset[Hashable]


class Flow(Member):
    """``hints`` are runs of waiting jobs with one declared cost: [jobs, cost of each or -1]."""

    __slots__ = ("berth", "held", "hints", "id", "in_flight", "limit", "paused", "waiting")

    def __init__(self, flow: Hashable, berth: "Berth", limit: int | None) -> None:
        super().__init__()
        self.id, self.berth, self.limit = flow, berth, limit
        self.waiting = 0
        self.in_flight = 0
        self.held: float | None = None  # not before this instant
        self.paused = False
        self.hints: deque[list[float]] = deque()


class Berth(Member):
    """One class of work in one lane."""

    __slots__ = ("flows", "lane", "rank")

    def __init__(self, lane: "Lane", rank: int) -> None:
        super().__init__()
        self.lane, self.rank = lane, rank
        self.flows: Turns[Flow] = Turns()


class Lane:
    """``estimate``: what its jobs took of late, in slot-seconds; None before the first one settled."""

    __slots__ = ("berths", "estimate", "held", "id", "in_flight", "limit", "line", "open", "paused")

    def __init__(self, lane: Hashable, line: "Line") -> None:
        self.id, self.line = lane, line
        self.berths: dict[int, Berth] = {}
        self.estimate: float | None = None
        self.in_flight = 0
        self.limit: int | None = None
        self.paused = False
        self.held: float | None = None
        self.open = True


class Line(Member):
    """One tenant's work of one kind.

    ``used`` counts the tenant's use of every slot that could have run this kind, ``own`` only its own jobs'.
    ``over``: jobs that run beyond their estimate and are charged as they run.
    """

    __slots__ = ("accrued_at", "band", "berths", "domain", "over", "own", "prompt", "ranks", "tenant")

    def __init__(self, tenant: "Tenant", domain: "Domain", band: "Band") -> None:
        super().__init__()
        self.tenant, self.domain, self.band = tenant, domain, band
        self.prompt = Prompt(self)
        self.ranks: list[Turns[Berth]] = [_NOBODY] * RANKS
        self.berths = 0  # those that take turns, of all ranks
        self.own = 0.0
        self.over = 0
        self.accrued_at = -inf
        band.lines += 1

    def open_rank(self, rank: int) -> None:
        """Most lines have one class of work: the others share an empty list of turns."""
        if self.ranks[rank] is _NOBODY:
            self.ranks[rank] = Turns()
            self.tenant.classes = tuple(sorted({*self.tenant.classes, rank}))

    def lag(self) -> float:
        """Slot-seconds it was charged beyond the present time: debt, or if negative credit."""
        return self.used - self.band.place(self.domain.time)

    def join(self, band: "Band") -> None:
        """Move to the band of another weight, with the credit or debt it has. It must not take turns now."""
        lag = self.lag()
        self.band.lines -= 1
        if not self.band.lines:
            del self.domain.bands[self.band.weight]
        self.band = band
        band.lines += 1
        self.used = band.place(self.domain.time) + lag

    def accrue(self, now: float) -> None:
        """Charge what its jobs overran since that was last charged (law F6)."""
        if now > self.accrued_at:
            self.used += self.over * (now - self.accrued_at)
            self.accrued_at = now

    def overrun(self, jobs: int, late: float, now: float) -> None:
        """``jobs`` of its jobs are ``late`` seconds beyond their estimate; negative: they ended."""
        if self.over:
            self.accrue(now)
        else:
            self.accrued_at = now
        self.used += max(0, jobs) * late
        self.over += jobs


_NOBODY: Turns[Berth] = Turns()


class Prompt(Member):
    """A line that has work for the headroom, at its place among those. ``used`` follows the line's: an
    earlier place at once, a later one when it comes up."""

    __slots__ = ("line",)

    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line


class Tenant:
    """``most``: slots it may hold (law F4). ``spent_until``: its bucket of starts, as the instant at which
    that was last empty. ``since``: for each rank, picks of other ranks while it was due (law F8).
    ``classes``: the ranks that it has ever had work of; most have one, and no choice between classes.
    ``out_of_turn``: slots of the headroom that it holds."""

    __slots__ = (
        "cap", "classes", "id", "in_flight", "lines", "listed", "most", "open", "out_of_turn", "own_time",
        "rate", "rate_held", "since", "spent_until", "weight",
    )  # fmt: skip

    def __init__(self, tenant: Hashable, weight: float) -> None:
        self.id, self.weight = tenant, weight
        self.cap = 1.0
        self.most = 1
        self.rate: float | None = None
        self.rate_held: float | None = None  # no start before this instant
        self.spent_until = -inf
        self.in_flight = 0
        self.out_of_turn = 0
        self.open = True
        self.listed = 0  # lines that take turns; eligible while there is one
        self.since = [0] * RANKS
        self.classes: tuple[int, ...] = ()
        self.own_time = 0.0  # ``own`` of the last line picked
        self.lines: dict[Kind, Line] = {}


class Band(Turns[Line]):
    """The lines of one weight in one domain. All of one weight always have the same effective weight.
    ``prompts``: those of them that have work for the headroom.

    Places in it are slot-seconds. They meet other bands in virtual time: ``tag(used)``. When the effective
    weight changes, the mapping pivots on the domain's present time: what each line has of credit or debt, in
    slot-seconds, stays what it was, at O(1) for all of them.
    """

    __slots__ = ("effective", "lines", "origin", "pivot", "prompts", "weight")

    def __init__(self, weight: float, time: float) -> None:
        super().__init__()
        self.weight = self.effective = weight
        self.pivot = time  # in virtual time …
        self.origin = 0.0  # … and the place that it is
        self.lines = 0
        self.prompts: Turns[Prompt] = Turns()

    def tag(self, used: float) -> float:
        """The virtual time of a place."""
        return self.pivot + (used - self.origin) / self.effective

    def place(self, time: float) -> float:
        """The place of a virtual time."""
        return self.origin + (time - self.pivot) * self.effective

    def scale(self, effective: float, time: float) -> None:
        self.origin, self.pivot = self.place(time), time
        self.effective = effective


class Domain:
    """All who compete for the slots that can run one kind. ``time`` is V: the latest start tag on them."""

    __slots__ = ("bands", "kind", "served", "time")

    def __init__(self, kind: Kind, time: float) -> None:
        self.kind, self.time = kind, time
        self.served = False
        self.bands: dict[float, Band] = {}

    def band(self, weight: float) -> Band:
        found = self.bands.get(weight)
        if found is None:
            found = self.bands[weight] = Band(weight, self.time)
        return found

    def advance(self, time: float) -> None:
        """Start at ``time``, everyone with the credit or debt that they had."""
        for band in self.bands.values():
            band.pivot += time - self.time
        self.time = time


@dataclass(slots=True)
class Charge:
    """What a pick was charged, until the last of its jobs is settled. Opaque to callers. ``out_of_turn``:
    it holds slots of the headroom."""

    flow: Flow
    lines: tuple[Line, ...]
    estimate: float
    started_at: float
    remaining: int
    overrunning: bool = False
    out_of_turn: bool = False


@dataclass(frozen=True, slots=True)
class Pick:
    """Start ``count`` jobs of ``flow`` now, on slots of the group ``kinds``. Hand ``charge`` to settle."""

    tenant: Hashable
    lane: Hashable
    flow: Hashable
    kinds: Kinds
    count: int
    charge: Charge
