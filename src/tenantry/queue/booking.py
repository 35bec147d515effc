"""What one round of the planner writes down. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.queue.changes import ClaimPlan, LiveNode
from tenantry.queue.flow_log import Taken
from tenantry.queue.model import FlowId, NodeId, Seq


@dataclass(frozen=True, slots=True)
class Planned:
    """What one round decided: claims to write, the heads that moved, and how many jobs that starts."""

    claims: tuple[ClaimPlan, ...]
    heads: Mapping[FlowId, int]
    jobs: int


NOTHING = Planned((), {}, 0)


@dataclass(slots=True)
class Claim:
    """A claim being written down for one node."""

    node: LiveNode
    flows: list[FlowId] = field(default_factory=list)
    seqs: list[Seq] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)

    def add(self, flow: FlowId, jobs: Sequence[Taken]) -> None:
        for seq, attempts, returned in jobs:
            if returned:
                self.returned.append(len(self.seqs))
            self.flows.append(flow)
            self.seqs.append(seq)
            self.attempts.append(attempts)

    def plan(self) -> ClaimPlan:
        return ClaimPlan(
            self.node.id,
            self.node.incarnation,
            tuple(self.flows),
            tuple(self.seqs),
            tuple(self.attempts),
            tuple(self.returned),
        )


@dataclass(slots=True)
class Booking:
    """What one round writes down."""

    claims: dict[NodeId, Claim] = field(default_factory=dict)
    heads: dict[FlowId, int] = field(default_factory=dict)
    jobs: int = 0

    def on(self, node: LiveNode) -> Claim:
        return self.claims.setdefault(node.id, Claim(node))

    def planned(self) -> Planned:
        """The round as it is to be written."""
        if not self.jobs:
            return NOTHING
        return Planned(tuple(claim.plan() for claim in self.claims.values()), self.heads, self.jobs)
