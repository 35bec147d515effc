"""A rate with a bounded burst: the token bucket, as a value.

A bucket holds at most ``capacity`` tokens and gains ``rate`` a second; what is taken must be there. In any
stretch of T seconds at most ``capacity + rate * T`` pass, and a caller who comes back exactly when told to
passes. Source: J. Turner, "New directions in communications" (IEEE Communications, 1986); the figures follow
the seed documents (capacity = base + burst, refill = base).

Time is a float, and sleeping can end a rounding error early: a shortfall of less than :data:`SLACK` seconds'
refill passes and is owed (the bucket goes that far below zero), so the long-run rate stays exact.
"""

from dataclasses import dataclass
from typing import Final

from tenantry.kernel.instant import Instant, Seconds

SLACK: Final[Seconds] = 1e-6
"""More than two roundings of an instant up to 2**31 seconds, less than anyone can measure."""


@dataclass(frozen=True, slots=True)
class Rate:
    """``base``: tokens a second, finite and > 0. ``burst``: tokens that may be saved up beyond one second's.

    A rate below one a second can still save one whole token: else nothing would ever pass.
    """

    base: float
    burst: float = 0.0

    @property
    def capacity(self) -> float:
        """The most that passes at once."""
        return max(1.0, self.base + self.burst)


@dataclass(frozen=True, slots=True)
class Bucket:
    """``tokens`` as they stood at ``at``."""

    tokens: float
    at: Instant


@dataclass(frozen=True, slots=True)
class Taken:
    """What an attempt to take came to. ``wait_for``: 0 when it passed; else the seconds after which the same
    cost passes for a lone caller; None when it is more than the capacity and never will."""

    bucket: Bucket
    wait_for: Seconds | None

    @property
    def passed(self) -> bool:
        return self.wait_for == 0.0


def full(rate: Rate, now: Instant) -> Bucket:
    """A bucket nobody has taken from. Pure."""
    return Bucket(rate.capacity, now)


def refilled(bucket: Bucket, rate: Rate, now: Instant) -> Bucket:
    """The bucket at ``now``. A clock that went back refills nothing and takes nothing away; any idle time
    fills to the capacity and no further. Pure, O(1)."""
    elapsed = max(0.0, now - bucket.at)
    if elapsed * rate.base >= rate.capacity - bucket.tokens:
        return Bucket(rate.capacity, now)
    return Bucket(bucket.tokens + elapsed * rate.base, now)


def take(bucket: Bucket, rate: Rate, cost: float, now: Instant) -> Taken:
    """Take ``cost`` > 0 tokens, all or none: what is refused is not charged. Pure, O(1)."""
    here = refilled(bucket, rate, now)
    if cost > rate.capacity:
        return Taken(here, None)
    wait_for = (cost - here.tokens) / rate.base
    if wait_for <= SLACK:
        return Taken(Bucket(here.tokens - cost, now), 0.0)
    return Taken(here, wait_for)


def give_back(bucket: Bucket, rate: Rate, cost: float, now: Instant) -> Bucket:
    """Undo a take: never above the capacity. Pure, O(1)."""
    here = refilled(bucket, rate, now)
    return Bucket(min(rate.capacity, here.tokens + cost), now)


def is_full(bucket: Bucket, rate: Rate, now: Instant) -> bool:
    """Whether it tells nothing that a new bucket would not. Pure, O(1)."""
    return refilled(bucket, rate, now).tokens >= rate.capacity


# The same bucket as one number: the instant at which it will be full. It holds ``capacity - (full_at - now) *
# base`` tokens, nothing is written to refill it, and a full one is any number that has passed. Source: the
# virtual scheduling form of ITU-T I.371's generic cell rate algorithm.


def tokens_at(full_at: Instant, rate: Rate, now: Instant) -> float:
    """How much a bucket that will be full at ``full_at`` holds; negative while it owes. Pure, O(1)."""
    return rate.capacity - max(0.0, full_at - now) * rate.base


def until_passes(full_at: Instant, rate: Rate, cost: float, now: Instant) -> Seconds:
    """The seconds after which ``cost`` > 0 passes for a lone caller; up to :data:`SLACK`, it passes now.
    Infinite for more than the capacity. Pure, O(1)."""
    if cost > rate.capacity:
        return float("inf")
    return max(full_at, now) + cost / rate.base - now - rate.capacity / rate.base


def charged(full_at: Instant, rate: Rate, cost: float, now: Instant) -> Instant:
    """When a bucket will be full after ``cost`` has been taken, whether it was there or not. Pure, O(1)."""
    return Instant(max(full_at, now) + cost / rate.base)


def rescaled(full_at: Instant, old: Rate, new: Rate, now: Instant) -> Instant:
    """When it will be full under another rate: what it lacks stays lacking, up to the new capacity, so that
    a change neither fills a bucket nor makes it owe. Pure, O(1)."""
    lacking = max(0.0, full_at - now) * old.base
    return Instant(now + min(lacking, new.capacity) / new.base)


def carried(full_at: Instant, old: Rate, new: Rate, now: Instant) -> Instant:
    """When it will be full under another rate that keeps its tokens, up to the new capacity: a part of a
    whole that grows or shrinks this way never adds a token to the whole. Pure, O(1)."""
    kept = min(tokens_at(full_at, old, now), new.capacity)
    return Instant(now + (new.capacity - kept) / new.base)
