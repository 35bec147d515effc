"""What a replay would meet, from a sample of its source and from what is known already: the report. Pure.

A plan is for deciding, so it says how sure it is. What the source counts is exact. A part of the whole is the
sample's share of it, with Wilson's interval at 95 %; that is the error of a sample drawn at random, which a
source that shows its oldest messages first does not give: the report says how the sample was taken only by
its size. A sample has no error only where as many were looked at as there are.

The duration is what the lanes take at the pace that they have now: between all targets at once and one after
the other. A lane that nobody has used yet has no pace, and then no duration is said.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from tenantry.algorithms.wilson import interval
from tenantry.config.url import problem_of
from tenantry.kernel.instant import Seconds, Timestamp
from tenantry.lanes.address import scheme_of
from tenantry.lanes.model import HANDLER_PREFIX, Target
from tenantry.replay.model import Known, LanePace, Membership, Quotas

MOST_GROUPS: Final = 20
"""Groups of a table; what is beyond goes into one called ``other``."""

NO_QUOTAS: Final = Quotas()
OTHER: Final = "other"
UNKNOWN: Final = "unknown"
_HOUR: Final = 3_600.0
_AGES: Final = ((_HOUR, "under 1 h"), (24 * _HOUR, "1 h to 24 h"), (168 * _HOUR, "1 to 7 days"))
_OLDER: Final = "over 7 days"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a plan saw of one message. ``meant``: by the filters. ``target``: where it would go, or None where
    nobody says. ``broken``: why it could not be sent, '' where it could."""

    meant: bool
    target: Target | None = None
    error_class: str = ""
    failed_at: Timestamp | None = None
    known: Known | None = None
    broken: str = ""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What else is known. ``quotas``, ``used``: the tenant's, and how much of them is used now. ``paces``: of
    the lanes to the targets, as far as they have one."""

    now: Timestamp
    quotas: Quotas = NO_QUOTAS
    used: Quotas = NO_QUOTAS
    paces: Mapping[str, LanePace] | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the source. ``seen``: in the sample. ``part``, within ``part_low`` and ``part_high``: of the
    whole. ``count`` within ``low`` and ``high``: messages; None where the source cannot count."""

    seen: int
    part: float
    part_low: float
    part_high: float
    count: int | None
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """One row of a table: what its messages have in common, and how many they are."""

    name: str
    share: Share


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds, between all lanes at once and one after the other; or None for both, with ``why``."""

    low: Seconds | None
    high: Seconds | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class OverQuota:
    """A quota that would be reached: ``left`` of it now, and how many messages would not fit, at least and at
    most."""

    quota: str
    limit: int
    left: int
    over_low: int
    over_high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A plan for people and programs. ``count``: messages of the source, None where it cannot count.
    ``frozen``: what comes later is not in it. ``sample``: messages seen; ``whole``: these were all there are.
    ``error``: the widest that a share of the sample may be off, as a part. The tables are of the messages
    that are meant."""

    count: int | None
    counted_exactly: bool
    frozen: bool
    sample: int
    whole: bool
    error: float
    meant: Share
    by_class: tuple[Group, ...]
    by_target: tuple[Group, ...]
    by_age: tuple[Group, ...]
    delivered: Share
    elsewhere: Share
    broken: Share
    reasons: tuple[Group, ...]
    over: tuple[OverQuota, ...]
    duration: Duration


def report(membership: Membership, seen: Sequence[Seen], facts: PlanFacts, *, asked: int) -> Report:
    """The report. ``asked``: how many the sample was to have: a source that cannot count and gave fewer has
    no more. Pure, O(sample)."""
    scale = Scale(membership, len(seen), asked=asked)
    meant = [each for each in seen if each.meant]
    to_send = [each for each in meant if _is_sent(each)]
    return Report(
        count=scale.count,
        counted_exactly=scale.exact,
        frozen=bool(membership.bound),
        sample=len(seen),
        whole=scale.whole,
        error=scale.error(),
        meant=scale.share(len(meant)),
        by_class=_table(meant, lambda each: each.error_class or UNKNOWN, scale),
        by_target=_table(meant, lambda each: each.target or UNKNOWN, scale),
        by_age=_table(meant, lambda each: _age(each.failed_at, facts.now), scale),
        delivered=scale.share(_known(meant, Known.DELIVERED)),
        elsewhere=scale.share(_known(meant, Known.STAGED)),
        broken=scale.share(sum(bool(each.broken) for each in meant)),
        reasons=_table([each for each in meant if each.broken], lambda each: each.broken, scale),
        over=tuple(_over(scale.share(len(meant) - _known(meant, Known.DELIVERED)), facts)),
        duration=_duration(Counter(each.target for each in to_send), scale, facts.paces or {}),
    )


