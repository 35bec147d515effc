"""Names to allowed addresses, looked up anew for each connection.

Look-ups run in threads of their own, so that neither a tenant's dead name server nor a tenant's slow handler
takes the threads that others wait for. Look-ups of one name at one time share one thread.
"""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

from tenantry.delivery.guard import AddressNotAllowed, AddressRule

LookUp = Callable[[str], list[str]]
"""A name to its addresses, in order of preference. Blocking, called in a thread. Raises OSError if there is
none."""


def system_look_up(name: str) -> list[str]:
    """What the operating system resolves ``name`` to: its hosts file, then its name servers."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class GuardedResolver(AbstractResolver):
    """Drops the addresses that ``rule`` refuses. Belongs to one event loop; ``threads`` >= 1 look up at
    once."""

    def __init__(self, rule: AddressRule, *, look_up: LookUp = system_look_up, threads: int = 64) -> None:
        self._rule, self._look_up = rule, look_up
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="tenantry-dns")
        self._under_way: dict[str, asyncio.Future[list[str]]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The allowed addresses of ``host``. Raises :class:`AddressNotAllowed` if it has only others, and
        OSError if it has none."""
        addresses = await self._addresses(host)
        allowed = [address for address in addresses if self._rule.refusal(address) is None]
        results = [_result(host, address, port) for address in allowed if family in (0, _family(address))]
        if results:
            return results
        for address in addresses:
            self._rule.require(address)
        raise OSError("the name has no address of the wanted family")

    async def close(self) -> None:
        """Look-ups under way are left to end by themselves; their answers are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _addresses(self, host: str) -> list[str]:
        future = self._under_way.get(host)
        if future is None:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._threads, self._look_up, host)
            self._under_way[host] = future
            future.add_done_callback(lambda done: self._ended(host, done))
        return await asyncio.shield(future)  # one caller's timeout must not end the others' look-up

    def _ended(self, host: str, done: "asyncio.Future[list[str]]") -> None:
        del self._under_way[host]
        if not done.cancelled():
            done.exception()  # every caller may have left: the error has been seen


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _result(host: str, address: str, port: int) -> ResolveResult:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(
        hostname=host, host=address, port=port, family=_family(address), proto=socket.IPPROTO_TCP, flags=flags
    )


__all__ = ["AddressNotAllowed", "GuardedResolver", "LookUp", "system_look_up"]
