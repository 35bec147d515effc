"""How long the rest will take, as a range, of something whose rate is being discovered.

Theory
------
*Only running time counts.* Time in which the work was held or paused says nothing about its rate, so it is
taken out before anything else is reckoned: held is not slow.

*The rate* is that of the last ends, two fifths as many as are left: look back in proportion to how far ahead
the answer reaches, so that a remainder of hours is not judged by the last seconds, nor one of seconds by the
last hour. Since ends are counted back, and not seconds, more left never takes less time.

*The beginning is cut off.* A shaper's ramp belongs to the search and not to the rate. What is cut is what
makes the standard error of the mean of the rest least, and at most half: MSER (K. P. White, "An effective
truncation heuristic for bias reduction in simulation output", Simulation 69(6), 1997), on batch means.

*The range* asks how much successive windows, as long as what is left, have differed from each other: the
*two-sample variance* by which clocks are judged (D. W. Allan, "Statistics of atomic frequency standards",
Proc. IEEE 54(2), 1966). For "the next window will be as the last one" is the very forecast that is made, and
unlike the variance about the mean this one also exists where the rate wanders. Windows are at most a quarter
of what was seen. With few differences the spread would be guesswork, so it starts from what is usual of
targets (``usual``, worth ``weight`` differences) and gives way to what is measured: a scaled inverse
chi-square prior, whose predictive distribution is *Student's t* with ``weight`` + n degrees of freedom (A.
Gelman et al., "Bayesian Data Analysis", 3rd ed., section 2.6). Beyond ``reach`` times what was seen, the
variance grows with the root of the distance.

*Stable* is what answers within the promise: at least ``least_for`` seconds and ``least_ends`` ends since the
beginning was cut off; windows that agree so well that the range is no wider than ``widest`` of the remainder;
and the last half of ``least_for`` by itself would say what lies in the range. A rate that jumps makes its own
windows disagree, and is being discovered again.

Measured
--------
``python -m benchmarks --name replay --only estimates``: 100 simulated replays of 4 to 18 minutes, the
product's shaper at targets that change all the time, of which a third are away now and then; and as many
whose target besides halves or doubles at one instant, which nobody can know before. An answer every 5 s.

=====================================  ============  ===============  ============
what                                   all the time  with a hard      … from it on
                                                     step
=====================================  ============  ===============  ============
ranges that hold the true end          92.5 %        75.0 %           90.1 %
range over true remainder, median      40 %          40 %             40 %
ranges of at most half of it           91.5 %        92.0 %           94.4 %
answers that show a range              81 %          70 %             73 %
=====================================  ============  ===============  ============

A range is never wider than half of what is *likely*; of the true remainder it may be, where that turns out
shorter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from math import exp, log, sqrt
from typing import Final

CELLS: Final = 128
"""Cells that are kept; when they are full, each two become one of twice the length."""

BATCHES: Final = 32
"""Batch means from which the end of the beginning is found: Schmeiser (1982) advises 10 to 30."""

LOOK_BACK: Final = 0.4
"""Ends that are looked back on, for each that is left."""

PARTS: Final = 4
"""Windows are at most so small a part of what was seen: three differences at least."""


class Phase(StrEnum):
    """Whether there is a range, and if not, why."""

    DISCOVERING = "discovering"
    STEADY = "steady"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """``cell``: seconds, the finest that is told apart. ``least_for``, ``least_ends``: running seconds and
    ends before any range. ``widest``: the widest range, as a part of the remainder. ``usual``: by how much
    a target's rate usually differs from window to window (the standard deviation of its logarithm), and
    ``weight``: how many measured differences that is worth. ``reach``: how many times what was seen may be
    foretold without more doubt. ``quantile``: the normal distribution's at each end of the range: 1.645 for
    nine in ten."""

    cell: float = 1.0
    least_for: float = 30.0
    least_ends: int = 30
    widest: float = 0.5
    usual: float = 0.125
    weight: float = 12.0
    reach: float = 3.0
    quantile: float = 1.645


DEFAULTS: Final = EstimateSettings()


@dataclass(frozen=True, slots=True)
class Seen:
    """What has ended, by running time. ``at``: the last observation, seconds on the caller's clock.
    ``cells``: ends in each of the past cells of ``length`` seconds, oldest first. ``ended`` in the first
    ``lasted`` seconds of the cell that is still open."""

    at: float
    length: float
    cells: tuple[float, ...] = ()
    ended: float = 0.0
    lasted: float = 0.0


@dataclass(frozen=True, slots=True)
class Range:
    """Seconds of running time that are left: between ``low`` and ``high`` in nine of ten cases, ``likely``
    the single best answer. 0 <= low <= likely <= high."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """``rate``: ends a running second now; 0 in the first cell. ``trend``: by what part the rate has grown
    (below 0: shrunk) over that of the window before. ``remaining``: None while discovering or held."""

    phase: Phase
    rate: float
    trend: float
    remaining: Range | None


def opened(now: float, settings: EstimateSettings = DEFAULTS) -> Seen:
    """Nothing seen yet. Pure."""
    return Seen(now, settings.cell)


def observed(seen: Seen, ended: int, *, held_for: float = 0.0, now: float) -> Seen:
    """What was seen after ``ended`` more ended since the last observation, of which time ``held_for`` seconds
    were held or paused. Observations may be as far apart as they like; what ended in between counts as spread
    evenly. An earlier ``now`` counts as the last one. Pure, O(:data:`CELLS`), rarely more.

    Raises ValueError for ``ended`` or ``held_for`` below 0.
    """
    if ended < 0 or held_for < 0.0:
        raise ValueError(f"ended and held_for must be >= 0, not {ended!r} and {held_for!r}")
    running = max(0.0, now - seen.at - held_for)
    at = max(seen.at, now)
    if seen.lasted + running < seen.length:
        return replace(seen, at=at, ended=seen.ended + ended, lasted=seen.lasted + running)
    return _filled(replace(seen, at=at), float(ended), running)


def estimate(seen: Seen, left: int, *, held: bool = False, settings: EstimateSettings = DEFAULTS) -> Estimate:
    """How long ``left`` more will take. ``held``: whether it is held or paused now. Pure, O(:data:`CELLS`).

    Raises ValueError for ``left`` below 0.
    """
    if left < 0:
        raise ValueError(f"left must be >= 0, not {left!r}")
    cells = seen.cells[_beginning(seen.cells) :]
    back = max(LOOK_BACK * left, settings.least_ends / 3.0)
    rate = _rate(seen, cells, back, settings.least_for / 3.0) if cells else 0.0
    trend = _trend(cells, round(back / rate / seen.length) if rate else 1)
    remaining = None if held else _range(seen, cells, left, rate=rate, settings=settings)
    phase = Phase.HELD if held else Phase.DISCOVERING if remaining is None else Phase.STEADY
    return Estimate(phase, rate, trend, remaining)


def _range(
    seen: Seen, cells: Sequence[float], left: int, *, rate: float, settings: EstimateSettings
) -> Range | None:
    """None while it is not stable."""
    if not left:
        return Range(0.0, 0.0, 0.0)
    watched = len(cells) * seen.length
    if watched < settings.least_for or sum(cells) < settings.least_ends:
        return None
    likely = left / rate
    differences = _differences(cells, likely / seen.length)
    if differences is None:
        return None
    freedom = settings.weight + len(differences)
    squares = settings.weight * settings.usual**2 + sum(each * each for each in differences)
    doubt = sqrt(max(1.0, likely / (settings.reach * watched)))
    spread = exp(_student(settings.quantile, freedom) * sqrt(squares / freedom * doubt))
    found = Range(likely / spread, likely, likely * spread)
    if found.high - found.low > settings.widest * likely:
        return None
    lately = left / _rate(seen, cells, settings.least_ends / 2.0, settings.least_for / 2.0)
    return found if found.low <= lately <= found.high else None


def _differences(cells: Sequence[float], length: float) -> list[float] | None:
    """By how much successive windows of so many cells differ, in logarithms; None where one of them is empty:
    then there is no rate to speak of."""
    size = max(1, int(min(length, len(cells) / PARTS)))
    windows = [sum(cells[at : at + size]) for at in range(len(cells) % size, len(cells), size)]
    if not all(windows):
        return None
    return [log(after / before) for before, after in pairwise(windows)]


def _rate(seen: Seen, cells: Sequence[float], ends: float, seconds: float) -> float:
    """Of the last cells that have so many ends and last so long, the oldest of them in part; of all, if they
    are too few. Ends a second, 0 of none."""
    found, lasted = seen.ended, seen.lasted
    for cell in reversed(cells):
        if found >= ends and lasted >= seconds:
            break
        by_ends = (ends - found) / cell if cell else 1.0
        part = min(1.0, max(by_ends, (seconds - lasted) / seen.length))
        found, lasted = found + part * cell, lasted + part * seen.length
    return found / lasted if lasted else 0.0


def _trend(cells: Sequence[float], size: int) -> float:
    """The last window over the one before it, less 1; 0 while there are no two."""
    size = max(1, min(size, len(cells) // 2))
    after, before = sum(cells[-size:]), sum(cells[-2 * size : -size])
    return after / before - 1.0 if before else 0.0


def _beginning(cells: Sequence[float]) -> int:
    """How many of the first cells belong to the search: without them the mean of the rest is surest."""
    size = max(1, len(cells) // BATCHES)
    skipped = len(cells) % size
    batches = [sum(cells[at : at + size]) for at in range(skipped, len(cells), size)]
    cut, least, total, squares = 0, float("inf"), 0.0, 0.0
    for at in range(len(batches) - 1, -1, -1):
        count = len(batches) - at
        total, squares = total + batches[at], squares + batches[at] ** 2
        error = (squares - total * total / count) / count**2
        if 2 * count >= len(batches) and error <= least * (1.0 + 1e-9) + 1e-12 * squares / count**2:
            cut, least = at, error
    return skipped + cut * size if cut else 0


def _student(normal: float, freedom: float) -> float:
    """Student's quantile from the normal one, to a thousandth from 5 degrees of freedom on: Abramowitz and
    Stegun, "Handbook of Mathematical Functions" (1964), 26.7.5."""
    first = (normal**3 + normal) / 4.0
    second = (5.0 * normal**5 + 16.0 * normal**3 + 3.0 * normal) / 96.0
    return normal + first / freedom + second / freedom**2


def _filled(seen: Seen, ended: float, running: float) -> Seen:
    """What was seen, with ends spread evenly over ``running`` seconds that close one cell or more."""
    length, cells, count, lasted = seen.length, list(seen.cells), seen.ended, seen.lasted
    while lasted + running >= length:
        part = (length - lasted) / running if running else 0.0
        cells.append(count + ended * part)
        ended, running, count, lasted = ended * (1.0 - part), running - (length - lasted), 0.0, 0.0
        if len(cells) == CELLS:
            cells = [one + other for one, other in zip(cells[::2], cells[1::2], strict=True)]
            length *= 2.0
    return Seen(seen.at, length, tuple(cells), count + ended, lasted + running)
