"""The minute itself: everything up, the load, the books, everything down, however it ends."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenantry.cli.assembly import Node, assemble
from tenantry.cli.demo.crew import Crew, Hand, crew
from tenantry.cli.demo.figures import Books, Figures, figures
from tenantry.cli.demo.home import settings, temporary_home
from tenantry.cli.demo.incident.cast import Scale
from tenantry.cli.demo.incident.stage import perform_incident
from tenantry.cli.demo.incident.summary import incident_document, print_incident
from tenantry.cli.demo.messages import (
    DOOR_SAID,
    SAID,
    Accepted,
    Began,
    Burst,
    BurstOrder,
    Client,
    Done,
    Go,
    In,
    Open,
    Opened,
    Out,
    Said,
    hook,
)
from tenantry.cli.demo.scenario import (
    BURST_BATCH,
    BURST_JOBS,
    SLOTS,
    Member,
    Timeline,
    burster,
    members,
    registry,
)
from tenantry.cli.demo.screen import Screen, View, console, screen
from tenantry.cli.demo.summary import as_json, document, print_next, print_summary
from tenantry.cli.demo.tally import Tally
from tenantry.cli.running import ended_by_signals
from tenantry.cli.settings import Role
from tenantry.config.api_keys import make_api_key
from tenantry.config.registry import Registry
from tenantry.kernel.clock import Clock, SystemClock
from tenantry.kernel.errors import InvalidValue
from tenantry.kernel.instant import Instant, Seconds
from tenantry.kernel.randomness import SystemRandomness
from tenantry.kernel.tenant import TenantId
from tenantry.postgres.directory import add_api_key, write_registry
from tenantry.postgres.inspection import Inspection

if TYPE_CHECKING:
    from tenantry.cli.demo import DemoOptions

_LOOK_EVERY: Seconds = 0.05
_DRAIN_AT_MOST: Seconds = 20.0


async def perform(options: "DemoOptions") -> None:
    """The acts that are wanted. Ends in SystemExit(130) when a signal ends it, after everything is down, and
    in SystemExit(1) when a promise did not hold."""
    if options.json is not None:
        _check_writable(options.json)
    async with ended_by_signals() as stop:
        showing = asyncio.create_task(_acts(options))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([showing, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not showing.done():
            showing.cancel()
            await asyncio.wait([showing])
            print("\nEnded early; everything is down and the temporary directory is gone.", flush=True)
            raise SystemExit(130)
        told, kept = await showing
    print_next(console(options))
    if options.json is not None:
        options.json.write_bytes(as_json(told))
    if not kept:
        print("\n  A promise did not hold in this run.", flush=True)
        print("  If it is the one about waits: is this machine busy with something else?", flush=True)
        raise SystemExit(1)


async def _acts(options: "DemoOptions") -> tuple[dict[str, Any], bool]:
    """Each act with its words; the document of both, and whether all promises held."""
    told: dict[str, Any] = {}
    kept, seen_on = True, console(options)
    if options.act in (None, 1):
        found = await _show(options)
        print_summary(seen_on, found, burster(members()))
        told |= document(found)
        kept = not found.books.lost and not found.books.faults
    if options.act in (None, 2):
        with screen(options) as seen:
            incident = await perform_incident(Scale.of(options.seconds), seen)
        print_incident(seen_on, incident)
        told["incident"] = incident_document(incident)
        kept = kept and incident.kept
    return told, kept


async def _show(options: "DemoOptions") -> Figures:
    everyone, clock = members(), SystemClock()
    tally, whole = Tally(everyone, clock), registry(everyone, SystemRandomness())
    stage = Stage(everyone, whole, tally, clock, Timeline.of(options.seconds))
    with screen(options) as seen:
        seen.note("starting PostgreSQL in a temporary directory, a node, and 50 clients")
        with temporary_home() as home:
            mine = settings(home, slots=SLOTS, elsewhere=Role.API)
            async with crew() as hands, assemble(mine, events=tally) as node, hands.here():
                await stage.prepare(node)
                began = clock.monotonic()
                async with stage.watched(seen):
                    await stage.load(hands, Open(node.urls.admin, str(home.parent), os.getpid()))
                seen.note("reading the books; the same load through one line for all")
                books = await stage.books(node)
                return await asyncio.to_thread(
                    figures, tally, whole, books, burst=burster(everyone), began=began
                )


@dataclass(slots=True)
class Stage:
    """What the parts of one performance share."""

    everyone: tuple[Member, ...]
    registry: Registry
    tally: Tally
    clock: Clock
    timeline: Timeline
    clients: dict[TenantId, Client] = field(default_factory=dict)
    tickets: list[str] = field(default_factory=list)
    began: Instant | None = None

    async def prepare(self, node: Node) -> None:
        """The registry in force, and a client with an API key for everyone."""
        await write_registry(node.urls.admin, self.registry)
        await node.directory.refresh()
        for member in self.everyone:
            key = make_api_key(node.around.randomness)
            await add_api_key(node.urls.admin, member.tenant, key, note="demo")
            self.clients[member.tenant] = Client(
                member.tenant, key.text, member.rate, member.window, member.answer_for
            )

    async def load(self, hands: Crew, opening: Open) -> None:
        """Until the last client has stopped; the door is heard on until the crew leaves."""
        opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as group:
            hearing = group.create_task(self._door(hands.door, opening, opened))
            go = Go(await opened, self.timeline.seconds, clients=list(self.clients.values()))
            bursting = None
            async for said in hands.steady.begin(go, SAID):
                if isinstance(said, Began):
                    self.began = self.clock.monotonic()
                    bursting = group.create_task(self._burst(hands.burst, go.api_url, said.url))
                if self._hear(said):
                    break
            if bursting is not None:
                await bursting
            await self.drained()
            hearing.cancel()

    async def _door(self, door: Hand, opening: Open, opened: "asyncio.Future[str]") -> None:
        async for said in door.begin(opening, DOOR_SAID):
            match said:
                case Opened():
                    opened.set_result(said.url)
                case In():
                    self.tally.accept(TenantId(said.tenant), said.count)
                case Out():
                    self.tally.refuse(TenantId(said.tenant), said.count)

    async def _burst(self, hand: Hand, api_url: str, target_url: str) -> None:
        tenant = burster(self.everyone).tenant
        burst = BurstOrder(
            self.clients[tenant], target_url + hook(tenant), BURST_JOBS, BURST_BATCH, self.timeline.burst_at
        )
        async for said in hand.begin(Go(api_url, self.timeline.seconds, burst=burst), SAID):
            if self._hear(said):
                break

    def _hear(self, said: Said) -> bool:
        """True when that was the last word."""
        match said:
            case Burst():
                self.tally.burst()
            case Accepted():
                self.tickets += said.ids
        return isinstance(said, Done)

    async def drained(self) -> None:
        """Until everything accepted has ended, or for 20 s: the books then tell what has not."""
        until = self.clock.monotonic() + _DRAIN_AT_MOST
        while self.tally.unended() > 0 and self.clock.monotonic() < until:  # noqa: ASYNC110 - it only counts
            await asyncio.sleep(_LOOK_EVERY)

    async def books(self, node: Node) -> Books:
        ends = await Inspection(node.database).ends(self.tickets)
        return Books(len(self.tickets), ends, tuple(await node.operator.audit()))

    @asynccontextmanager
    async def watched(self, seen: Screen) -> AsyncIterator[None]:
        """The tally is looked at and shown while the block runs."""
        watching = asyncio.create_task(self._watch(seen))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        if not watching.cancelled():
            await watching

    async def _watch(self, seen: Screen) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            elapsed = self.clock.monotonic() - self.began if self.began is not None else 0.0
            self._measure(elapsed)
            self.tally.look()
            seen.show(View(self.tally, self.timeline, elapsed, burster(self.everyone)))

    def _measure(self, elapsed: Seconds) -> None:
        if self.tally.measured_from is None and elapsed >= self.timeline.measured_from:
            self.tally.measure()
        elif self.tally.measuring and elapsed >= self.timeline.seconds:
            self.tally.stop_measuring()


def _check_writable(path: Path) -> None:
    try:
        path.touch()
    except OSError as error:
        raise InvalidValue(
            "--json", str(path), "a file that can be written", f"{error.strerror or error}."
        ) from error
