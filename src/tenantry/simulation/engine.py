"""The loop over virtual time: at each instant what ended, then what arrived, then what starts."""

from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from tenantry.simulation.model import Arrival, FlowKey, Kinds, SimSettings, SimTenant
from tenantry.simulation.report import Report, TenantReport
from tenantry.simulation.schedulers import Scheduler, Start


class Waiting:
    """Jobs of one arrival that still wait."""

    __slots__ = ("at", "busy_for", "count")

    def __init__(self, arrival: Arrival, count: int) -> None:
        self.at, self.busy_for, self.count = arrival.at, arrival.busy_for, count


class Running:
    """Jobs that started together and end together."""

    __slots__ = ("busy_for", "count", "start", "started_at")

    def __init__(self, start: Start, *, count: int, busy_for: float, started_at: float) -> None:
        self.start, self.count, self.busy_for, self.started_at = start, count, busy_for, started_at


class Simulation:
    """Tenants, arrivals and slots under one scheduler. The same input gives the same report."""

    def __init__(self, tenants: Iterable[SimTenant], scheduler: Scheduler, settings: SimSettings) -> None:
        self.reports = {tenant.id: TenantReport(tenant) for tenant in tenants}
        self._scheduler, self._settings = scheduler, settings
        self._free: dict[Kinds, int] = dict(settings.slots)
        self._waiting: dict[FlowKey, deque[Waiting]] = {}
        self._ends: list[tuple[float, int, Running]] = []
        self._serial = 0
        self._order: list[str] = []
        self.now = 0.0
        scheduler.open([report.tenant for report in self.reports.values()], settings.slots)

    def run(self, arrivals: Iterable[Arrival]) -> Report:
        """Run until ``settings.until``, or until nothing is left to happen."""
        coming = [(arrival.at, place, arrival) for place, arrival in enumerate(arrivals)]
        heapify(coming)
        while (instant := self._next_instant(coming)) is not None and instant < self._settings.until:
            self.now = instant
            self._end_due()
            while coming and coming[0][0] <= instant:
                self.arrive(heappop(coming)[2])
            self.start()
        return self._report()

    def arrive(self, arrival: Arrival) -> int:
        """Returns how many were accepted: the bound counts those that wait."""
        report = self.reports[arrival.flow.tenant]
        report.offered += arrival.count
        accepted = arrival.count
        bound = report.tenant.bound
        if bound is not None and self._scheduler.bounded:
            room = bound - (report.waiting - arrival.count)
            accepted = max(0, min(accepted, room))
            report.refused += arrival.count - accepted
        if accepted:
            report.demand += accepted * arrival.busy_for
            self._waiting.setdefault(arrival.flow, deque()).append(Waiting(arrival, accepted))
            self._scheduler.submit(arrival.flow, accepted, arrival.cost)
        return accepted

    def start(self) -> None:
        """Start what the scheduler picks for the free slots."""
        for start in self._scheduler.start(self._free, self.now):
            self._free[start.kinds] -= start.count
            self._take(start)

    def _take(self, start: Start) -> None:
        report = self.reports[start.flow.tenant]
        line, left = self._waiting[start.flow], start.count
        while left:
            head = line[0]
            count = min(left, head.count)
            head.count -= count
            left -= count
            report.waits.extend([self.now - head.at] * count)
            self._run(Running(start, count=count, busy_for=head.busy_for, started_at=self.now))
            if not head.count:
                line.popleft()
        self._order.extend([start.flow.tenant] * start.count)
        report.started += start.count
        report.in_flight += start.count
        report.most = max(report.most, report.in_flight)

    def _run(self, running: Running) -> None:
        self._serial += 1
        heappush(self._ends, (self.now + running.busy_for, self._serial, running))

    def _end_due(self) -> None:
        while self._ends and self._ends[0][0] <= self.now:
            _, _, running = heappop(self._ends)
            report = self.reports[running.start.flow.tenant]
            for _ in range(running.count):
                self._scheduler.end(running.start, running.busy_for, self.now)
            self._free[running.start.kinds] += running.count
            report.in_flight -= running.count
            report.finished += running.count
            report.slot_seconds += running.count * running.busy_for

    def _next_instant(self, coming: list[tuple[float, int, Arrival]]) -> float | None:
        instants = [queue[0][0] for queue in (coming, self._ends) if queue]
        timer = self._scheduler.next_timer()
        if timer is not None:
            instants.append(max(timer, self.now))
        return min(instants, default=None)

    def _report(self) -> Report:
        ended_at = min(self._settings.until, self.now) if not self._ends else self._settings.until
        for _, _, running in self._ends:
            report = self.reports[running.start.flow.tenant]
            report.slot_seconds += running.count * max(0.0, ended_at - running.started_at)
        return Report(self.reports, self._order, self._settings.total, ended_at)


def simulate(
    tenants: Iterable[SimTenant], arrivals: Iterable[Arrival], scheduler: Scheduler, settings: SimSettings
) -> Report:
    """Run one simulation from its beginning to its end."""
    return Simulation(tenants, scheduler, settings).run(arrivals)
