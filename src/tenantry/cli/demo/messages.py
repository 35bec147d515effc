"""What the demo and its other processes say to each other: one JSON object a line, on their standard input
and output."""

import asyncio
import sys
from typing import TypeVar

import msgspec

from tenantry.kernel.instant import Seconds

T = TypeVar("T")


class Open(msgspec.Struct, frozen=True, tag="open"):
    """To the door: serve the API on the database of the superuser's URL ``admin``, until the pipe closes.

    ``home``: the temporary directory. ``demo``: the process id of the demo; when that is gone without having
    cleaned up, the door does."""

    admin: str
    home: str
    demo: int


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """From the door: it serves at ``url``."""

    url: str


class In(msgspec.Struct, frozen=True, tag="in"):
    """From the door: ``count`` jobs of one submit were accepted."""

    tenant: str
    count: int


class Out(msgspec.Struct, frozen=True, tag="out"):
    """From the door: a submit of ``count`` jobs was refused."""

    tenant: str
    count: int


class Client(msgspec.Struct, frozen=True):
    """One tenant's client: see :class:`tenantry.cli.demo.scenario.Member`."""

    tenant: str
    api_key: str
    rate: float
    window: int
    answer_for: Seconds


class BurstOrder(msgspec.Struct, frozen=True):
    """``jobs`` jobs for the target ``url``, ``batch`` a call, all at once, ``at`` seconds after the start."""

    client: Client
    url: str
    jobs: int
    batch: int
    at: Seconds


class Go(msgspec.Struct, frozen=True, tag="go"):
    """To a crowd: begin. Its last word is :class:`Done`; then it only answers deliveries, until the pipe
    closes."""

    api_url: str
    seconds: Seconds
    clients: list[Client] = []
    burst: BurstOrder | None = None


class Began(msgspec.Struct, frozen=True, tag="began"):
    """From a crowd: its clients begin. ``url``: where its target is."""

    url: str


class Burst(msgspec.Struct, frozen=True, tag="burst"):
    """From a crowd: the burst begins."""


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """From a crowd: the ids of jobs for which a client holds a ticket."""

    ids: list[str]


class Done(msgspec.Struct, frozen=True, tag="done"):
    """From a crowd: no client sends any more."""


Said = Began | Burst | Accepted | Done
DoorSaid = Opened | In | Out
SAID: "msgspec.json.Decoder[Said]" = msgspec.json.Decoder(Said)
DOOR_SAID: "msgspec.json.Decoder[DoorSaid]" = msgspec.json.Decoder(DoorSaid)


def hook(tenant: str) -> str:
    """The path of a tenant's target."""
    return f"/hooks/{tenant}"


def say(said: msgspec.Struct) -> None:
    """One line on standard output."""
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


async def orders() -> asyncio.StreamReader:
    """Standard input, line by line."""
    lines = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    return lines


async def order(kind: type[T]) -> tuple[T | None, "asyncio.Task[bytes]"]:
    """What standard input says, None if nothing; and a task that ends when standard input closes."""
    lines = await orders()
    first = await lines.readline()
    gone = asyncio.create_task(lines.read())
    return (msgspec.json.decode(first, type=kind) if first else None), gone
