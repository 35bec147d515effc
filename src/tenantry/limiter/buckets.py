"""The two kinds of local bucket: one that the clock refills, and one that leases fill.

Not safe by themselves: the caller holds the tenant's turn. ``wait_for`` asks and charges nothing, ``spend``
charges what was just found to be there, at the same ``now``.

The arithmetic of :class:`Refilled` is :mod:`tenantry.algorithms.token_bucket`'s, written out where a decision
is made, since a call costs as much as the sum; a property test holds the two together."""

from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final

from tenantry.algorithms.token_bucket import SLACK, carried, charged, rescaled, tokens_at
from tenantry.kernel.instant import Instant, Seconds
from tenantry.limiter.exchange import DUST, Grant, Part
from tenantry.limiter.model import ALLOWED, MOST, Basis, Limit, Verdict
from tenantry.limiter.settings import LimiterSettings

NEVER: Final = Instant(-inf)
_OWN, _LEASE, _FIRST = ALLOWED[Basis.OWN], ALLOWED[Basis.LEASE], ALLOWED[Basis.FIRST]
_SHARE, _DOWN = ALLOWED[Basis.SHARE], ALLOWED[Basis.DOWN]


class Refilled:
    """The limit in full, refilled by this process's clock: 16 bytes of state, a full bucket is any instant
    that has passed."""

    __slots__ = ("full_at", "limit")

    def __init__(self, limit: Limit, full_at: Instant = NEVER) -> None:
        self.limit, self.full_at = limit, full_at

    def wait_for(self, cost: float, now: Instant) -> Seconds:
        """0 when ``cost`` is there; else the seconds after which it passes for a lone caller. O(1)."""
        limit, full_at = self.limit, self.full_at
        takes = cost * limit.interval
        over = (full_at if full_at > now else now) + takes - now - limit.window
        if over <= SLACK:
            return 0.0
        return over if over <= takes + SLACK and takes <= limit.window else self._odd(cost, now)

    def spend(self, cost: float, now: Instant) -> bool:
        """Charge. False: nothing need be asked of anybody."""
        full_at = self.full_at
        self.full_at = Instant((full_at if full_at > now else now) + cost * self.limit.interval)
        return False

    def give_back(self, cost: float, now: Instant) -> None:
        """Undo a charge: never above the capacity."""
        self.full_at = Instant(self.full_at - cost * self.limit.interval)

    def replan(self, limit: Limit, now: Instant) -> None:
        """Another limit from now on; what was lacking is lacking still."""
        self.full_at = rescaled(self.full_at, self.limit.rate, limit.rate, now)
        self.limit = limit

    def wanting(self, now: Instant) -> bool:
        """Nothing is ever asked."""
        return False

    def allowed(self, now: Instant) -> Verdict:
        """The verdict of a call that may go on; its basis is also a refusal's."""
        return _OWN

    def idle(self, now: Instant) -> bool:
        """Whether it has been full for as long as filling it takes: then nobody has called for at least that
        long, and forgetting it changes no decision."""
        return now >= self.full_at + self.limit.window

    def lacking_for(self, now: Instant) -> Seconds:
        """How far it is from full."""
        return max(0.0, self.full_at - now)

    def remaining(self, now: Instant) -> float:
        """Tokens, >= 0."""
        return max(0.0, tokens_at(self.full_at, self.limit.rate, now))

    def _odd(self, cost: float, now: Instant) -> Seconds:
        """More than a whole bucket is missing: the cost is more than the capacity, or the clock went back.
        Then the bucket goes on from empty, and the lost hour is not waited for."""
        if cost > self.limit.capacity:
            return inf
        empty_at = now + self.limit.window
        if self.full_at > empty_at + SLACK:
            self.full_at = Instant(empty_at)
        return max(SLACK, self.full_at + cost * self.limit.interval - empty_at)


@dataclass(slots=True)
class Crew:
    """What all buckets of a node share: its settings, how many nodes there are, itself among them, and which
    part of an even share is open to them."""

    settings: LimiterSettings
    nodes: int = 1
    opening: float = 1.0
    _shares: dict[tuple[Limit, int], Limit] = field(default_factory=dict)

    def share_of(self, limit: Limit) -> Limit:
        """The conservative share of ``limit``. O(1)."""
        key = (limit, self.nodes)
        found = self._shares.get(key)
        if found is None:
            if len(self._shares) > 10_000:
                self._shares.clear()
            found = self._shares[key] = limit.part(self.opening / self.nodes)
        return found


