"""An application on a socket: uvicorn inside this process, started and stopped by its owner.

uvicorn's access log is off: it writes paths with their queries, where clients put credentials that they
should not. What is served is told by events instead.
"""

import asyncio
import socket
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from tenantry.kernel.errors import Closed, InvalidValue
from tenantry.kernel.instant import Seconds
from tenantry.web.heads import HEAD_LIMITS, GuardedProtocol, HeadLimits


class HttpServer:
    """Serves ``app`` on ``host`` and ``port`` (0: any free one) between :meth:`start` and :meth:`stop`.

    ``grace_for``: seconds that running requests get when it stops. ``heads``: how large and how slow the head
    of a request may be. One event loop; not to be started twice.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        grace_for: Seconds = 10.0,
        heads: HeadLimits = HEAD_LIMITS,
    ) -> None:
        if not 0 <= port <= 65_535:
            raise InvalidValue("port", port, "a port from 0 to 65535; 0 takes any free one")
        self._host, self._port = host, port
        self._server = _Server(_config(app, grace_for, heads))
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when requests are served. Raises OSError when the address cannot be bound."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        bound = socket.create_server((self._host, self._port), family=family, backlog=2_048)
        self._port = bound.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve([bound]), name="http server")
        await self._server.up.wait()

    async def stop(self) -> None:
        """Take no new connection, let running requests end, and return when all is closed. Idempotent."""
        if self._serving is None:
            return
        self._server.should_exit = True
        await self._serving
        self._serving = None

    @property
    def url(self) -> str:
        """``http://host:port``. Raises :class:`Closed` unless it serves."""
        if self._serving is None:
            raise Closed("the HTTP server is not started")
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def __aenter__(self) -> "HttpServer":
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()


class _Server(uvicorn.Server):
    """uvicorn's server, less its signal handlers (the process has one owner, and it is not this), telling
    when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.up.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await self._serve(sockets)


def _config(app: ASGIApp, grace_for: Seconds, heads: HeadLimits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=partial(GuardedProtocol, heads),  # type: ignore[arg-type]  # called like the class that it wants
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(grace_for)),
    )
