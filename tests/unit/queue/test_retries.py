"""Retries under the planner: within their tenant's share, and nobody starves, neither they nor fresh work.

And case S9: what two rules together add on an idle system.
"""

from collections import Counter
from collections.abc import Sequence

from tenantry.config.model import NO_SETTINGS, TargetSettings, TenantDocument
from tenantry.config.registry import Registry
from tenantry.config.tiers import Tier
from tenantry.kernel.instant import Timestamp
from tenantry.kernel.tenant import TenantId, TierName
from tenantry.lanes.model import HTTP, Target
from tenantry.lanes.outcome import Outcome
from tenantry.lanes.summary import summary_of
from tenantry.memory.directory import MemoryDirectory
from tenantry.queue.changes import Deferred, FlowOpened, Heard, Left, LiveNode, Place, Standing, Submitted
from tenantry.queue.model import FlowId, JobClass, NodeId, Seq
from tenantry.queue.plan import PlannerMemory

ACME, GLOBEX = TenantId("acme"), TenantId("globex")
FLOWS = {FlowId(1): ACME, FlowId(2): GLOBEX}
HOOK = Target("https://hooks.example.com/a")
UNSHAPED = TargetSettings(adaptive=False)
START = 1_000.0


class Drive:
    """A planner's memory, two tenants of equal weight with a flow each, and one node."""

    def __init__(self, slots: int, settings: TargetSettings = UNSHAPED, *, cap: float = 1.0) -> None:
        tier = Tier(TierName("open"), cap=cap)
        documents = tuple(TenantDocument(each, tier.name, settings) for each in FLOWS.values())
        node = LiveNode(NodeId("n"), 1, tier.pool, slots, frozenset({HTTP}))
        standing = Standing(Timestamp(START), (), (), (), (), (node,))
        directory = MemoryDirectory(Registry((tier,), documents))
        self.memory, self.now = PlannerMemory(standing, directory, draw=lambda: 0.5), START
        self.tails: Counter[FlowId] = Counter()
        opened = [
            FlowOpened(flow, tenant, HOOK, JobClass.LIVE, None, ordered=False)
            for flow, tenant in FLOWS.items()
        ]
        self.memory.apply(opened, Timestamp(self.now))

    def submit(self, flow: FlowId, count: int) -> None:
        first = Seq(self.tails[flow] + 1)
        self.memory.apply([Submitted(flow, first, count)], Timestamp(self.now))
        self.tails[flow] += count

    def round(self, *, after: float = 0.0) -> list[Place]:
        """One round: what starts."""
        self.now += after
        claims = self.memory.plan(Timestamp(self.now)).claims
        return [place for claim in claims for place in zip(claim.flows, claim.seqs, strict=True)]

    def ends(self, places: Sequence[Place], *, again: Sequence[Place] = (), delay: float = 0.0) -> None:
        """``places`` ended; of those, ``again`` are to be tried again after ``delay`` seconds."""
        due_at = Timestamp(self.now + delay)
        deferred = tuple(Deferred(flow, seq, due_at, 1) for flow, seq in again)
        self.memory.apply([Left(tuple(places), deferred)], Timestamp(self.now))


def test_a_tenant_whose_every_job_comes_back_gets_its_share_and_no_more() -> None:
    drive, starts = Drive(slots=10), Counter[FlowId]()
    for flow in FLOWS:
        drive.submit(flow, 2_000)
    running = drive.round()
    for _ in range(200):
        starts.update(flow for flow, _ in running)
        drive.now += 1.0
        drive.ends(running, again=[place for place in running if place[0] == FlowId(1)])
        running = drive.round()
    assert abs(starts[FlowId(1)] - starts[FlowId(2)]) <= 10


def test_fresh_work_without_end_does_not_keep_a_retry_from_its_turn() -> None:
    """When it is due it goes behind what waits by then, and in front of all that comes later."""
    drive, flow = Drive(slots=1), FlowId(1)
    drive.submit(flow, 6)
    failed = drive.round()
    drive.now += 1.0
    drive.ends(failed, again=failed, delay=2.0)
    started: list[Place] = []
    for _ in range(20):
        now = drive.round()
        started += now
        drive.submit(flow, 3)  # more than ever runs
        drive.now += 1.0
        drive.ends(now)
    waited_when_due = 2 + 3 * 2  # seqs up to here had been submitted two rounds later
    place = started.index(failed[0])
    assert {seq for _, seq in started[:place]} == set(range(2, place + 2))
    assert place <= 6 + waited_when_due


def test_retries_without_end_do_not_keep_fresh_work_from_its_turn() -> None:
    """A hundred jobs of one flow fail whenever they run; one fresh job starts after one turn of them."""
    drive, flow = Drive(slots=5), FlowId(1)
    drive.submit(flow, 100)
    running, fresh, turns = drive.round(), Seq(101), 0
    drive.submit(flow, 1)
    while (flow, fresh) not in running:
        turns += 1
        assert turns <= 101 // 5 + 1
        drive.now += 1.0
        drive.ends(running, again=running)
        running = drive.round()


def test_a_retry_starts_no_earlier_than_it_is_due_and_the_planner_knows_when() -> None:
    drive, flow = Drive(slots=5), FlowId(1)
    drive.submit(flow, 1)
    failed = drive.round()
    drive.ends(failed, again=failed, delay=30.0)
    assert drive.round() == []
    assert drive.memory.next_due() == START + 30.0
    assert drive.round(after=29.9) == []
    assert drive.round(after=0.1) == failed


def test_a_retry_goes_through_its_lanes_shaper_like_any_other_job() -> None:
    drive, flow = Drive(slots=50, settings=NO_SETTINGS), FlowId(1)
    drive.submit(flow, 20)
    failed = drive.round()
    assert len(failed) == 1
    drive.ends(failed, again=failed)
    told = summary_of([Outcome("http_503", 503, retry_after=60.0, busy_for=0.1)])
    drive.memory.apply([Heard(flow, told)], Timestamp(drive.now))
    assert drive.round(after=30.0) == [], "the retry waits with its lane, for what the target asked"


def test_s9_cap_and_lane_limit_together_add_no_round_on_an_idle_system() -> None:
    """A job that comes alone starts in the round that hears of it, every time: at most the round's 50 ms."""
    drive, flow = Drive(slots=4, settings=TargetSettings(limit=2), cap=0.5), FlowId(1)
    for _ in range(500):
        drive.submit(flow, 1)
        started = drive.round()
        assert len(started) == 1
        drive.now += 0.05
        drive.ends(started)
        drive.memory.apply(
            [Heard(flow, summary_of([Outcome("ok", 200, busy_for=0.05)]))], Timestamp(drive.now)
        )
        drive.now += 0.05
