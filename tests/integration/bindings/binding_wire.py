"""What stands between a driver and the server: a proxy that counts, and a PgBouncer."""

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

SOCKET = ".s.PGSQL.5432"

CONFIG = """
[databases]
{database} = host={host} port={port} dbname={database}
[pgbouncer]
pool_mode = transaction
default_pool_size = {size}
listen_addr =
unix_socket_dir = {home}
listen_port = 6432
auth_type = trust
auth_file = {home}/users
logfile = {home}/log
"""


class CountingProxy:
    """A Unix socket before the server's: ``flights`` counts how often the client spoke after the server had.

    Words of farewell do not count. ``url`` leads through it.
    """

    def __init__(self, home: Path, url: str) -> None:
        self.flights = 0
        real = parse_qs(urlsplit(url).query)["host"][0]
        self.url = url.replace(f"host={real}", f"host={home}")
        self._real = f"{real}/{SOCKET}"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(home / SOCKET))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._real)
                turn = {"client": False}
                for source, sink, is_client in ((client, server, True), (server, client, False)):
                    arguments = (source, sink, turn, is_client)
                    threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, turn: dict[str, bool], is_client: bool
    ) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_client and not turn["client"] and data[:1] != b"X":
                    self.flights += 1
                turn["client"] = is_client
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def pgbouncer(home: Path, url: str, *, size: int) -> Iterator[str]:
    """``url`` through a PgBouncer in transaction mode with ``size`` connections to the server."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        line = "pgbouncer is not installed: as root, apt-get install pgbouncer"
        if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
            pytest.fail(line)
        pytest.skip(line)
    parts = urlsplit(url)
    options, database = parse_qs(parts.query), parts.path[1:]
    home.chmod(0o777)
    where = {"host": options["host"][0], "port": options["port"][0], "home": home, "size": size}
    (home / "config").write_text(CONFIG.format(database=database, **where))
    (home / "users").write_text(f'"{parts.username}" ""\n')
    user = "nobody" if os.getuid() == 0 else None
    process = subprocess.Popen([program, "-q", str(home / "config")], user=user)
    try:
        _until_it_answers(home / ".s.PGSQL.6432", process)
        yield f"postgresql://{parts.username}@/{database}?host={home}&port=6432"
    finally:
        process.terminate()
        process.wait()


def _until_it_answers(path: Path, process: "subprocess.Popen[bytes]") -> None:
    while process.poll() is None:
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.connect(str(path))
            return
    pytest.fail("PgBouncer ended at once")
