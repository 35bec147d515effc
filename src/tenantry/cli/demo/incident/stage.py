"""The incident itself: live work, an outage, fifty replays at once, the books."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from tenantry.cli.assembly import Node, assemble
from tenantry.cli.demo.crew import Hand, hand
from tenantry.cli.demo.home import settings, temporary_home
from tenantry.cli.demo.incident.cast import (
    LIVE_RATE,
    SLOTS,
    Kind,
    Scale,
    cast,
    live_path,
    registry,
    shared_path,
)
from tenantry.cli.demo.incident.dependency import SAID, Counted, Now, Place, Serve, Serving
from tenantry.cli.demo.incident.figures import Account, Found, found
from tenantry.cli.demo.incident.ledger import Ledger
from tenantry.cli.demo.incident.record import Chapter, Incident
from tenantry.cli.demo.incident.screen import Moment
from tenantry.cli.demo.messages import DOOR_SAID, Open
from tenantry.cli.demo.webhooks import payloads
from tenantry.cli.settings import Role
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds
from tenantry.kernel.tenant import TenantId
from tenantry.kernel.verdict import Refusal
from tenantry.lanes.model import Target
from tenantry.postgres.directory import write_registry
from tenantry.postgres.inspection import Inspection
from tenantry.queue.model import JobState, NewJob
from tenantry.replay.lifecycle import ENDED
from tenantry.replay.model import ReplaySpec, ReplayState, SourceAddress

if TYPE_CHECKING:
    from tenantry.cli.demo.screen import Screen

DEPENDENCY, COORDINATOR = (f"tenantry.cli.demo.incident.{name}" for name in ("dependency", "coordinator"))

_LOOK_EVERY: Seconds = 0.4
_BATCH = 100
_SMALL = 1_600
"""Bytes: the incident is of small events, so that its size is felt in the queue and not on the wire."""

_DIES_WITHIN: Seconds = 60.0
_DRAINS_WITHIN: Seconds = 45.0
_SETTLES_WITHIN: Seconds = 15.0
_OWN = SourceAddress(kind="dead_letters")
_UNENDED = (JobState.WAITING, JobState.DELAYED, JobState.RUNNING)


async def perform_incident(scale: Scale, seen: "Screen") -> Found:
    """The whole act: everything up, the incident, everything down again."""
    clock = SystemClock()
    incident = Incident(cast(scale), scale, Ledger(clock), clock)
    seen.note(
        "starting another PostgreSQL in a temporary directory, a node, and what fifty tenants depend on"
    )
    with temporary_home() as home:
        mine = settings(home, slots=SLOTS, elsewhere=Role.REPLAY)
        async with (
            hand(DEPENDENCY) as dependency,
            assemble(mine, events=incident.ledger) as node,
            hand(COORDINATOR) as coordinator,
        ):
            opening = Open(node.urls.admin, str(home.parent), os.getpid())
            await anext(coordinator.begin(opening, DOOR_SAID))
            async with _watched(incident, node, seen):
                return await Stage(incident, node, dependency, home).run()


class Stage:
    """One performance. For one task."""

    def __init__(self, incident: Incident, node: Node, dependency: Hand, home: Path) -> None:
        self._incident, self._node, self._hand, self._home = incident, node, dependency, home
        self._said: AsyncIterator[Serving | Counted] | None = None
        self._url = ""
        self._live_over = asyncio.Event()

    async def run(self) -> Found:
        incident = self._incident
        await self._open()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._live())
            incident.turn(Chapter.QUIET)
            await asyncio.sleep(incident.scale.quiet)
            await self._outage()
            await self._replays()
            self._live_over.set()
        incident.turn(Chapter.BOOKS)
        await self._unended_within(_SETTLES_WITHIN)
        return await self._books()

    async def _open(self) -> None:
        places = [Place(party.tenant, party.kind, party.strength) for party in self._incident.replaying]
        self._said = self._hand.begin(Serve(str(self._home.parent), os.getpid(), places), SAID)
        said = await anext(self._said)
        if not isinstance(said, Serving):
            raise InvariantBroken(f"the demo's dependency began with {type(said).__name__}")
        self._url = said.url
        await self._put_in_force(dying_at=said.url)

    async def _put_in_force(self, *, dying_at: str) -> None:
        await write_registry(self._node.urls.admin, registry(self._incident.parties, dying_at=dying_at))
        await self._node.directory.refresh()

    # -- live work -----------------------------------------------------------------------------------------

    async def _live(self) -> None:
        """Evenly in time, of each tenant in turn, until it is over."""
        clock, events = self._incident.clock, cycle(payloads(largest=_SMALL))
        tenants = cycle([party.tenant for party in self._incident.parties if party.live])
        began, count = clock.monotonic(), 0
        while not self._live_over.is_set():
            await asyncio.sleep(max(0.0, began + count / LIVE_RATE - clock.monotonic()))
            tenant, count = next(tenants), count + 1
            await self._submit(tenant, [NewJob(Target(self._url + live_path(tenant)), next(events))])

    async def _submit(self, tenant: TenantId, jobs: list[NewJob]) -> None:
        answer = await self._node.admission.submit(tenant, jobs)
        if isinstance(answer, Refusal):
            raise InvariantBroken(f"the demo's node refused work of {tenant}: {answer.rule.value}")
        self._incident.ids += answer.ids

    # -- the outage ----------------------------------------------------------------------------------------

    async def _outage(self) -> None:
        """Until every job that was sent there has died, or for a minute: the books then tell."""
        incident = self._incident
        incident.turn(Chapter.DOWN)
        events = cycle(payloads(largest=_SMALL))
        for party in incident.replaying:
            for count in _batches(party.letters):
                target = Target(self._url + shared_path(party.tenant))
                await self._submit(party.tenant, [NewJob(target, next(events)) for _ in range(count)])
        await self._until(lambda: sum(incident.ledger.dead.values()) >= incident.letters, _DIES_WITHIN)

    # -- replays -------------------------------------------------------------------------------------------

    async def _replays(self) -> None:
        incident, replays = self._incident, self._node.replays
        incident.turn(Chapter.PLANNING)
        await self._put_in_force(dying_at="")
        incident.requests_before = await self._requests("back")
        specs = [
            ReplaySpec(tenant=party.tenant, source=_OWN, park_after=1, class_after=10)
            for party in incident.replaying
        ]
        plans = await asyncio.gather(*map(replays.plan, specs))
        incident.turn(Chapter.REPLAYING)
        views = [plan.view for plan in plans]
        await asyncio.gather(*(replays.start(view.spec.tenant, view.id) for view in views))
        await self._until(self._others_are_through, _DRAINS_WITHIN)
        incident.turn(Chapter.ENDING)
        for view in views:
            if incident.progress[view.spec.tenant].state not in ENDED:
                await replays.cancel(view.spec.tenant, view.id)
        await self._until(lambda: incident.all_ended(incident.replaying), _SETTLES_WITHIN)

    def _others_are_through(self) -> bool:
        incident = self._incident
        poison = incident.state(Kind.POISON)
        stopped = poison is ReplayState.HELD or poison in ENDED
        return stopped and incident.all_ended(incident.of(Kind.ORDINARY))

    async def _requests(self, what: str) -> dict[str, int]:
        """What the dependency has counted, after it has done ``what``."""
        if self._said is None:
            raise InvariantBroken("the demo's dependency was asked before it was opened")
        self._hand.tell(Now("back" if what == "back" else "count"))
        said = await anext(self._said)
        return said.requests if isinstance(said, Counted) else {}

    # -- the end -------------------------------------------------------------------------------------------

    async def _unended_within(self, seconds: Seconds) -> None:
        """Until nothing is under way any more."""
        clock = self._incident.clock
        until = clock.monotonic() + seconds
        while clock.monotonic() < until:
            counts = await self._node.operator.counts()
            if not any(counts[state] for state in _UNENDED):
                return
            await asyncio.sleep(_LOOK_EVERY)

    async def _books(self) -> Found:
        incident, node = self._incident, self._node
        incident.requests_after = await self._requests("count")
        ends = await Inspection(node.database).ends(incident.ids)
        counts = await node.operator.counts()
        faults = tuple(await node.operator.audit())
        account = Account(len(incident.ids), ends, counts[JobState.PARKED], faults)
        return found(incident, account, ended=await self._ended())

    async def _ended(self) -> dict[TenantId, Seconds]:
        """How long each replay took from its start, by the database's clock."""
        views = await self._node.replays.replays(None, limit=1_000)
        return {
            view.spec.tenant: view.ended_at - view.started_at
            for view in views
            if view.ended_at is not None and view.started_at is not None
        }

    async def _until(self, reached: Callable[[], bool], within: Seconds) -> None:
        """What is looked at is what the watch keeps up to date."""
        clock = self._incident.clock
        until = clock.monotonic() + within
        while not reached() and clock.monotonic() < until:  # noqa: ASYNC110 - it only counts
            await asyncio.sleep(_LOOK_EVERY / 4)


def _batches(count: int) -> Iterator[int]:
    """``count`` in parts of at most a batch."""
    while count > 0:
        yield min(_BATCH, count)
        count -= _BATCH


@asynccontextmanager
async def _watched(incident: Incident, node: Node, seen: "Screen") -> AsyncIterator[None]:
    """The replays are looked at and shown while the block runs."""
    watching = asyncio.create_task(_watch(incident, node, seen))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    if not watching.cancelled():
        await watching


async def _watch(incident: Incident, node: Node, seen: "Screen") -> None:
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        if Chapter.REPLAYING in incident.marks:
            for view in await node.replays.replays(None, limit=100):
                incident.progress[view.spec.tenant] = node.replays.progress_of(view)
            incident.look()
        seen.show(Moment(incident))
