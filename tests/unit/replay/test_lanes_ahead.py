"""What a replay asks of its lanes: once in a while, of few targets, and without depending on an answer."""

from collections.abc import Collection, Mapping

from replay_world import ACME

from tenantry.kernel.errors import StoreUnavailable
from tenantry.kernel.events import Event
from tenantry.kernel.instant import Instant, Timestamp
from tenantry.kernel.tenant import TenantId
from tenantry.queue.events import StoreFailed
from tenantry.replay.events import ClassHeld
from tenantry.replay.lanes_ahead import MOST_TARGETS, LanesAhead
from tenantry.replay.model import (
    ClassFailure,
    Counts,
    LanePace,
    Membership,
    Position,
    ReplayId,
    ReplaySpec,
    ReplayState,
    ReplayView,
    SourceAddress,
)

VIEW = ReplayView(
    id=ReplayId("r"),
    spec=ReplaySpec(tenant=ACME, source=SourceAddress("jsonl")),
    state=ReplayState.RUNNING,
    membership=Membership(),
    counts=Counts(),
    position=Position(""),
    created_at=Timestamp(0.0),
)


class Side:
    """The lanes, and the failures that the store tells."""

    def __init__(self) -> None:
        self.asked: list[Collection[str]] = []
        self.failed: list[ClassFailure] = []
        self.asked_for_classes = 0
        self.told: list[Event] = []
        self.down = False
        self.ahead = LanesAhead(VIEW, self, self, self.told.append)  # type: ignore[arg-type]

    async def shares(self, tenant: TenantId) -> tuple[float, float] | None:
        return 0.5, 0.1

    async def lanes(self, tenant: TenantId, targets: Collection[str]) -> Mapping[str, LanePace]:
        self.asked.append(targets)
        if self.down:
            raise StoreUnavailable("down")
        return {target: LanePace(3, 0.1) for target in targets}

    async def failures(self, replay: ReplayId, *, limit: int) -> list[ClassFailure]:
        self.asked_for_classes += 1
        return self.failed

    async def look(self, now: float, faults: int = 0) -> None:
        await self.ahead.look(Counts(message_faults=faults), Instant(now), every=1.0)


async def test_lanes_are_asked_once_a_second_and_their_permits_add_up() -> None:
    side = Side()
    side.ahead.heads_for(["a", "b"])
    for now in (0.0, 0.5, 0.9, 1.0):
        await side.look(now)
    assert side.asked == [("a", "b")] * 2
    assert (side.ahead.permits, side.ahead.shares) == (6, (0.5, 0.1))


async def test_only_the_targets_that_were_headed_for_last_are_asked_about() -> None:
    side = Side()
    side.ahead.heads_for([f"t{n}" for n in range(500)])
    side.ahead.heads_for(["t0"])
    await side.look(0.0)
    assert len(side.asked[0]) == MOST_TARGETS
    assert {"t0", "t499"} <= set(side.asked[0])


async def test_while_nobody_answers_the_last_answer_stands() -> None:
    side = Side()
    side.ahead.heads_for(["a"])
    await side.look(0.0)
    side.down = True
    await side.look(1.0)
    assert side.ahead.permits == 3
    assert side.told == [StoreFailed("replay", "StoreUnavailable", 1.0)]


async def test_classes_are_asked_for_only_where_messages_failed_since_and_each_is_told_once() -> None:
    side = Side()
    side.failed = [ClassFailure("bad", "f", 20, 0)]
    for now, faults in ((0.0, 0), (1.0, 20), (2.0, 20), (3.0, 25)):
        await side.look(now, faults)
    assert side.asked_for_classes == 3
    assert set(side.ahead.held_classes) == {"bad"}
    assert [type(event) for event in side.told] == [ClassHeld]


async def test_after_a_continue_the_classes_are_asked_for_at_once() -> None:
    side = Side()
    side.failed = [ClassFailure("bad", "f", 20, 0)]
    await side.look(0.0, 20)
    side.failed = []
    side.ahead.forget_classes()
    assert side.ahead.held_classes == {}
    await side.look(0.1, 20)
    assert side.asked_for_classes == 2
    assert side.ahead.held_classes == {}
