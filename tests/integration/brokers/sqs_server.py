"""ministack, an emulator of SQS, on loopback; or the endpoint that ``SQS_ENDPOINT`` names, with credentials
where AWS's tools find them."""

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def sqs_url() -> Iterator[str]:
    """The endpoint; an emulator of our own ends with the block."""
    given = os.environ.get("SQS_ENDPOINT")  # noqa: TID251 - a service of your own
    if given:
        yield given
        return
    if importlib.util.find_spec("ministack") is None:
        line = "no SQS: pip install ministack, or set SQS_ENDPOINT"
        if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
            pytest.fail(line)
        pytest.skip(line)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="tnt-sqs-") as home:
        env = {
            "PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "GATEWAY_PORT": str(port),
            "BIND_HOST": "127.0.0.1", "MINISTACK_HOST": "127.0.0.1", "SERVICES": "sqs", "LOG_LEVEL": "ERROR",
        }  # fmt: skip
        server = subprocess.Popen(
            [sys.executable, "-m", "ministack"], env=env, cwd=home,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            _until_up(url, server)
            yield url
        finally:
            server.kill()
            server.wait()


def _until_up(url: str, server: "subprocess.Popen[bytes]") -> None:
    """A refused connection is answered at once, so this asks often; it ends when the server does."""
    for _ in range(20_000):
        assert server.poll() is None, "ministack ended"
        try:
            urllib.request.urlopen(url, timeout=10).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            try:
                server.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
        else:
            return
    pytest.fail("ministack does not answer")
