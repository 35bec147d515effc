"""The loop that carries out a plan: step by step, each whole or not at all, none waiting beyond its bound.

Killed at any moment it leaves whole steps behind it, or an index that is invalid and that the next run
drops. The next run plans afresh: it looks at the database and not at what an earlier run said, so nothing
needs resuming.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import Randomness
from tenantry.rls.declaration import Declaration
from tenantry.rls.plan import Plan, plan
from tenantry.rls.render import Step
from tenantry.rls.script import Bounds, messages
from tenantry.rls.workbench import Holder, Workbench

TURN = "the turn to change this database's row policies"


@dataclass(frozen=True, slots=True)
class Blocked:
    """What was given up, after ``attempts`` tries, and who stood in the way; nobody where they had gone by
    the time we looked."""

    what: str
    attempts: int
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """How it ended. ``done``: titles of the steps carried out. ``left``: the plan for what is still
    missing; it has objections when nothing was begun. ``blocked``: why it stopped early, if it did."""

    done: tuple[str, ...]
    left: Plan
    blocked: Blocked | None = None

    @property
    def is_whole(self) -> bool:
        return self.blocked is None and not self.left.steps and not self.left.objections


def _nothing(told: object) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the loop takes from outside. ``pause`` waits so many seconds. ``planned`` is told of the
    plan before its first step, ``done`` of each step when it is; what they raise ends the loop there."""

    pause: Callable[[Seconds], Awaitable[None]]
    randomness: Randomness
    planned: Callable[[Plan], None] = _nothing
    done: Callable[[Step], None] = _nothing


async def apply(
    declaration: Declaration, workbench: Workbench, bounds: Bounds, surroundings: Surroundings
) -> Applied:
    """Brings the database to ``declaration``. Does nothing where it is so already.

    Raises what :class:`Workbench` does; the steps before it stand.
    """
    trial = _Trial(workbench, bounds, surroundings)
    blocked = await trial.turn()
    found = plan(declaration, await workbench.facts())
    if blocked is not None or found.objections:
        return Applied((), found, blocked)
    surroundings.planned(found)
    done: list[str] = []
    for step in found.steps:
        blocked = await trial.carry_out(step)
        if blocked is not None:
            break
        done.append(step.title)
        surroundings.done(step)
    return Applied(tuple(done), plan(declaration, await workbench.facts()), blocked)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Trying again, until it works or the attempts are used up."""

    workbench: Workbench
    bounds: Bounds
    surroundings: Surroundings

    async def turn(self) -> Blocked | None:
        for attempt in range(1, self.bounds.attempts + 1):
            if await self.workbench.take_turn(self.bounds):
                return None
            await self._pause_after(attempt)
        return Blocked(TURN, self.bounds.attempts, await self.workbench.turn_holder())

    async def carry_out(self, step: Step) -> Blocked | None:
        holders: tuple[Holder, ...] = ()
        for attempt in range(1, self.bounds.attempts + 1):
            if await self._sent(step):
                return None
            holders = await self.workbench.holders(step.relations, older=step.apart) or holders
            await self._pause_after(attempt)
        return Blocked(step.title, self.bounds.attempts, holders)

    async def _sent(self, step: Step) -> bool:
        for message in messages(step, self.bounds):
            if not await self.workbench.send(message, self.bounds):
                return False
        return True

    async def _pause_after(self, attempt: int) -> None:
        if attempt < self.bounds.attempts:
            draw = self.surroundings.randomness.uniform(0.0, 1.0)
            await self.surroundings.pause(self.bounds.pauses.delay(attempt, draw))
