"""The demo's end of the crowd: start the process, hear what it says, end it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from tenantry.cli.demo.messages import Go, Said
from tenantry.kernel.errors import InvariantBroken
from tenantry.kernel.instant import Seconds

_LEAVING: Seconds = 3.0
_LINE_BYTES = 8 << 20


class CrowdProcess:
    """The running crowd. For one task."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def begin(self, go: Go) -> AsyncIterator[Said]:
        """Lets the clients begin; yields what is said, and ends when the crowd does.

        Raises :class:`InvariantBroken`, with its last words, when it fails."""
        if self._process.stdin is None or self._process.stdout is None or self._process.stderr is None:
            raise InvariantBroken("the crowd was started without pipes")
        self._process.stdin.write(msgspec.json.encode(go) + b"\n")
        decode = msgspec.json.Decoder(Said).decode
        while line := await self._process.stdout.readline():
            yield decode(line)
        words = (await self._process.stderr.read()).decode(errors="replace").strip()
        raise InvariantBroken(f"the demo's clients ended before the demo did: {words}")

    async def end(self) -> None:
        """Closes the pipe and waits; what does not end by itself is killed. Safe to call twice."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_LEAVING):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


@asynccontextmanager
async def crowd() -> AsyncIterator[CrowdProcess]:
    """A crowd that has not begun yet; it has ended when the block has, however that ends.

    It is in a session of its own, so that Ctrl-C reaches only the demo, and it ends when its pipe closes,
    so that it does not outlive a demo that was killed."""
    pipe = asyncio.subprocess.PIPE
    process = CrowdProcess(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tenantry.cli.demo.crowd"),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=_LINE_BYTES,
            start_new_session=True,
        )
    )
    try:
        yield process
    finally:
        ending = asyncio.ensure_future(process.end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await asyncio.wait([ending])
            raise
