"""A Unix socket in front of the server's own that can stop forwarding, as a cut cable does: unannounced."""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """``directory``: where its socket stands; ``url``: of the server behind it."""

    def __init__(self, directory: Path, url: str) -> None:
        self._directory, self._real = directory, socket_directory(url)
        self.url = url.replace(f"host={self._real}", f"host={directory}")
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._accepted, self._directory / SOCKET)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    def cut(self) -> None:
        """Nothing passes any more, in either direction; no connection ends."""
        self._flowing.clear()

    def heal(self) -> None:
        """What was held back arrives, late."""
        self._flowing.set()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        server_reader, server_writer = await asyncio.open_unix_connection(f"{self._real}/{SOCKET}")
        for source, sink in ((reader, server_writer), (server_reader, writer)):
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(1 << 16):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        sink.close()


def socket_directory(url: str) -> str:
    """The directory of the socket that a URL names."""
    return parse_qs(urlsplit(url).query)["host"][0]
