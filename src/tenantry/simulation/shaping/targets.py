"""Targets as they are met in the field, described by numbers and played in virtual time.

A target is a pool of servers behind one line, each call taking a server for a log-normal while. What can be
added: a bound on the line (503), a rate limit of its own (429 with ``Retry-After``), a number in flight
beyond which calls hang, spells in which nobody answers or everybody is refused, and foreign clients.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import exp, inf, log
from statistics import NormalDist

from tenantry.kernel.randomness import Randomness

Steps = tuple[tuple[float, float], ...]
"""``(from this time on, value)``, in rising order, the first at 0."""

QUICK = 0.05
"""Seconds in which a refusal is answered: a round trip over the network."""

_NORMAL = NormalDist()


class Spell(StrEnum):
    """What a target is like for a while."""

    HOLE = "hole"  # connections are accepted and nothing is answered
    DOWN = "down"  # connections are refused


@dataclass(frozen=True, slots=True)
class TargetModel:
    """A target by its numbers. Times in seconds.

    ``servers``: how many calls are served at once, by time. ``service``: the median that a call takes of one,
    ``spread`` the sigma of its logarithm. ``network``: what every call takes besides. ``line``: the most that
    wait, beyond that 503. ``rate``: calls a second beyond which it answers 429, saving up ``burst``, and
    asking to come back after ``retry_after``. ``hang_beyond``: calls in it, beyond which a call hangs.
    ``spells``: (from, to, spell). ``foreign``: other clients' calls a second, by time.
    """

    name: str
    servers: Steps = ((0.0, 20.0),)
    service: float = 0.1
    spread: float = 0.1
    network: float = 0.0
    line: int | None = None
    rate: float | None = None
    burst: float = 20.0
    retry_after: float | None = 1.0
    hang_beyond: int | None = None
    spells: tuple[tuple[float, float, Spell], ...] = ()
    foreign: Steps = ((0.0, 0.0),)

    @property
    def reference(self) -> float:
        """What a call takes when nobody waits: the median."""
        return self.network + self.service

    def rate_at(self, at: float) -> float:
        """Calls a second that it can serve one client at ``at``, foreign ones taken off."""
        if self.spell_at(at) is not None:
            return 0.0
        served = value_at(self.servers, at) / (self.service * exp(self.spread**2 / 2.0))
        if self.hang_beyond is not None:
            served = min(served, self.hang_beyond / self.reference)
        return max(0.0, min(served, self.rate or inf) - value_at(self.foreign, at))

    def spell_at(self, at: float) -> Spell | None:
        """What it is like at ``at``, if not well."""
        return next((spell for start, end, spell in self.spells if start <= at < end), None)

    def capacity(self, until: float) -> float:
        """Calls that it can serve one client from 0 to ``until``."""
        moments = {0.0, until, *(at for at, _ in self.servers), *(at for at, _ in self.foreign)}
        moments |= {at for start, end, _ in self.spells for at in (start, end)}
        marks = sorted(at for at in moments if 0.0 <= at <= until)
        return sum((end - start) * self.rate_at(start) for start, end in pairwise(marks))


def value_at(steps: Steps, at: float) -> float:
    """The value of steps at a time. O(steps)."""
    found = steps[0][1]
    for start, value in steps:
        if start > at:
            break
        found = value
    return found


class Call:
    """One call. ``ours``: of the lane that is watched. ``done``: it was answered or given up."""

    __slots__ = ("done", "in_flight", "ours", "sent_at")

    def __init__(self, sent_at: float, in_flight: int, *, ours: bool) -> None:
        self.sent_at, self.in_flight, self.ours = sent_at, in_flight, ours
        self.done = False


Answer = Callable[[Call, int, float | None], None]
"""Ends a call with a status (0: refused) and what the target asked to wait."""

Later = Callable[[float, Callable[[Call | None], None], Call | None], None]
"""Calls a function with a call at a time."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What a target is given: the present, a way to do something later, and one to answer a call."""

    moment: "Moment"
    later: Later
    answer: Answer


