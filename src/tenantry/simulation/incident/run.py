"""A mass incident at work: the fair-share rule and a shaper for each lane, every call an event.

What is simulated: the pool's slots, the rule that shares them, the shaper and the breaker of each lane, the
target of each lane, live traffic, timeouts. A round of the planner comes :data:`ROUND` seconds after the one
before at the earliest: until then what ended is only noted, as a planner notes it. A call that failed by its
target's fault waits again; one that failed by its own is parked.

What is not: sources and the feed (a replay's messages wait in its lane from the beginning), dedup, budgets,
and the early stop of a replay that is all poison, which goes to its end.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf, log
from typing import cast

from tenantry.algorithms.fair_share import Charge, FairShare, Pick
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.randomness import Randomness, SeededRandomness
from tenantry.lanes import shaper
from tenantry.lanes.outcome import Fault, Outcome
from tenantry.lanes.shaper import Permission, ShaperSettings, Standing
from tenantry.lanes.summary import EMPTY, summary_of
from tenantry.simulation.incident.model import TIERS, Backlog, Incident, IncidentTenant
from tenantry.simulation.shaping.targets import Call, Moment, Ports, SimTarget

Progress = Callable[[float], None]
"""Told of messages that ended."""

ROUND = 0.005
"""Seconds between two rounds of the planner at least."""

LIVE, REPLAY = 0, 2
"""Ranks of the rule (law F8)."""

_CLASSES = {200: "ok", 503: "http_503", 0: "refused", -1: "timeout"}
_KINDS: frozenset[str] = frozenset({""})


@dataclass(slots=True)
class ReplayResult:
    """One tenant's replay and live work. ``ended_at``: seconds after the incident, infinite if it has not.
    ``slot_seconds``: of all its work since the incident, until its replay ended. ``most``: slots it held at
    once. ``returned``: calls that failed by the target's fault, whose message waited again. ``live``:
    (submitted, took) of each live job that was delivered, in seconds; ``lost``: live jobs that were not.
    ``history``: messages that had ended and slot-seconds so far, at each second until its replay ended."""

    tenant: IncidentTenant
    delivered: int = 0
    parked: int = 0
    returned: int = 0
    ended_at: float = inf
    slot_seconds: float = 0.0
    most: int = 0
    lost: int = 0
    live: list[tuple[float, float]] = field(default_factory=list)
    history: list[tuple[int, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class IncidentReport:
    """``drained``: messages of replays that can end, which have ended, by tier, at each second after the
    incident. ``used``: slot-seconds of calls that ended in each second. ``calls``: simulated in all."""

    incident: Incident
    results: tuple[ReplayResult, ...]
    drained: tuple[dict[str, int], ...]
    used: tuple[float, ...]
    calls: int
    seed: int


class _Sent(Call):
    __slots__ = ("charge", "lane", "submitted")

    def __init__(self, sent_at: float, lane: "_Lane", charge: Charge, submitted: float | None) -> None:
        super().__init__(sent_at, 0, ours=True)
        self.lane, self.charge, self.submitted = lane, charge, submitted


class _Lane:
    """One tenant's way to its target. ``left``: messages of its replay that have not ended."""

    __slots__ = (
        "flows", "heard", "in_flight", "left", "limit", "result", "state", "submitted", "target", "wakes_at"
    )  # fmt: skip

    def __init__(self, result: ReplayResult, target: SimTarget) -> None:
        self.result, self.target = result, target
        self.state = shaper.opened(Timestamp(0.0))
        self.heard: list[Outcome] = []
        self.in_flight = self.limit = 0
        self.left = result.tenant.messages
        self.submitted: deque[float] = deque()
        self.flows = {rank: (result.tenant.id, rank) for rank in (LIVE, REPLAY)}
        self.wakes_at = inf