class Leased:
    """A bucket that spends what the authority has granted; its conservative share while it has no answer.

    ``name``: how the authority knows it. ``left``: tokens of the live lease, to be spent before ``until``;
    ``coming``: more of them from ``ready_at`` on. ``low``: below it, more is asked for.
    """

    __slots__ = (
        "asked_at", "assigned", "coming", "crew", "cut", "denied", "left", "level", "level_at", "limit",
        "low", "name", "need", "on_share", "owed", "quiet_until", "ready_at", "share", "spent", "unleased",
        "until",
    )  # fmt: skip

    def __init__(self, limit: Limit, name: str, crew: Crew) -> None:
        self.limit, self.name, self.crew = limit, name, crew
        self.left = self.coming = self.low = self.spent = self.unleased = self.denied = self.need = 0.0
        self.until = self.ready_at = self.asked_at = self.quiet_until = NEVER
        self.level, self.level_at = limit.capacity, NEVER  # as of the last answer; full before the first
        self.share = Refilled(crew.share_of(limit))
        self.owed = Refilled(
            self.share.limit
        )  # what was spent without a lease, as the share's refill pays it
        self.on_share, self.cut = False, False
        self.assigned: float | None = None  # this node's part of the limit, under static shares

    def wait_for(self, cost: float, now: Instant) -> Seconds:
        """0 when ``cost`` is there; else the seconds after which to come back. O(1)."""
        if now < self.until:
            if self.left >= cost - DUST:
                return 0.0
            return self._until_leased(cost, now)
        return self._until_shared(cost, now)

    def spend(self, cost: float, now: Instant) -> bool:
        """Charge. True: more should be asked for."""
        if now < self.until:
            self.left -= cost
            self.spent += cost
            return self.left < self.low and not self.coming
        self.share.spend(cost, now)
        self.owed.spend(cost, now)
        self.unleased += cost
        return self.wanting(now)

    def give_back(self, cost: float, now: Instant) -> None:
        """Undo a charge of the moment before."""
        if now < self.until and self.spent >= cost:
            self.left, self.spent = self.left + cost, self.spent - cost
            return
        self.share.give_back(cost, now)
        self.owed.give_back(cost, now)
        self.unleased = max(0.0, self.unleased - cost)

    @property
    def untold(self) -> bool:
        """Whether there is something to tell at once: spent without a lease, or of a lease that runs low."""
        if self.assigned is not None:
            return False
        return self.unleased > 0 or (self.spent > 0 and self.left < self.low)

    @property
    def reports(self) -> bool:
        """Whether it holds a larger part of the limit than it could always open with: then it tells its
        demand, even that there is none."""
        return self.assigned is not None and self.assigned > 1.001 * self.crew.opening / self.crew.nodes

    def expect(self, cost: float) -> None:
        """A call of ``cost`` is about to come, or was refused for want of a lease."""
        self.denied += cost
        self.need = max(self.need, cost)

    def wanting(self, now: Instant) -> bool:
        """Whether something should be asked or reported now."""
        if self.assigned is not None:
            return now >= self.asked_at + self.crew.settings.sync_every
        if self.coming:
            half = self.crew.settings.term / 2
            return self._far_off(now) and now >= self.asked_at + half
        return now >= self.quiet_until

    def replan(self, limit: Limit, now: Instant) -> None:
        """Another limit from now on. A lease larger than the new limit's is cut at once."""
        self.limit = limit
        part = self.crew.share_of(limit) if self.assigned is None else _scaled(limit, self.assigned)
        self.share.replan(part, now)
        self.owed.replan(part, now)
        self.left = min(self.left, self.largest_lease())
        self.level = min(self.level, limit.capacity)
        self.coming = min(self.coming, limit.capacity)
        self.quiet_until = NEVER

    def allowed(self, now: Instant) -> Verdict:
        """The verdict of a call that may go on; its basis is also a refusal's."""
        if now < self.until:
            return _LEASE
        if self.cut:
            return _DOWN
        return _FIRST if self.assigned is None else _SHARE

    def idle(self, now: Instant) -> bool:
        """Whether forgetting it loses nothing: no live lease, nothing unreported, the share full."""
        reported = self.spent < DUST and self.unleased < DUST
        return reported and now >= self.until and not self.owed.lacking_for(now) and self.share.idle(now)

    def lacking_for(self, now: Instant) -> Seconds:
        """How far its share is from full."""
        return self.share.lacking_for(now)

    def remaining(self, now: Instant) -> float:
        """Tokens of the whole limit as this node last knew it, what it holds itself included; >= 0."""
        if self.assigned is not None or (self.on_share and self.cut):
            return self.share.remaining(now)
        held = self.left if now < self.until else 0.0
        return min(self.limit.capacity, max(0.0, self.estimated(now)) + held)

    def estimated(self, now: Instant) -> float:
        """What the authority's bucket holds by now, if nobody else has taken from it."""
        since = now - self.level_at
        return min(self.limit.capacity, self.level + since * self.limit.base) if since < inf else self.level

    def largest_lease(self) -> float:
        """The most to hold at once: ``lease_for`` seconds of the limit, one token at least."""
        return min(self.limit.capacity, max(1.0, self.limit.base * self.crew.settings.lease_for))

    def part(self, now: Instant, *, closing: bool = False) -> Part:
        """What to tell and to ask for; what is told is counted off. ``closing``: give everything back."""
        attempted = self.spent + self.unleased + self.denied
        need = max(self.need, 1.0) if attempted and not closing else 0.0
        target = max(need, min(self.largest_lease(), self._likely(attempted, now)))
        live = self.left if now < self.until else 0.0
        surplus = live if closing else max(0.0, live - target)
        promised = self.coming if closing or self._far_off(now) else 0.0
        self.coming -= promised
        asked = (
            need > 0 and self.assigned is None and not self.limit.exact and not self.coming and live < target
        )
        found = Part(
            self.name,
            self.limit,
            need=need if asked else 0.0,
            want=target - live if asked else 0.0,
            spent=self.spent,
            returned=surplus + promised,
            charge=self.owed.lacking_for(now) * self.owed.limit.base,
            unleased=self.unleased,
            demand=attempted,
        )
        self.left, self.low = live - surplus, target / 2
        self.spent = self.unleased = self.denied = self.need = 0.0
        self.asked_at = now
        return found

    def _far_off(self, now: Instant) -> bool:
        """Whether a reserved grant is so far off that it is better given back and asked for anew: others may
        have given back what they held meanwhile."""
        return self.coming > 0 and self.ready_at > now + self.crew.settings.term / 2

    def _likely(self, attempted: float, now: Instant) -> float:
        """What a lease's time will ask for, if calls go on as since the last ask."""
        if not attempted:
            return 0.0
        settings = self.crew.settings
        since = now - self.asked_at
        passed = max(since, settings.every) if since <= settings.term else settings.lease_for
        return float(ceil(min(attempted / passed * settings.lease_for, MOST)))

    def answered(self, part: Part, grant: Grant, sent_at: Instant, now: Instant) -> None:
        """The authority has booked ``part``. ``sent_at``: when it was first sent; the lease is trusted from
        then, since the authority may have begun to count then."""
        if grant.share is not None:
            self._assign(grant.share, now)
            return
        if now >= self.until:
            self.left = self.coming = 0.0
        self.owed.give_back(part.charge, now)
        ready_in = grant.ready_in if grant.granted else 0.0
        if ready_in:
            self.coming, self.ready_at = self.coming + grant.granted, Instant(now + ready_in)
        else:
            self.left += grant.granted
        settings = self.crew.settings
        self.until = Instant(sent_at + ready_in + settings.term * settings.trust)
        self.level, self.level_at = grant.level, now
        self.on_share = self.cut = False
        if part.need and not grant.granted:  # nothing to be had yet: no use in asking at every call
            self.quiet_until = min(self.until, Instant(now + grant.ready_in))
        if self.limit.exact:
            self.until = NEVER

    def _until_leased(self, cost: float, now: Instant) -> Seconds:
        """The lease has too little; a reserved grant may have become ready."""
        if self.coming and now >= self.ready_at - SLACK:
            self.left, self.coming = self.left + self.coming, 0.0
            if self.left >= cost - DUST:
                return 0.0
        if cost > self.limit.capacity:
            return inf
        self.expect(cost)
        if self.coming and self.left + self.coming >= cost - DUST:
            return max(SLACK, self.ready_at - now)
        return max((cost - self.estimated(now)) * self.limit.interval, self._answer_within())

    def _until_shared(self, cost: float, now: Instant) -> Seconds:
        """No live lease. The first time so, the share opens with this node's part of what is known to be
        there; after an answer that there was nothing, only once the bucket could be full again."""
        if not self.on_share and self.assigned is None:
            self._open_share(now)
        waits = self.share.wait_for(cost, now)
        if not waits:
            return 0.0
        if cost > self.limit.capacity:
            return inf
        self.expect(cost)
        if self.cut or self.assigned is not None:
            return min(waits, self.crew.settings.term) if waits == inf else waits
        return min(waits, self._answer_within())

    def _open_share(self, now: Instant) -> None:
        self.left = self.coming = 0.0
        self.on_share = True
        limit = self.crew.share_of(self.limit)
        if not self.owed.lacking_for(now):
            self.share = Refilled(limit)
            self.owed = Refilled(limit)
        there = self.estimated(now)
        if self.level < 1.0 and there < self.limit.capacity:
            there = 0.0
        opening = max(there * self.crew.opening / self.crew.nodes, min(1.0, there), 0.0)
        lacking = max(0.0, self.share.limit.capacity - opening)
        self.share.full_at = charged(NEVER, self.share.limit.rate, lacking, now)

    def _assign(self, share: float, now: Instant) -> None:
        part = _scaled(self.limit, share)
        self.share.full_at = carried(self.share.full_at, self.share.limit.rate, part.rate, now)
        self.share.limit = self.owed.limit = part
        self.owed.full_at = NEVER
        self.assigned, self.cut = share, False

    def _answer_within(self) -> Seconds:
        """When an answer should have come: an estimate."""
        return 2 * self.crew.settings.every


def _scaled(limit: Limit, share: float) -> Limit:
    return limit if share >= 1 else limit.part(share)
