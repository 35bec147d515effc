"""What an incident came to, beside the fluid schedule of the same targets and slots: its figures."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from statistics import median

from tenantry.algorithms import estimate
from tenantry.algorithms.estimate import Range
from tenantry.simulation.fluid import FluidSchedule
from tenantry.simulation.incident.model import TIERS, Backlog
from tenantry.simulation.incident.run import IncidentReport, ReplayResult

LONG = 60.0
"""Seconds that a replay takes in the fluid schedule, from which on its end is compared with it: of a shorter
one, discovery is the greater part."""

WINDOW = 10
"""Seconds over which nobody may starve."""

ASKED_EVERY = 5
"""Seconds between two questions how long a replay will take."""

_SETTLED = 30.0
"""Seconds of live traffic at first that are not counted: lanes that have never been used learn what a call
takes."""


@dataclass(frozen=True, slots=True)
class TierFigures:
    """``ended``, ``fluid``: medians of when its replays ended, in seconds. ``drained`` and ``due``: the part
    of its messages that had ended at :attr:`Judged.looked_at`, and by the fluid schedule."""

    tier: str
    weight: float
    replays: int
    messages: int
    ended: float
    fluid: float
    drained: float
    due: float


class Judged:
    """The figures of one report. All read-only; each is O(n log n) at first and then kept."""

    def __init__(self, report: IncidentReport) -> None:
        self.report = report
        self.schedule: FluidSchedule = report.incident.schedule()

    @cached_property
    def replays(self) -> list[ReplayResult]:
        """Those that can end, by the fluid schedule too: there live work may leave a replay nothing."""
        return [each for each in self.report.results if self.schedule.ends.get(each.tenant.id, inf) < inf]

    def over(self, result: ReplayResult) -> float:
        """When it ended over when it does in the fluid schedule."""
        return result.ended_at / self.schedule.ends[result.tenant.id]

    @cached_property
    def long(self) -> list[float]:
        """:meth:`over` of the replays of a minute and more, rising."""
        return sorted(self.over(each) for each in self.replays if self._due(each) >= LONG)

    @cached_property
    def late(self) -> float:
        """Seconds by which a shorter one ended later than in the fluid schedule, at most."""
        short = [each.ended_at - self._due(each) for each in self.replays if self._due(each) < LONG]
        return max(short, default=0.0)

    @cached_property
    def least_share(self) -> float:
        """The fewest slots that a replay of a minute and more held on average until its end, over the floor:
        φ of an equal part of the pool for all who replay."""
        incident = self.report.incident
        replays = sum(tenant.messages > 0 for tenant in incident.tenants)
        floor = incident.floor * incident.slots / replays
        shares = [
            each.slot_seconds / each.ended_at / floor for each in self.replays if self._due(each) >= LONG
        ]
        return min(shares, default=inf)

    @cached_property
    def least_window(self) -> float:
        """The fewest slots that any replay held over any :data:`WINDOW` seconds of its life but the first,
        over the same floor."""
        incident = self.report.incident
        floor = incident.floor * incident.slots / sum(tenant.messages > 0 for tenant in incident.tenants)
        shares = [
            (after[1] - before[1]) / WINDOW / floor
            for each in self.replays
            for before, after in pairwise(each.history[WINDOW - 1 :: WINDOW])
        ]
        return min(shares, default=inf)

    @cached_property
    def foretold(self) -> tuple[float, float]:
        """(which part of the ranges that were shown held the true end, which part of the answers had one),
        of all replays, each asked every five seconds until its end."""
        shown = [
            (found.low <= each.ended_at - second <= found.high) if found is not None else None
            for each in self.replays
            for second, found in _answers(each)
        ]
        right = [held for held in shown if held is not None]
        return sum(right) / max(1, len(right)), len(right) / max(1, len(shown))

    @cached_property
    def crowded_for(self) -> float:
        """Seconds until half of the replays had ended: live traffic is looked at until then."""
        return median([each.ended_at for each in self.replays] or [0.0])

    def live(self, *, during: bool, own: bool = True) -> float:
        """The 99th percentile of what live jobs took from submit to answer, over what a call of their target
        takes: before the incident, or from it until half of the replays had ended. ``own``: of tenants that
        replay; else of the others. Tenants whose target is gone are left out."""
        begins = self.report.incident.at
        start, end = (begins, begins + self.crowded_for) if during else (_SETTLED, begins)
        return _p99(
            took / each.tenant.takes
            for each in self.report.results
            if each.tenant.backlog is not Backlog.HOLE and (each.tenant.messages > 0) == own
            for submitted, took in each.live
            if start <= submitted < end
        )

    def live_seconds(self, *, during: bool) -> float:
        """The same in seconds, of all tenants together."""
        begins = self.report.incident.at
        start, end = (begins, begins + self.crowded_for) if during else (_SETTLED, begins)
        return _p99(
            took
            for each in self.report.results
            if each.tenant.backlog is not Backlog.HOLE
            for submitted, took in each.live
            if start <= submitted < end
        )

    @cached_property
    def looked_at(self) -> int:
        """The second at which, in the fluid schedule, half of the critical tier's messages have gone: others
        wait then, and who is ahead by how much is a matter of shares."""
        total = self._messages("critical")
        second = 1
        while self.fluid_drained(second)["critical"] < 0.5 * total and second < len(self.report.drained):
            second += 1
        return second

    @cached_property
    def tiers(self) -> list[TierFigures]:
        """The heaviest first."""
        at = min(self.looked_at, len(self.report.drained) - 1)
        due, found = self.fluid_drained(float(at)), []
        for tier, weight in TIERS.items():
            here = [each for each in self.replays if each.tenant.tier == tier]
            total = max(1, self._messages(tier))
            found.append(
                TierFigures(
                    tier,
                    weight,
                    len(here),
                    self._messages(tier),
                    median(each.ended_at for each in here) if here else 0.0,
                    median(self._due(each) for each in here) if here else 0.0,
                    self.report.drained[at][tier] / total,
                    due[tier] / total,
                )
            )
        return found

    @cached_property
    def held_by_holes(self) -> float:
        """Slots that lanes to black holes held on average from the incident to the end."""
        lasted = max(1, len(self.report.used))
        holes = [each for each in self.report.results if each.tenant.backlog is Backlog.HOLE]
        return sum(each.slot_seconds for each in holes) / lasted

    def _messages(self, tier: str) -> int:
        return sum(each.tenant.messages for each in self.replays if each.tenant.tier == tier)

    def fluid_drained(self, at: float) -> Mapping[str, float]:
        """Messages by tier that have gone in the fluid schedule ``at`` seconds after the incident."""
        gone = self.schedule.drained(at)
        found = dict.fromkeys(TIERS, 0.0)
        for each in self.replays:
            found[each.tenant.tier] += gone[each.tenant.id]
        return found

    def _due(self, result: ReplayResult) -> float:
        return self.schedule.ends[result.tenant.id]


def _answers(result: ReplayResult) -> Iterator[tuple[int, Range | None]]:
    seen, before = estimate.opened(0.0), 0
    for second, (ended, _) in enumerate(result.history, start=1):
        seen = estimate.observed(seen, ended - before, now=float(second))
        before = ended
        if second % ASKED_EVERY == 0:
            yield second, estimate.estimate(seen, result.tenant.messages - ended).remaining


def _p99(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))] if ordered else 0.0
