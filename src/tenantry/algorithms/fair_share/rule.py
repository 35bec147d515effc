"""The rule: who is picked, and how many of its jobs one visit may start. See the package's text."""

from collections.abc import Callable, Iterable, Mapping
from math import inf

from tenantry.algorithms.fair_share import rate
from tenantry.algorithms.fair_share.classes import next_rank, of_its_class
from tenantry.algorithms.fair_share.records import (
    REPLAY,
    Band,
    Berth,
    Domain,
    Flow,
    Kind,
    Kinds,
    Line,
    Tenant,
)
from tenantry.algorithms.fair_share.shares import Shares

Groups = dict[Kind, list[Kinds]]


class Turn:
    """Whose turn it is, when in virtual time, and how far ahead of the next it may run, in slot-seconds.

    ``portion``: slot-seconds that it would get in this round if jobs were given out one by one. They start
    at the same moment, so it gets them at once. ``in_turn``: False of a start on the headroom."""

    __slots__ = ("ahead", "in_turn", "kinds", "line", "portion", "rank", "tag")

    def __init__(self, line: Line, *, tag: float, ahead: float, kinds: Kinds, in_turn: bool = True) -> None:
        self.line, self.tag, self.ahead, self.kinds, self.in_turn = line, tag, ahead, kinds, in_turn
        self.portion = 0.0
        self.rank = 0

    def charged(self) -> tuple[Line, ...]:
        """Whom a start is charged to: each kind of the tenant's that the slot could have run."""
        lines = self.line.tenant.lines
        if len(lines) == 1:
            return (self.line,)
        return tuple(line for kind, line in lines.items() if kind in self.kinds)


class Domains:
    """All kinds of work, and the clocks by which they are served. ``drift``: in virtual time."""

    def __init__(self, shares: Shares, drift: float) -> None:
        self._shares, self._drift = shares, drift
        self._domains: dict[Kind, Domain] = {}
        self._served: Kinds = frozenset()

    def domain(self, kind: Kind) -> Domain:
        found = self._domains.get(kind)
        if found is None:
            now = max((domain.time for domain in self._domains.values()), default=0.0)
            found = self._domains[kind] = Domain(kind, now)
            found.served = kind in self._served
        return found

    def serve(self, kinds: Kinds) -> None:
        self._served = kinds
        for domain in self._domains.values():
            domain.served = domain.kind in kinds

    def level(self) -> None:
        """Kinds that share no slots drift apart, one served more than the other. Whenever the slots change
        they start level again: no kind brings along the credit of its lean days (law F5). O(kinds)."""
        now = max((domain.time for domain in self._domains.values()), default=0.0)
        for domain in self._domains.values():
            domain.advance(now)

    def passed(self, time: float, kinds: Kinds) -> None:
        """A start at ``time`` on a slot that could have run any of ``kinds``."""
        for kind in kinds:
            domain = self._domains.get(kind)
            if domain is not None and domain.time < time:
                domain.time = time
        if len(kinds) > 1:
            self._keep_close([self._domains[kind] for kind in kinds if kind in self._domains])

    def _keep_close(self, domains: list[Domain]) -> None:
        """Of kinds that share slots, the one that is served less goes first, but not for all that it could
        not be served in the past: it is kept within ``drift`` of the others (law F5)."""
        least = max(domain.time for domain in domains) - self._drift
        for domain in domains:
            if domain.time < least:
                domain.advance(least)

    def groups(self, left: Iterable[Kinds]) -> Groups:
        """For each kind the groups with free slots, the least able first: it leaves the others for more."""
        groups: Groups = {}
        for kinds in sorted(left, key=len):
            for kind in kinds:
                if kind in self._domains:
                    groups.setdefault(kind, []).append(kinds)
        return groups

    def next(self, groups: Mapping[Kind, list[Kinds]], now: float) -> Turn | None:
        """The eligible line of the least virtual time among the kinds of ``groups``. O(kinds · weights)."""
        if self._shares.changed:
            self._rescale()
        best: Line | None = None
        first = second = inf
        for kind in groups:
            for band in self._domains[kind].bands.values():
                if band.count:
                    line = _head(band, now)
                    tag = band.pivot + (line.used - band.origin) / band.effective
                    if tag < first or best is None:
                        best, first, second = line, tag, first
                    elif tag < second:
                        second = tag
        if best is None:
            return None
        ahead = min((second - first) * best.band.effective, best.band.second() - best.used)
        turn = Turn(best, tag=first, ahead=max(0.0, ahead), kinds=groups[best.domain.kind][0])
        _within_tenant(turn)
        return turn

    def out_of_turn(
        self, groups: Mapping[Kind, list[Kinds]], now: float, most: Callable[[Line], float]
    ) -> Turn | None:
        """The line of the least virtual time that may start on the headroom, if it has used no more than
        ``most`` slot-seconds beyond its due. O(kinds · weights)."""
        best: Line | None = None
        least = inf
        for kind in groups:
            for band in self._domains[kind].bands.values():
                if band.prompts.count:
                    line = _prompt(band, now)
                    tag = band.tag(line.used)
                    if (tag < least or best is None) and line.lag() <= most(line):
                        best, least = line, tag
        if best is None:
            return None
        turn = Turn(best, tag=least, ahead=0.0, kinds=groups[best.domain.kind][0], in_turn=False)
        turn.rank = next_rank(best.tenant, (best,), below=REPLAY)
        return turn

    def _rescale(self) -> None:
        """Effective weights follow the floor, which follows who is eligible."""
        least = self._shares.least()
        for domain in self._domains.values():
            for band in domain.bands.values():
                effective = max(band.weight, least)
                if band.effective != effective:
                    band.scale(effective, domain.time)


