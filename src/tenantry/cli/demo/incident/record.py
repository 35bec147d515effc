"""One incident as it goes on: what the stage writes, the screen shows and the figures are made of."""

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from tenantry.cli.demo.incident.cast import Kind, Party, Scale
from tenantry.cli.demo.incident.ledger import Ledger
from tenantry.kernel.clock import Clock
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.replay.lifecycle import ENDED
from tenantry.replay.model import ReplayState
from tenantry.replay.progress import Progress


class Chapter(StrEnum):
    """What is going on, for people."""

    QUIET = "ordinary live work"
    DOWN = "the dependency that all share is down: it answers 503, and their jobs die"
    PLANNING = "the dependency is back: fifty replays are planned"
    REPLAYING = "fifty replays started at once; live work goes on"
    ENDING = "all others have ended: what is left is cancelled, and returned"
    BOOKS = "reading the books"


BYSTANDERS = frozenset({Kind.BYSTANDER})
OTHERS = frozenset(Kind) - BYSTANDERS
"""Those with a replay, who have live work beside it."""

_BEFORE, _DURING = (Chapter.QUIET, Chapter.DOWN), (Chapter.REPLAYING, Chapter.ENDING)
_WARMING: Seconds = 1.0


@dataclass(frozen=True, slots=True)
class Held:
    """Slot-seconds of each tenant up to ``at``."""

    at: Instant
    slot_seconds: dict[TenantId, Seconds]


@dataclass(slots=True)
class Incident:
    """``marks``: when each chapter began, and ``held`` what each tenant had held by then. ``first_end``: the
    same at the first end of an ordinary replay. ``progress``: each replay as it was last seen, ``stopped`` as
    it was when the last chapter of replays began. ``ids``: of every job that was accepted.
    ``requests_before``, ``requests_after``: what the dependency had counted when it came back, and at the
    end, by path."""

    parties: tuple[Party, ...]
    scale: Scale
    ledger: Ledger
    clock: Clock
    marks: dict[Chapter, Instant] = field(default_factory=dict)
    held: dict[Chapter, Held] = field(default_factory=dict)
    first_end: Held | None = None
    progress: dict[TenantId, Progress] = field(default_factory=dict)
    stopped: dict[TenantId, Progress] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    requests_before: dict[str, int] = field(default_factory=dict)
    requests_after: dict[str, int] = field(default_factory=dict)

    @property
    def chapter(self) -> Chapter:
        return list(self.marks)[-1] if self.marks else Chapter.QUIET

    @property
    def elapsed(self) -> Seconds:
        """Since the first live job."""
        began = self.marks.get(Chapter.QUIET)
        return 0.0 if began is None else self.clock.monotonic() - began

    @property
    def letters(self) -> int:
        """How many jobs are to die."""
        return sum(party.letters for party in self.parties)

    @property
    def replaying(self) -> list[Party]:
        """Those with a replay."""
        return [party for party in self.parties if party.letters]

    def of(self, kind: Kind) -> list[Party]:
        return [party for party in self.parties if party.kind is kind]

    def turn(self, chapter: Chapter) -> None:
        """The next chapter begins."""
        self.held[chapter] = held = self._held()
        self.marks[chapter] = held.at
        if chapter is Chapter.ENDING:
            self.stopped = dict(self.progress)

    def look(self) -> None:
        """To be called after ``progress`` was brought up to date."""
        if self.first_end is None and any(map(self._has_ended, self.of(Kind.ORDINARY))):
            self.first_end = self._held()

    def all_ended(self, parties: list[Party]) -> bool:
        """Whether their replays have, as they were last seen."""
        return all(map(self._has_ended, parties))

    def state(self, kind: Kind) -> ReplayState | None:
        """Of the one replay of this kind."""
        seen = self.progress.get(self.of(kind)[0].tenant)
        return None if seen is None else seen.state

    def live_waits(self, kinds: Collection[Kind], *, before: bool) -> list[Seconds]:
        """Of live jobs of tenants of these kinds that started before the outage, less a second of warming up,
        or while replays ran."""
        since, until = _BEFORE if before else _DURING
        if since not in self.marks:
            return []
        begin = self.marks[since] + (_WARMING if before else 0.0)
        end = self.marks.get(until, self.clock.monotonic())
        whose = {party.tenant for party in self.parties if party.kind in kinds}
        return [
            wait for tenant, wait in self.ledger.waits(since=Instant(begin), until=end) if tenant in whose
        ]

    def _has_ended(self, party: Party) -> bool:
        seen = self.progress.get(party.tenant)
        return seen is not None and seen.state in ENDED

    def _held(self) -> Held:
        return Held(self.clock.monotonic(), self.ledger.held())