class IncidentRun:
    """One incident, from live traffic before it to the end of the last replay that can end."""

    def __init__(self, incident: Incident, seed: int = 1) -> None:
        self._incident, self._seed, self._moment = incident, seed, Moment()
        self._randomness: Randomness = SeededRandomness(seed)
        self._settings = ShaperSettings(timeout_for=incident.timeout)
        self._events: list[tuple[float, int, Callable[[Call | None], None], Call | None]] = []
        self._sent: deque[_Sent] = deque()
        self._serial = self._calls = 0
        self._free = incident.slots
        self._rule = FairShare(floor=incident.floor)
        self._rule.set_slots(incident.slots, _KINDS)
        self._touched: dict[_Lane, None] = {}
        self._round_at, self._last_round = inf, -ROUND
        self._drained = [dict.fromkeys(TIERS, 0)]
        self._used: list[float] = []
        self._ending = sum(each.backlog is Backlog.USUAL for each in incident.tenants)
        self._lanes = {each.id: self._lane(each, place) for place, each in enumerate(incident.tenants)}

    def run(self, progress: Progress = lambda _: None) -> IncidentReport:
        """To the end."""
        self._later(self._incident.at, self._begin, None)
        told = 0
        while self._ending:
            now = self._moment.now = self._next_instant()
            self._give_up(now)
            while self._events and self._events[0][0] <= now:
                _, _, happens, call = heappop(self._events)
                happens(call)
            if now >= self._round_at:
                self._round(now)
            if self._calls - told >= 10_000:
                progress(self._calls - told)
                told = self._calls
        progress(self._calls - told)
        return IncidentReport(
            self._incident,
            tuple(lane.result for lane in self._lanes.values()),
            tuple(self._drained),
            tuple(self._used),
            self._calls,
            self._seed,
        )

    # -- what is there, and what arrives ---------------------------------------------------------------

    def _lane(self, tenant: IncidentTenant, place: int) -> _Lane:
        ports = Ports(self._moment, self._later, self._answered)
        chance = SeededRandomness(1_000 * self._seed + place)
        lane = _Lane(ReplayResult(tenant), SimTarget(tenant.target, chance, ports=ports))
        self._rule.set_tenant(tenant.id, weight=tenant.weight, cap=self._incident.cap)
        for rank, flow in lane.flows.items():
            self._rule.open_flow(flow, tenant=tenant.id, lane=tenant.id, rank=rank)
        self._permit(lane, 0.0)
        if tenant.rate > 0.0:
            self._later(self._gap(tenant.rate), self._arrival(lane), None)
        return lane

    def _arrival(self, lane: _Lane) -> Callable[[Call | None], None]:
        def arrives(_: Call | None) -> None:
            now = self._moment.now
            lane.submitted.append(now)
            self._rule.add(lane.flows[LIVE])
            self._touch(lane, now)
            self._later(now + self._gap(lane.result.tenant.rate), arrives, None)

        return arrives

    def _gap(self, rate: float) -> float:
        return -log(1.0 - min(self._randomness.uniform(0.0, 1.0), 1.0 - 1e-12)) / rate

    def _begin(self, _: Call | None) -> None:
        """All replays at once."""
        for lane in self._lanes.values():
            if lane.left:
                self._rule.add(lane.flows[REPLAY], lane.left)
                self._touch(lane, self._moment.now)
        self._later(self._moment.now + 1.0, self._tick, None)

    def _tick(self, _: Call | None) -> None:
        """Each second: what has ended so far."""
        self._drained.append(dict(self._drained[-1]))
        for lane in self._lanes.values():
            if lane.left:
                lane.result.history.append(
                    (lane.result.tenant.messages - lane.left, lane.result.slot_seconds)
                )
        self._later(self._moment.now + 1.0, self._tick, None)

    # -- rounds ----------------------------------------------------------------------------------------

    def _touch(self, lane: _Lane, now: float) -> None:
        """Look at the lane in the next round, which is as soon as it may be."""
        self._touched[lane] = None
        self._round_at = min(self._round_at, max(now, self._last_round + ROUND))

    def _round(self, now: float) -> None:
        """Step the lanes of which something was heard, then start what the rule picks."""
        self._last_round, self._round_at = now, inf
        touched, self._touched = self._touched, {}
        for lane in touched:
            self._step(lane, now)
        if not self._free:
            return
        for pick in self._rule.plan({cast(frozenset[object], _KINDS): self._free}, now):
            self._start(pick, now)

    def _step(self, lane: _Lane, now: float) -> None:
        summary = summary_of(lane.heard) if lane.heard else EMPTY
        lane.heard.clear()
        standing = Standing(lane.in_flight, Timestamp(now), self._rule.scarce)
        draw = self._randomness.uniform(0.0, 1.0)
        lane.state = shaper.step(lane.state, summary, standing, self._settings, draw=draw)
        self._permit(lane, now)

    def _permit(self, lane: _Lane, now: float) -> None:
        """Tell the rule what the shaper permits, and look again when that may change by itself."""
        grant = shaper.permission(
            lane.state, in_flight=lane.in_flight, now=Timestamp(now), settings=self._settings
        )
        limit = lane.in_flight + grant.starts
        if lane.limit != limit:
            lane.limit = limit
            self._rule.limit_lane(lane.result.tenant.id, limit)
        self._wake(lane, grant, now)

    def _wake(self, lane: _Lane, grant: Permission, now: float) -> None:
        due = shaper.due_at(lane.state, in_flight=lane.in_flight, settings=self._settings)
        at = min((moment for moment in (grant.not_before, due) if moment is not None), default=None)
        if at is None or at >= lane.wakes_at:
            return
        lane.wakes_at = max(at, now + ROUND)

        def look(_: Call | None) -> None:
            if lane.wakes_at <= self._moment.now:
                lane.wakes_at = inf
                self._touch(lane, self._moment.now)

        self._later(lane.wakes_at, look, None)

    def _start(self, pick: Pick, now: float) -> None:
        _, rank = cast(tuple[str, int], pick.flow)
        lane = self._lanes[cast(str, pick.tenant)]
        self._free -= pick.count
        lane.in_flight += pick.count
        lane.result.most = max(lane.result.most, lane.in_flight)
        lane.state = shaper.started(
            lane.state, pick.count, in_flight=lane.in_flight, now=Timestamp(now), settings=self._settings
        )
        self._permit(lane, now)
        for _place in range(pick.count):
            submitted = lane.submitted.popleft() if rank == LIVE else None
            call = _Sent(now, lane, pick.charge, submitted)
            self._sent.append(call)
            lane.target.arrive(call, now)

    # -- ends ------------------------------------------------------------------------------------------

    def _answered(self, call: Call, status: int, retry_after: float | None) -> None:
        if not call.done:
            self._end(cast(_Sent, call), status)

    def _give_up(self, now: float) -> None:
        """All calls have one timeout, so they are given up in the order in which they were sent."""
        sent = self._sent
        while sent and (sent[0].done or sent[0].sent_at + self._incident.timeout <= now):
            call = sent.popleft()
            if not call.done:
                self._end(call, -1)

    def _end(self, call: _Sent, status: int) -> None:
        call.done = True
        lane, now = call.lane, self._moment.now
        took = now - call.sent_at
        poison = call.submitted is None and lane.result.tenant.backlog is Backlog.POISON
        outcome = Outcome("http_400" if poison and status == 200 else _CLASSES[status], busy_for=took)
        lane.in_flight -= 1
        lane.heard.append(outcome)
        self._free += 1
        self._calls += 1
        self._rule.settle(call.charge, took, now)
        self._count(lane, call, outcome, took)
        self._touch(lane, now)

    def _count(self, lane: _Lane, call: _Sent, outcome: Outcome, took: float) -> None:
        result, now = lane.result, self._moment.now
        after = now - self._incident.at
        if after >= 0.0:
            self._use(int(after), took)
            if result.ended_at == inf:
                result.slot_seconds += took
        if call.submitted is not None:
            if outcome.succeeded:
                result.live.append((call.submitted, now - call.submitted))
            else:
                result.lost += 1
        elif outcome.fault is Fault.TARGET:
            result.returned += 1
            self._rule.add(lane.flows[REPLAY])
        else:
            self._gone(lane, outcome, after)

    def _gone(self, lane: _Lane, outcome: Outcome, after: float) -> None:
        """A message has its end."""
        result = lane.result
        result.delivered += outcome.succeeded
        result.parked += not outcome.succeeded
        self._drained[-1][result.tenant.tier] += result.tenant.backlog is Backlog.USUAL
        lane.left -= 1
        if not lane.left:
            result.ended_at = after
            self._ending -= result.tenant.backlog is Backlog.USUAL

    def _use(self, second: int, took: float) -> None:
        while len(self._used) <= second:
            self._used.append(0.0)
        self._used[second] += took

    # -- time ------------------------------------------------------------------------------------------

    def _next_instant(self) -> float:
        sent = self._sent
        while sent and sent[0].done:
            sent.popleft()
        found = min(self._round_at, self._events[0][0] if self._events else inf)
        return min(found, sent[0].sent_at + self._incident.timeout) if sent else found

    def _later(self, at: float, happens: Callable[[Call | None], None], call: Call | None) -> None:
        self._serial += 1
        heappush(self._events, (at, self._serial, happens, call))
