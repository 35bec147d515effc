"""How a runner talks to the benchmark. Standard library only: it runs in the peers' environment as well.

A runner is ``python X_run.py MODE '{"url": …}'``. It says one JSON object a line and is told one word a line:

    install                                                                  make the tables
    load      jobs, tenants                                                  put a backlog there, fast
    work      batch, …         says ready, is told go, says done and first_at, is told stop, says waits
    enqueue   batch, seconds, callers     says ready, is told go, says jobs and seconds
    trickle   rate, seconds               says ready, is told go, says sent

Instants are ``time.time()``: every process of a benchmark runs on one machine.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

PAYLOAD_BYTES = 200
PLAIN = "x" * PAYLOAD_BYTES

Options = Mapping[str, Any]
Mode = Callable[[Options], Awaitable[None]]


def say(**fields: Any) -> None:
    """One line to the benchmark."""
    print(json.dumps(fields), flush=True)


def stamped() -> str:
    """A payload that carries the moment of its making."""
    return f"@{time.time():.6f} ".ljust(PAYLOAD_BYTES, "x")


class Told:
    """What the benchmark says. The end of the stream counts as every word: the benchmark is gone."""

    async def open(self) -> "Told":
        self._reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), sys.stdin)
        return self

    async def word(self, word: str) -> None:
        while True:
            line = await self._reader.readline()
            if not line or line.decode().strip() == word:
                return


class Tally:
    """Counts what a worker ran; each runner's handler calls :meth:`ran` with the job's payload."""

    def __init__(self) -> None:
        self.done, self.first_at, self.newest = 0, 0.0, 0.0
        self.waits: list[tuple[float, float]] = []  # (submitted at, waited for), of stamped payloads

    def ran(self, payload: str | bytes) -> None:
        if not self.done:
            self.first_at = time.time()
        self.done += 1
        if payload[:1] in (b"@", "@"):
            self._stamped(payload)

    def _stamped(self, payload: str | bytes) -> None:
        text = payload.decode() if isinstance(payload, bytes) else payload
        at = float(text[1:].split(" ", 1)[0])
        self.waits.append((at, time.time() - at))
        self.newest = max(self.newest, at)

    async def tell(self, every: float = 0.02) -> None:
        """Says how far the count is, until it is cancelled."""
        told = -1
        while True:
            if self.done != told:
                told = self.done
                say(done=told, first_at=self.first_at, stamped=len(self.waits), newest=self.newest)
            await asyncio.sleep(every)


async def work(tally: Tally, serve: Callable[[], Awaitable[None]]) -> None:
    """The mode ``work``, once everything is connected: ``serve`` runs jobs until it is cancelled."""
    told = await Told().open()
    say(ready=True)
    await told.word("go")
    telling, serving = asyncio.create_task(tally.tell()), asyncio.ensure_future(serve())
    stopping = asyncio.create_task(told.word("stop"))
    await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()  # show why
    for task in (telling, serving, stopping):
        task.cancel()
    await asyncio.wait([telling, serving, stopping], timeout=2)
    say(done=tally.done, first_at=tally.first_at, waits=tally.waits, stopped=True)


async def enqueue(options: Options, one: Callable[[int], Awaitable[None]]) -> None:
    """The mode ``enqueue``: ``callers`` tasks call ``one(batch)`` as often as they can for ``seconds``."""
    told = await Told().open()
    await one(options["batch"])  # connections and statements are warm
    say(ready=True)
    await told.word("go")
    began = time.perf_counter()
    until = began + options["seconds"]

    async def caller() -> int:
        calls = 0
        while time.perf_counter() < until:
            await one(options["batch"])
            calls += 1
        return calls

    calls = await asyncio.gather(*(caller() for _ in range(options["callers"])))
    say(jobs=sum(calls) * options["batch"], seconds=time.perf_counter() - began)


async def trickle(options: Options, one: Callable[[str], Awaitable[None]]) -> None:
    """The mode ``trickle``: ``one(stamped payload)`` at an even ``rate`` a second, for ``seconds``."""
    told = await Told().open()
    say(ready=True)
    await told.word("go")
    began, count = time.perf_counter(), int(options["rate"] * options["seconds"])
    for n in range(count):
        await asyncio.sleep(max(0.0, began + n / options["rate"] - time.perf_counter()))
        await one(stamped())
    say(sent=count)


def in_batches(jobs: int, most: int = 1000) -> list[int]:
    """Sizes of batches that add up to ``jobs``."""
    return [most] * (jobs // most) + ([jobs % most] if jobs % most else [])


def main(modes: Mapping[str, Mode], *, run: Callable[[Any], None] = asyncio.run) -> None:
    """Carries out the mode that the command line names."""
    mode, options = sys.argv[1], json.loads(sys.argv[2])
    run(modes[mode](options))
