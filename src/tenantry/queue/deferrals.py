"""Jobs that are out of line until they are due, and retries that wait longer while their pool sheds. Pure."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final

from tenantry.algorithms.shedding import Level
from tenantry.config.tiers import Tier
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.queue.changes import Deferred, Place
from tenantry.queue.model import FlowId, PoolLevel
from tenantry.queue.overload import puts_off

LONGEST_PUT_OFF: Final[Seconds] = 300.0
"""A retry is put off for so long at most, however long the overload lasts: accepted work ends (law K1)."""

_A_ROUND: Final = 1_000
"""So many of them come back in one round at most: the end of an overload is no burst of its own."""


class Deferrals:
    """What waits outside its flow's line. Nothing in it is ever dropped. One task only."""

    def __init__(self) -> None:
        self._jobs: dict[Place, Deferred] = {}
        self._due: list[tuple[Timestamp, Place]] = []
        self._put_off: dict[str, deque[Place]] = {}  # by pool, in the order in which they fell due
        self._levels: Mapping[str, Level] = {}

    def places(self) -> Iterable[Place]:
        """Every job here, those included that are put off."""
        return self._jobs

    def add(self, deferred: Deferred) -> None:
        """A job left the line until its time. O(log n)."""
        place = (deferred.flow, deferred.seq)
        self._jobs[place] = deferred
        heappush(self._due, (deferred.due_at, place))

    def take_out(self, place: Place) -> Deferred | None:
        """A job is gone: it was cancelled. None when it is not here."""
        return self._jobs.pop(place, None)

    def shed(self, levels: Iterable[PoolLevel]) -> None:
        """How much each pool sheds from now on."""
        self._levels = {each.pool: each.level for each in levels}

    def next_due(self) -> Timestamp | None:
        """When the next one falls due. Of those put off nothing is told: each round looks."""
        return self._due[0][0] if self._due else None

    def due(
        self, now: Timestamp, tier_of: Callable[[FlowId], Tier | None]
    ) -> Iterator[tuple[Deferred, Timestamp]]:
        """Take out what goes back into line at ``now``, with the time since when it waits there: its own due
        time, or now if it was put off. ``tier_of``: of a flow, None where other jobs wait behind a retry: it
        is not put off then, or they were too. Read it to its end."""
        while self._due and self._due[0][0] <= now:
            _, place = heappop(self._due)
            deferred = self._jobs.get(place)
            if deferred is not None and not self._is_put_off(deferred, tier_of):
                del self._jobs[place]
                yield deferred, deferred.due_at
        for place in self._released(now):
            yield self._jobs.pop(place), now

    def _is_put_off(self, deferred: Deferred, tier_of: Callable[[FlowId], Tier | None]) -> bool:
        """Only a failed attempt makes a retry: what was given back unharmed goes on."""
        if not deferred.attempts or deferred.first:
            return False
        tier = tier_of(deferred.flow)
        if tier is None or not puts_off(self._levels.get(tier.pool, Level.NONE), tier):
            return False
        self._put_off.setdefault(tier.pool, deque()).append((deferred.flow, deferred.seq))
        return True

    def _released(self, now: Timestamp) -> Iterator[Place]:
        """O(what comes back)."""
        left = _A_ROUND
        for pool, line in self._put_off.items():
            ended = self._levels.get(pool, Level.NONE) < Level.RETRIES
            while line and left and (ended or self._is_over(line[0], now)):
                left -= 1
                place = line.popleft()
                if place in self._jobs:
                    yield place

    def _is_over(self, place: Place, now: Timestamp) -> bool:
        deferred = self._jobs.get(place)
        return deferred is None or deferred.due_at + LONGEST_PUT_OFF <= now
