"""A network between a client and a loopback server: what passes is late by a fixed time, either way."""

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self


class Network:
    """A TCP port on loopback before the server's ``port``; ``one_way`` in seconds, for each direction.

    Each piece that is read waits its time and is sent on, by threads: the timers of an event loop are too
    coarse. That is right for clients that speak in turns with the server, and for nothing else."""

    def __init__(self, port: int, one_way: float) -> None:
        self._server, self._one_way = ("127.0.0.1", port), one_way
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._server)
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                time.sleep(self._one_way)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
