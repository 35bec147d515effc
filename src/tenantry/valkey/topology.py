"""Who serves a tenant now: one server, the master that Sentinels name, or the owner of a cluster's slot.

A *server* is known by ``host:port`` and has one client, whose pool opens connections as they are needed. What
the client library does by itself for clusters is not used: there, one server's failure closes the connections
to all of them."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from valkey.asyncio import Valkey
from valkey.asyncio.sentinel import Sentinel
from valkey.crc import key_slot
from valkey.exceptions import ResponseError, ValkeyError

from tenantry.kernel.errors import StoreUnavailable, UsageError
from tenantry.kernel.instant import Seconds
from tenantry.valkey.urls import Kind, ValkeyUrl

SLOTS: Final = 16_384
FAULTS: Final = (ValkeyError, OSError, TimeoutError)
"""What a call to a server that is not well raises."""


class Topology(Protocol):
    """One event loop."""

    def shard_of(self, key: str) -> str:
        """The server, as ``host:port``, that serves ``key`` as far as is known; empty before anything is.
        O(1)."""
        ...

    def client(self, shard: str) -> Valkey:
        """The client of a server. Raises :class:`StoreUnavailable` when no server is known."""
        ...

    async def owners(self) -> Sequence[str]:
        """The servers that between them serve every key, looked at afresh; by slot where there are slots.
        Raises :class:`StoreUnavailable`, and :class:`UsageError` when the URL leads to a part only."""
        ...

    async def refresh(self) -> None:
        """Look afresh. Raises :class:`StoreUnavailable` when nobody answers."""
        ...

    async def close(self) -> None:
        """End all connections."""
        ...


class OneServer:
    """A single server, or a socket."""

    def __init__(self, url: ValkeyUrl, timeout: Seconds) -> None:
        host, port = url.hosts[0] if url.hosts else ("", 0)
        self._name = url.path or f"{host}:{port}"
        self._client = _connected(url, host, port, timeout)

    def shard_of(self, key: str) -> str:
        return self._name

    def client(self, shard: str) -> Valkey:
        return self._client

    async def owners(self) -> Sequence[str]:
        try:
            told = await execute(self._client, "INFO", "cluster")
        except FAULTS as error:
            raise unanswered(error) from error
        if told.get("cluster_enabled"):
            raise UsageError(
                f"{self._name} is a node of a cluster and has only its part: give redis+cluster://{self._name}"
            )
        return [self._name]

    async def refresh(self) -> None:
        """It stays where it is: what is broken is dropped, the next call connects anew."""
        await self._client.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        await self._client.aclose()


class ByServer:
    """Clients by server, for those who find servers at run time."""

    def __init__(self, url: ValkeyUrl, timeout: Seconds) -> None:
        self._url, self._timeout = url, timeout
        self._clients: dict[str, Valkey] = {}
        self._looking: asyncio.Task[None] | None = None

    def client(self, shard: str) -> Valkey:
        if not shard:
            raise StoreUnavailable("no server of the authority is known yet")
        found = self._clients.get(shard)
        if found is None:
            host, _, port = shard.rpartition(":")
            found = self._clients[shard] = _connected(self._url, host, int(port), self._timeout)
        return found

    async def refresh(self) -> None:
        """Callers that come while somebody is looking share what is found."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def _look(self) -> None:
        raise NotImplementedError

    async def _forget_all_but(self, servers: Iterable[str]) -> None:
        for name in self._clients.keys() - set(servers):
            await self._clients.pop(name).aclose()


class SentinelMaster(ByServer):
    """The master of one service."""

    def __init__(self, url: ValkeyUrl, timeout: Seconds) -> None:
        super().__init__(url, timeout)
        hosts = list(url.hosts)
        self._sentinels: Any = Sentinel(hosts, socket_timeout=timeout, socket_connect_timeout=timeout)  # type: ignore[no-untyped-call]  # as the client ships it
        self._master = ""

    def shard_of(self, key: str) -> str:
        return self._master

    async def owners(self) -> Sequence[str]:
        await self.refresh()
        return [self._master]

    async def close(self) -> None:
        await super().close()
        for each in self._sentinels.sentinels:
            await each.aclose()

    async def _look(self) -> None:
        try:
            host, port = await self._sentinels.discover_master(self._url.service)
        except FAULTS as error:
            raise StoreUnavailable(f"no Sentinel names a master of {self._url.service}: {error}") from error
        self._master = f"{host}:{port}"
        await self._forget_all_but([self._master])


