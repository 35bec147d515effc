"""Load shedding: what is refused or put off when the whole system is saturated, and in which order.

Theory
------
Overload is known by *waiting*, not by length: one bursting tenant can make any queue long, while the age of
work that is **within its tenant's quota** says that capacity is missing (the seed document scales out on
that). Age alone is not enough either: old work beside idle slots is blocked by something else, and shedding
would not help it. So pressure takes both, age over what is tolerated and slots in use. Whose work counts, and
how many tenants must wait, is its caller's to measure (:mod:`tenantry.queue.overload`).

Levels rise one step at a time, each after pressure has lasted, and fall one at a time after a longer calm:
*hysteresis*, so that shedding, which itself removes pressure, does not flap (as in random early detection, S.
Floyd, V. Jacobson, 1993, the signal is averaged before it acts).

Shedding refuses new work and delays accepted work; it drops nothing (law K1), and it never touches a job in
flight.

States
------
==========  ===============================================  ============================================
level       puts off or refuses, besides all of the above    becomes the next, or the one before
==========  ===============================================  ============================================
none        nothing                                          age over ``tolerated`` and slots in use over
background  background work of the lowest tiers              ``saturated``, for ``rise_after`` seconds: up;
retries     retries, of every tier but the protected         both under ``calm`` of that, for
standard    new work, of every tier but the protected        ``fall_after`` seconds: down
==========  ===============================================  ============================================
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Level(IntEnum):
    """How much is shed: each level what the levels before it shed, and more."""

    NONE = 0
    BACKGROUND = 1
    RETRIES = 2
    STANDARD = 3


class Standing(StrEnum):
    """Where a tier stands when load is shed. The operator's registry says which is which."""

    LOWEST = "lowest"  # free tiers
    STANDARD = "standard"
    PROTECTED = "protected"  # enterprise tiers


class Work(StrEnum):
    """What is looked at."""

    NEW = "new"  # a submit, or a first attempt that has not started
    BACKGROUND = "background"
    RETRY = "retry"
    IN_FLIGHT = "in_flight"


@dataclass(frozen=True, slots=True)
class SheddingSettings:
    """``tolerated``: seconds that in-quota work may wait. ``saturated``: part of the slots in use, in (0, 1],
    from which on it counts. ``calm``: part of ``tolerated`` below which pressure is over. ``rise_after``,
    ``fall_after``: seconds that each must last."""

    tolerated: float = 5.0
    saturated: float = 0.95
    calm: float = 0.5
    rise_after: float = 5.0
    fall_after: float = 15.0


DEFAULTS = SheddingSettings()


@dataclass(frozen=True, slots=True)
class Pressure:
    """``age``: seconds that in-quota work has waited. ``used``: part of the slots in use."""

    age: float
    used: float


@dataclass(frozen=True, slots=True)
class Shedding:
    """``since``: when the present stretch of pressure, or of calm, began; None between the two."""

    level: Level = Level.NONE
    pressed_since: float | None = None
    calm_since: float | None = None


def step(shedding: Shedding, pressure: Pressure, settings: SheddingSettings, *, now: float) -> Shedding:
    """The level at ``now``, one step away from the last at most. Pure, O(1)."""
    if pressure.age > settings.tolerated and pressure.used >= settings.saturated:
        since = now if shedding.pressed_since is None else shedding.pressed_since
        if now - since < settings.rise_after or shedding.level is Level.STANDARD:
            return Shedding(shedding.level, pressed_since=since)
        return Shedding(Level(shedding.level + 1), pressed_since=now)
    if pressure.age <= settings.calm * settings.tolerated or pressure.used < settings.calm:
        since = now if shedding.calm_since is None else shedding.calm_since
        if now - since < settings.fall_after or shedding.level is Level.NONE:
            return Shedding(shedding.level, calm_since=since)
        return Shedding(Level(shedding.level - 1), calm_since=now)
    return Shedding(shedding.level)


def sheds(level: Level, work: Work, standing: Standing) -> bool:
    """Whether work of a tier is put off, or if it is new refused, at a level. Pure, O(1)."""
    if work is Work.IN_FLIGHT or standing is Standing.PROTECTED:
        return False
    if work is Work.BACKGROUND:
        return level >= (Level.BACKGROUND if standing is Standing.LOWEST else Level.STANDARD)
    return level >= (Level.RETRIES if work is Work.RETRY else Level.STANDARD)


def falls_in(shedding: Shedding, settings: SheddingSettings) -> float:
    """Seconds in which the level can have fallen to nothing, at best; 0 when nothing is shed. Pure, O(1)."""
    return settings.fall_after * shedding.level


def retry_after(falls_in: float, draw: float) -> float:
    """Seconds, 1 at least, after which to come back with what was refused: the time in which the level can
    have fallen, spread by ``draw`` in [0, 1] over as long again. Pure, O(1)."""
    return max(1.0, falls_in) * (1.0 + draw)
