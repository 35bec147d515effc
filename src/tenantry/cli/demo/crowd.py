"""The outside world of the demo, in a process of its own: fifty clients and their targets.

Each client is the product's own, with a real API key, over the real HTTP API. It reads :class:`Go` from
standard input and writes what it learns to standard output; when standard input closes, it ends.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Sequence
from itertools import cycle, islice

import msgspec

from tenantry.cli.demo.messages import Accepted, Began, Burst, Client, Done, Go, Said
from tenantry.cli.demo.webhooks import payloads
from tenantry.cli.eventloop import run
from tenantry.delivery.client import TenantryClient
from tenantry.delivery.client_exchange import Surroundings
from tenantry.delivery.client_wire import Retries, Ticket
from tenantry.kernel.clock import SystemClock
from tenantry.kernel.instant import Seconds
from tenantry.kernel.randomness import SeededRandomness, SystemRandomness
from tenantry.kernel.verdict import Refusal
from tenantry.lanes.model import Target as TargetName
from tenantry.queue.model import NewJob
from tenantry.testing.target import Target

_STEP: Seconds = 0.2
"""A busy client sends what it may this often, as one batch."""

_TELL_EVERY: Seconds = 0.25
_SMALL = 2_200
"""Bytes: the burst is of small events, so that its size is felt in the queue and not on the wire."""

_PATIENT = Retries(attempts=1_000_000, deadline_for=3_600.0, attempt_for=30.0)
"""The burst's client comes back as often as it is told to."""


class Over(Exception):
    """The load is over: nobody comes back any more."""


class Crowd:
    """All clients and the one server that is all their targets. One event loop's."""

    def __init__(self, go: Go, target: Target) -> None:
        self._go, self._target = go, target
        self._over = asyncio.Event()
        self._tickets: list[str] = []
        self._clock = SystemClock()

    async def run(self) -> None:
        """The whole load. Returns when every client has stopped, each after its last answer."""
        say(Began())
        began = self._clock.monotonic()
        telling = asyncio.create_task(self._tell())
        async with asyncio.TaskGroup() as group:
            for place, client in enumerate(self._go.clients):
                group.create_task(self._steady(client, place))
            group.create_task(self._burst())
            await asyncio.sleep(self._go.seconds - (self._clock.monotonic() - began))
            self._over.set()
        telling.cancel()
        self._tell_now()
        say(Done(self._target.total))

    # -- steady clients --------------------------------------------------------------------------------

    async def _steady(self, client: Client, place: int) -> None:
        chance, wanted, sent = SeededRandomness(place), 0.0, 0
        events, target, path = _from(payloads(), place), self._url(client), _path(client)
        self._target.at(path).delays(client.answer_for)
        async with self._client(client, Retries()) as door:
            while not self._over.is_set():
                await self._idle(max(_STEP, 1 / client.rate) * chance.uniform(0.7, 1.3))
                wanted += max(client.rate * _STEP, 1.0)
                room = client.window - (sent - self._target.by_path[path])
                count = min(int(wanted), room)
                if count > 0:
                    wanted, sent = wanted - count, sent + count
                    await self._send(door, [NewJob(target, next(events)) for _ in range(count)])

    async def _send(self, door: TenantryClient, jobs: Sequence[NewJob]) -> None:
        try:
            if len(jobs) == 1:
                self._accepted(await door.submit(jobs[0]))
            else:
                self._accepted(await door.submit_batch(jobs))
        except Over:
            return

    # -- the burst -------------------------------------------------------------------------------------

    async def _burst(self) -> None:
        go = self._go
        client = next(each for each in go.clients if each.tenant == go.burst_tenant)
        events, target = cycle(payloads(largest=_SMALL)), self._url(client)
        await self._idle(go.burst_at)
        async with self._client(client, _PATIENT) as door, asyncio.TaskGroup() as group:
            for _ in range(go.burst_jobs // go.burst_batch):
                jobs = [NewJob(target, event) for event in islice(events, go.burst_batch)]
                group.create_task(self._send(door, jobs))
                await asyncio.sleep(0)  # the targets share this loop: they must not notice
            say(Burst())

    # ---------------------------------------------------------------------------------------------------

    def _client(self, client: Client, retries: Retries) -> TenantryClient:
        around = Surroundings(self._clock, SystemRandomness(), self._pause)
        return TenantryClient(self._go.api_url, client.api_key, retries=retries, surroundings=around)

    def _url(self, client: Client) -> TargetName:
        return TargetName(self._target.url + _path(client))

    async def _pause(self, seconds: Seconds) -> None:
        """How a client waits before it comes back. Raises :class:`Over` when it need not any more."""
        await self._idle(seconds)
        if self._over.is_set():
            raise Over

    async def _idle(self, seconds: Seconds) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return

    def _accepted(self, answer: Ticket | tuple[Ticket, ...] | Refusal) -> None:
        if isinstance(answer, Refusal):
            return  # the node has counted it
        tickets = (answer,) if isinstance(answer, Ticket) else answer
        self._tickets.extend(ticket.id for ticket in tickets)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(_TELL_EVERY)
            self._tell_now()

    def _tell_now(self) -> None:
        if self._tickets:
            say(Accepted(self._tickets))
            self._tickets = []


def say(said: Said) -> None:
    """One line on standard output."""
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def _path(client: Client) -> str:
    return f"/hooks/{client.tenant}"


def _from(events: tuple[bytes, ...], place: int) -> "cycle[bytes]":
    """The events, for ever; each tenant begins elsewhere."""
    line = deque(events)
    line.rotate(-place * 5)
    return cycle(line)


async def main() -> None:
    lines = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    first = await lines.readline()
    if not first:
        return
    async with Target(remember=0) as target:
        running = asyncio.create_task(Crowd(msgspec.json.decode(first, type=Go), target).run())
        gone = asyncio.create_task(lines.read())  # nothing more is said: it returns when the pipe closes
        await asyncio.wait([running, gone], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
            await gone
        running.cancel()
        await asyncio.wait([running])


if __name__ == "__main__":
    run(main())
