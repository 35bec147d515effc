"""What a cell is given: the server, how long it may take, and where it says how far it is."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType

from benchmarks.figures import Claim, Measured, short
from benchmarks.fleet import RunnerFailed
from benchmarks.server import Server
from benchmarks.systems import System


@dataclass(slots=True)
class Context:
    """``runs``: interleaved runs of a cell. ``seconds``: how long one run should last."""

    server: Server
    quick: bool = False
    runs: int = 5
    seconds: float = 2.0
    only: str = ""
    claims: list[Claim] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def wanted(self, cell: str) -> bool:
        return self.only in cell

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def say(self, text: str) -> None:
        print(f"[{self.elapsed:6.1f} s] {text}", flush=True)

    def fail(self, cell: str, error: Exception) -> None:
        """A cell could not be measured."""
        self.failed.append(cell)
        self.say(f"{cell} FAILED: {error}")

    def judge(self, *measured: Measured) -> None:
        """Close a cell: its claims are judged, told and kept."""
        for each in measured:
            claim = each.judged()
            self.claims.append(claim)
            others = ", ".join(f"{name} {short(value)}" for name, value in claim.peers.items())
            verdict = {True: "met", False: "NOT met", None: "no goal"}[claim.met]
            self.say(f"{claim.claim}: ours {short(claim.ours)} {claim.unit}; {others or 'alone'}; {verdict}")

    async def each(self, cells: Sequence[ModuleType]) -> None:
        """Every cell, one after the other. One that fails is told and keeps no other from its figures."""
        for cell in cells:
            name = cell.__name__.rpartition(".")[2]
            if self.wanted(name) and (cell.QUICK or not self.quick):
                try:
                    await cell.run(self)
                except RunnerFailed as error:
                    self.fail(name, error)

    @asynccontextmanager
    async def cell(self, name: str, systems: Sequence[System]) -> AsyncIterator[None]:
        """One cell; its databases are gone after it."""
        self.say(f"{name}: {', '.join(system.name for system in systems)}")
        try:
            yield
        finally:
            await self.server.forget()