class Moment:
    """The present, shared by all who act in one simulation."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        self.now = 0.0


class SimTarget:
    """A model at work. Told of calls; tells of their ends through ``answer``."""

    def __init__(self, model: TargetModel, randomness: Randomness, *, ports: Ports) -> None:
        self.model = model
        self.foreign_failed: list[float] = []
        self.foreign_served = 0
        self._randomness = randomness
        self._moment, self._later, self._answer = ports.moment, ports.later, ports.answer
        self._line: deque[Call] = deque()
        self._servers = int(model.servers[0][1])
        self._serving = self._inside = 0
        self._tokens, self._filled_at = model.burst, 0.0
        for at, servers in model.servers[1:]:
            self._later(at, self._resize(int(servers)), None)
        if any(rate for _, rate in model.foreign):
            self._next_foreign(0.0)

    def arrive(self, call: Call, now: float) -> None:
        """A call has come in."""
        spell = self.model.spell_at(now) if self.model.spells else None
        if spell is Spell.HOLE:
            return
        if spell is Spell.DOWN:
            self._later(now + QUICK, self._refuse(0), call)
        elif self.model.rate is not None and not self._take_token(now):
            self._later(now + QUICK, self._refuse(429, self.model.retry_after), call)
        elif self.model.hang_beyond is not None and self._inside >= self.model.hang_beyond:
            return
        elif self.model.line is not None and len(self._line) >= self.model.line:
            self._later(now + QUICK, self._refuse(503), call)
        else:
            self._inside += 1
            self._line.append(call)
            self._serve(now)

    def _serve(self, now: float) -> None:
        while self._line and self._serving < self._servers:
            self._serving += 1
            call = self._line.popleft()
            self._later(now + self._takes(), self._served, call)

    def _served(self, call: Call | None) -> None:
        self._serving -= 1
        self._inside -= 1
        if call is not None and (not self.model.spells or self.model.spell_at(self._moment.now) is None):
            if self.model.network:
                self._later(self._moment.now + self.model.network, self._refuse(200), call)
            else:
                self._end(call, 200, None)
        self._serve(self._moment.now)

    def _refuse(self, status: int, retry_after: float | None = None) -> Callable[[Call | None], None]:
        def end(call: Call | None) -> None:
            if call is not None:
                self._end(call, status, retry_after)

        return end

    def _end(self, call: Call, status: int, retry_after: float | None) -> None:
        if call.ours:
            self._answer(call, status, retry_after)
        elif status == 200:
            self.foreign_served += 1
        else:
            self.foreign_failed.append(self._moment.now)

    def _takes(self) -> float:
        model = self.model
        if not model.spread:
            return model.service
        drawn = min(max(self._randomness.uniform(0.0, 1.0), 1e-12), 1.0 - 1e-12)
        return model.service * exp(model.spread * _NORMAL.inv_cdf(drawn))

    def _take_token(self, now: float) -> bool:
        rate = self.model.rate or 0.0
        self._tokens = min(self.model.burst, self._tokens + (now - self._filled_at) * rate)
        self._filled_at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _resize(self, servers: int) -> Callable[[Call | None], None]:
        def change(_: Call | None) -> None:
            self._servers = servers
            self._serve(self._moment.now)

        return change

    def _next_foreign(self, now: float) -> None:
        rate = value_at(self.model.foreign, now)
        if rate <= 0.0:
            starts = [at for at, value in self.model.foreign if at > now and value > 0.0]
            if starts:
                self._later(starts[0], self._foreign, None)
            return
        drawn = min(self._randomness.uniform(0.0, 1.0), 1.0 - 1e-12)
        self._later(now - log(1.0 - drawn) / rate, self._foreign, None)

    def _foreign(self, _: Call | None) -> None:
        now = self._moment.now
        if value_at(self.model.foreign, now) > 0.0:
            self.arrive(Call(now, 0, ours=False), now)
        self._next_foreign(now)