class Cluster(ByServer):
    """Who owns which slot, as a cluster's node last said."""

    def __init__(self, url: ValkeyUrl, timeout: Seconds) -> None:
        super().__init__(url, timeout)
        self._owners: list[str] = []
        self._known = [f"{host}:{port}" for host, port in url.hosts]

    def shard_of(self, key: str) -> str:
        return self._owners[key_slot(key.encode())] if self._owners else ""

    async def owners(self) -> Sequence[str]:
        await self.refresh()
        return self._owners

    async def _look(self) -> None:
        """All known servers are asked at once, since a dead one answers only by its silence."""
        asked = [
            asyncio.create_task(self._owners_as_told_by(server)) for server in dict.fromkeys(self._known)
        ]
        cause: BaseException | None = None
        try:
            for answer in asyncio.as_completed(asked):
                try:
                    self._owners, named = await answer
                except FAULTS as error:
                    cause = error
                    continue
                self._known = [*named, *(f"{host}:{port}" for host, port in self._url.hosts)]
                return
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        raise StoreUnavailable(f"no node of the cluster answers: {cause}") from cause

    async def _owners_as_told_by(self, server: str) -> tuple[list[str], list[str]]:
        """The owner of each slot, and all servers named. Raises one of :data:`FAULTS`."""
        ranges = await execute(self.client(server), "CLUSTER SLOTS")
        return slot_owners(ranges, server.rpartition(":")[0])


def slot_owners(ranges: Any, asked: str) -> tuple[list[str], list[str]]:
    """``CLUSTER SLOTS`` as the owner of each slot, and all servers named. Pure. An empty host is the one that
    was asked. Raises :class:`ValkeyError` when a slot has no owner."""
    owners, named = [""] * SLOTS, []
    for first, last, *servers in ranges:
        names = [f"{_text(server[0]) or asked}:{int(server[1])}" for server in servers]
        named += names
        owners[int(first) : int(last) + 1] = [names[0]] * (int(last) + 1 - int(first))
    if "" in owners:
        raise ValkeyError("a slot of the cluster has no owner")
    return owners, list(dict.fromkeys(named))


def asked_to(error: object) -> str:
    """The server that ``ASK slot host:port`` names: the slot is on its way there, the key is there already.
    Empty for any other error. Pure."""
    words = str(error).split() if isinstance(error, ResponseError) else []
    return words[2] if len(words) == 3 and words[0] == "ASK" else ""


def unanswered(error: BaseException) -> StoreUnavailable:
    """What to raise for one of :data:`FAULTS`: with the server's or the system's own words, which name the
    server or the refusal and never a password. Pure."""
    return StoreUnavailable(f"the authority does not answer: {error or type(error).__name__}")


async def execute(client: Valkey, *words: str) -> Any:
    """One command. Raises one of :data:`FAULTS`."""
    return await client.execute_command(*words)  # type: ignore[no-untyped-call]  # as the client ships it


def topology(url: ValkeyUrl, timeout: Seconds) -> Topology:
    """The topology of a URL; nothing is connected yet."""
    if url.kind is Kind.ONE:
        return OneServer(url, timeout)
    return SentinelMaster(url, timeout) if url.kind is Kind.SENTINEL else Cluster(url, timeout)


def _connected(url: ValkeyUrl, host: str, port: int, timeout: Seconds) -> Valkey:
    where: dict[str, Any] = {"unix_socket_path": url.path} if url.path else {"host": host, "port": port}
    return Valkey(
        **where,
        db=url.database,
        ssl=url.tls,
        username=url.username,
        password=url.password,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry_on_timeout=False,
    )


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
