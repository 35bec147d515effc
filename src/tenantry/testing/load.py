"""How a test target behaves under load: what it can serve at once, how often, and when it is away.

A *mood* is asked how a request is met, with the time on the event loop's clock and the way in which it would
be met otherwise. Moods wrap each other, the last said outermost: what is refused by rate takes no server.
Nothing here waits or draws: a mood only says for how long an answer is to be held back.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from math import ceil

from tenantry.algorithms.token_bucket import Rate, full, take
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Instant, Seconds
from tenantry.testing.exchange import Manner, Then, answer

Otherwise = Callable[[], Manner]
Mood = Callable[[float, Otherwise], Manner]
"""``(now, otherwise) -> manner``."""


def serving(at_once: int, takes: Seconds, line: int | None) -> Mood:
    """``at_once`` requests are served at a time, each for ``takes`` seconds; others wait in line, in order;
    where more than ``line`` would wait, 503 at once."""
    _check(at_once >= 1, "at_once", at_once, "at least 1")
    _check(takes > 0, "takes", takes, "seconds > 0")
    _check(line is None or line >= 0, "line", line, "at least 0, or None")
    ends: list[float] = []  # of requests in it, those that wait among them

    def mood(now: float, otherwise: Otherwise) -> Manner:
        while ends and ends[0] <= now:
            heappop(ends)
        if line is not None and len(ends) >= at_once + line:
            return Manner(answer(503))
        begins = now if len(ends) < at_once else sorted(ends)[-at_once]
        heappush(ends, begins + takes)
        manner = otherwise()
        return manner.after(manner.wait_for + begins + takes - now)

    return mood


def slowing(curve: Callable[[int], Seconds]) -> Mood:
    """A request takes what ``curve`` says for the number that are in flight with it."""
    ends: list[float] = []

    def mood(now: float, otherwise: Otherwise) -> Manner:
        while ends and ends[0] <= now:
            heappop(ends)
        takes = curve(len(ends) + 1)
        _check(takes >= 0, "curve", takes, "a function that gives seconds >= 0")
        heappush(ends, now + takes)
        manner = otherwise()
        return manner.after(manner.wait_for + takes)

    return mood


def limiting(rate: float, burst: float, retry_after: Seconds | None) -> Mood:
    """At most ``rate`` requests a second, and ``burst`` saved up on top of a second's; others get 429, with
    ``Retry-After`` in whole seconds: what they really must wait, rounded up, or ``retry_after``."""
    _check(rate > 0, "rate", rate, "requests a second > 0")
    _check(burst >= 0, "burst", burst, "at least 0")
    allowed = Rate(rate, burst)
    state = None

    def mood(now: float, otherwise: Otherwise) -> Manner:
        nonlocal state
        taken = take(state or full(allowed, Instant(now)), allowed, 1.0, Instant(now))
        state = taken.bucket
        if taken.passed:
            return otherwise()
        wait_for = retry_after if retry_after is not None else (taken.wait_for or 0.0)
        return Manner(answer(429, {"Retry-After": str(ceil(wait_for))}))

    return mood


def flapping(up_for: Seconds, down_for: Seconds) -> Mood:
    """Well for ``up_for`` seconds from its first request on, then gone for ``down_for``, and so on: while it
    is gone, connections are reset."""
    _check(up_for > 0, "up_for", up_for, "seconds > 0")
    _check(down_for > 0, "down_for", down_for, "seconds > 0")
    began: float | None = None

    def mood(now: float, otherwise: Otherwise) -> Manner:
        nonlocal began
        began = now if began is None else began
        return otherwise() if (now - began) % (up_for + down_for) < up_for else Manner(b"", Then.RESET)

    return mood


def _check(is_right: bool, name: str, value: object, accepted: str) -> None:
    if not is_right:
        raise InvalidValue(name, value, accepted)