def _head(band: Band, now: float) -> Line:
    while True:
        line = band.first()
        if not line.over:
            return line
        line.accrue(now)
        if line.entry is not None and line.used <= line.entry[0]:
            return line


def _prompt(band: Band, now: float) -> Line:
    while True:
        prompt = band.prompts.first()
        line = prompt.line
        if line.over:
            line.accrue(now)
        if line.used <= prompt.used:
            return line
        prompt.used = line.used


def _within_tenant(turn: Turn) -> None:
    """Of what the slot could run for the tenant whose turn it is: the class, then the kind (laws F8, F2)."""
    tenant, line = turn.line.tenant, turn.line
    if len(tenant.lines) == 1:
        turn.rank = next_rank(tenant, (line,))
        return
    lines = [one for one in tenant.lines.values() if one.entry is not None and one.domain.kind in turn.kinds]
    turn.rank = next_rank(tenant, lines)
    turn.line = min((one for one in lines if one.ranks[turn.rank].count), key=_own)


def _own(line: Line) -> float:
    return line.own


def visit(turn: Turn, berth: Berth, flow: Flow, *, estimate: float, quantum: float) -> int:
    """How many jobs this visit may start: until the next in turn is a quantum behind, at each level, or its
    portion of the round is used up."""
    tenant, rank, berths = turn.line.tenant, turn.rank, turn.line.ranks[turn.rank]
    for_lane = turn.portion / berths.count
    ahead = min(
        max(turn.ahead + quantum, turn.portion),
        max(berths.second() - berth.used + quantum, quantum, for_lane),
        max(berth.flows.second() - flow.used + quantum, quantum, for_lane / berth.flows.count),
    )
    most = inf if ahead == inf else ahead // estimate
    if len(tenant.classes) > 1:
        most = min(most, of_its_class(tenant, rank))
    return 1 << 30 if most == inf else max(1, int(most))


def room(tenant: Tenant, flow: Flow, now: float) -> int:
    """How many more of the flow cap, limits and rate leave room for; at least 1 where eligible."""
    lane = flow.berth.lane
    left = min(tenant.most - tenant.in_flight, rate.tokens(tenant, now))
    if lane.limit is not None:
        left = min(left, lane.limit - lane.in_flight)
    if flow.limit is not None:
        left = min(left, flow.limit - flow.in_flight)
    return left
