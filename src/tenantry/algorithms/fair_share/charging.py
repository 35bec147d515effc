"""What work costs: estimated at the start, charged as it overruns, corrected at the end (law F6)."""

from tenantry.algorithms.fair_share.records import Charge, Flow, Lane, Line, Tenant

_EWMA = 0.2
_PRIOR_EWMA = 0.05
_LEAST_ESTIMATE = 0.001  # below a millisecond a visit would run to hundreds of jobs


class Estimates:
    """Slot-seconds that a job is expected to take: as declared, else as its lane's last ones, else as the
    pool's. ``prior`` is the pool's before anything was measured. ``typical``: the average of late starts."""

    __slots__ = ("_prior", "typical")

    def __init__(self, prior: float) -> None:
        self._prior = self.typical = prior

    def of(self, flow: Flow) -> float:
        if flow.hints and flow.hints[0][1] >= 0.0:
            return max(_LEAST_ESTIMATE, flow.hints[0][1])
        known = flow.berth.lane.estimate
        return max(_LEAST_ESTIMATE, self._prior if known is None else known)

    def started(self, estimate: float, jobs: int) -> None:
        """``jobs`` of one estimate were started."""
        self.typical += _gain(_PRIOR_EWMA, jobs) * (estimate - self.typical)

    def learn(self, lane: Lane, busy_for: float, jobs: int) -> None:
        """``jobs`` ends of one length. The first job of a lane says more than the pool's average; later ones
        move the lane's own."""
        known = busy_for if lane.estimate is None else lane.estimate
        lane.estimate = known + _gain(_EWMA, jobs) * (busy_for - known)
        self._prior += _gain(_PRIOR_EWMA, jobs) * (busy_for - self._prior)


def _gain(each: float, times: int) -> float:
    """An average moved ``times`` times towards the same value."""
    return each if times == 1 else 1.0 - (1.0 - each) ** times


def hint(flow: Flow, count: int, cost: float | None) -> None:
    """Remember what ``count`` new jobs are declared to cost. Runs of one cost are one record."""
    if cost is None and not flow.hints:
        return
    if cost is not None and not flow.hints and flow.waiting:
        flow.hints.append([flow.waiting, -1.0])
    declared = -1.0 if cost is None else cost
    if flow.hints and flow.hints[-1][1] == declared:
        flow.hints[-1][0] += count
    else:
        flow.hints.append([count, declared])


def take_hints(flow: Flow, count: int) -> int:
    """Take up to ``count`` jobs of one declared cost from the head. Returns how many that are."""
    if not flow.hints:
        return count
    run = flow.hints[0]
    count = min(count, int(run[0]))
    run[0] -= count
    if run[0] <= 0:
        flow.hints.popleft()
    return count


def drop_hints(flow: Flow, count: int) -> None:
    """Forget the last ``count``: which cost a withdrawn job had is not known; the end is the best guess."""
    while count and flow.hints:
        run = flow.hints[-1]
        gone = min(count, int(run[0]))
        run[0] -= gone
        count -= gone
        if run[0] <= 0:
            flow.hints.pop()


def start(charge: Charge, count: int, now: float, quantum: float) -> None:
    """Charge the estimate of ``count`` jobs at every level, and to each kind whose slot they take."""
    flow = charge.flow
    berth = flow.berth
    lane = berth.lane
    cost = charge.estimate * count
    for line in charge.lines:
        if line.over:
            line.accrue(now)
        if line.entry is None:  # idle credit must not soak up what is charged now (law F5)
            line.used = max(line.used, line.band.place(line.domain.time) - quantum)
        line.used += cost
    lane.line.own += cost
    berth.used += cost
    flow.used += cost
    charge.remaining += count
    flow.in_flight += count
    lane.in_flight += count
    lane.line.tenant.in_flight += count


def overrun(charge: Charge, now: float) -> None:
    """From its estimate's end on, a job is charged as it runs."""
    late = max(0.0, now - charge.started_at - charge.estimate)
    for line in charge.lines:
        line.overrun(charge.remaining, late, now)
    charge.overrunning = True


def settle(charge: Charge, used: float, now: float, quantum: float, *, jobs: int) -> None:
    """Correct what ``jobs`` were charged to the ``used`` slot-seconds of each, at every level."""
    late = max(0.0, now - charge.started_at - charge.estimate) if charge.overrunning else 0.0
    for line in charge.lines:
        if charge.overrunning:
            line.overrun(-jobs, 0.0, now)
        _correct_line(line, jobs * (used - charge.estimate - late), quantum)
    flow = charge.flow
    berth = flow.berth
    lane = berth.lane
    more = jobs * (used - charge.estimate)  # overruns are charged to lines alone
    lane.line.own += more
    if more < 0.0:
        lane.line.ranks[berth.rank].refund(berth, -more, quantum)
        berth.flows.refund(flow, -more, quantum)
    else:
        berth.used += more
        flow.used += more
    charge.remaining -= jobs
    flow.in_flight -= jobs
    lane.in_flight -= jobs
    lane.line.tenant.in_flight -= jobs


def indebted(tenant: Tenant, quantum: float) -> float:
    """The largest debt of its lines, in slot-seconds, which a line of a new kind starts with.

    Its first line starts with the credit of whoever becomes eligible: one quantum.
    """
    return max((line.lag() for line in tenant.lines.values()), default=-quantum)


def _correct_line(line: Line, more: float, quantum: float) -> None:
    if more >= 0.0 or line.entry is None:
        line.used += more
        return
    band, now = line.band, line.band.place(line.domain.time)
    band.time = now
    band.refund(line, -more, quantum)
    line.prompt.used = line.used
    band.prompts.moved(line.prompt)
    if band.time < now:
        line.domain.time = band.tag(band.time)
