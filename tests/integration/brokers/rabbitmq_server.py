"""A real RabbitMQ on loopback, from Debian's package: started from its lib path as an unprivileged account,
with a port mapper, a node name, ports and directories of its own."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_CONFIG = """
listeners.tcp.1 = 127.0.0.1:{port}
loopback_users = none
log.console = true
log.file = false
disk_free_limit.absolute = 50MB
max_message_size = 2000000
"""


def _program() -> Path:
    found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin/rabbitmq-server"))
    if found and shutil.which("epmd"):
        return found[-1]
    line = "RabbitMQ is not installed: as root, apt-get install rabbitmq-server, or set RABBITMQ_URL"
    if os.environ.get("CI") == "true":  # noqa: TID251 - what CI promises is in its environment
        pytest.fail(line)
    pytest.skip(line)


@contextmanager
def rabbitmq_url() -> Iterator[str]:
    """The URL of a server: the one that ``RABBITMQ_URL`` names, else our own."""
    given = os.environ.get("RABBITMQ_URL")  # noqa: TID251 - a server of your own
    if given:
        yield given
        return
    program = _program()
    home = Path(tempfile.mkdtemp(prefix="tnt-mq-"))
    home.chmod(0o777)
    port, mapper, distribution = (_free_port() for _ in range(3))
    (home / "rabbitmq.conf").write_text(_CONFIG.format(port=port))
    (home / "enabled_plugins").write_text("[].\n")
    account = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    env = _environment(home, mapper, distribution)
    epmd = subprocess.Popen(  # type: ignore[call-overload]
        [shutil.which("epmd"), "-port", str(mapper), "-address", "127.0.0.1"], env=env, **account
    )
    server = subprocess.Popen(  # type: ignore[call-overload]
        [program], env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True, **account,
    )  # fmt: skip
    try:
        said: list[str] = []
        while "completed with" not in (line := server.stdout.readline()):
            said.append(line)
            assert line, "the server ended: " + "".join(said[-20:])
        drain = subprocess.Popen(["cat"], stdin=server.stdout, stdout=subprocess.DEVNULL)
        yield f"amqp://guest:guest@127.0.0.1:{port}/"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        epmd.kill()
        epmd.wait()
        drain.wait()
        shutil.rmtree(home, ignore_errors=True)


def _environment(home: Path, mapper: int, distribution: int) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "ERL_EPMD_PORT": str(mapper),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"tnt{os.getpid()}@localhost",
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
        "RABBITMQ_CONF_ENV_FILE": str(home / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
        "RABBITMQ_PLUGINS_EXPAND_DIR": str(home / "plugins"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(home / "config"),
        "RABBITMQ_FEATURE_FLAGS_FILE": str(home / "flags"),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none"
        ),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
