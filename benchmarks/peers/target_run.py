"""Targets that can take so much and no more: one process, a path each, servers behind one line.

``serve``: servers, service (seconds that a call takes of one), stamped (seconds that a call with a stamped
payload takes, of nobody; 0). A call to ``/dead/…`` is never answered. Says ready and port; told ``stop`` it
says calls, as (path, when it was served, seconds from its arrival until then), and stamped, as (path, stamp,
arrival).
"""

import asyncio
import heapq
import time
from collections import defaultdict

import protocol
import uvloop

from tenantry.testing.exchange import Connection, Manner, Received, Then, answer

OK, HANG = Manner(answer()), Manner(b"", Then.HANG)


class Targets:
    """What each path serves. The whole wait of a call is known when it comes in: nothing overtakes."""

    def __init__(self, servers: int, service: float, stamped_for: float = 0.0) -> None:
        self._service, self._stamped_for = service, stamped_for
        self._free_at: dict[str, list[float]] = defaultdict(lambda: [0.0] * servers)
        self.calls: list[tuple[str, float, float]] = []
        self.stamped: list[tuple[str, float, float]] = []

    def meets(self, request: Received) -> Manner:
        """One call."""
        now, path = time.time(), request.path
        if path.startswith("/dead/"):
            return HANG
        if request.body[:1] == b"@":
            self.stamped.append((path, float(request.body[1:].split(b" ", 1)[0]), now))
            return OK.after(self._stamped_for) if self._stamped_for else OK
        free_at = self._free_at[path]
        ends = max(now, free_at[0]) + self._service
        heapq.heapreplace(free_at, ends)
        self.calls.append((path, ends, ends - now))
        return OK.after(ends - now)


async def serve(options: protocol.Options) -> None:
    told = await protocol.Told().open()
    open_ = set[Connection]()
    targets = Targets(options["servers"], options["service"], options.get("stamped", 0.0))
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(targets.meets, open_), "127.0.0.1", 0, backlog=1024
    )
    protocol.say(ready=True, port=server.sockets[0].getsockname()[1])
    await told.word("stop")
    protocol.say(calls=targets.calls, stamped=targets.stamped, stopped=True)
    server.close()
    for connection in list(open_):
        connection.drop()


if __name__ == "__main__":
    protocol.main({"serve": serve}, run=uvloop.run)
