"""The outside world of the demo: clients and their targets, in processes of their own.

One process has the fifty steady clients and the targets, another the burst, so that its sheer size slows no
target down. Each client is the product's own, with a real API key, over the real HTTP API. A process
reads :class:`Go` from standard input and writes what it learns to standard output; when standard input
closes, it ends.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import cycle, islice

from tenantry.cli.demo.messages import Accepted, Began, Burst, BurstOrder, Client, Done, Go, hook, order, say
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
_SMALL = 1_600
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
        say(Began(self._target.url))
        began = self._clock.monotonic()
        telling = asyncio.create_task(self._tell())
        async with asyncio.TaskGroup() as group:
            for place, client in enumerate(self._go.clients):
                group.create_task(self._steady(client, place))
            if self._go.burst is not None:
                group.create_task(self._burst(self._go.burst))
            await asyncio.sleep(self._go.seconds - (self._clock.monotonic() - began))
            self._over.set()
        telling.cancel()
        self._tell_now()
        say(Done())

    # -- steady clients --------------------------------------------------------------------------------

    async def _steady(self, client: Client, place: int) -> None:
        chance, wanted, sent = SeededRandomness(place), 0.0, 0
        events, path = _from(payloads(), place), hook(client.tenant)
        target = TargetName(self._target.url + path)
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

    async def _burst(self, burst: BurstOrder) -> None:
        events, target = cycle(payloads(largest=_SMALL)), TargetName(burst.url)
        await self._idle(burst.at)
        say(Burst())
        async with self._client(burst.client, _PATIENT) as door, asyncio.TaskGroup() as group:
            for _ in range(burst.jobs // burst.batch):
                jobs = [NewJob(target, event) for event in islice(events, burst.batch)]
                group.create_task(self._send(door, jobs))

    # ---------------------------------------------------------------------------------------------------

    def _client(self, client: Client, retries: Retries) -> TenantryClient:
        around = Surroundings(self._clock, SystemRandomness(), self._pause)
        return TenantryClient(self._go.api_url, client.api_key, retries=retries, surroundings=around)

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


def _from(events: tuple[bytes, ...], place: int) -> "cycle[bytes]":
    """The events, for ever; each tenant begins elsewhere."""
    line = deque(events)
    line.rotate(-place * 5)
    return cycle(line)


async def main() -> None:
    go, gone = await order(Go)
    if go is None:
        return
    async with Target(remember=0) as target:
        running = asyncio.create_task(Crowd(go, target).run())
        await asyncio.wait([running, gone], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
            await gone
        running.cancel()
        await asyncio.wait([running])


if __name__ == "__main__":
    run(main())
