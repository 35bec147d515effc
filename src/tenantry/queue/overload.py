"""Load shedding in the queue: what presses a pool, and what a submit is told. Pure.

The rule (levels, their order, hysteresis) is :mod:`tenantry.algorithms.shedding`. This is what the queue
adds.

*Pressure* speaks of a pool as a whole. A tenant that waits counts only while it is within its quota: one
slot more would not take it beyond its share, or its share is less than a slot and is had in turns. And the
age is one that tenants with more than half of the shares have reached, of all who run or wait: tenants that
burst have old work in any queue, and what they are due for that is their own bound, not everybody's refusal.

*A level* is written by the planner and means nothing once it is older than
:data:`LEVEL_FRESH_FOR` by the store's clock: a planner that is gone sheds nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import floor
from typing import Final, NamedTuple

from tenantry.algorithms.fair_share import FairShare
from tenantry.algorithms.fair_share.shares import Shares
from tenantry.algorithms.shedding import (
    Level,
    Pressure,
    SheddingSettings,
    Standing,
    Work,
    falls_in,
    retry_after,
    sheds,
    step,
)
from tenantry.algorithms.shedding import Shedding as Stretch
from tenantry.config.tiers import Shedding, Tier
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal, Rule
from tenantry.queue.events import PoolSlots
from tenantry.queue.model import JobClass, NewJob, PoolLevel

LEVEL_FRESH_FOR: Final[Seconds] = 10.0
"""What a planner says a pool sheds means nothing after so long: as long as a hand-over may take (law F3), so
that a planner that dies neither ends an overload nor makes one last."""

_AT_REST: Final = 0.5
"""With less than this part of its slots in use a pool is not pressed, and nothing is measured."""

_REST: Final = Pressure(0.0, 0.0)

_STANDINGS: Final[Mapping[Shedding, Standing]] = {
    Shedding.FIRST: Standing.LOWEST,
    Shedding.MIDDLE: Standing.STANDARD,
    Shedding.LAST: Standing.PROTECTED,
}


# -- what presses a pool -------------------------------------------------------------------------------------


class Contender(NamedTuple):
    """A tenant that runs or waits. ``running``: slots that it holds. ``waited``: seconds that its oldest job
    has been waiting for nothing but a slot; 0 when none does."""

    weight: float
    running: int
    waited: Seconds


def pressure(slots: PoolSlots, contenders: Sequence[Contender], floor_of_pool: float) -> Pressure:
    """How hard one pool is pressed. Pure, O(n log n).

    A pool without live slots is not: no refusal brings a worker back, and bounds keep what waits for it.
    """
    if not slots.slots:
        return _REST
    used = max(0.0, slots.used / slots.slots)
    if used < _AT_REST or not contenders:
        return Pressure(0.0, used)
    shares = Shares(floor_of_pool)
    counts = Counter(each.weight for each in contenders)
    for weight, count in counts.items():
        shares.count(weight, count)
    share_of = {weight: shares.share(weight) for weight in counts}
    waits = [_waited(each, share_of[each.weight], slots.slots) for each in contenders]
    return Pressure(_reached_by_half(waits), used)


def _waited(contender: Contender, share: float, slots: int) -> tuple[Seconds, float]:
    """How long it has waited within its quota, and its share."""
    return (contender.waited if _within_quota(contender.running, share * slots) else 0.0), share


def _reached_by_half(waits: Sequence[tuple[Seconds, float]]) -> Seconds:
    """The longest wait that those reach who have more than half of the shares together."""
    held = 0.0
    for waited, share in sorted(waits, reverse=True):
        held += share
        if held > 0.5 + 1e-9:
            return waited
    return 0.0


def _within_quota(running: int, entitled: float) -> bool:
    """Whether one slot more would not take it beyond its share; a share below one slot is had in turns."""
    return entitled < 1.0 or running + 1 <= floor(entitled + 1e-9)


def pressures(
    pools: Sequence[PoolSlots],
    tenants: Mapping[TenantId, Tier],
    rules: Mapping[str, FairShare],
    waiting: Iterable[tuple[TenantId, Timestamp | None]],
    *,
    floor: float,
    now: Timestamp,
) -> dict[str, Pressure]:
    """How hard each pool is pressed. ``waiting``: since when flows want a slot; it is not read while every
    pool is at rest. Pure, O(flows + tenants), at rest O(pools)."""
    if all(pool.used < _AT_REST * pool.slots for pool in pools):
        return {pool.pool: pressure(pool, (), floor) for pool in pools}
    oldest: dict[TenantId, Timestamp] = {}
    for tenant, since in waiting:
        if since is not None and since < oldest.get(tenant, now):
            oldest[tenant] = since
    contenders: dict[str, list[Contender]] = {pool.pool: [] for pool in pools}
    for tenant, tier in tenants.items():
        running = rules[tier.pool].in_flight(tenant)
        if tier.pool in contenders and (running or tenant in oldest):
            waited = max(0.0, now - oldest.get(tenant, now))
            contenders[tier.pool].append(Contender(tier.weight, running, waited))
    return {pool.pool: pressure(pool, contenders[pool.pool], floor) for pool in pools}


# -- the level of each pool, as the planner steps it ---------------------------------------------------------


class Levels:
    """The level of every pool that has slots or sheds. One task only."""

    def __init__(self, settings: SheddingSettings) -> None:
        self._settings = settings
        self._stretches: dict[str, Stretch] = {}
        self._levels: dict[str, PoolLevel] = {}
        self._kept: dict[str, tuple[Level, Timestamp]] = {}

    def adopt(self, known: Iterable[PoolLevel]) -> None:
        """Go on from what another planner said last, or not at all where something is known here."""
        if not self._levels:
            self._levels = {each.pool: each for each in known}
            self._stretches = {pool: Stretch(each.level) for pool, each in self._levels.items()}

    def current(self) -> tuple[PoolLevel, ...]:
        """The levels as of the last step."""
        return tuple(self._levels.values())

    def step(self, found: Mapping[str, Pressure], *, now: Timestamp) -> list[tuple[PoolLevel, Level]]:
        """Step every pool's level to ``now``: those that changed, with what they were. A pool that is gone
        is at rest, until it sheds nothing."""
        before = {pool: each.level for pool, each in self._levels.items() if each.level or pool in found}
        pools = sorted(found.keys() | before.keys())
        self._levels = {pool: self._stepped(pool, found.get(pool, _REST), now) for pool in pools}
        self._stretches = {pool: self._stretches[pool] for pool in pools}
        changed = [(each, before.get(pool, Level.NONE)) for pool, each in self._levels.items()]
        return [(each, was) for each, was in changed if each.level is not was]

    def to_keep(self, now: Timestamp) -> list[PoolLevel]:
        """The levels that the store should have now: those that changed, and those that would soon mean
        nothing."""
        due = [each for each in self._levels.values() if self._is_due(each, now)]
        self._kept |= {each.pool: (each.level, now) for each in due}
        return due

    def _is_due(self, level: PoolLevel, now: Timestamp) -> bool:
        kept, at = self._kept.get(level.pool, (Level.NONE, now))
        return level.level is not kept or (level.level > Level.NONE and now - at >= LEVEL_FRESH_FOR / 4)

    def _stepped(self, pool: str, found: Pressure, now: Timestamp) -> PoolLevel:
        stretch = step(self._stretches.get(pool, Stretch()), found, self._settings, now=now)
        self._stretches[pool] = stretch
        used = min(1.0, found.used)
        return PoolLevel(pool, stretch.level, found.age, used, falls_in(stretch, self._settings))


def puts_off(level: Level, tier: Tier) -> bool:
    """Whether retries of a tier are put off at a level of its pool. Pure."""
    return sheds(level, Work.RETRY, _STANDINGS[tier.shedding])


# -- submits -------------------------------------------------------------------------------------------------


def refusal_of(level: PoolLevel, tier: Tier, jobs: Sequence[NewJob], draw: float) -> Refusal | None:
    """Why a submit of ``jobs`` is refused at ``level`` of the tier's pool, or None. ``draw``: uniform in
    [0, 1], spreads when to come back (law K5). Pure, O(jobs)."""
    standing = _STANDINGS[tier.shedding]
    for row, job in enumerate(jobs):
        if sheds(level.level, _work_of(job.job_class), standing):
            detail = f"jobs[{row}]: the pool {tier.pool!r} is overloaded, and {_refused_work(level, tier)}"
            return Refusal(Rule.OVERLOAD, detail, retry_after(level.falls_in, draw))
    return None


def _refused_work(level: PoolLevel, tier: Tier) -> str:
    what = "new work" if level.level is Level.STANDARD else "new background work"
    return f"{what} of tier {tier.name!r} is not accepted for now"


def _work_of(job_class: JobClass) -> Work:
    return Work.NEW if job_class is JobClass.LIVE else Work.BACKGROUND
