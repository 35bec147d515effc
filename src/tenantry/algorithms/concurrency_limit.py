"""How many calls one target can take at once, found by asking it gently and listening.

Theory
------
By Little's law a target that serves ``C`` calls a second, each in ``R`` seconds, is full with ``C * R`` in
flight; more only wait. The *ratio* of what calls take now to what they take on an idle target (the reference
latency) says how much they wait, as in TCP Vegas (1995) and in the gradient of Netflix's concurrency-limits
(2018). The rule keeps it a little above 1: full, with next to no queue. What is its own:

- Growth is in proportion to the *room* that is left: a ninth a round trip while no queue shows, nothing at
  5 % of queueing. So the limit settles where others swing.
- A level that was *crowded* or *lost* calls becomes a **ceiling**. The limit rests below it, tests it again
  after some round trips, and gives up the ceiling when the test is quiet. At two or three calls in flight one
  more is the difference between good and bad: without a memory a rule would try it every few round trips.
  Where slots are *scarce* it rests longer, and a level that was full twice is a ceiling, too: what is in
  flight too much, others could have used.
- *Loss* (no answer, refused, 503) shrinks harder than waiting, down to below 1, where starts are paced. A
  loss counts only against the limit under which its call was sent (the caller sees to that): one bad moment
  is one cut, as in TCP NewReno (RFC 6582).
- *Stuck* calls, out for several round trips, stop growth long before they time out, and when nothing comes
  back at all they are read as latency: a target that hangs is left alone before the first timeout.
- Below one call in flight the next start waits; :func:`pause_for`.

States
------
What each pair of mode and sign leads to is in :data:`STEPS`, which is the rule.

========  ======================================================================================
mode      is
========  ======================================================================================
seeking   no ceiling is known: grow while it is used and there is room
draining  the limit was cut: what was sent before must come back before anything can be judged
resting   below a ceiling, for some round trips
testing   one step above where it rested: two round trips decide
dipping   fewer in flight for two round trips, so that the reference can be measured again
========  ======================================================================================
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, floor, inf, sqrt
from types import MappingProxyType
from typing import Final


class Mode(StrEnum):
    """What the limit is doing."""

    SEEKING = "seeking"
    DRAINING = "draining"
    RESTING = "resting"
    TESTING = "testing"
    DIPPING = "dipping"


class Sign(StrEnum):
    """What a round trip said."""

    UNUSED = "unused"  # fewer were in flight than may be, or nothing came back: nothing is known
    QUIET = "quiet"  # used, and hardly any waiting
    FULL = "full"  # used, and as much waiting as is wanted; or calls are stuck
    CROWDED = "crowded"  # too much waiting
    LOST = "lost"  # calls were lost


FEW: Final = 4
"""Up to so many permits a dip goes down to one, for as many round trips: of a part of them some would still
wait for each other."""


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """``most`` and ``least``: bounds of the limit, least > 0. ``growth``: the largest part it grows by in a
    round trip, and at least one call; ``quiet``, ``full``, ``crowded``: ratios up to which it grows so, grows
    at all, and is only trimmed; ``bearable``: up to which calls may wait where one fewer would leave the
    target idle. ``stuck``: the part of calls out too long at which growth stops. ``rest``: round trips below
    a ceiling, doubled by each test that lost calls up to ``longest_rest``. ``patience``: how many times as
    long it rests while slots are scarce, >= 1. ``dip``: the part kept while dipping."""

    most: float = 10_000.0
    least: float = 0.02
    growth: float = 0.11
    quiet: float = 1.0
    full: float = 1.05
    crowded: float = 1.3
    bearable: float = 1.45
    stuck: float = 0.3
    rest: int = 4
    longest_rest: int = 128
    patience: int = 4
    dip: float = 0.75


@dataclass(frozen=True, slots=True)
class Round:
    """One round trip as the rule needs it. ``ratio``: latency over reference, None when nothing came back.
    ``succeeded``, ``lost``: calls that came back. ``most``: the most in flight at once, ``in_flight`` at its
    end. ``stuck``: calls out for several round trips. ``scarce``: others wait for the slots that these calls
    hold."""

    ratio: float | None
    succeeded: int
    lost: int
    most: int
    in_flight: int
    stuck: int = 0
    scarce: bool = False


@dataclass(frozen=True, slots=True)
class Limit:
    """``level``: calls that may be in flight, a float. ``ceiling``: the level that was too much; infinite:
    none known. ``strikes``: tests of it that lost calls. ``rounds``: round trips left in this mode. ``back``:
    where to return from a test or a dip. ``known``: a level that once served: half of it may be regained by
    doubling."""

    level: float = 1.0
    mode: Mode = Mode.SEEKING
    ceiling: float = inf
    strikes: int = 0
    rounds: int = 0
    back: float = 0.0
    known: float = 0.0

    @property
    def permits(self) -> int:
        """Whole calls that may be in flight, >= 1."""
        return max(1, floor(self.level))


Change = Callable[[Limit, Round, LimitSettings, float], Limit]
"""What a step does to the numbers. The last argument is drawn, uniform in [0, 1]."""


def step(limit: Limit, seen: Round, settings: LimitSettings, *, draw: float) -> Limit:
    """The limit after one round trip. Pure, O(1)."""
    change = STEPS[limit.mode, sign_of(limit, seen, settings)]
    after = change(limit, seen, settings, draw)
    level = min(settings.most, max(settings.least, after.level))
    return after if level == after.level else replace(after, level=level)


def sign_of(limit: Limit, seen: Round, settings: LimitSettings) -> Sign:
    """What the round trip said. Loss goes before waiting, waiting before use. Pure, O(1)."""
    if seen.lost:
        return Sign.LOST
    if seen.ratio is None:
        hanging = seen.stuck and 2 * seen.stuck >= limit.permits
        return Sign.CROWDED if hanging else Sign.UNUSED
    ratio = seen.ratio - doubt(seen)
    if ratio > settings.crowded:
        return Sign.CROWDED
    if ratio > settings.full or seen.stuck >= max(2.0, settings.stuck * limit.permits):
        return Sign.FULL
    return Sign.QUIET if seen.most >= limit.permits else Sign.UNUSED


def fallen(limit: Limit, settings: LimitSettings) -> Limit:
    """At the minimum, as in an outage; half of the former level may be regained quickly after it. Pure."""
    return Limit(settings.least, known=max(limit.level, limit.known))


def doubt(seen: Round) -> float:
    """How far the ratio of so few calls may be off by chance: a fifth for one, a fiftieth for a hundred.
    Pure, O(1)."""
    return 0.15 / sqrt(max(1, seen.succeeded))


def restarted(limit: Limit) -> Limit:
    """At one call, after an outage. Pure."""
    return replace(limit, level=1.0)


def dipped(limit: Limit, settings: LimitSettings) -> Limit:
    """Fewer in flight for two round trips. Only while nothing else is being tried. Pure, O(1)."""
    if limit.mode not in {Mode.SEEKING, Mode.RESTING} or limit.permits < 2:
        return limit
    few = limit.permits <= FEW
    level, rounds = (1.0, FEW) if few else (limit.level * settings.dip, 2)
    return replace(limit, level=level, mode=Mode.DIPPING, rounds=rounds, back=limit.level)


def pause_for(level: float, latency: float, *, longest: float = 60.0) -> float:
    """Seconds between the end of one call and the start of the next where the limit is below 1, so that on
    average ``level`` calls are in flight; at most ``longest``. 0 from 1 upwards. Pure, O(1)."""
    return min(longest, latency * (1.0 / level - 1.0)) if level < 1.0 else 0.0


def _stay(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    return limit


def _grow(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    regained = max(1.0, limit.known / 2.0)
    if limit.level < regained:
        return replace(limit, level=min(regained, 2.0 * limit.level))
    ratio, full = seen.ratio or 1.0, settings.full + doubt(seen)
    room = min(1.0, (full - ratio) / (full - settings.quiet))
    return replace(limit, level=limit.level + room * max(1.0, settings.growth * limit.level))


def _trim(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """Half of the way to where there would be no more waiting than wanted: the other half is under way."""
    if seen.ratio is None or seen.ratio <= settings.full:
        return limit
    level = limit.level * (0.5 + 0.5 * settings.full / seen.ratio)
    return replace(limit, level=max(min(level, limit.level), _needed(limit, seen.ratio)))


def _fill(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """While others wait for slots, a level at which one fewer would keep the target as busy is a ceiling,
    once that was seen twice: once may be chance."""
    if not seen.scarce or seen.ratio is None or _needed(limit, seen.ratio) > limit.permits - 1.0:
        return _trim(limit, seen, settings, draw)
    if _is_near_ceiling(limit):
        return _return(replace(limit, back=0.0), seen, settings, draw)
    return replace(_trim(limit, seen, settings, draw), ceiling=limit.level)


def _cut(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """To what is served without waiting, and a little more; waiting alone never goes below 1."""
    if seen.ratio is None:  # nothing comes back at all
        return _under(limit, max(min(1.0, limit.level), limit.level / 4.0))
    needed = _needed(limit, seen.ratio)
    if needed >= limit.permits and seen.ratio - doubt(seen) <= settings.bearable:
        return limit  # one fewer would leave more idle than this one waits
    kept = max(limit.level / seen.ratio * 1.05, needed)
    return _under(limit, max(min(1.0, limit.level), min(kept, limit.permits - 1.0)))


def _needed(limit: Limit, ratio: float) -> float:
    """Whole calls that keep the target busy, by Little's law; never more than the limit. One fewer would
    leave a part of it idle, and with few in flight that part is large."""
    return min(limit.level, float(max(1, ceil(limit.permits / ratio - 0.15))))


def _back_off(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """By twice the part that was lost, half at most; a test that lost goes back to where it came from."""
    share = seen.lost / max(1, seen.lost + seen.succeeded)
    level = limit.level * max(0.5, 1.0 - 2.0 * share)
    if limit.mode is Mode.TESTING:
        level = min(level, limit.back)
    return replace(_under(limit, level), strikes=limit.strikes + 1 if _is_near_ceiling(limit) else 0)


def _is_near_ceiling(limit: Limit) -> bool:
    return limit.ceiling < inf and 0.8 * limit.ceiling <= limit.level <= 1.25 * limit.ceiling


def _under(limit: Limit, level: float) -> Limit:
    """Cut to ``level``; what it was is a ceiling. What it was while it grew is remembered: what failed a test
    says nothing of how high it once was."""
    known = limit.level if limit.mode is Mode.SEEKING else max(limit.level, limit.known)
    return Limit(level, Mode.DRAINING, ceiling=limit.level, known=known)


def _drained(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """Rest, once no more are in flight than may be."""
    if seen.most > limit.permits:
        return limit
    return _rest(limit, seen, settings, draw)


def _rest(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    if limit.level < 1.0:  # a round is one paced call: that it comes back is rest enough
        return replace(limit, mode=Mode.RESTING, rounds=1)
    rounds = min(settings.longest_rest, settings.rest << min(limit.strikes, 16))
    return replace(limit, mode=Mode.RESTING, rounds=max(1, round(rounds * (0.75 + 0.5 * draw))))


def _wait(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    if limit.rounds > 1:
        passes = not seen.scarce or draw * settings.patience < 1.0
        return replace(limit, rounds=limit.rounds - 1) if passes else limit
    if limit.level < 1.0:
        return _grow(replace(limit, mode=Mode.SEEKING), seen, settings, draw)
    level = limit.level + max(1.0, settings.growth * limit.level)
    return replace(limit, level=level, mode=Mode.TESTING, rounds=2, back=limit.level)


def _judge(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """A test that stays quiet for two round trips gives up the ceiling."""
    if limit.rounds > 1:
        return replace(limit, rounds=limit.rounds - 1)
    passed = Limit(limit.level, ceiling=limit.ceiling, strikes=limit.strikes, known=limit.known)
    return _grow(passed, seen, settings, draw)


def _return(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """A test that found it full: that is where the ceiling is."""
    needed = _needed(limit, seen.ratio or 1.0) if seen.ratio else 0.0
    return _rest(replace(limit, level=max(limit.back, needed), ceiling=limit.level), seen, settings, draw)


def _surface(limit: Limit, seen: Round, settings: LimitSettings, draw: float) -> Limit:
    """The end of a dip."""
    if limit.rounds > 1:
        return replace(limit, rounds=limit.rounds - 1)
    up = replace(limit, level=limit.back, mode=Mode.SEEKING)
    return up if limit.back > limit.ceiling or limit.ceiling == inf else _rest(up, seen, settings, draw)


STEPS: Final[Mapping[tuple[Mode, Sign], Change]] = MappingProxyType(
    {
        (Mode.SEEKING, Sign.UNUSED): _stay,
        (Mode.SEEKING, Sign.QUIET): _grow,
        (Mode.SEEKING, Sign.FULL): _fill,
        (Mode.SEEKING, Sign.CROWDED): _cut,
        (Mode.SEEKING, Sign.LOST): _back_off,
        (Mode.DRAINING, Sign.UNUSED): _drained,
        (Mode.DRAINING, Sign.QUIET): _drained,
        (Mode.DRAINING, Sign.FULL): _drained,
        (Mode.DRAINING, Sign.CROWDED): _drained,
        (Mode.DRAINING, Sign.LOST): _back_off,
        (Mode.RESTING, Sign.UNUSED): _stay,
        (Mode.RESTING, Sign.QUIET): _wait,
        (Mode.RESTING, Sign.FULL): _trim,
        (Mode.RESTING, Sign.CROWDED): _cut,
        (Mode.RESTING, Sign.LOST): _back_off,
        (Mode.TESTING, Sign.UNUSED): _stay,
        (Mode.TESTING, Sign.QUIET): _judge,
        (Mode.TESTING, Sign.FULL): _return,
        (Mode.TESTING, Sign.CROWDED): _cut,
        (Mode.TESTING, Sign.LOST): _back_off,
        (Mode.DIPPING, Sign.UNUSED): _surface,
        (Mode.DIPPING, Sign.QUIET): _surface,
        (Mode.DIPPING, Sign.FULL): _surface,
        (Mode.DIPPING, Sign.CROWDED): _surface,
        (Mode.DIPPING, Sign.LOST): _back_off,
    }
)
"""The whole rule: what each sign does in each mode."""
