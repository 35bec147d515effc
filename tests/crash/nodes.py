"""Nodes as an operator runs them: ``tenantry worker`` processes, their logs, and a hand that harms them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from tenantry.kernel.events import Event

HERE = Path(__file__).parent
WORKER = (sys.executable, "-m", "tenantry.cli.main", "worker", "--json", "--log-format", "json")


class NodeProcess:
    """One `tenantry worker`. ``log``: what it has told, each line as a mapping."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.log: list[dict[str, Any]] = []
        self._more = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def started(cls, *words: str, handlers: str = "story_handlers", http: bool = False) -> Self:
        """``http``: it delivers over HTTP too, to this machine as well."""
        delivers = "--allow-private-targets" if http else "--no-http"
        process = await asyncio.create_subprocess_exec(
            *WORKER, delivers, "--metrics", "none", "--handlers", handlers, *words,
            cwd=HERE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        return cls(process)

    async def told(self, event: type[Event], *, count: int = 1) -> dict[str, Any]:
        """Wait until it has told of ``event`` so often; the last of them."""
        async with self._more:
            await self._more.wait_for(lambda: len(self.of(event)) >= count or self._reading.done())
        found = self.of(event)
        assert len(found) >= count, f"the node ended: {self.log[-3:]}"
        return found[count - 1]

    def of(self, event: type[Event]) -> list[dict[str, Any]]:
        return [line for line in self.log if line.get("event") == event.__name__]

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    async def ended(self) -> int:
        """Wait for its end; its exit code."""
        return await self._process.wait()

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            async with self._more:
                self.log.append(_line(line))
                self._more.notify_all()
        async with self._more:
            self._more.notify_all()


def _line(text: bytes) -> dict[str, Any]:
    try:
        line: dict[str, Any] = json.loads(text)
    except ValueError:
        line = {"event": text.decode("utf-8", "replace").strip()}
    return line


class Wire:
    """A Unix socket in front of a server's, that can stop carrying anything without closing anything: what a
    network split looks like from both ends."""

    def __init__(self, server: Path) -> None:
        self._server, self._open = server, asyncio.Event()
        self._open.set()
        self._carrying: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        """What was sent meanwhile arrives now."""
        self._open.set()

    @asynccontextmanager
    async def listening(self, at: Path) -> AsyncIterator[None]:
        server = await asyncio.start_unix_server(self._accept, at)
        try:
            yield
        finally:
            server.close()
            for task in self._carrying:
                task.cancel()
            await asyncio.gather(*self._carrying, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        inner_reader, inner_writer = await asyncio.open_unix_connection(self._server)
        for source, sink in ((reader, inner_writer), (inner_reader, writer)):
            task = asyncio.create_task(self._carry(source, sink))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65_536):
                await self._open.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass  # one of the ends is gone, and so is this way between them
        finally:
            sink.close()
