"""Processes of one system: start them, release them together, watch their counts, stop them."""

import asyncio
import json
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from benchmarks.systems import System

START_WITHIN, STOP_WITHIN = 60.0, 15.0


class RunnerFailed(RuntimeError):
    """A runner ended, or said nothing in time; the message holds its last words."""


class Runner:
    """One process that speaks the protocol of ``peers/protocol.py``."""

    def __init__(self, system: System, mode: str, options: Mapping[str, Any]) -> None:
        self._command = [*system.command(mode), json.dumps(options)]
        self.last: dict[str, Any] = {}
        self.heard = asyncio.Event()
        self._errors = b""

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        self._listening = [asyncio.create_task(self._listen()), asyncio.create_task(self._keep_errors())]

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())

    async def until(self, field: str, within: float = START_WITHIN) -> Any:
        """What the runner said of ``field``, once it has. Raises :class:`RunnerFailed`."""
        try:
            async with asyncio.timeout(within):
                while field not in self.last:
                    if self._listening[0].done():
                        raise self._failed("ended")
                    self.heard.clear()
                    await self.heard.wait()
        except TimeoutError:
            raise self._failed(f"said nothing of {field!r} within {within:g} s") from None
        return self.last[field]

    async def ended(self) -> None:
        """Waits for the end of a mode that ends by itself. Raises :class:`RunnerFailed` when it failed."""
        await asyncio.gather(*self._listening)
        if await self.process.wait():
            raise self._failed("failed")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> None:
        """However it stands."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await asyncio.gather(*self._listening, return_exceptions=True)

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.last.update(json.loads(line))
            self.heard.set()
        self.heard.set()

    async def _keep_errors(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self._errors = (self._errors + line)[-4000:]

    def _failed(self, how: str) -> RunnerFailed:
        return RunnerFailed(f"{' '.join(self._command[1:])} {how}:\n{self._errors.decode(errors='replace')}")


async def carry_out(system: System, mode: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A mode that needs no telling (install, load); what it said."""
    runner = Runner(system, mode, options)
    await runner.start()
    try:
        await runner.ended()
    finally:
        await runner.end()
    return runner.last


class Fleet:
    """``count`` runners of one mode; leaving the context ends them."""

    def __init__(self, system: System, mode: str, options: Mapping[str, Any], count: int = 1) -> None:
        self.runners = [Runner(system, mode, {**options, "worker": n}) for n in range(count)]

    async def __aenter__(self) -> Self:
        """Returns when each of them is connected and waits for the word."""
        try:
            await asyncio.gather(*(runner.start() for runner in self.runners))
            await asyncio.gather(*(runner.until("ready") for runner in self.runners))
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    def go(self) -> float:
        """Release them; the moment, as ``time.time()``."""
        for runner in self.runners:
            runner.tell("go")
        return time.time()

    @property
    def done(self) -> int:
        """Jobs run so far."""
        return sum(runner.last.get("done", 0) for runner in self.runners)

    @property
    def first_at(self) -> float:
        """When the first job of all started, as ``time.time()``; infinity before."""
        return min(runner.last.get("first_at") or float("inf") for runner in self.runners)

    def total(self, field: str) -> float:
        """The sum of what they said of a field."""
        return float(sum(runner.last.get(field, 0) for runner in self.runners))

    async def reach(self, field: str, target: float, within: float) -> bool:
        """Wait until the sum of ``field`` is ``target``; False when ``within`` seconds have passed."""
        until = time.perf_counter() + within
        while self.total(field) < target:
            if time.perf_counter() >= until:
                return False
            if ended := [r for r in self.runners if r.process.returncode is not None]:
                raise ended[0]._failed("ended while it was needed")
            await asyncio.sleep(0.002)
        return True

    async def stop(self) -> list[dict[str, Any]]:
        """Tell them to stop; the last words of each."""
        for runner in self.runners:
            runner.tell("stop")
        await asyncio.gather(*(runner.until("stopped", STOP_WITHIN) for runner in self.runners))
        return [runner.last for runner in self.runners]

    async def _end(self) -> None:
        await asyncio.gather(*(runner.end() for runner in self.runners if hasattr(runner, "process")))
