"""The demo's other processes: start them, hear what they say, end them whatever happens."""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds

T = TypeVar("T")

CROWD, DOOR = "tenantry.cli.demo.crowd", "tenantry.cli.demo.door"

_LEAVING: Seconds = 3.0
_LINE_BYTES = 8 << 20


class Hand:
    """One process. It is told one thing, and from then on tells. For one task."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise InvariantBroken("a process of the demo was started without pipes")
        self._process, self._in, self._out, self._words = (
            process,
            process.stdin,
            process.stdout,
            process.stderr,
        )

    async def begin(self, order: msgspec.Struct, said: msgspec.json.Decoder[T]) -> AsyncIterator[T]:
        """Tells it ``order``; yields what is said, for as long as the caller listens.

        Raises :class:`InvariantBroken`, with its last words, when it ends by itself."""
        self.tell(order)
        while line := await self._out.readline():
            yield said.decode(line)
        words = (await self._words.read()).decode(errors="replace").strip()
        raise InvariantBroken(f"a process of the demo ended before the demo did: {words}")

    def tell(self, order: msgspec.Struct) -> None:
        """One line on its standard input; its answer comes out of :meth:`begin`."""
        self._in.write(msgspec.json.encode(order) + b"\n")

    async def end(self) -> None:
        """Closes the pipe and waits; what does not end by itself is killed. Safe to call twice."""
        self._in.close()
        try:
            async with asyncio.timeout(_LEAVING):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


class Crew:
    """``steady``: the clients and the targets. ``burst``: the burst's client. ``door``: the API."""

    def __init__(self, steady: Hand, burst: Hand, door: Hand) -> None:
        self.steady, self.burst, self.door = steady, burst, door

    @asynccontextmanager
    async def here(self) -> AsyncIterator[None]:
        """When the block ends, so have they: clients first, then the API."""
        try:
            yield
        finally:
            await _surely(self._end())

    async def _end(self) -> None:
        await asyncio.gather(self.steady.end(), self.burst.end())
        await self.door.end()


@asynccontextmanager
async def crew() -> AsyncIterator[Crew]:
    """Three processes that have begun nothing yet; all have ended when the block has, however that ends."""
    hands: list[Hand] = []
    try:
        for module in (CROWD, CROWD, DOOR):
            hands.append(await _started(module))
        yield Crew(*hands)
    finally:
        await _surely(_all_ended(hands))


@asynccontextmanager
async def hand(module: str) -> AsyncIterator[Hand]:
    """One such process of ``module``."""
    started = await _started(module)
    try:
        yield started
    finally:
        await _surely(started.end())


async def _started(module: str) -> Hand:
    """In a session of its own, so that Ctrl-C reaches only the demo. It ends when its pipe closes, so it does
    not outlive a demo that was killed."""
    pipe = asyncio.subprocess.PIPE
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=_LINE_BYTES,
            start_new_session=True,
        )
    )
    try:
        return Hand(await asyncio.shield(starting))
    except asyncio.CancelledError:
        await Hand(await starting).end()
        raise


async def _all_ended(hands: list[Hand]) -> None:
    await asyncio.gather(*(hand.end() for hand in hands))


async def _surely(ending: Coroutine[Any, Any, None]) -> None:
    """Awaits to the end, also where the waiting is cancelled."""
    task = asyncio.create_task(ending)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
