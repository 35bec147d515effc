"""What was seen in one round trip: counts, and a sketch of latencies that merges.

Theory
------
A *sketch* is a histogram whose buckets grow by :data:`GROWTH` (C. Masson, J. Rim, H. Lee, "DDSketch: a fast
and fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019): any percentile is known to
2 %, whatever the range, and two sketches add up bucket by bucket. Adding is associative and commutative, so
workers sketch what they saw, in any grouping, and one reader adds it all up.

A *window* is one round trip of one lane. Calls count in it when they are **sent**, not when they come back: a
window of 10 s before a target that hangs for 20 s would else close with nothing in it, and the silence would
read as peace. What was sent before the window opened and is still out when it closes is *overdue*: it takes
at least as long as the window lasted, and is counted so.

States
------
======  ============================================  ======================================================
state   leaves it                                     by
======  ============================================  ======================================================
open    a round trip has passed, and enough came back due
open    :data:`PATIENCE` round trips have passed      due: whatever is there is all there will be
due     it was read                                   :func:`opened` starts the next one
======  ============================================  ======================================================
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log
from typing import Final

GROWTH: Final = 1.04
"""Each bucket is 4 % wider than the one before: half of that is the error of a percentile."""

SMALLEST: Final = 1e-5
"""Seconds. Whatever is quicker counts as this."""

LAST_BUCKET: Final = 480
"""About 1,500 s, beyond the longest timeout; whatever is slower counts as this."""

SLACK: Final = 1e-6
"""Seconds: more than the rounding of any instant, so that who comes back when told is not told to again."""

PATIENCE: Final = 4.0
"""Round trips after which a window is due though little came back."""

Sketch = tuple[tuple[int, int], ...]
"""``(bucket, count)`` in rising order of bucket, counts >= 1."""

EMPTY: Final[Sketch] = ()

_STEP = log(GROWTH)


@dataclass(frozen=True, slots=True)
class Window:
    """``opened_at``: seconds on the caller's clock. ``sent`` and ``succeeded``, ``lost``: calls sent and come
    back since. ``most``: the most that were in flight at once. ``latency``: of those that succeeded."""

    opened_at: float
    sent: int = 0
    succeeded: int = 0
    lost: int = 0
    most: int = 0
    latency: Sketch = EMPTY

    @property
    def ended(self) -> int:
        """Calls that came back and said something of the target."""
        return self.succeeded + self.lost


def opened(now: float, in_flight: int) -> Window:
    """A window that starts at ``now``. Pure, O(1)."""
    return Window(now, most=in_flight)


def sent(window: Window, count: int, in_flight: int) -> Window:
    """The window after ``count`` calls were sent; ``in_flight`` with them. Pure, O(1)."""
    return Window(
        window.opened_at,
        window.sent + count,
        window.succeeded,
        window.lost,
        max(window.most, in_flight),
        window.latency,
    )


def returned(window: Window, latency: Sketch, succeeded: int, lost: int) -> Window:
    """The window after calls came back. Pure, O(buckets)."""
    return Window(
        window.opened_at,
        window.sent,
        window.succeeded + succeeded,
        window.lost + lost,
        window.most,
        merged(window.latency, latency),
    )


def is_due(window: Window, *, round_trip: float, enough: int, now: float) -> bool:
    """Whether the window is to be read. ``round_trip`` in seconds, > 0; ``enough``: calls. Pure, O(1)."""
    lasted = now - window.opened_at + SLACK
    if lasted >= PATIENCE * round_trip:
        return True
    return window.ended >= enough and lasted >= round_trip


def overdue(window: Window, in_flight: int) -> int:
    """Calls in flight that were sent before the window opened. Pure, O(1)."""
    return max(0, in_flight - window.sent)


def bucket_of(seconds: float) -> int:
    """The bucket of one latency in seconds. Pure, O(1). Not a number counts as the smallest."""
    if not seconds > SMALLEST:
        return 0
    return min(LAST_BUCKET, int(log(seconds / SMALLEST) / _STEP) + 1)


def sketch_of(latencies: Iterable[float]) -> Sketch:
    """The sketch of latencies in seconds. Pure, O(n + b log b) for b buckets in use."""
    counts: dict[int, int] = {}
    for seconds in latencies:
        bucket = bucket_of(seconds)
        counts[bucket] = counts.get(bucket, 0) + 1
    return tuple(sorted(counts.items()))


def merged(one: Sketch, other: Sketch) -> Sketch:
    """Both together. Associative and commutative, :data:`EMPTY` is neutral. Pure, O(buckets)."""
    if not one or not other:
        return one or other
    counts = dict(one)
    for bucket, count in other:
        counts[bucket] = counts.get(bucket, 0) + count
    return tuple(sorted(counts.items()))


def size(sketch: Sketch) -> int:
    """How many latencies are in it. Pure, O(buckets)."""
    return sum(count for _, count in sketch)


def percentile(sketch: Sketch, part: float, *, above: int = 0) -> float | None:
    """The latency that ``part`` in [0, 1] of all do not exceed, in seconds, to 2 %; None of none. Pure.

    ``above``: further calls that are slower than all in the sketch. Where they reach down to ``part`` the
    slowest bucket is the answer: a lower bound.
    """
    if not sketch:
        return None
    rank = floor(part * max(0, size(sketch) + above - 1))
    for bucket, count in sketch:
        if rank < count:
            return _within(bucket, (rank + 0.5) / count)
        rank -= count
    return _within(sketch[-1][0], 1.0)


def _within(bucket: int, part: float) -> float:
    """A place inside a bucket: as if what is in it were spread evenly."""
    low, high = _edges(bucket)
    return low + (high - low) * part


@lru_cache(maxsize=LAST_BUCKET + 1)
def _edges(bucket: int) -> tuple[float, float]:
    high = SMALLEST * GROWTH**bucket
    return (high / GROWTH if bucket else high, high)
