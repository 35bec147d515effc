"""A wire between a client and a server that a test can cut, and hold."""

import asyncio
from types import TracebackType
from typing import Self


class Wire:
    """Listens on loopback and passes everything on to ``port``, both ways. ``url`` of the server's becomes
    ours by :meth:`through`."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.port = 0
        self._ends: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers = asyncio.Event()
        self._answers.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def through(self, url: str) -> str:
        return url.replace(f":{self._to}", f":{self.port}")

    def cut(self) -> None:
        """Every connection is gone, as when the process at its other end died."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()
        self._answers.set()

    def hold_answers(self) -> None:
        """From here on nothing comes back from the server, until :meth:`cut`."""
        self._answers.clear()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._ends += [writer, server_writer]
        for one, other, held in ((reader, server_writer, False), (server_reader, writer, True)):
            task = asyncio.create_task(self._passed(one, other, held))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, held: bool) -> None:
        try:
            while data := await reader.read(65_536):
                if held:
                    await self._answers.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
