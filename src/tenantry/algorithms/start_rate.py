"""A rate of starts, learned from a target that refuses by rate (429).

Theory
------
A target with a rate limit of its own answers as quickly at its limit as below it: nothing of it shows in the
latency, and the calls in flight say little. What it refuses is a *rate*, so a rate is what must be learned:
the one at which calls succeeded when it refused. Starts are then paced below that rate, and probe upwards
until it refuses again, slowly at first and ever faster, as TCP CUBIC does around the last loss (S. Ha, I.
Rhee, L. Xu, "CUBIC", 2008; RFC 9438, section 4.2): most of the time is spent close to what was refused.

Where a target refuses before a rate of successes was measured, there is none to learn from. One start a
second is tried then, half of that after each further refusal; each success adds one a second, which doubles
the rate every second, as TCP's slow start does (RFC 5681), until it refuses again: three quarters of that are
a rate.

States
------
=======  =================================================================================
state    becomes
=======  =================================================================================
free     *paced* by a refusal; *asking* where no rate was measured yet
paced    *free* when the rate has grown to twice what was last refused, and nothing refused
asking   *paced* by a refusal after a success; *free* half a minute after the last refusal
=======  =================================================================================
"""

from dataclasses import dataclass, replace
from math import floor, inf
from typing import Final

KEEP: Final = 0.95
"""What a refusal leaves of the rate at which calls succeeded."""

PLATEAU_AT: Final = 30.0
"""Seconds after a refusal at which the rate is again what was refused."""

CURVE: Final = (1.0 - KEEP) / PLATEAU_AT**3
"""How fast the cubic leaves its plateau: a part of the refused rate, per second cubed."""

MEASURE: Final = 1.0
"""Seconds over which the rate of successes is taken."""

AGAIN: Final = 3.0
"""Seconds after a refusal in which another says that the rate was taken for far too high: of a burst, most
likely, that the target lets through now and then."""

TOO_HIGH: Final = 0.9
"""What such a one leaves besides."""

FIRST: Final = 1.0
"""Starts a second after a refusal before which no rate was measured."""

FOUND: Final = 0.75
"""What is kept of the rate that was refused after it had doubled every second."""

SLOWEST: Final = 1.0 / 60.0
"""Starts a second, the least that is learned."""

SLACK: Final = 1e-6
"""Seconds: more than the rounding of any instant."""

BURST: Final = 0.05
"""Seconds' worth of starts that may be saved up: a planner's round."""


@dataclass(frozen=True, slots=True)
class StartRate:
    """``refused``: starts a second at which the target last refused, or None while free. ``since``: when.
    ``tokens``: starts saved up at ``at``. ``count`` successes since ``counting_from``; ``achieved``:
    successes a second in the measure before."""

    refused: float | None = None
    since: float = 0.0
    tokens: float = 0.0
    at: float = 0.0
    count: int = 0
    counting_from: float = 0.0
    achieved: float = 0.0


def rate_at(rate: StartRate, now: float) -> float:
    """Starts a second that are allowed at ``now``; infinite while free. Pure, O(1)."""
    if rate.refused is None:
        return inf
    if rate.achieved == 0.0:
        return rate.refused
    passed = max(0.0, now - rate.since)
    beyond: float = passed - PLATEAU_AT
    return rate.refused * (1.0 + CURVE * beyond * beyond * beyond)


def succeeded(rate: StartRate, count: int, now: float) -> StartRate:
    """The rate after ``count`` calls succeeded. Pure, O(1)."""
    if rate.refused is not None and _is_asking(rate):
        return replace(rate, refused=rate.refused + count, count=rate.count + count)
    lasted = now - rate.counting_from
    if 0.0 <= lasted < MEASURE:
        return StartRate(
            rate.refused,
            rate.since,
            rate.tokens,
            rate.at,
            rate.count + count,
            rate.counting_from,
            rate.achieved,
        )
    # a pause tells nothing of the rate: after a long one, the measure begins anew
    achieved = (rate.count + count) / lasted if 0.0 < lasted < 2.0 * MEASURE else rate.achieved
    return replace(rate, count=0, counting_from=now, achieved=achieved)


def refused(rate: StartRate, now: float) -> StartRate:
    """The rate after calls that were sent since the last refusal were refused. Pure, O(1)."""
    level = _asked(rate) if _is_asking(rate) else _measured(rate, now)
    known = rate.achieved or level or 0.0
    if level is None:
        level = max((rate.refused or 2.0 * FIRST) / 2.0, SLOWEST)
    return replace(
        rate, refused=level, since=now, tokens=0.0, at=now, count=0, counting_from=now, achieved=known
    )


def _measured(rate: StartRate, now: float) -> float | None:
    """What was served when it refused; None where nothing was."""
    lasted = now - rate.counting_from
    seen = max(rate.count / lasted if lasted >= MEASURE / 10.0 else 0.0, rate.achieved)
    again = rate.refused is not None and now - rate.since < AGAIN
    return min(rate_at(rate, now), max(seen, SLOWEST)) * (TOO_HIGH if again else 1.0) if seen else None


def _asked(rate: StartRate) -> float | None:
    """The same of a rate that was sought; None where nothing has succeeded in that."""
    return max(FOUND * rate.refused, SLOWEST) if rate.refused and rate.count else None


def _is_asking(rate: StartRate) -> bool:
    """Whether it is refused, and how much is served was never measured."""
    return rate.refused is not None and rate.achieved == 0.0


def relaxed(rate: StartRate, now: float) -> StartRate:
    """The rate, free again if it has grown to twice what was refused. Pure, O(1)."""
    if _is_asking(rate):
        return replace(rate, refused=None) if rate.count and now - rate.since > PLATEAU_AT else rate
    if rate.refused is not None and rate_at(rate, now) > 2.0 * rate.refused:
        return replace(rate, refused=None)
    return rate


def held(rate: StartRate, until: float) -> StartRate:
    """The rate after a pause that was ordered, until ``until``: it neither grows nor saves up meanwhile, and
    the pause is no measure of the target. Pure, O(1)."""
    later = max(until, rate.since) if rate.refused is not None else rate.since
    return replace(rate, since=later, at=max(until, rate.at), count=0, counting_from=until)


def startable(rate: StartRate, now: float) -> float:
    """Starts that are allowed now: a whole one is needed to start. Infinite while free. Pure, O(1)."""
    if rate.refused is None:
        return inf
    here = rate_at(rate, now)
    return min(max(1.0, here * BURST), rate.tokens + max(0.0, now - rate.at) * here)


def started(rate: StartRate, count: int, now: float) -> StartRate:
    """The rate after ``count`` starts. Pure, O(1)."""
    if rate.refused is None:
        return rate
    return replace(rate, tokens=startable(rate, now) - count, at=max(now, rate.at))


def may_start(rate: StartRate, now: float) -> int | None:
    """Whole starts that are allowed now; None while free. Who comes back when told is allowed one, whatever
    the rounding of instants. Pure, O(1)."""
    if rate.refused is None:
        return None
    return floor(startable(rate, now) + SLACK * rate_at(rate, now))


def next_start_at(rate: StartRate, now: float) -> float:
    """When one more start is allowed. Pure, O(1)."""
    short = 1.0 - startable(rate, now)
    return now + short / rate_at(rate, now) if short > 0.0 else now
