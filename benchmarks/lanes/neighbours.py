"""What targets that never answer cost everybody else: the same tenants alone, beside one, and beside 49.

Nine tenants send a job every now and then; a tenth has a backlog at a target that serves so many at once.
The three phases take turns on the same two workers. In each the target that never answers is a new one, and
each of the tenants in trouble has a lane of its own to it, with work that was submitted while the lane was
paused: the trouble begins within what is measured. Afterwards the lanes are paused again, and what they
hold runs into its timeout before the next phase. Too long for a quick run: phases of a second tell nothing
of a p99.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from benchmarks.context import Context
from benchmarks.figures import OURS, Goal, Measured, percentile
from benchmarks.lanes.workers import Product, asked, product, targets
from tenantry.config.model import TargetSettings
from tenantry.kernel.tenant import TenantId
from tenantry.lanes.model import Target
from tenantry.lanes.orders import Action, Order, Scope

QUICK = False
ALONE = "alone"
DEAD = 49
SLOTS = 50
TIMEOUT = 1.0
SERVERS, SERVICE = 4, 0.05
LIGHT, RATE = 9, 120.0
BUSY = TenantId("busy")
WARM = 4.0
LEAST = 12  # rounds: with five, a p99 of four seconds differs by half from phase to phase


@dataclass(frozen=True, slots=True)
class Trouble:
    """``dead`` tenants whose lanes lead to ``target``, which never answers. Lanes are never shared."""

    dead: int
    target: Target


@dataclass(frozen=True, slots=True)
class Phase:
    """``dead`` targets were in the way from ``since`` to ``until``."""

    dead: int
    since: float
    until: float


async def run(context: Context) -> None:
    """Phases in turn, all within one run of the workers."""
    rounds, seconds = max(context.runs, LEAST), 4.0
    tenants = {BUSY: TargetSettings()}
    tenants |= {TenantId(f"light{n}"): TargetSettings() for n in range(LIGHT)}
    tenants |= {TenantId(f"dead{n}"): TargetSettings(timeout_for=TIMEOUT) for n in range(DEAD)}
    async with targets(SERVERS, SERVICE) as target, product(context.server, tenants, slots=SLOTS) as queue:
        story = Story(queue, f"http://127.0.0.1:{target.last['port']}")
        troubles = [await story.prepared(dead) for _ in range(rounds) for dead in (0, 1, DEAD)]
        backlog = [b"{}"] * int(1.5 * SERVERS / SERVICE * (WARM + rounds * 3 * (seconds + TIMEOUT + 1.0)))
        await queue.submit(BUSY, story.at("/busy"), backlog)
        await story.phase(await story.prepared(0), WARM)
        phases = [await story.phase(each, seconds) for each in troubles]
        told = await asked(target)
    judge(context, phases, told["calls"], told["stamped"])


class Story:
    """The tenants at work."""

    def __init__(self, queue: Product, url: str) -> None:
        self._queue, self._url, self._names = queue, url, count(1)

    def at(self, path: str) -> Target:
        return Target(self._url + path)

    async def prepared(self, dead: int) -> Trouble:
        """So many lanes to a target that never answers, paused, with work waiting."""
        trouble = Trouble(dead, self.at(f"/dead/{next(self._names)}"))
        await self._order(Action.PAUSE, trouble)
        for n in range(dead):
            await self._queue.submit(TenantId(f"dead{n}"), trouble.target, [b"{}"] * 50)
        return trouble

    async def phase(self, trouble: Trouble, seconds: float) -> Phase:
        """``seconds`` of the light tenants' work, with the lanes of ``trouble`` at work."""
        since = time.time()
        sending = asyncio.create_task(self._light(seconds))
        await self._order(Action.RESUME, trouble)
        await sending
        until = time.time()
        await self._order(Action.PAUSE, trouble)
        await asyncio.sleep(TIMEOUT + 0.5)
        return Phase(trouble.dead, since, until)

    async def _order(self, action: Action, trouble: Trouble) -> None:
        """One order for all of its lanes, so that giving it costs the same in every phase."""
        scope = Scope(target=trouble.target)
        await self._queue.operator.order(Order(action, scope, "a benchmark's phases", "benchmarks"))

    async def _light(self, seconds: float) -> None:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for n in range(int(RATE * seconds)):
                await asyncio.sleep(max(0.0, began + n / RATE - time.perf_counter()))
                group.create_task(self._one(n % LIGHT))

    async def _one(self, n: int) -> None:
        payload = f"@{time.time():.6f} ".encode()
        await self._queue.submit(TenantId(f"light{n}"), self.at(f"/light/{n}"), [payload])


def judge(
    context: Context,
    phases: Sequence[Phase],
    calls: Sequence[tuple[str, float, float]],
    stamped: Sequence[tuple[str, float, float]],
) -> None:
    """p99 from the submit until the target has the job, and the busy lane's rate, beside the phases alone."""
    for dead in (1, DEAD):
        beside = "one target that never answers" if dead == 1 else f"{dead} targets that never answer"
        wait = Measured(f"p99 of the others' waits beside {beside}", "ms", "lower", Goal(0.95, ALONE))
        rate = Measured(f"a busy lane's rate beside {beside}", "jobs/s", goal=Goal(0.95, ALONE))
        for phase in phases:
            if phase.dead in {0, dead}:
                system = OURS if phase.dead else ALONE
                waits = [at - sent for _, sent, at in stamped if phase.since <= sent < phase.until]
                served = sum(phase.since <= ends < phase.until for _, ends, _ in calls)
                wait.add(system, 1_000.0 * percentile(waits, 0.99))
                rate.add(system, served / (phase.until - phase.since))
        context.judge(wait, rate)
