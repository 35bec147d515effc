"""How much to take next: enough that no lane waits for the source, never so much that stopping leaves a pile.

Theory. What is staged is a buffer between a source, which is read in batches, and lanes, which take one job
at a time. It must cover what the lanes can hold at once and what they end until the next look; more than that
only makes pause, hold and cancel leave more behind. So the window is what the lanes' permits allow, twice, or
a couple of seconds of the present rate, whichever is more, between two fixed bounds. Messages are taken when
a quarter of the window is free, so that a feed is a batch.

What waits between two attempts fills the window too: a target that is down stops the reading by itself.

In hand, fetched and not acknowledged, is one batch at a time: within the source's own window, of 4 MiB or
about so, and so small that it is fed in a quarter of the time after which the source would take it back.
Where filters leave most of a source, more is fetched than there is room for, as far as the most that may be
under way. All pure.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

from tenantry.kernel.instant import Seconds
from tenantry.replay.model import Traits

IN_HAND: Final = 4 * 1024 * 1024
"""Bytes of one fetch, by what messages were like lately."""

_PART_TO_REFILL: Final = 4
_FIRST_SIZE: Final = 256 * 1024
_LEAST_MEANT: Final = 0.01


@dataclass(frozen=True, slots=True)
class WindowSettings:
    """``least``, ``most``: messages of one replay that may be staged and not ended, 1 <= least <= most.
    ``ahead_for``: seconds of the present rate to keep ahead. ``soonest``, ``latest``: seconds between two
    looks at a replay. ``wait_for``: seconds to wait for the first message of a source that has none now."""

    least: int = 50
    most: int = 2_000
    ahead_for: Seconds = 2.0
    soonest: Seconds = 0.05
    latest: Seconds = 0.5
    wait_for: Seconds = 0.5


DEFAULTS: Final = WindowSettings()


@dataclass(frozen=True, slots=True)
class Outlook:
    """``unended``: staged and not ended. ``permits``: how many may be in flight in all of its lanes; 0 where
    nobody knows. ``rate``: ends a second now."""

    unended: int
    permits: int = 0
    rate: float = 0.0


def wanted(outlook: Outlook, settings: WindowSettings = DEFAULTS) -> int:
    """How many messages should be under way. Pure, O(1). Between ``least`` and ``most``; never less where
    permits or rate are more."""
    need = max(2 * outlook.permits, ceil(outlook.rate * settings.ahead_for))
    return max(settings.least, min(settings.most, need))


def room(outlook: Outlook, settings: WindowSettings = DEFAULTS) -> int:
    """How many to take now; 0 while less than a quarter of the window is free. ``unended`` and this are
    never more than ``most`` together, unless ``unended`` alone is. Pure, O(1)."""
    window = wanted(outlook, settings)
    free = window - outlook.unended
    return free if free * _PART_TO_REFILL >= window else 0


@dataclass(frozen=True, slots=True)
class Habits:
    """What fetches were like lately. ``feeds``: messages a second that were staged; 0 before the first.
    ``size``: bytes of a message, a quarter of a MiB before the first is seen."""

    feeds: float = 0.0
    size: float = _FIRST_SIZE


def widened(room: int, outlook: Outlook, meant: float, settings: WindowSettings = DEFAULTS) -> int:
    """How many to fetch so that about ``room`` of them are meant: never so many that more than ``most`` could
    be under way. ``meant``: the part of what was seen that was. >= ``room`` where that is within ``most``.
    Pure, O(1)."""
    return min(settings.most - outlook.unended, ceil(room / max(meant, _LEAST_MEANT)))


def fetch_limit(room: int, traits: Traits, habits: Habits) -> int:
    """How many to have in hand for ``room``, >= 1 where that is. Pure, O(1)."""
    limit = min(room, traits.window, max(1, int(IN_HAND / max(1.0, habits.size))))
    if traits.acknowledge_within is not None and habits.feeds > 0:
        limit = min(limit, max(1, int(habits.feeds * traits.acknowledge_within / 4)))
    return limit


def fetch_wait(traits: Traits, settings: WindowSettings = DEFAULTS) -> Seconds:
    """How long to wait for a first message: what was fetched early must not grow old meanwhile. Pure."""
    return (
        settings.wait_for
        if traits.acknowledge_within is None
        else min(settings.wait_for, traits.acknowledge_within / 4)
    )


def look_again(outlook: Outlook, settings: WindowSettings = DEFAULTS) -> Seconds:
    """Seconds until a quarter of what is under way has ended, within the bounds. Pure, O(1)."""
    if outlook.rate <= 0:
        return settings.latest
    return max(settings.soonest, min(settings.latest, outlook.unended / outlook.rate / _PART_TO_REFILL))