class Scale:
    """From the sample to the source. A sample is the whole where it has as many as there are: where the
    source counts exactly, its count decides, however many were asked for. A count that is not exact says that
    there are more, never that there are no more: that is known where fewer came than were asked for."""

    def __init__(self, membership: Membership, sample: int, *, asked: int) -> None:
        count = membership.count
        known = count is not None and membership.counted_exactly
        self.whole = (count is None or sample >= count) and (known or sample < asked)
        self.sample = sample
        self.count = count if known or count is None else max(count, sample)
        if self.whole and not known:
            self.count = sample
        self.exact = known or self.whole

    def share(self, hits: int) -> Share:
        part = hits / self.sample if self.sample else 0.0
        all_or_whole = self.whole or not self.sample
        low, high = (part, part) if all_or_whole else interval(hits, self.sample)
        if self.count is None:
            return Share(hits, part, low, high, None, None, None)
        least, most = max(hits, floor(low * self.count)), min(self.count, ceil(high * self.count))
        return Share(hits, part, low, high, round(part * self.count), least, max(least, most))

    def error(self) -> float:
        """Of a share of one half, where it is widest."""
        if self.whole or not self.sample:
            return 0.0
        low, high = interval(self.sample / 2, self.sample)
        return (high - low) / 2


def _is_sent(each: Seen) -> bool:
    return not each.broken and each.known not in {Known.DELIVERED, Known.STAGED}


def _known(seen: Iterable[Seen], known: Known) -> int:
    return sum(each.known is known for each in seen)


def _table(seen: Sequence[Seen], name: Callable[[Seen], str], scale: Scale) -> tuple[Group, ...]:
    counts = Counter(map(name, seen))
    most = counts.most_common(MOST_GROUPS)
    rest = counts.total() - sum(count for _, count in most)
    rows = [*most, (OTHER, rest)] if rest else most
    return tuple(Group(each, scale.share(count)) for each, count in rows)


def _age(failed_at: Timestamp | None, now: Timestamp) -> str:
    if failed_at is None:
        return UNKNOWN
    age = now - failed_at
    return next((name for limit, name in _AGES if age < limit), _OLDER)


def _over(taken: Share, facts: PlanFacts) -> Iterable[OverQuota]:
    """The quotas that a replay of so many messages would reach. Where nobody counts, nothing can be said."""
    if taken.low is None or taken.high is None:
        return
    for quota in ("replayed_a_day", "dedup_keys"):
        limit, used = getattr(facts.quotas, quota), getattr(facts.used, quota) or 0
        left = 0 if limit is None else max(0, limit - used)
        if limit is not None and taken.high > left:
            yield OverQuota(quota, limit, left, max(0, taken.low - left), taken.high - left)


def _duration(targets: Mapping[Target | None, int], scale: Scale, paces: Mapping[str, LanePace]) -> Duration:
    if scale.count is None:
        return Duration(None, None, "the source cannot count its messages")
    shares = {target: scale.share(count) for target, count in targets.items()}
    slow = [_pace(paces.get(target)) if target else None for target in shares]
    if any(pace is None for pace in slow):
        unknown = sum(pace is None for pace in slow)
        return Duration(
            None, None, f"{unknown} of {len(slow)} targets have no pace yet: nobody has used them"
        )
    times = [
        ((share.low or 0) / pace, (share.high or 0) / pace)
        for share, pace in zip(shares.values(), slow, strict=True)
        if pace is not None
    ]
    return Duration(max((low for low, _ in times), default=0.0), sum(high for _, high in times))


def _pace(pace: LanePace | None) -> float | None:
    """Calls a second, or None where it is not known."""
    return None if pace is None or not pace.latency else pace.permits / pace.latency


def refused_target(target: Target, url: str | None) -> str:
    """Why no job can be delivered to ``target``, '' where one can: the first attempt would park it. ``url``:
    what the tenant's document sets for it, or None. Pure, O(length)."""
    text = url or str(target)
    if target.startswith(HANDLER_PREFIX) or scheme_of(text) or (url is None and ":" not in text):
        return ""
    problem = problem_of(text)
    return f"invalid_url: {problem}" if problem else ""


def targets_of(seen: Iterable[Seen]) -> frozenset[Target]:
    """Where the sample's messages would go: whose lanes to ask about."""
    return frozenset(each.target for each in seen if each.meant and each.target is not None)
