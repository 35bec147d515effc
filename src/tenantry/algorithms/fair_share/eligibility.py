"""Who takes turns: each change of state goes up the tree exactly as far as it changes something (law F7)."""

from tenantry.algorithms.fair_share.classes import is_due
from tenantry.algorithms.fair_share.headroom import Headroom
from tenantry.algorithms.fair_share.records import REPLAY, Berth, Flow, Lane, Line, Tenant
from tenantry.algorithms.fair_share.shares import Shares


class Eligibility:
    """``quantum``: the credit, in slot-seconds, that whoever becomes eligible may have (law F5)."""

    __slots__ = ("_headroom", "_quantum", "_shares")

    def __init__(self, quantum: float, shares: Shares, headroom: Headroom) -> None:
        self._quantum, self._shares, self._headroom = quantum, shares, headroom

    def flow_changed(self, flow: Flow) -> None:
        ready = (
            flow.waiting > 0
            and flow.held is None
            and not flow.paused
            and (flow.limit is None or flow.in_flight < flow.limit)
        )
        if ready == (flow.entry is not None):
            return
        berth = flow.berth
        if ready:
            berth.flows.enter(flow, self._quantum)
        else:
            berth.flows.leave(flow)
        self._berth_changed(berth)

    def lane_changed(self, lane: Lane) -> None:
        is_open = (
            not lane.paused and lane.held is None and (lane.limit is None or lane.in_flight < lane.limit)
        )
        if is_open != lane.open:
            lane.open = is_open
            for berth in lane.berths.values():
                self._berth_changed(berth)

    def tenant_changed(self, tenant: Tenant) -> None:
        is_open = tenant.in_flight < tenant.most and tenant.rate_held is None
        if is_open != tenant.open:
            tenant.open = is_open
            for line in tenant.lines.values():
                self.line_changed(line)

    def line_changed(self, line: Line) -> None:
        listed = line.tenant.open and line.domain.served and line.berths > 0
        if listed != (line.entry is not None):
            if listed:
                self._enter(line)
            else:
                self._leave(line)
        self.headroom_changed(line.tenant)  # what is due in one line decides for the others

    def headroom_changed(self, *tenants: Tenant) -> None:
        """They hold or may hold more or less of the headroom, or another of their classes is due."""
        for tenant in tenants:
            for line in tenant.lines.values():
                self._prompt_changed(line)

    def _prompt_changed(self, line: Line) -> None:
        listed = (
            line.entry is not None
            and self._headroom.room(line.tenant) > 0
            and any(line.ranks[rank].count for rank in range(REPLAY))
            and not is_due(line.tenant, REPLAY)
        )
        prompt, prompts = line.prompt, line.band.prompts
        if listed == (prompt.entry is not None):
            return
        if listed:
            prompt.used = line.used
            prompts.join(prompt)
        else:
            prompts.leave(prompt)

    def _enter(self, line: Line) -> None:
        tenant, band = line.tenant, line.band
        band.time = band.place(line.domain.time)
        band.enter(line, self._quantum)
        line.own = max(line.own, tenant.own_time - self._quantum)
        if not tenant.listed:
            self._shares.count(tenant.weight, 1)
        tenant.listed += 1

    def _leave(self, line: Line) -> None:
        line.band.leave(line)
        line.tenant.listed -= 1
        if not line.tenant.listed:
            self._shares.count(line.tenant.weight, -1)

    def _berth_changed(self, berth: Berth) -> None:
        listed = berth.lane.open and berth.flows.count > 0
        if listed == (berth.entry is not None):
            return
        line = berth.lane.line
        if listed:
            line.ranks[berth.rank].enter(berth, self._quantum)
            line.berths += 1
        else:
            line.ranks[berth.rank].leave(berth)
            line.berths -= 1
        self.line_changed(line)
